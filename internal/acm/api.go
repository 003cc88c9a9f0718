package acm

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes AWS Certificate Manager to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:         "acm",
		Title:        "AWS Certificate Manager",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "CertificateManager",
		Operations:   modelOperations,
		Refuses:      []string{"RequestCertificate"},
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Names: map[string]string{
			"Filters.ExportOption":     "exportOption",
			"Filters.ExtendedKeyUsage": "extendedKeyUsage",
			"Filters.KeyTypes":         "keyTypes",
			"Filters.KeyUsage":         "keyUsage",
			"Filters.ManagedBy":        "managedBy",
		},
		Service: service,
	}
}
