package elb

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Elastic Load Balancing to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "elasticloadbalancing",
		Title:       "Elastic Load Balancing",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2015-12-01",
		Namespace:   "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/",
		Operations:  modelOperations,
		Statuses:    modelStatuses,
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Service:     service,
	}
}
