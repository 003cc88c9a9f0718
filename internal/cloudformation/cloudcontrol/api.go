package cloudcontrol

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes the Cloud Control API to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:         "cloudcontrolapi",
		Title:        "AWS Cloud Control API",
		Protocols:    []model.Protocol{model.JSON10},
		TargetPrefix: "CloudApiService",
		Operations:   modelOperations,
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Service:      service,
	}
}
