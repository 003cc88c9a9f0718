// Package serviceconnect says what a service's Service Connect configuration means together with a task definition: by which endpoints its
// tasks are reached, and what is wrong with it. It is pure. The service's API keeps the endpoints in Cloud Map, and package rollout has the
// tasks registered there.
package serviceconnect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Endpoint is one of a service's endpoints.
type Endpoint struct {
	Discovery string // the name of the service in Cloud Map
	Container string
	Port      int32 // the container's
	Ingress   int32 // of the proxy, or 0 if clients reach the container itself
	Protocol  types.ApplicationProtocol
	Alias     Alias
	// Idle and Request are the time-outs in seconds, if they aren't the default ones.
	Idle, Request *int32
}

// Alias is what clients call an endpoint.
type Alias struct {
	Name string
	Port int32
}

// The forms of names: API_ServiceConnectService, API_ServiceConnectClientAlias.
var (
	discoveryName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]{0,63}$`)
	aliasName     = regexp.MustCompile(`^[a-z0-9_.][a-z0-9_.-]{0,126}$`)
)

// Check says what is wrong with a configuration, whatever the task definition.
func Check(c *types.ServiceConnectConfiguration) error {
	if c == nil || !c.Enabled {
		return nil
	}
	ports, names, aliases := map[string]bool{}, map[string]bool{}, map[Alias]bool{}
	for _, s := range c.Services {
		if err := checkService(&s); err != nil {
			return err
		}
		port := *s.PortName
		if ports[port] {
			return fmt.Errorf("serviceConnectConfiguration.services.portName: %q is there twice.", port)
		}
		name := cmp.Or(aws.ToString(s.DiscoveryName), port)
		if names[name] {
			return fmt.Errorf("serviceConnectConfiguration.services.discoveryName: %q is there twice.", name)
		}
		ports[port], names[name] = true, true
		for _, a := range s.ClientAliases {
			alias := Alias{cmp.Or(aws.ToString(a.DnsName), name), *a.Port}
			if aliases[alias] {
				return fmt.Errorf("serviceConnectConfiguration.services.clientAliases: %s:%d is there twice.", alias.Name, alias.Port)
			}
			aliases[alias] = true
		}
	}
	return nil
}

func checkService(s *types.ServiceConnectService) error {
	const where = "serviceConnectConfiguration.services."
	if aws.ToString(s.PortName) == "" {
		return fmt.Errorf(where + "portName must not be empty.")
	}
	if n := aws.ToString(s.DiscoveryName); n != "" && !discoveryName.MatchString(n) {
		return fmt.Errorf(where+"discoveryName %q must have up to 64 lowercase letters, numbers, underscores and hyphens, and not begin with a hyphen.", n)
	}
	if len(s.ClientAliases) > 1 {
		return fmt.Errorf(where+"clientAliases can have at most 1 item, not %d.", len(s.ClientAliases))
	}
	for _, a := range s.ClientAliases {
		if p := aws.ToInt32(a.Port); p < 1 || p > 65535 {
			return fmt.Errorf(where+"clientAliases.port must be between 1 and 65535, not %d.", p)
		}
		if n := aws.ToString(a.DnsName); n != "" && !aliasName.MatchString(n) {
			return fmt.Errorf(where+"clientAliases.dnsName %q must have up to 127 lowercase letters, numbers, underscores, hyphens and periods, "+
				"and not begin with a hyphen.", n)
		}
	}
	if p := s.IngressPortOverride; p != nil && (*p < 1 || *p > 65535) {
		return fmt.Errorf(where+"ingressPortOverride must be between 1 and 65535, not %d.", *p)
	}
	if t := s.Timeout; t != nil && (aws.ToInt32(t.IdleTimeoutSeconds) < 0 || aws.ToInt32(t.PerRequestTimeoutSeconds) < 0) {
		return fmt.Errorf(where + "timeout must not be negative.")
	}
	return nil
}

// Resolve returns the endpoints that a configuration gives to the tasks of a definition. The configuration has passed Check.
func Resolve(c *types.ServiceConnectConfiguration, td *types.TaskDefinition, namespace string) ([]Endpoint, error) {
	if c == nil || !c.Enabled {
		return nil, nil
	}
	mode := cmp.Or(td.NetworkMode, types.NetworkModeBridge)
	if mode != types.NetworkModeAwsvpc && mode != types.NetworkModeBridge {
		return nil, fmt.Errorf("serviceConnectConfiguration: Service Connect needs a task definition with the networkMode awsvpc or bridge, not %s.", mode)
	}
	taken := map[int32]string{} // ports of the task's network, and what has them
	for _, d := range td.ContainerDefinitions {
		for _, m := range d.PortMappings {
			taken[aws.ToInt32(m.ContainerPort)] = "a container"
		}
	}
	var out []Endpoint
	for _, s := range c.Services {
		e, err := resolve(&s, td, namespace)
		if err != nil {
			return nil, err
		}
		if e.Ingress != 0 {
			const field = "serviceConnectConfiguration.services.ingressPortOverride"
			if mode != types.NetworkModeAwsvpc {
				return nil, fmt.Errorf(field + " needs the networkMode awsvpc: in bridge, others reach the container's own port of the instance.")
			}
			if by := taken[e.Ingress]; by != "" {
				return nil, fmt.Errorf(field+": %s has the port %d already.", by, e.Ingress)
			}
			taken[e.Ingress] = "another service"
		}
		out = append(out, *e)
	}
	return out, nil
}

func resolve(s *types.ServiceConnectService, td *types.TaskDefinition, namespace string) (*Endpoint, error) {
	container, mapping := mappingNamed(td, *s.PortName)
	switch {
	case mapping == nil:
		return nil, fmt.Errorf("serviceConnectConfiguration.services.portName: no port mapping of the task definition has the name %q.", *s.PortName)
	case mapping.Protocol == types.TransportProtocolUdp:
		return nil, fmt.Errorf("serviceConnectConfiguration.services.portName: the port mapping %q is of UDP, which Service Connect doesn't carry.", *s.PortName)
	}
	e := &Endpoint{
		Discovery: cmp.Or(aws.ToString(s.DiscoveryName), *s.PortName),
		Container: container,
		Port:      *mapping.ContainerPort,
		Ingress:   aws.ToInt32(s.IngressPortOverride),
		Protocol:  mapping.AppProtocol,
	}
	if !discoveryName.MatchString(e.Discovery) {
		return nil, fmt.Errorf("serviceConnectConfiguration.services.discoveryName must be given: the port's name %q can't be one.", e.Discovery)
	}
	e.Alias = Alias{e.Discovery + "." + namespace, e.Port}
	for _, a := range s.ClientAliases {
		e.Alias = Alias{cmp.Or(aws.ToString(a.DnsName), e.Alias.Name), *a.Port}
	}
	if t := s.Timeout; t != nil {
		e.Idle, e.Request = t.IdleTimeoutSeconds, t.PerRequestTimeoutSeconds
	}
	if e.Request != nil && e.Protocol == "" {
		return nil, fmt.Errorf("serviceConnectConfiguration.services.timeout.perRequestTimeoutSeconds needs an appProtocol, which the port mapping %q "+
			"doesn't have: TCP has no requests.", *s.PortName)
	}
	return e, nil
}

// mappingNamed returns the port mapping with a name, and whose it is.
func mappingNamed(td *types.TaskDefinition, name string) (container string, m *types.PortMapping) {
	for _, c := range td.ContainerDefinitions {
		i := slices.IndexFunc(c.PortMappings, func(m types.PortMapping) bool { return aws.ToString(m.Name) == name })
		if i >= 0 {
			return *c.Name, &c.PortMappings[i]
		}
	}
	return "", nil
}
