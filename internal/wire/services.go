package wire

import (
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
