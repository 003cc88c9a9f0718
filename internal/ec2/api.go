package ec2

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon EC2, answered by a service.
func API(service call.Service) model.API {
	return model.API{
		Name:       "ec2",
		Title:      "Amazon EC2",
		Protocols:  []model.Protocol{model.EC2Query},
		Version:    "2016-11-15",
		Namespace:  "http://ec2.amazonaws.com/doc/2016-11-15/",
		CamelCase:  true,
		Names:      modelNames,
		InputNames: modelInputNames,
		Places:     modelPlaces,
		Operations: modelOperations,
		Service:    service,
	}
}
