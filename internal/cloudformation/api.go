package cloudformation

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes AWS CloudFormation to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "cloudformation",
		Title:       "AWS CloudFormation",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2010-05-15",
		Namespace:   "http://cloudformation.amazonaws.com/doc/2010-05-15/",
		Operations:  modelOperations,
		Statuses:    modelStatuses,
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Service:     service,
	}
}
