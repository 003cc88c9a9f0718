package elb

import (
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
)

// The errors of Elastic Load Balancing. Clients know them by their codes.

// invalid returns a ValidationError. The service's model lacks it; CommonErrors in the API reference has it.
func invalid(format string, args ...any) error {
	return account.Refuse("ValidationError", format, args...)
}

func badConfiguration(format string, args ...any) error {
	return &types.InvalidConfigurationRequestException{Message: account.Message(format, args...)}
}

func badAction(format string, args ...any) error {
	return &types.InvalidLoadBalancerActionException{Message: account.Message(format, args...)}
}

func badProtocol(format string, args ...any) error {
	return &types.UnsupportedProtocolException{Message: account.Message(format, args...)}
}

func inUse(format string, args ...any) error {
	return &types.ResourceInUseException{Message: account.Message(format, args...)}
}

func notPermitted(format string, args ...any) error {
	return &types.OperationNotPermittedException{Message: account.Message(format, args...)}
}

func noLoadBalancer(arn string) error {
	return &types.LoadBalancerNotFoundException{Message: account.Message("Load balancer '%s' not found", arn)}
}

func noTargetGroup(arn string) error {
	return &types.TargetGroupNotFoundException{Message: account.Message("Target group '%s' not found", arn)}
}

func noRule() error {
	return &types.RuleNotFoundException{Message: account.Message("One or more rules not found")}
}

// notSupported refuses what AWS has and Pintle hasn't.
func notSupported(what string) error {
	return badConfiguration("%s is not supported by Pintle", what)
}
