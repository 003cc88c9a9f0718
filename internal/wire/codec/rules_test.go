package codec

import (
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
	"github.com/pintle/pintle/internal/wire/model"
)

// The rules of a few APIs, as wire has them.
var (
	ecsRules = Rules{
		CamelCase:   true,
		Unions:      model.ECSUnions,
		NewDocument: func(v any) any { return document.NewLazyDocument(v) },
	}
	logsRules = Rules{
		CamelCase: true,
		Unions:    model.LogsUnions,
	}
	stsRules = Rules{
		Names: map[string]string{"PolicyDescriptorType.Arn": "arn"},
	}
	cloudWatchRules = Rules{
		Unions: model.CloudWatchUnions,
	}
)
