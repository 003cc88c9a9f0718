package servicediscovery

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// RegisterInstance registers an instance of a service, or gives one other attributes.
func (s *Service) RegisterInstance(ctx context.Context, in *api.RegisterInstanceInput) (*api.RegisterInstanceOutput, error) {
	if err := checkAttributes(in.Attributes); err != nil {
		return nil, err
	}
	r := request{types.OperationTypeRegisterInstance, in.CreatorRequestId, in}
	id, err := s.operate(ctx, r, func(tx *state.Tx) (map[string]string, error) {
		service, err := s.service(tx.View, in.ServiceId)
		if err != nil {
			return nil, err
		}
		row := &state.DiscoveryInstance{
			Service:          service.ID,
			ID:               *in.InstanceId,
			Attributes:       maps.Clone(in.Attributes),
			Health:           types.CustomHealthStatusHealthy,
			CreatorRequestID: aws.ToString(in.CreatorRequestId),
		}
		if err := complete(tx.View, service, row); err != nil {
			return nil, err
		}
		old := tx.DiscoveryInstances.Get(row.Key())
		switch {
		case old != nil && old.Task != "":
			return nil, inUse("The instance %s is a task of Amazon ECS, which keeps its attributes", row.ID)
		case old != nil:
			row.Health = old.Health
		case countInstances(tx.View, service) >= maxInstances:
			return nil, exceeded("The service %s has %d instances already, the maximum", service.ID, maxInstances)
		}
		if h := row.Attributes[state.AttributeInitHealth]; h != "" && old == nil {
			row.Health = types.CustomHealthStatus(h)
		}
		tx.PutInstance(row)
		return targetInstance(row), nil
	})
	if err != nil {
		return nil, err
	}
	return &api.RegisterInstanceOutput{OperationId: id}, nil
}

func targetInstance(i *state.DiscoveryInstance) map[string]string {
	return map[string]string{
		string(types.OperationTargetTypeInstance): i.ID,
		string(types.OperationTargetTypeService):  i.Service,
	}
}

// checkAttributes checks an instance's attributes without looking at the store.
func checkAttributes(all map[string]string) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		size += len(name) + len(value)
		switch name {
		case state.AttributeIPv4:
			if a, err := netip.ParseAddr(value); err != nil || !a.Is4() {
				return invalid("Attributes: %s must be an IPv4 address, not %q", name, value)
			}
		case state.AttributeIPv6:
			if a, err := netip.ParseAddr(value); err != nil || !a.Is6() || a.Zone() != "" {
				return invalid("Attributes: %s must be an IPv6 address, not %q", name, value)
			}
		case state.AttributePort:
			if n, err := strconv.ParseUint(value, 10, 16); err != nil || n == 0 {
				return invalid("Attributes: %s must be between 1 and 65535, not %q", name, value)
			}
		case state.AttributeCNAME:
			if err := checkDomain(strings.TrimSuffix(value, ".")); err != nil {
				return invalid("Attributes: %s must be a domain name, not %q", name, value)
			}
		case state.AttributeInitHealth:
			if h := types.CustomHealthStatus(value); !slices.Contains(h.Values(), h) {
				return invalid("Attributes: %s must be one of %v, not %q", name, h.Values(), value)
			}
		case state.AttributeAlias:
			return invalid("Attributes: %s is not supported by Pintle: give the addresses of the targets", name)
		}
	}
	switch {
	case len(all) > maxAttributes:
		return invalid("Attributes has %d members, at most %d are allowed", len(all), maxAttributes)
	case size > maxAttributeSize:
		return invalid("Attributes has %d characters in names and values, at most %d are allowed", size, maxAttributeSize)
	}
	return nil
}

// complete checks an instance against its service, and adds what follows from an EC2 instance's id.
func complete(v *state.View, s *state.DiscoveryService, i *state.DiscoveryInstance) error {
	if id := i.Attributes[state.AttributeInstanceID]; id != "" {
		if s.DNS != nil {
			return invalid("Attributes: %s is for services without names in DNS", state.AttributeInstanceID)
		}
		machine := v.Instances.Get(id)
		if machine == nil || aws.ToString(machine.PrivateIpAddress) == "" {
			return invalid("Attributes: there is no instance %s with an address", id)
		}
		i.Attributes[state.AttributeIPv4] = *machine.PrivateIpAddress
	}
	if s.CustomHealth == nil && i.Attributes[state.AttributeInitHealth] != "" {
		return invalid("Attributes: %s is for services with a HealthCheckCustomConfig", state.AttributeInitHealth)
	}
	if s.DNS == nil {
		return nil
	}
	has := map[types.RecordType]string{
		types.RecordTypeA:     state.AttributeIPv4,
		types.RecordTypeAaaa:  state.AttributeIPv6,
		types.RecordTypeCname: state.AttributeCNAME,
		types.RecordTypeSrv:   state.AttributePort,
	}
	for _, r := range s.DNS.DnsRecords {
		if name := has[r.Type]; i.Attributes[name] == "" {
			return invalid("Attributes: %s must be given, since the service has %s records", name, r.Type)
		}
		if r.Type == types.RecordTypeSrv && i.Attributes[state.AttributeIPv4] == "" && i.Attributes[state.AttributeIPv6] == "" {
			return invalid("Attributes: %s or %s must be given, since the service has SRV records", state.AttributeIPv4, state.AttributeIPv6)
		}
	}
	return nil
}

