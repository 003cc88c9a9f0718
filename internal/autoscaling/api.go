package autoscaling

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes EC2 Auto Scaling. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:        "autoscaling",
		Title:       "EC2 Auto Scaling",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2011-01-01",
		Namespace:   "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		Operations:  modelOperations,
		Statuses:    modelStatuses,
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Names:       map[string]string{"CpuPerformanceFactorRequest.References": "Reference"},
		Places:      map[string]model.Place{"CpuPerformanceFactorRequest.References": {Item: "item"}},
		Service:     service,
	}
}
