package ecs

import (
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/go-json-experiment/json"
)

// How many bytes of JSON ECS takes. The service quotas give a task definition's, API_RunTask those of overrides.
const (
	maxDefinitionBytes = 64 << 10
	maxOverridesBytes  = 8192
)

func checkDefinitionSize(in *ecs.RegisterTaskDefinitionInput) error {
	n, err := bytesOf(in)
	if err != nil {
		return err
	}
	if n > maxDefinitionBytes {
		return clientError("Actual length: '%d'. Max allowed length is '%d' bytes.", n, maxDefinitionBytes)
	}
	return nil
}

func checkOverridesSize(o *types.TaskOverride) error {
	n, err := bytesOf(o)
	if err != nil {
		return err
	}
	if n > maxOverridesBytes {
		return invalidParameter("Container Overrides length must be at most %d, and these have %d.", maxOverridesBytes, n)
	}
	return nil
}

// bytesOf returns how long a value is as compact JSON. The SDK's fields are as long as the members that they are named for.
func bytesOf(v any) (int, error) {
	b, err := json.Marshal(v, json.OmitZeroStructFields(true))
	return len(b), err
}
