package schedules

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon EventBridge Scheduler to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "scheduler",
		Title:       "Amazon EventBridge Scheduler",
		Protocols:   []model.Protocol{model.RESTJSON},
		Operations:  modelOperations,
		Constraints: model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Routes:      modelRoutes,
		Places:      modelPlaces,
		Statuses:    modelStatuses,
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
