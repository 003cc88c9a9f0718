package ecs

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
)

// The errors of ECS, with the codes that clients check.

func invalidParameter(format string, args ...any) error {
	return &types.InvalidParameterException{Message: account.Message(format, args...)}
}

func clientError(format string, args ...any) error {
	return &types.ClientException{Message: account.Message(format, args...)}
}

func clusterNotFound() error {
	return &types.ClusterNotFoundException{Message: account.Message("Cluster not found.")}
}

func serviceNotFound() error {
	return &types.ServiceNotFoundException{Message: account.Message("Service not found.")}
}

func serviceNotActive() error {
	return &types.ServiceNotActiveException{Message: account.Message("Service was not ACTIVE.")}
}

func resourceNotFound(format string, args ...any) error {
	return &types.ResourceNotFoundException{Message: account.Message(format, args...)}
}

func unsupported(format string, args ...any) error {
	return &types.UnsupportedFeatureException{Message: account.Message(format, args...)}
}

// checkOneOf refuses a value that isn't one of those that there are. "" is what was left out.
func checkOneOf[T ~string](field string, known []T, given ...T) error {
	for _, value := range given {
		if value != "" && !slices.Contains(known, value) {
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = string(k)
			}
			slices.Sort(names)
			return invalidParameter("%s should be one of [%s]", field, strings.Join(names, ","))
		}
	}
	return nil
}

// missing returns the failure that describe calls report for an ARN that doesn't exist.
func missing(arn string) types.Failure {
	reason := "MISSING"
	return types.Failure{Arn: &arn, Reason: &reason}
}
