package ecs

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
)

// maxTargetGroups is how many target groups a service can have: "Register multiple target groups with an Amazon ECS service".
const maxTargetGroups = 5

// checkLoadBalancers checks load balancers without looking at the store.
func checkLoadBalancers(all []types.LoadBalancer) error {
	if len(all) > maxTargetGroups {
		return invalidParameter("load balancers can have at most %d items.", maxTargetGroups)
	}
	for i, b := range all {
		switch {
		case slices.ContainsFunc(all[:i], func(other types.LoadBalancer) bool { return sameTarget(other, b) }):
			return invalidParameter("loadBalancers has the target group %s with container %s and port %d twice.",
				aws.ToString(b.TargetGroupArn), aws.ToString(b.ContainerName), aws.ToInt32(b.ContainerPort))
		case aws.ToString(b.LoadBalancerName) != "":
			return invalidParameter("loadBalancers.loadBalancerName %q is of a Classic Load Balancer, which is not supported by Pintle: "+
				"give a targetGroupArn.", *b.LoadBalancerName)
		case aws.ToString(b.TargetGroupArn) == "":
			return invalidParameter("targetGroupArn cannot be empty.")
		case aws.ToString(b.ContainerName) == "":
			return invalidParameter("Container name cannot be empty.")
		case b.ContainerPort == nil:
			return invalidParameter("Container port cannot be empty.")
		}
	}
	return checkAdvanced(all)
}

// sameTarget reports whether two load balancers would register a task as the same target.
func sameTarget(a, b types.LoadBalancer) bool {
	return aws.ToString(a.TargetGroupArn) == aws.ToString(b.TargetGroupArn) && aws.ToString(a.ContainerName) == aws.ToString(b.ContainerName) &&
		aws.ToInt32(a.ContainerPort) == aws.ToInt32(b.ContainerPort)
}

// resolveLoadBalancers checks load balancers against a task definition, and against the target groups that there are.
func resolveLoadBalancers(v *state.View, td *state.TaskDefinition, all []types.LoadBalancer) error {
	if len(all) == 0 {
		return nil
	}
	users := v.LoadBalancersOf()
	for _, b := range all {
		if err := checkContainerPort(td, &b); err != nil {
			return err
		}
		g := v.TargetGroups.Get(*b.TargetGroupArn)
		if g == nil {
			return invalidParameter("Unable to assume role and validate the specified targetGroupArn: the target group %s does not exist.",
				*b.TargetGroupArn)
		}
		if len(users[*b.TargetGroupArn]) == 0 {
			return invalidParameter("The target group with targetGroupArn %s does not have an associated load balancer.", *b.TargetGroupArn)
		}
		mode := td.NetworkMode
		if mode == "" {
			mode = types.NetworkModeBridge
		}
		if (g.TargetType == elb.TargetTypeEnumIp) != (mode == types.NetworkModeAwsvpc) {
			return invalidParameter("The provided target group %s has target type %s, which is incompatible with the %s network mode "+
				"specified in the task definition.", *b.TargetGroupArn, g.TargetType, mode)
		}
		if err := resolveAdvanced(v, &b); err != nil {
			return err
		}
	}
	return nil
}

// checkContainerPort refuses a container or a port that a task definition doesn't have.
func checkContainerPort(td *state.TaskDefinition, b *types.LoadBalancer) error {
	i := slices.IndexFunc(td.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		return aws.ToString(c.Name) == *b.ContainerName
	})
	if i < 0 {
		return invalidParameter("The container %s does not exist in the task definition.", *b.ContainerName)
	}
	for _, p := range td.ContainerDefinitions[i].PortMappings {
		if aws.ToInt32(p.ContainerPort) == *b.ContainerPort && p.Protocol != types.TransportProtocolUdp {
			return nil
		}
	}
	return invalidParameter("The container %s did not have a container port %d defined.", *b.ContainerName, *b.ContainerPort)
}
