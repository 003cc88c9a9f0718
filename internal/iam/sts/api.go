package sts

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes the Security Token Service to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "sts",
		Title:       "AWS STS",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2011-06-15",
		Namespace:   "https://sts.amazonaws.com/doc/2011-06-15/",
		Operations:  modelOperations,
		Statuses:    modelStatuses,
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Names:       map[string]string{"PolicyDescriptorType.Arn": "arn"},
		Service:     service,
	}
}
