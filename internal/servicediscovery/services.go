package servicediscovery

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// CreateService creates a service in a namespace.
func (s *Service) CreateService(ctx context.Context, in *api.CreateServiceInput) (*api.CreateServiceOutput, error) {
	namespace, err := checkNewService(in)
	if err != nil {
		return nil, err
	}
	var row *state.DiscoveryService
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		n, err := s.namespace(tx.View, namespace)
		if err != nil {
			return err
		}
		if err := checkSuits(n, in); err != nil {
			return err
		}
		row, err = s.createService(tx, n, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateServiceOutput{Service: s.describe(s.store.View(), row)}, nil
}

// createService puts a new service, or returns the one that the same call has created before.
func (s *Service) createService(tx *state.Tx, n *state.Namespace, in *api.CreateServiceInput) (*state.DiscoveryService, error) {
	id := state.NewDiscoveryID("srv-")
	row := &state.DiscoveryService{
		ID:               id,
		ARN:              s.opts.ARN("servicediscovery", "service/"+id),
		Name:             *in.Name,
		NamespaceID:      n.ID,
		Description:      aws.ToString(in.Description),
		DNS:              in.DnsConfig,
		CustomHealth:     in.HealthCheckCustomConfig,
		CreatorRequestID: aws.ToString(in.CreatorRequestId),
		Request:          hash(in),
		Tags:             in.Tags,
		Created:          s.now(),
	}
	if in.DnsConfig != nil {
		row.DNS = &types.DnsConfig{
			NamespaceId:   &n.ID,
			RoutingPolicy: orMultivalue(in.DnsConfig.RoutingPolicy),
			DnsRecords:    in.DnsConfig.DnsRecords,
		}
	}
	count := 0
	for old := range tx.DiscoveryServicesOf(n.ID) {
		count++
		if !sameName(old.Name, row.Name) {
			continue
		}
		if row.CreatorRequestID != "" && old.CreatorRequestID == row.CreatorRequestID && slices.Equal(old.Request, row.Request) {
			return old, nil
		}
		return nil, &types.ServiceAlreadyExists{
			Message:          account.Message("There is already a service with the name %s in namespace %s", row.Name, n.ID),
			CreatorRequestId: &old.CreatorRequestID,
			ServiceId:        &old.ID,
			ServiceArn:       &old.ARN,
		}
	}
	if count >= maxServices {
		return nil, exceeded("The namespace %s has %d services already, the maximum", n.ID, count)
	}
	tx.DiscoveryServices.Put(row)
	return row, nil
}

func orMultivalue(p types.RoutingPolicy) types.RoutingPolicy {
	if p == "" {
		return types.RoutingPolicyMultivalue
	}
	return p
}

// checkNewService checks a new service without looking at the store, and returns its namespace.
func checkNewService(in *api.CreateServiceInput) (namespace *string, err error) {
	if err := checkServiceName(*in.Name); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags, ""); err != nil {
		return nil, err
	}
	if in.HealthCheckConfig != nil {
		return nil, noRoute53Checks()
	}
	namespace = in.NamespaceId
	if in.DnsConfig != nil {
		if err := checkRecords(in.DnsConfig.DnsRecords, in.DnsConfig.RoutingPolicy); err != nil {
			return nil, err
		}
		switch given := in.DnsConfig.NamespaceId; {
		case namespace == nil:
			namespace = given
		case given != nil && *given != *namespace:
			return nil, invalid("NamespaceId: %s isn't that of DnsConfig, %s", *namespace, *given)
		}
	}
	if namespace == nil {
		return nil, invalid("NamespaceId must be given")
	}
	return namespace, nil
}

// maxServiceName is how long a service's name can be.
const maxServiceName = 127

// checkServiceName refuses what isn't labels with dots between them. A single dot stands for the namespace's own name.
func checkServiceName(name string) error {
	if name == "." {
		return nil
	}
	if len(name) > maxServiceName {
		return invalid("Name: %q is longer than %d characters", name, maxServiceName)
	}
	return checkDomain(name)
}

func noRoute53Checks() error {
	return invalid("HealthCheckConfig: Route 53's health checks come from the Internet, and Pintle has none: use HealthCheckCustomConfig")
}

// checkSuits refuses a service that its namespace can't have.
func checkSuits(n *state.Namespace, in *api.CreateServiceInput) error {
	switch {
	case in.DnsConfig != nil && !n.HasNames():
		return invalid("DnsConfig: the namespace %s is of type HTTP, so its services have no names in DNS", n.ID)
	case in.DnsConfig != nil && in.Type == types.ServiceTypeOptionHttp:
		return invalid("DnsConfig: a service of type HTTP has no names in DNS")
	case in.DnsConfig != nil:
		return checkName(*in.Name, n)
	}
	return nil
}

