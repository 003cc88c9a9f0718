package ecr

import (
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes ECR. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:         "ecr",
		Title:        "Amazon ECR",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "AmazonEC2ContainerRegistry_V20150921",
		CamelCase:    true,
		Names:        map[string]string{"Tag.Key": "Key", "Tag.Value": "Value"},
		Operations:   modelOperations,
		Constraints:  model.Constraints{Code: "InvalidParameterException", Table: modelConstraints, Worded: worded},
		MaxBody:      maxBody,
		Service:      service,
	}
}

// maxBody has room for a part of a layer, of 20 MiB, in base64.
const maxBody = 28 << 20

// inForm returns the message of an InvalidParameterException.
func inForm(place, constraint string) string {
	return fmt.Sprintf("Invalid parameter at '%s' failed to satisfy constraint: '%s'", place, constraint)
}

// worded words what the model's constraints refuse as ECR does: of a repository's name, which it checks by itself, differently.
func worded(place, constraint string) string {
	if place == "repositoryName" {
		constraint = strings.TrimPrefix(constraint, "Member ")
		if pattern, ok := strings.CutPrefix(constraint, "must satisfy regular expression pattern: "); ok {
			constraint = "must satisfy regular expression '" + strings.ReplaceAll(pattern, `\/`, "/") + "'"
		}
	}
	return inForm(place, constraint)
}
