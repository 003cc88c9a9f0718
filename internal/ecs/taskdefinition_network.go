package ecs

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/pattern"
)

// checkNetworkMode refuses what a container can't have in the network mode of its task: API_ContainerDefinition, API_SystemControl.
func checkNetworkMode(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	mode := td.NetworkMode
	if len(c.Links) > 0 && mode != "" && mode != types.NetworkModeBridge {
		return clientError("Links are not supported when networkMode=%s.", mode)
	}
	for _, s := range c.SystemControls {
		name := aws.ToString(s.Namespace)
		if mode == types.NetworkModeHost && strings.HasPrefix(name, "net.") {
			return clientError("Invalid setting for container '%s'. The system control '%s' is not supported when networkMode=host.", *c.Name, name)
		}
	}
	if mode != types.NetworkModeAwsvpc {
		return nil
	}
	switch {
	case aws.ToString(c.Hostname) != "":
		return clientError("hostname is not supported on container when networkMode=awsvpc.")
	case len(c.ExtraHosts) > 0:
		return clientError("Extra hosts are not supported on container when networkMode=awsvpc.")
	case len(c.DnsServers) > 0:
		return clientError("DNS servers are not supported on container when networkMode=awsvpc.")
	case len(c.DnsSearchDomains) > 0:
		return clientError("DNS search domains are not supported on container when networkMode=awsvpc.")
	case aws.ToBool(c.DisableNetworking):
		return clientError("Disable Networking is not supported on container when networkMode=awsvpc.")
	}
	return nil
}

// portName is the form of a port mapping's name: API_PortMapping.
var portName = pattern.New(`^[a-z0-9_][a-z0-9_-]*$`, 64)

// checkPortName checks what Service Connect knows a port mapping by.
func checkPortName(td *types.TaskDefinition, c *types.ContainerDefinition, p *types.PortMapping) error {
	if a := p.AppProtocol; a != "" && (!slices.Contains(a.Values(), a) || p.Protocol == types.TransportProtocolUdp) {
		return clientError("Invalid setting for container '%s'. appProtocol must be one of %v, and for TCP, not %q for %s.",
			*c.Name, a.Values(), a, p.Protocol)
	}
	if p.Name == nil {
		return nil
	}
	if !portName.MatchString(*p.Name) {
		return clientError("Invalid setting for container '%s'. The name %q of a port mapping must have up to 64 lowercase letters, numbers, "+
			"underscores and hyphens, and not begin with a hyphen.", *c.Name, *p.Name)
	}
	count := 0
	for _, other := range td.ContainerDefinitions {
		for _, m := range other.PortMappings {
			if aws.ToString(m.Name) == *p.Name {
				count++
			}
		}
	}
	if count > 1 {
		return clientError("The name '%s' of a port mapping is there twice. It must be unique in a task definition.", *p.Name)
	}
	return nil
}

// hostPort is a port on the instance. Only one container of a task can have it.
type hostPort struct {
	protocol types.TransportProtocol
	port     int32
}

func checkPorts(td *types.TaskDefinition, c *types.ContainerDefinition, taken map[hostPort]string) error {
	if err := checkPortRanges(td, c); err != nil {
		return err
	}
	for _, p := range c.PortMappings {
		if err := checkPortName(td, c, &p); err != nil {
			return err
		}
		if p.Protocol != types.TransportProtocolTcp && p.Protocol != types.TransportProtocolUdp {
			return clientError("Invalid setting for container '%s'. protocol must be tcp or udp, not %q.", *c.Name, p.Protocol)
		}
		if p.ContainerPortRange != nil {
			continue
		}
		if p.ContainerPort == nil {
			return clientError("Invalid setting for container '%s'. A port mapping needs a containerPort.", *c.Name)
		}
		if *p.ContainerPort < 1 || *p.ContainerPort > 65535 || *p.HostPort < 0 || *p.HostPort > 65535 {
			return clientError("Invalid setting for container '%s'. Ports must be between 1 and 65535.", *c.Name)
		}
		sameOnHost := td.NetworkMode == types.NetworkModeHost || td.NetworkMode == types.NetworkModeAwsvpc
		if sameOnHost && *p.HostPort != *p.ContainerPort {
			return clientError("When networkMode=%s, the host ports and container ports in port mappings must match.", td.NetworkMode)
		}
		if td.NetworkMode == types.NetworkModeNone {
			return clientError("Container '%s' maps ports, which networkMode none does not allow.", *c.Name)
		}
		key := hostPort{p.Protocol, *p.HostPort}
		if other, ok := taken[key]; ok && *p.HostPort != 0 {
			return clientError("The host port %d/%s is taken by container '%s' and container '%s'.",
				*p.HostPort, p.Protocol, other, *c.Name)
		}
		taken[key] = *c.Name
	}
	return nil
}
