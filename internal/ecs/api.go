package ecs

import (
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon ECS, with service answering its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:         "ecs",
		Title:        "Amazon ECS",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "AmazonEC2ContainerServiceV20141113",
		Unavailable:  "ServerException",
		CamelCase:    true,
		Operations:   modelOperations,
		Unions:       modelUnions,
		NewDocument:  func(v any) any { return document.NewLazyDocument(v) },
		Lenient: []string{
			"RegisterContainerInstance", "DiscoverPollEndpoint",
			"SubmitTaskStateChange", "SubmitContainerStateChange", "SubmitAttachmentStateChanges",
		},
		Service: service,
	}
}
