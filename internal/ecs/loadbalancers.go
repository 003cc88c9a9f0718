package ecs

import (
	"cmp"
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
		g := v.TargetGroups.Get(*b.TargetGroupArn)
		transport := types.TransportProtocolTcp
		if g != nil {
			transport = g.Transport()
		}
		if err := checkContainerPort(td, &b, transport); err != nil {
			return err
		}
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
		if err := cmp.Or(checkBothPorts(td, &b, g), resolveAdvanced(v, &b)); err != nil {
			return err
		}
	}
	return nil
}

// checkBothPorts refuses a container whose ports for TCP and for UDP may be bound to different ones, in a group that has a port for both.
func checkBothPorts(td *state.TaskDefinition, b *types.LoadBalancer, g *state.TargetGroup) error {
	if g.Protocol != elb.ProtocolEnumTcpUdp || td.NetworkMode == types.NetworkModeAwsvpc {
		return nil
	}
	bound := map[int32]bool{}
	for _, c := range td.ContainerDefinitions {
		for _, p := range c.PortMappings {
			if aws.ToString(c.Name) == *b.ContainerName && aws.ToInt32(p.ContainerPort) == *b.ContainerPort {
				if len(bound) > 0 && (!bound[aws.ToInt32(p.HostPort)] || aws.ToInt32(p.HostPort) == 0) {
					return invalidParameter("The container port %d of container %s must have the same host port for tcp and udp in the target group %s, "+
						"whose protocol is TCP_UDP.", *b.ContainerPort, *b.ContainerName, *b.TargetGroupArn)
				}
				bound[aws.ToInt32(p.HostPort)] = true
			}
		}
	}
	return nil
}

// checkContainerPort refuses a container or a port that a task definition doesn't have, for a protocol or, if none is given, for any.
func checkContainerPort(td *state.TaskDefinition, b *types.LoadBalancer, transport types.TransportProtocol) error {
	i := slices.IndexFunc(td.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		return aws.ToString(c.Name) == *b.ContainerName
	})
	if i < 0 {
		return invalidParameter("The container %s does not exist in the task definition.", *b.ContainerName)
	}
	for _, p := range td.ContainerDefinitions[i].PortMappings {
		if aws.ToInt32(p.ContainerPort) == *b.ContainerPort && (transport == "" || cmp.Or(p.Protocol, types.TransportProtocolTcp) == transport) {
			return nil
		}
	}
	return invalidParameter("The container %s did not have a container port %d defined.", *b.ContainerName, *b.ContainerPort)
}
