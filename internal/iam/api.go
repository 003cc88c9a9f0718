package iam

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes IAM to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "iam",
		Title:       "AWS IAM",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2010-05-08",
		Namespace:   "https://iam.amazonaws.com/doc/2010-05-08/",
		Operations:  modelOperations,
		Unions:      modelUnions,
		Statuses:    modelStatuses,
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Names:       map[string]string{"ListDelegationRequestsOutput.IsTruncated": "isTruncated"},
		Service:     service,
	}
}
