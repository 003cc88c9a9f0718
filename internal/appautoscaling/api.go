package appautoscaling

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Application Auto Scaling. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:         "application-autoscaling",
		Title:        "Application Auto Scaling",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "AnyScaleFrontendService",
		Unavailable:  "InternalServiceException",
		Operations:   modelOperations,
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Service:      service,
	}
}
