package wire

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/rest"
	"github.com/pintle/pintle/internal/wire/validation"
)

// What clients know of each service. The argument is what answers.

// ECS is Amazon ECS.
func ECS(service Service) API {
	return API{
		Name: "ecs", Title: "Amazon ECS", Protocols: []Protocol{JSON11}, TargetPrefix: "AmazonEC2ContainerServiceV20141113",
		CamelCase: true, Operations: model.ECSOperations, Unions: model.ECSUnions, Service: service,
		NewDocument: func(v any) any { return document.NewLazyDocument(v) },
		Lenient: []string{
			"RegisterContainerInstance", "DiscoverPollEndpoint",
			"SubmitTaskStateChange", "SubmitContainerStateChange", "SubmitAttachmentStateChanges",
		},
	}
}

// Logs is CloudWatch Logs.
func Logs(service Service) API {
	return API{
		Name: "logs", Title: "CloudWatch Logs", Protocols: []Protocol{JSON11}, TargetPrefix: "Logs_20140328",
		CamelCase: true, Operations: model.LogsOperations, Validation: validation.Logs, Service: service,
		MaxBody: 4 << 20, // PutLogEvents takes 1 MiB of text and up to 10,000 events; JSON adds its escapes and names
		Unions:  model.LogsUnions,
		Names:   map[string]string{"DescribeDestinationsInput.DestinationNamePrefix": "DestinationNamePrefix"},
	}
}

// CloudWatch is Amazon CloudWatch. Its newest clients speak CBOR, older ones JSON, and the oldest Query.
func CloudWatch(service Service) API {
	return API{
		Name: "monitoring", Title: "Amazon CloudWatch", Protocols: []Protocol{CBOR, JSON10, Query}, TargetPrefix: "GraniteServiceVersion20100801",
		Version: "2010-08-01", Namespace: "http://monitoring.amazonaws.com/doc/2010-08-01/", QueryErrors: queryErrors(cloudwatch.TypeRegistry),
		Operations: model.CloudWatchOperations, Validation: validation.CloudWatch, Unions: model.CloudWatchUnions, Service: service,
		Names: map[string]string{
			"DashboardInvalidInputError.Message": "message", "DashboardInvalidInputError.DashboardValidationMessages": "dashboardValidationMessages",
			"DashboardNotFoundError.Message": "message", "InvalidFormatFault.Message": "message", "InvalidNextToken.Message": "message",
			"InvalidParameterCombinationException.Message": "message", "InvalidParameterValueException.Message": "message",
			"LimitExceededFault.Message": "message", "MissingRequiredParameterException.Message": "message", "ResourceNotFound.Message": "message",
		},
	}
}

// EC2 is Amazon EC2.
func EC2(service Service) API {
	return API{
		Name: "ec2", Title: "Amazon EC2", Protocols: []Protocol{EC2Query}, Version: "2016-11-15", Namespace: "http://ec2.amazonaws.com/doc/2016-11-15/",
		CamelCase: true, Names: model.EC2Names, InputNames: model.EC2InputNames, Places: model.EC2Places, Operations: model.EC2Operations, Service: service,
	}
}

// SQS is Amazon SQS. Its clients speak JSON; older ones speak Query, to the URL of the queue.
func SQS(service Service) API {
	api := API{
		Name: "sqs", Title: "Amazon SQS", Protocols: []Protocol{JSON10, Query}, TargetPrefix: "AmazonSQS", ErrorSpace: "com.amazonaws.sqs#",
		Version: "2012-11-05", Namespace: "http://queue.amazonaws.com/doc/2012-11-05/", QueryErrors: queryErrors(sqs.TypeRegistry),
		Operations: model.SQSOperations, FormNames: model.SQSFormNames, URLMember: "QueueUrl", TellZero: true, Service: service,
		MaxBody: 8 << 20, // a message is up to 1 MiB; JSON and forms add their escapes
		Names: map[string]string{
			"CreateQueueInput.Tags": "tags", "ListDeadLetterSourceQueuesOutput.QueueUrls": "queueUrls",
		},
	}
	for _, entry := range sqs.TypeRegistry.Entries {
		if _, ok := entry.New().(smithy.APIError); ok {
			api.Names[entry.Schema.ID().Name+".Message"] = "message"
		}
	}
	for name, code := range map[string]string{ // that the model does not have
		"InvalidParameterValueException": "InvalidParameterValue", "MissingRequiredParameterException": "MissingParameter", "AccessDeniedException": "AccessDenied",
	} {
		api.QueryErrors[name] = QueryError{code, http.StatusBadRequest}
	}
	return api
}

