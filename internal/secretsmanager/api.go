package secretsmanager

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Secrets Manager. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:         "secretsmanager",
		Title:        "AWS Secrets Manager",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "secretsmanager",
		Unavailable:  "InternalServiceError",
		Operations:   modelOperations,
		Refuses:      []string{"RotateSecret"},
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Service:      service,
	}
}
