package servicediscovery

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes AWS Cloud Map to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:         "servicediscovery",
		Title:        "AWS Cloud Map",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "Route53AutoNaming_v20170314",
		Operations:   modelOperations,
		Refuses:      []string{"CreatePublicDnsNamespace", "UpdatePublicDnsNamespace"},
		Constraints:  model.Constraints{Code: "InvalidInput", Table: modelConstraints},
		Service:      service,
	}
}
