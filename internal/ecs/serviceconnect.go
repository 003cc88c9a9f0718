package ecs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	discovery "github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/serviceconnect"
	"github.com/pintle/pintle/internal/state"
)

// Service Connect: a service's endpoints are services of Cloud Map, which ECS makes, and deletes once no deployment has them anymore. A
// deployment keeps what its tasks are to reach, so that all of them see the same, however late they start.

// checkServiceConnect checks a configuration without looking at the store. It refuses what Pintle's proxy doesn't do.
func checkServiceConnect(c *types.ServiceConnectConfiguration) error {
	if c == nil || !c.Enabled {
		return nil
	}
	secured := func(s types.ServiceConnectService) bool { return s.Tls != nil }
	tested := func(s types.ServiceConnectService) bool {
		return slices.ContainsFunc(s.ClientAliases, func(a types.ServiceConnectClientAlias) bool { return a.TestTrafficRules != nil })
	}
	if err := refuseFields([]field{
		{"serviceConnectConfiguration.services.tls", slices.ContainsFunc(c.Services, secured)},
		{"serviceConnectConfiguration.services.clientAliases.testTrafficRules", slices.ContainsFunc(c.Services, tested)},
		{"serviceConnectConfiguration.containerConfigurations", len(c.ContainerConfigurations) > 0},
		{"serviceConnectConfiguration.accessLogConfiguration", c.AccessLogConfiguration != nil},
	}); err != nil {
		return err
	}
	if err := checkProxyLogs(c.LogConfiguration); err != nil {
		return err
	}
	if err := serviceconnect.Check(c); err != nil {
		return invalidParameter("%s.", err)
	}
	return nil
}

// checkProxyLogs checks where the proxies are to log. They have the drivers that Pintle has itself; a container's can be Docker's, or lead
// to its task's log router.
func checkProxyLogs(l *types.LogConfiguration) error {
	const where = "serviceConnectConfiguration.logConfiguration"
	if err := checkLogs(l, where); err != nil || l == nil {
		return err
	}
	if l.LogDriver != types.LogDriverAwslogs && l.LogDriver != types.LogDriverJsonFile {
		return unsupported(where+".logDriver: Pintle's proxies log with the drivers awslogs and json-file, not with %s.", l.LogDriver)
	}
	return refuseFields([]field{{where + ".secretOptions", len(l.SecretOptions) > 0}})
}

// serviceConnect returns a service's configuration with its namespace, by default the cluster's.
func serviceConnect(
	v *state.View, clusterArn string, given *types.ServiceConnectConfiguration,
) (*types.ServiceConnectConfiguration, error) {
	if given == nil || !given.Enabled {
		return given, nil
	}
	c := *given
	if aws.ToString(c.Namespace) == "" {
		c.Namespace = nil
		if defaults := v.Clusters.Get(clusterArn).ServiceConnectDefaults; defaults != nil {
			c.Namespace = defaults.Namespace
		}
	}
	if c.Namespace == nil {
		return nil, invalidParameter("serviceConnectConfiguration.namespace must be given: the cluster has no default one.")
	}
	return &c, nil
}

// namespace returns the namespace of Cloud Map with a name or an ARN.
func (s *Service) namespace(v *state.View, named string) (*state.Namespace, error) {
	n := v.NamespaceNamed(named)
	if isArn(named) {
		id, _ := s.opts.ResourceOf("servicediscovery", "namespace/", named)
		n = v.Namespaces.Get(id)
	}
	if n == nil {
		return nil, &types.NamespaceNotFoundException{Message: account.Message("There is no namespace %s in Cloud Map.", named)}
	}
	return n, nil
}

// serviceConnectDefaults returns a cluster's defaults. A namespace that is named, and isn't there, is created as one of type HTTP; an empty
// name is none: API_ClusterServiceConnectDefaultsRequest.
func (s *Service) serviceConnectDefaults(
	tx *state.Tx, in *types.ClusterServiceConnectDefaultsRequest,
) (*types.ClusterServiceConnectDefaults, error) {
	name := ""
	if in != nil {
		name = aws.ToString(in.Namespace)
	}
	switch {
	case name == "":
		return nil, nil
	case !isArn(name) && tx.NamespaceNamed(name) == nil:
		n, err := s.newNamespace(name)
		if err != nil {
			return nil, err
		}
		tx.Namespaces.Put(n)
	}
	n, err := s.namespace(tx.View, name)
	if err != nil {
		return nil, err
	}
	return &types.ClusterServiceConnectDefaults{Namespace: &n.ARN}, nil
}

// managedTag is on what ECS makes in Cloud Map.
var managedTag = []discovery.Tag{{Key: aws.String("AmazonECSManaged"), Value: aws.String("true")}}

func (s *Service) newNamespace(name string) (*state.Namespace, error) {
	odd := func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune(`<>"/`, r) }
	if len(name) > 1024 || strings.ContainsFunc(name, odd) {
		return nil, invalidParameter(`serviceConnectDefaults.namespace %q must have up to 1024 printable characters, without spaces, <, >, " and /.`, name)
	}
	id := state.NewDiscoveryID("ns-")
	return &state.Namespace{
		ID:      id,
		ARN:     s.opts.ARN("servicediscovery", "namespace/"+id),
		Name:    name,
		Type:    discovery.NamespaceTypeHttp,
		Tags:    managedTag,
		Created: *s.now(),
	}, nil
}