// checkName refuses a name that is too long together with its namespace's. One of a service with SRV records is part of its instances' names.
func checkName(name string, n *state.Namespace) error {
	if len(name)+1+len(n.Name) > 253 {
		return invalid("Name: %s.%s is longer than the 253 characters of a name in DNS", name, n.Name)
	}
	return nil
}

// together are the types of records that a service can have besides one: API_DnsConfig.
var together = map[types.RecordType][]types.RecordType{
	types.RecordTypeA:    {types.RecordTypeAaaa, types.RecordTypeSrv},
	types.RecordTypeAaaa: {types.RecordTypeA, types.RecordTypeSrv},
	types.RecordTypeSrv:  {types.RecordTypeA, types.RecordTypeAaaa},
}

// checkRecords checks the records of a service.
func checkRecords(records []types.DnsRecord, policy types.RoutingPolicy) error {
	if len(records) == 0 {
		return invalid("DnsRecords must not be empty")
	}
	for i, r := range records {
		for _, other := range records[:i] {
			if !slices.Contains(together[r.Type], other.Type) {
				return invalid("DnsRecords: a service can't have records of the types %s and %s", other.Type, r.Type)
			}
		}
		if r.Type == types.RecordTypeCname && policy != types.RoutingPolicyWeighted {
			return invalid("RoutingPolicy must be WEIGHTED for records of the type CNAME")
		}
	}
	return nil
}