// DeregisterInstance deregisters an instance. A task of ECS stays so for the rest of its life.
func (s *Service) DeregisterInstance(ctx context.Context, in *api.DeregisterInstanceInput) (*api.DeregisterInstanceOutput, error) {
	r := request{kind: types.OperationTypeDeregisterInstance, in: in}
	id, err := s.operate(ctx, r, func(tx *state.Tx) (map[string]string, error) {
		service, err := s.service(tx.View, in.ServiceId)
		if err != nil {
			return nil, err
		}
		row, err := instance(tx.View, service, in.InstanceId)
		if err != nil {
			return nil, err
		}
		tx.DeleteInstance(row)
		return targetInstance(row), nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeregisterInstanceOutput{OperationId: id}, nil
}

// UpdateInstanceCustomHealthStatus says whether an instance is healthy.
func (s *Service) UpdateInstanceCustomHealthStatus(
	ctx context.Context, in *api.UpdateInstanceCustomHealthStatusInput,
) (*api.UpdateInstanceCustomHealthStatusOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		service, err := s.service(tx.View, in.ServiceId)
		if err != nil {
			return err
		}
		old, err := instance(tx.View, service, in.InstanceId)
		if err != nil {
			return err
		}
		if service.CustomHealth == nil {
			return &types.CustomHealthNotFound{Message: account.Message("The service %s has no HealthCheckCustomConfig", service.ID)}
		}
		row := *old
		row.Health = in.Status
		tx.PutInstance(&row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateInstanceCustomHealthStatusOutput{}, nil
}

// GetInstance describes an instance.
func (s *Service) GetInstance(_ context.Context, in *api.GetInstanceInput) (*api.GetInstanceOutput, error) {
	v := s.store.View()
	service, err := s.service(v, in.ServiceId)
	if err != nil {
		return nil, err
	}
	row, err := instance(v, service, in.InstanceId)
	if err != nil {
		return nil, err
	}
	return &api.GetInstanceOutput{ResourceOwner: &s.opts.ID, Instance: &types.Instance{
		Id:               &row.ID,
		Attributes:       row.Attributes,
		CreatorRequestId: some(row.CreatorRequestID),
		CreatedByAccount: &s.opts.ID,
	}}, nil
}

func instanceID(i *state.DiscoveryInstance) string { return i.ID }

// ListInstances lists a service's instances.
func (s *Service) ListInstances(_ context.Context, in *api.ListInstancesInput) (*api.ListInstancesOutput, error) {
	v := s.store.View()
	service, err := s.service(v, in.ServiceId)
	if err != nil {
		return nil, err
	}
	rows := slices.Collect(v.InstancesOf(service.ID))
	page, next, err := account.Sorted(listing("ListInstances:"+service.ID), rows, in.MaxResults, in.NextToken, instanceID)
	if err != nil {
		return nil, err
	}
	out := &api.ListInstancesOutput{ResourceOwner: &s.opts.ID, Instances: []types.InstanceSummary{}, NextToken: next}
	for _, row := range page {
		out.Instances = append(out.Instances, types.InstanceSummary{
			Id:               &row.ID,
			Attributes:       row.Attributes,
			CreatedByAccount: &s.opts.ID,
		})
	}
	return out, nil
}

// healthOf returns an instance's health, which nobody knows of a service without checks.
func healthOf(v *state.View, s *state.DiscoveryService, i *state.DiscoveryInstance) types.HealthStatus {
	switch {
	case s.CustomHealth == nil:
		return types.HealthStatusUnknown
	case v.IsUnhealthy(s, i):
		return types.HealthStatusUnhealthy
	}
	return types.HealthStatusHealthy
}

// GetInstancesHealthStatus tells the health of a service's instances, or of some of them.
func (s *Service) GetInstancesHealthStatus(
	_ context.Context, in *api.GetInstancesHealthStatusInput,
) (*api.GetInstancesHealthStatusOutput, error) {
	v := s.store.View()
	service, err := s.service(v, in.ServiceId)
	if err != nil {
		return nil, err
	}
	var rows []*state.DiscoveryInstance
	for _, id := range in.Instances {
		row, err := instance(v, service, &id)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if len(in.Instances) == 0 {
		rows = slices.Collect(v.InstancesOf(service.ID))
	}
	page, next, err := account.Ordered(listing("GetInstancesHealthStatus:"+service.ID), rows, in.MaxResults, in.NextToken, instanceID)
	if err != nil {
		return nil, err
	}
	out := &api.GetInstancesHealthStatusOutput{Status: map[string]types.HealthStatus{}, NextToken: next}
	for _, row := range page {
		out.Status[row.ID] = healthOf(v, service, row)
	}
	return out, nil
}
