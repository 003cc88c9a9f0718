package events

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon EventBridge to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:         "events",
		Title:        "Amazon EventBridge",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "AWSEvents",
		Operations:   modelOperations,
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Names: map[string]string{
			"CapacityProviderStrategyItem.Base":             "base",
			"CapacityProviderStrategyItem.CapacityProvider": "capacityProvider",
			"CapacityProviderStrategyItem.Weight":           "weight",
			"NetworkConfiguration.AwsvpcConfiguration":      "awsvpcConfiguration",
			"PlacementConstraint.Expression":                "expression",
			"PlacementConstraint.Type":                      "type",
			"PlacementStrategy.Field":                       "field",
			"PlacementStrategy.Type":                        "type",
		},
		Service: service,
	}
}