// UpdateService changes a service's description and the records of its names. What of these isn't given is removed, as on AWS.
func (s *Service) UpdateService(ctx context.Context, in *api.UpdateServiceInput) (*api.UpdateServiceOutput, error) {
	if in.Service.HealthCheckConfig != nil {
		return nil, noRoute53Checks()
	}
	id, err := s.operate(ctx, request{kind: types.OperationTypeUpdateService, in: in}, func(tx *state.Tx) (map[string]string, error) {
		old, err := s.service(tx.View, in.Id)
		if err != nil {
			return nil, err
		}
		row := *old
		if in.Service.Description != nil {
			row.Description = *in.Service.Description
		}
		if c := in.Service.DnsConfig; c != nil {
			if row.DNS, err = changedRecords(old, c.DnsRecords); err != nil {
				return nil, err
			}
		}
		tx.DiscoveryServices.Put(&row)
		return map[string]string{string(types.OperationTargetTypeService): row.ID}, nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateServiceOutput{OperationId: id}, nil
}

// changedRecords returns a service's DNS configuration with other records. Their types can't change: instances were registered for those.
func changedRecords(s *state.DiscoveryService, records []types.DnsRecord) (*types.DnsConfig, error) {
	if s.DNS == nil {
		return nil, invalid("DnsConfig: the service %s has no names in DNS", s.ID)
	}
	if err := checkRecords(records, s.DNS.RoutingPolicy); err != nil {
		return nil, err
	}
	types := func(all []types.DnsRecord) (out []string) {
		for _, r := range all {
			out = append(out, string(r.Type))
		}
		slices.Sort(out)
		return out
	}
	if before, after := types(s.DNS.DnsRecords), types(records); !slices.Equal(before, after) {
		return nil, invalid("DnsConfig.DnsRecords: the types of records are %v, and can't become %v: UpdateService changes their TTL alone", before, after)
	}
	c := *s.DNS
	c.DnsRecords = records
	return &c, nil
}

// DeleteService deletes a service without instances.
func (s *Service) DeleteService(ctx context.Context, in *api.DeleteServiceInput) (*api.DeleteServiceOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row, err := s.service(tx.View, in.Id)
		if err != nil {
			return err
		}
		if n := countInstances(tx.View, row); n > 0 {
			return inUse("The service %s has %d instances. Deregister them first.", row.ID, n)
		}
		tx.DiscoveryServices.Delete(row.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteServiceOutput{}, nil
}

func countInstances(v *state.View, s *state.DiscoveryService) (count int) {
	for range v.InstancesOf(s.ID) {
		count++
	}
	return count
}

// kindOf returns how the instances of a service are found.
func kindOf(v *state.View, s *state.DiscoveryService) types.ServiceType {
	n := v.Namespaces.Get(s.NamespaceID)
	if s.DNS == nil || n == nil || !n.HasNames() {
		return types.ServiceTypeHttp
	}
	return types.ServiceTypeDnsHttp
}

func (s *Service) describe(v *state.View, row *state.DiscoveryService) *types.Service {
	return &types.Service{
		Id:                      &row.ID,
		Arn:                     &row.ARN,
		ResourceOwner:           &s.opts.ID,
		CreatedByAccount:        &s.opts.ID,
		Name:                    &row.Name,
		NamespaceId:             &row.NamespaceID,
		Description:             some(row.Description),
		InstanceCount:           new(int32(countInstances(v, row))),
		DnsConfig:               row.DNS,
		Type:                    kindOf(v, row),
		HealthCheckCustomConfig: row.CustomHealth,
		CreateDate:              &row.Created,
		CreatorRequestId:        some(row.CreatorRequestID),
	}
}

// GetService describes a service.
func (s *Service) GetService(_ context.Context, in *api.GetServiceInput) (*api.GetServiceOutput, error) {
	v := s.store.View()
	row, err := s.service(v, in.Id)
	if err != nil {
		return nil, err
	}
	return &api.GetServiceOutput{Service: s.describe(v, row)}, nil
}

// serviceConditions are the conditions of each filter: API_ServiceFilter.
var serviceConditions = map[string][]types.FilterCondition{
	"NAMESPACE_ID":   {types.FilterConditionEq, types.FilterConditionIn},
	"RESOURCE_OWNER": {types.FilterConditionEq},
}

// ListServices lists the services that pass all filters.
func (s *Service) ListServices(_ context.Context, in *api.ListServicesInput) (*api.ListServicesOutput, error) {
	var filters []filter
	for _, f := range in.Filters {
		known := filter{string(f.Name), f.Condition, slices.Clone(f.Values)}
		for i, value := range known.values {
			known.values[i] = s.withoutARN("namespace", &value)
		}
		filters = append(filters, known)
	}
	if err := checkFilters(filters, serviceConditions); err != nil {
		return nil, err
	}
	value := func(row *state.DiscoveryService, name string) string {
		if name == "NAMESPACE_ID" {
			return row.NamespaceID
		}
		return ownSelf
	}
	v := s.store.View()
	page, next, err := account.Behind(listing("ListServices"), in.MaxResults, in.NextToken, v.DiscoveryServices.Behind,
		func(row *state.DiscoveryService) string { return row.ID }, func(row *state.DiscoveryService) bool {
			return !slices.ContainsFunc(filters, func(f filter) bool { return !f.passes(value(row, f.name)) })
		})
	if err != nil {
		return nil, err
	}
	out := &api.ListServicesOutput{Services: []types.ServiceSummary{}, NextToken: next}
	for _, row := range page {
		d := s.describe(v, row)
		out.Services = append(out.Services, types.ServiceSummary{
			Id:                      d.Id,
			Arn:                     d.Arn,
			ResourceOwner:           d.ResourceOwner,
			CreatedByAccount:        d.CreatedByAccount,
			Name:                    d.Name,
			Type:                    d.Type,
			Description:             d.Description,
			InstanceCount:           d.InstanceCount,
			DnsConfig:               d.DnsConfig,
			HealthCheckCustomConfig: d.HealthCheckCustomConfig,
			CreateDate:              d.CreateDate,
		})
	}
	return out, nil
}

// GetServiceAttributes returns the attributes of a service itself.
func (s *Service) GetServiceAttributes(_ context.Context, in *api.GetServiceAttributesInput) (*api.GetServiceAttributesOutput, error) {
	row, err := s.service(s.store.View(), in.ServiceId)
	if err != nil {
		return nil, err
	}
	attributes := maps.Clone(row.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	return &api.GetServiceAttributesOutput{ServiceAttributes: &types.ServiceAttributes{
		ServiceArn:    &row.ARN,
		ResourceOwner: &s.opts.ID,
		Attributes:    attributes,
	}}, nil
}

// UpdateServiceAttributes sets attributes of a service, beside those that it has.
func (s *Service) UpdateServiceAttributes(
	ctx context.Context, in *api.UpdateServiceAttributesInput,
) (*api.UpdateServiceAttributesOutput, error) {
	err := s.changeAttributes(ctx, in.ServiceId, func(all map[string]string) { maps.Copy(all, in.Attributes) })
	if err != nil {
		return nil, err
	}
	return &api.UpdateServiceAttributesOutput{}, nil
}

// DeleteServiceAttributes removes attributes of a service.
func (s *Service) DeleteServiceAttributes(
	ctx context.Context, in *api.DeleteServiceAttributesInput,
) (*api.DeleteServiceAttributesOutput, error) {
	err := s.changeAttributes(ctx, in.ServiceId, func(all map[string]string) {
		for _, name := range in.Attributes {
			delete(all, name)
		}
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteServiceAttributesOutput{}, nil
}

func (s *Service) changeAttributes(ctx context.Context, id *string, change func(map[string]string)) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.service(tx.View, id)
		if err != nil {
			return err
		}
		row := *old
		row.Attributes = map[string]string{}
		maps.Copy(row.Attributes, old.Attributes)
		if change(row.Attributes); len(row.Attributes) > maxAttributes {
			return &types.ServiceAttributesLimitExceededException{
				Message: account.Message("A service can have at most %d attributes", maxAttributes),
			}
		}
		tx.DiscoveryServices.Put(&row)
		return nil
	})
}
