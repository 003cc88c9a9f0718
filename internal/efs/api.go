package efs

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon EFS to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "elasticfilesystem",
		Title:       "Amazon EFS",
		Protocols:   []model.Protocol{model.RESTJSON},
		Operations:  modelOperations,
		Constraints: model.Constraints{Code: badRequest, Table: modelConstraints},
		Routes:      modelRoutes,
		Places:      modelPlaces,
		Statuses:    modelStatuses,
		Service:     service,
	}
}
