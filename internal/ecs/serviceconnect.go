package ecs

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Service Connect without its proxy: a service can belong to a namespace, but can't have an endpoint there, so a proxy would
// have nothing to reach. A namespace is whatever name services and clusters give.

// checkServiceConnect refuses the parts of Service Connect that need a proxy.
func checkServiceConnect(c *types.ServiceConnectConfiguration) error {
	if c == nil || !c.Enabled {
		return nil
	}
	return refuseFields([]field{
		{"serviceConnectConfiguration.services", len(c.Services) > 0},
		{"serviceConnectConfiguration.containerConfigurations", len(c.ContainerConfigurations) > 0},
		{"serviceConnectConfiguration.logConfiguration", c.LogConfiguration != nil},
		{"serviceConnectConfiguration.accessLogConfiguration", c.AccessLogConfiguration != nil},
	})
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

// sameNamespace reports whether two namespaces, each a name or an ARN that ends in it, are the same.
func sameNamespace(a, b string) bool {
	if isArn(a) && isArn(b) {
		return a == b
	}
	return state.NameOf(a) == state.NameOf(b)
}

// ListServicesByNamespace lists the ARNs of a namespace's services in all clusters.
func (s *Service) ListServicesByNamespace(
	_ context.Context, in *ecs.ListServicesByNamespaceInput,
) (*ecs.ListServicesByNamespaceOutput, error) {
	namespace := aws.ToString(in.Namespace)
	if namespace == "" {
		return nil, invalidParameter("namespace must not be empty.")
	}
	known := false
	arns := []string{}
	v := s.store.View()
	for c := range v.Clusters.All() {
		known = known || c.ServiceConnectDefaults != nil && sameNamespace(aws.ToString(c.ServiceConnectDefaults.Namespace), namespace)
	}
	for row := range v.Services.All() {
		if c := row.ServiceConnect; *row.Status == state.ServiceActive && c != nil && c.Enabled && sameNamespace(*c.Namespace, namespace) {
			arns = append(arns, *row.ServiceArn)
		}
	}
	if !known && len(arns) == 0 {
		return nil, &types.NamespaceNotFoundException{
			Message: account.Message("No cluster and no service names the namespace %q.", namespace),
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
