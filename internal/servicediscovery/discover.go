package servicediscovery

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// defaultDiscovered is how many instances DiscoverInstances returns where nobody says another number.
const defaultDiscovered = 100

// named returns the service with a name in the namespace with a name or an ARN. Names that aren't in DNS are told apart by their case, too.
func (s *Service) named(v *state.View, owner, namespace, service *string) (*state.Namespace, *state.DiscoveryService, error) {
	n := v.Namespaces.Get(s.withoutARN("namespace", namespace))
	if n == nil {
		n = v.NamespaceNamed(aws.ToString(namespace))
	}
	if n == nil || owner != nil && *owner != s.opts.ID {
		return nil, nil, &types.NamespaceNotFound{Message: account.Message("Namespace %s not found.", aws.ToString(namespace))}
	}
	for row := range v.DiscoveryServicesOf(n.ID) {
		if sameName(row.Name, aws.ToString(service)) {
			return n, row, nil
		}
	}
	return nil, nil, &types.ServiceNotFound{Message: account.Message("Service %s not found.", aws.ToString(service))}
}

// DiscoverInstances returns the instances of a service that pass the filters.
func (s *Service) DiscoverInstances(_ context.Context, in *api.DiscoverInstancesInput) (*api.DiscoverInstancesOutput, error) {
	v := s.store.View()
	namespace, service, err := s.named(v, in.OwnerAccount, in.NamespaceName, in.ServiceName)
	if err != nil {
		return nil, err
	}
	rows := healthy(v, service, matching(slices.Collect(v.InstancesOf(service.ID)), in.QueryParameters), in.HealthStatus)
	if preferred := matching(rows, in.OptionalParameters); len(preferred) > 0 {
		rows = preferred
	}
	most := defaultDiscovered
	if in.MaxResults != nil {
		most = int(*in.MaxResults)
	}
	if len(rows) > most { // who asks for a few gets others each time
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = rows[:most]
	}
	out := &api.DiscoverInstancesOutput{Instances: []types.HttpInstanceSummary{}, InstancesRevision: &service.Revision}
	for _, row := range rows {
		out.Instances = append(out.Instances, types.HttpInstanceSummary{
			InstanceId:    &row.ID,
			NamespaceName: &namespace.Name,
			ServiceName:   &service.Name,
			HealthStatus:  healthOf(v, service, row),
			Attributes:    row.Attributes,
		})
	}
	return out, nil
}

// matching returns the instances that have all of some attributes.
func matching(rows []*state.DiscoveryInstance, attributes map[string]string) (out []*state.DiscoveryInstance) {
	for _, row := range rows {
		matches := true
		for name, value := range attributes {
			has, ok := row.Attributes[name]
			matches = matches && ok && has == value
		}
		if matches {
			out = append(out, row)
		}
	}
	return out
}

// healthy returns the instances that a caller wants by their health. By default these are the healthy ones, or all where none is. A service
// without checks has no health to go by (API_DiscoverInstances), but tasks whose nodes are away are found by nobody who can have others.
func healthy(v *state.View, s *state.DiscoveryService, rows []*state.DiscoveryInstance, want types.HealthStatusFilter) (out []*state.DiscoveryInstance) {
	wantsUnhealthy := want == types.HealthStatusFilterUnhealthy
	if want == types.HealthStatusFilterAll || wantsUnhealthy && s.CustomHealth == nil {
		return rows
	}
	for _, row := range rows {
		if v.IsUnhealthy(s, row) == wantsUnhealthy {
			out = append(out, row)
		}
	}
	if len(out) == 0 && (s.CustomHealth == nil || want == "" || want == types.HealthStatusFilterHealthyOrElseAll) {
		return rows
	}
	return out
}

// DiscoverInstancesRevision returns a number that grows with each instance that comes, goes or changes its attributes.
func (s *Service) DiscoverInstancesRevision(
	_ context.Context, in *api.DiscoverInstancesRevisionInput,
) (*api.DiscoverInstancesRevisionOutput, error) {
	_, service, err := s.named(s.store.View(), in.OwnerAccount, in.NamespaceName, in.ServiceName)
	if err != nil {
		return nil, err
	}
	return &api.DiscoverInstancesRevisionOutput{InstancesRevision: &service.Revision}, nil
}
