package ecs

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// The errors of ECS, each with the code that its clients know by name.

func invalidParameter(format string, args ...any) error {
	return &types.InvalidParameterException{Message: message(format, args)}
}

func clientError(format string, args ...any) error {
	return &types.ClientException{Message: message(format, args)}
}

func clusterNotFound() error {
	return &types.ClusterNotFoundException{Message: message("Cluster not found.", nil)}
}

func serviceNotFound() error {
	return &types.ServiceNotFoundException{Message: message("Service not found.", nil)}
}

func serviceNotActive() error {
	return &types.ServiceNotActiveException{Message: message("Service was not ACTIVE.", nil)}
}

func resourceNotFound(format string, args ...any) error {
	return &types.ResourceNotFoundException{Message: message(format, args)}
}

func unsupported(format string, args ...any) error {
	return &types.UnsupportedFeatureException{Message: message(format, args)}
}

func message(format string, args []any) *string {
	m := format
	if len(args) > 0 {
		m = fmt.Sprintf(format, args...)
	}
	return &m
}

// missing is the failure of a describe call for what is not there.
func missing(arn string) types.Failure {
	reason := "MISSING"
	return types.Failure{Arn: &arn, Reason: &reason}
}
