package lambda

import (
	"maps"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// maxBody is the most bytes of a request: a function's zip of 50 MB, in Base64.
const maxBody = 70 << 20

// places returns where members are. The generated table doesn't know of those that are an answer's status.
func places() map[string]model.Place {
	all := maps.Clone(modelPlaces)
	for _, name := range []string{"InvokeOutput.StatusCode", "DeleteFunctionOutput.StatusCode"} {
		all[name] = model.Place{In: model.InStatus, Name: "StatusCode"}
	}
	return all
}

// API describes AWS Lambda to the wire, which calls service for each operation.
func API(service call.Service) model.API {
	return model.API{
		Name:        "lambda",
		Title:       "AWS Lambda",
		Protocols:   []model.Protocol{model.RESTJSON},
		Operations:  modelOperations,
		Constraints: model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Routes:      modelRoutes,
		Places:      places(),
		Statuses:    modelStatuses,
		MaxBody:     maxBody,
		Service:     service,
	}
}
