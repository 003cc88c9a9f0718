package wire

import (
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
)

// What clients know of each service. The argument is the value whose methods answer.

// ECS is Amazon ECS.
func ECS(service any) API {
	return API{
		Name: "ecs", Title: "Amazon ECS", Protocols: []Protocol{JSON11}, TargetPrefix: "AmazonEC2ContainerServiceV20141113",
		CamelCase: true, Operations: ECSOperations, Unions: ECSUnions, Service: service,
		NewDocument: func(v any) any { return document.NewLazyDocument(v) },
		Lenient: []string{
			"RegisterContainerInstance", "DiscoverPollEndpoint",
			"SubmitTaskStateChange", "SubmitContainerStateChange", "SubmitAttachmentStateChanges",
		},
	}
}

// Logs is CloudWatch Logs.
func Logs(service any) API {
	return API{
		Name: "logs", Title: "CloudWatch Logs", Protocols: []Protocol{JSON11}, TargetPrefix: "Logs_20140328",
		CamelCase: true, Operations: LogsOperations, Service: service,
		MaxBody: 4 << 20, // PutLogEvents takes 1 MiB of text and up to 10,000 events; JSON adds its escapes and names
		Unions:  LogsUnions,
		Names:   map[string]string{"DescribeDestinationsInput.DestinationNamePrefix": "DestinationNamePrefix"},
	}
}

// CloudWatch is Amazon CloudWatch. Its newest clients speak CBOR, older ones JSON, and the oldest Query.
func CloudWatch(service any) API {
	return API{
		Name: "monitoring", Title: "Amazon CloudWatch", Protocols: []Protocol{CBOR, JSON10, Query}, TargetPrefix: "GraniteServiceVersion20100801",
		Version: "2010-08-01", Namespace: "http://monitoring.amazonaws.com/doc/2010-08-01/", QueryErrors: queryErrors(cloudwatch.TypeRegistry),
		Operations: CloudWatchOperations, Unions: CloudWatchUnions, Service: service,
		Names: map[string]string{
			"DashboardInvalidInputError.Message": "message", "DashboardInvalidInputError.DashboardValidationMessages": "dashboardValidationMessages",
			"DashboardNotFoundError.Message": "message", "InvalidFormatFault.Message": "message", "InvalidNextToken.Message": "message",
			"InvalidParameterCombinationException.Message": "message", "InvalidParameterValueException.Message": "message",
			"LimitExceededFault.Message": "message", "MissingRequiredParameterException.Message": "message", "ResourceNotFound.Message": "message",
		},
	}
}

// EC2 is Amazon EC2.
func EC2(service any) API {
	return API{
		Name: "ec2", Title: "Amazon EC2", Protocols: []Protocol{EC2Query}, Version: "2016-11-15", Namespace: "http://ec2.amazonaws.com/doc/2016-11-15/",
		CamelCase: true, Names: EC2Names, InputNames: EC2InputNames, Operations: EC2Operations, Service: service,
	}
}

// STS is the Security Token Service.
func STS(service any) API {
	return API{
		Name: "sts", Title: "AWS STS", Protocols: []Protocol{Query}, Version: "2011-06-15", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
		Operations: STSOperations, Service: service,
		Names: map[string]string{"PolicyDescriptorType.Arn": "arn"},
	}
}

// ApplicationAutoScaling is Application Auto Scaling.
func ApplicationAutoScaling(service any) API {
	return API{
		Name: "application-autoscaling", Title: "Application Auto Scaling", Protocols: []Protocol{JSON11}, TargetPrefix: "AnyScaleFrontendService",
		Operations: ApplicationAutoScalingOperations, Service: service,
	}
}

// AutoScaling is EC2 Auto Scaling.
func AutoScaling(service any) API {
	return API{
		Name: "autoscaling", Title: "EC2 Auto Scaling", Protocols: []Protocol{Query}, Version: "2011-01-01", Namespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		Operations: AutoScalingOperations, Service: service,
	}
}