// STS is the Security Token Service.
func STS(service Service) API {
	return API{
		Name: "sts", Title: "AWS STS", Protocols: []Protocol{Query}, Version: "2011-06-15", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
		Operations: model.STSOperations, Statuses: model.STSStatuses, Validation: validation.STS, Service: service,
		Names: map[string]string{"PolicyDescriptorType.Arn": "arn"},
	}
}

// ApplicationAutoScaling is Application Auto Scaling.
func ApplicationAutoScaling(service Service) API {
	return API{
		Name: "application-autoscaling", Title: "Application Auto Scaling", Protocols: []Protocol{JSON11}, TargetPrefix: "AnyScaleFrontendService",
		Operations: model.ApplicationAutoScalingOperations, Validation: validation.ApplicationAutoScaling, Service: service,
	}
}

// S3 is Amazon S3.
func S3(service Service) API {
	return API{
		Name: "s3", Title: "Amazon S3", REST: rest.S3, Namespace: "http://s3.amazonaws.com/doc/2006-03-01/", MaxBody: 8 << 20, // of XML: 10,000 parts, or 1,000 keys
		Operations: model.S3Operations, Unions: model.S3Unions, Routes: model.S3Routes, Places: model.S3Places, Service: service,
		// As the API reference names them, where that is not what the SDK's struct is called.
		Roots: map[string]string{
			"CompleteMultipartUpload": "CompleteMultipartUploadResult", "CreateMultipartUpload": "InitiateMultipartUploadResult",
			"DeleteObjects": "DeleteResult", "GetBucketAcl": "AccessControlPolicy", "GetBucketCors": "CORSConfiguration",
			"GetBucketLocation": "LocationConstraint", "GetBucketNotificationConfiguration": "NotificationConfiguration",
			"GetBucketRequestPayment": "RequestPaymentConfiguration", "GetBucketTagging": "Tagging", "GetBucketVersioning": "VersioningConfiguration",
			"GetBucketAccelerateConfiguration": "AccelerateConfiguration", "GetBucketLogging": "BucketLoggingStatus",
			"GetObjectAcl": "AccessControlPolicy", "GetObjectAttributes": "GetObjectAttributesResponse", "GetObjectTagging": "Tagging",
			"ListBuckets": "ListAllMyBucketsResult", "ListMultipartUploads": "ListMultipartUploadsResult", "ListObjectVersions": "ListVersionsResult",
			"ListObjects": "ListBucketResult", "ListObjectsV2": "ListBucketResult", "ListParts": "ListPartsResult",
			"CopyObject": "CopyObjectResult", "UploadPartCopy": "CopyPartResult",
		},
	}
}

// AutoScaling is EC2 Auto Scaling.
func AutoScaling(service Service) API {
	return API{
		Name: "autoscaling", Title: "EC2 Auto Scaling", Protocols: []Protocol{Query}, Version: "2011-01-01", Namespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		Operations: model.AutoScalingOperations, Statuses: model.AutoScalingStatuses, Validation: validation.AutoScaling, Service: service,
		Names:  map[string]string{"CpuPerformanceFactorRequest.References": "Reference"},
		Places: map[string]model.Place{"CpuPerformanceFactorRequest.References": {Item: "item"}},
	}
}
