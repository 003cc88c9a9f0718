package wire

import (
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
)

// The rules of a few APIs, as wire has them.
var (
	ecsRules = rules{
		CamelCase:   true,
		Unions:      ECSUnions,
		NewDocument: func(v any) any { return document.NewLazyDocument(v) },
	}
	logsRules = rules{
		CamelCase: true,
		Unions:    LogsUnions,
	}
	stsRules = rules{
		Names: map[string]string{"PolicyDescriptorType.Arn": "arn"},
	}
	cloudWatchRules = rules{
		Unions: CloudWatchUnions,
	}
)