// connect has a new deployment take part in Service Connect as its service says.
func (s *Service) connect(tx *state.Tx, row *state.Service, td *state.TaskDefinition, d *state.Deployment) error {
	c := row.ServiceConnect
	if c == nil || !c.Enabled {
		return nil
	}
	n, err := s.namespace(tx.View, *c.Namespace)
	if err != nil {
		return err
	}
	endpoints, err := serviceconnect.Resolve(c, &td.TaskDefinition, n.Name)
	if err != nil {
		return invalidParameter("%s.", err)
	}
	if strategy := row.DeploymentConfiguration.Strategy; len(endpoints) > 0 && strategy != types.DeploymentStrategyRolling {
		return unsupported("serviceConnectConfiguration.services: Pintle doesn't shift the traffic of Service Connect, so "+
			"deploymentConfiguration.strategy must be ROLLING, not %s.", strategy)
	}
	d.Connect = &state.TaskConnect{Log: c.LogConfiguration, Attributes: logAttributes(c.LogConfiguration, &td.TaskDefinition)}
	for _, e := range endpoints {
		service, err := s.endpointService(tx.View, n, *row.ServiceArn, &e)
		if err != nil {
			return err
		}
		tx.DiscoveryServices.Put(service)
		d.Connect.Endpoints = append(d.Connect.Endpoints, taskEndpoint(service, td, &e))
		d.ServiceConnectResources = append(d.ServiceConnectResources, types.ServiceConnectServiceResource{
			DiscoveryName: &service.Name,
			DiscoveryArn:  &service.ARN,
		})
	}
	tx.PublishEndpoints(d.Connect)
	for service := range tx.EndpointsOf(n.ID) {
		d.Connect.Reaches = append(d.Connect.Reaches, service.ID)
	}
	return nil
}

// logAttributes returns the attributes that an instance needs for what the proxies of a definition's tasks log.
func logAttributes(l *types.LogConfiguration, td *types.TaskDefinition) []string {
	n := needs{}
	n.addLogs(l, td)
	return slices.Sorted(maps.Keys(n))
}

// endpointService returns the service of Cloud Map for an endpoint, as it's to be stored: the one that there is, or a new one.
func (s *Service) endpointService(v *state.View, n *state.Namespace, owner string, e *serviceconnect.Endpoint) (*state.DiscoveryService, error) {
	wanted := &state.Endpoint{
		Owner:          owner,
		Protocol:       e.Protocol,
		Aliases:        []state.EndpointAlias{{Name: e.Alias.Name, Port: e.Alias.Port}},
		IdleSeconds:    e.Idle,
		RequestSeconds: e.Request,
	}
	for other := range v.DiscoveryServicesOf(n.ID) {
		switch has := other.Endpoint; {
		case strings.EqualFold(other.Name, e.Discovery) && (has == nil || has.Owner != owner):
			return nil, invalidParameter("serviceConnectConfiguration.services.discoveryName: the namespace %s has a service %s already.", n.Name, other.Name)
		case strings.EqualFold(other.Name, e.Discovery) && has.Protocol != e.Protocol:
			return nil, invalidParameter("serviceConnectConfiguration.services: the appProtocol of %s can't be changed. Delete the service, and create it anew.",
				other.Name)
		case has != nil && has.Owner != owner && slices.Contains(has.Aliases, wanted.Aliases[0]):
			return nil, invalidParameter("serviceConnectConfiguration.services.clientAliases: the service %s of the namespace %s has %s:%d already.",
				other.Name, n.Name, e.Alias.Name, e.Alias.Port)
		}
		if strings.EqualFold(other.Name, e.Discovery) {
			row := *other
			row.Endpoint = wanted
			return &row, nil
		}
	}
	id := state.NewDiscoveryID("srv-")
	return &state.DiscoveryService{
		ID:           id,
		ARN:          s.opts.ARN("servicediscovery", "service/"+id),
		Name:         e.Discovery,
		NamespaceID:  n.ID,
		CustomHealth: &discovery.HealthCheckCustomConfig{FailureThreshold: aws.Int32(1)},
		Endpoint:     wanted,
		Tags:         managedTag,
		Created:      *s.now(),
	}, nil
}

// taskEndpoint returns how tasks of a definition are found at an endpoint.
func taskEndpoint(service *state.DiscoveryService, td *state.TaskDefinition, e *serviceconnect.Endpoint) state.TaskEndpoint {
	return state.TaskEndpoint{
		TaskRegistry: state.TaskRegistry{
			Service:       service.ID,
			Port:          e.Ingress,
			ContainerName: e.Container,
			ContainerPort: e.Port,
			Checked:       td.HasHealthCheck(),
		},
		Endpoint: *service.Endpoint,
		Ingress:  e.Ingress,
	}
}

// ListServicesByNamespace lists the ARNs of a namespace's services in all clusters.
func (s *Service) ListServicesByNamespace(
	_ context.Context, in *ecs.ListServicesByNamespaceInput,
) (*ecs.ListServicesByNamespaceOutput, error) {
	if aws.ToString(in.Namespace) == "" {
		return nil, invalidParameter("namespace must not be empty.")
	}
	v := s.store.View()
	n, err := s.namespace(v, *in.Namespace)
	if err != nil {
		return nil, err
	}
	arns := []string{}
	for row := range v.Services.All() {
		c := row.ServiceConnect
		if *row.Status != state.ServiceActive || c == nil || !c.Enabled {
			continue
		}
		if own, err := s.namespace(v, *c.Namespace); err == nil && own.ID == n.ID {
			arns = append(arns, *row.ServiceArn)
		}
	}
	slices.Sort(arns)
	pages := listingOf("ListServicesByNamespace", servicesPerPage, maxPage)
	arns, next, err := account.Sorted(pages, arns, in.MaxResults, in.NextToken, identity)
	if err != nil {
		return nil, err
	}
	return &ecs.ListServicesByNamespaceOutput{ServiceArns: arns, NextToken: next}, nil
}
