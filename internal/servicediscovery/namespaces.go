package servicediscovery

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// defaultSOA is the time that a negative answer may be kept, in seconds, where nobody says another one: API_SOA.
const defaultSOA = 15

// label is a part of a name that DNS can have.
var label = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$`)

// checkDomain refuses the names of namespaces that DNS can't have.
func checkDomain(name string) error {
	if len(name) > 253 {
		return invalid("Name: %q is longer than the 253 characters of a domain name", name)
	}
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return invalid("Name: %q is no domain name: the label %q must have 1 to 63 letters, digits, hyphens and underscores", name, part)
		}
	}
	return nil
}

// checkNamespaceName refuses what isn't printable, and ARNs. Go's regular expressions can't say it.
func checkNamespaceName(name string) error {
	odd := func(r rune) bool { return r < '!' || r > '~' }
	if name == "" || strings.HasPrefix(name, "arn:") || strings.ContainsFunc(name, odd) {
		return invalid("Name: %q must have printable ASCII characters without spaces, and must not begin with arn:", name)
	}
	return nil
}

// CreateHttpNamespace creates a namespace whose services are found by DiscoverInstances alone.
func (s *Service) CreateHttpNamespace(ctx context.Context, in *api.CreateHttpNamespaceInput) (*api.CreateHttpNamespaceOutput, error) {
	row := &state.Namespace{
		Name:             *in.Name,
		Type:             types.NamespaceTypeHttp,
		Description:      aws.ToString(in.Description),
		CreatorRequestID: aws.ToString(in.CreatorRequestId),
		Tags:             in.Tags,
	}
	id, err := s.createNamespace(ctx, row, in)
	if err != nil {
		return nil, err
	}
	return &api.CreateHttpNamespaceOutput{OperationId: id}, nil
}

// CreatePrivateDnsNamespace creates a namespace whose services have names that tasks can look up.
func (s *Service) CreatePrivateDnsNamespace(
	ctx context.Context, in *api.CreatePrivateDnsNamespaceInput,
) (*api.CreatePrivateDnsNamespaceOutput, error) {
	row := &state.Namespace{
		Name:             strings.TrimSuffix(*in.Name, "."),
		Type:             types.NamespaceTypeDnsPrivate,
		Description:      aws.ToString(in.Description),
		VPC:              *in.Vpc,
		HostedZone:       strings.ToUpper(state.NewDiscoveryID("Z")),
		TTL:              defaultSOA,
		CreatorRequestID: aws.ToString(in.CreatorRequestId),
		Tags:             in.Tags,
	}
	if err := checkDomain(row.Name); err != nil {
		return nil, err
	}
	if p := in.Properties; p != nil {
		row.TTL = *p.DnsProperties.SOA.TTL
	}
	id, err := s.createNamespace(ctx, row, in)
	if err != nil {
		return nil, err
	}
	return &api.CreatePrivateDnsNamespaceOutput{OperationId: id}, nil
}

// CreatePublicDnsNamespace refuses: nobody in the world would ask Pintle for its names.
func (s *Service) CreatePublicDnsNamespace(
	context.Context, *api.CreatePublicDnsNamespaceInput,
) (*api.CreatePublicDnsNamespaceOutput, error) {
	return nil, invalid("Pintle has no public DNS namespaces, since the Internet doesn't ask it for names: create a private one, " +
		"whose names tasks can look up")
}

// createNamespace creates a namespace with a name that no other has: nodes answer the names of all of them.
func (s *Service) createNamespace(ctx context.Context, row *state.Namespace, in any) (*string, error) {
	if err := checkNamespaceName(row.Name); err != nil {
		return nil, err
	}
	if err := checkTags(row.Tags, ""); err != nil {
		return nil, err
	}
	row.ID = state.NewDiscoveryID("ns-")
	row.ARN = s.opts.ARN("servicediscovery", "namespace/"+row.ID)
	row.Created = s.now()
	r := request{types.OperationTypeCreateNamespace, &row.CreatorRequestID, in}
	return s.operate(ctx, r, func(tx *state.Tx) (map[string]string, error) {
		if old := tx.NamespaceNamed(row.Name); old != nil {
			return nil, &types.NamespaceAlreadyExists{
				Message:          account.Message("There is already a namespace with the name %s", row.Name),
				CreatorRequestId: &old.CreatorRequestID,
				NamespaceId:      &old.ID,
			}
		}
		if tx.Namespaces.Len() >= maxNamespaces {
			return nil, exceeded("There are already %d namespaces, the maximum", maxNamespaces)
		}
		tx.Namespaces.Put(row)
		return targetNamespace(row), nil
	})
}

func targetNamespace(n *state.Namespace) map[string]string {
	return map[string]string{string(types.OperationTargetTypeNamespace): n.ID}
}

// UpdateHttpNamespace changes a namespace's description.
func (s *Service) UpdateHttpNamespace(ctx context.Context, in *api.UpdateHttpNamespaceInput) (*api.UpdateHttpNamespaceOutput, error) {
	id, err := s.updateNamespace(ctx, request{id: in.UpdaterRequestId, in: in}, in.Id, types.NamespaceTypeHttp, func(n *state.Namespace) {
		n.Description = *in.Namespace.Description
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateHttpNamespaceOutput{OperationId: id}, nil
}

// UpdatePrivateDnsNamespace changes a namespace's description, and how long negative answers may be kept.
func (s *Service) UpdatePrivateDnsNamespace(
	ctx context.Context, in *api.UpdatePrivateDnsNamespaceInput,
) (*api.UpdatePrivateDnsNamespaceOutput, error) {
	r := request{id: in.UpdaterRequestId, in: in}
	id, err := s.updateNamespace(ctx, r, in.Id, types.NamespaceTypeDnsPrivate, func(n *state.Namespace) {
		if in.Namespace.Description != nil {
			n.Description = *in.Namespace.Description
		}
		if p := in.Namespace.Properties; p != nil {
			n.TTL = *p.DnsProperties.SOA.TTL
		}
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdatePrivateDnsNamespaceOutput{OperationId: id}, nil
}

// UpdatePublicDnsNamespace finds none: there are no public ones.
func (s *Service) UpdatePublicDnsNamespace(
	_ context.Context, in *api.UpdatePublicDnsNamespaceInput,
) (*api.UpdatePublicDnsNamespaceOutput, error) {
	row, err := s.namespace(s.store.View(), in.Id)
	if err != nil {
		return nil, err
	}
	return nil, invalid("The namespace %s is of type %s, not %s", row.ID, row.Type, types.NamespaceTypeDnsPublic)
}

func (s *Service) updateNamespace(
	ctx context.Context, r request, id *string, kind types.NamespaceType, change func(*state.Namespace),
) (*string, error) {
	r.kind = types.OperationTypeUpdateNamespace
	return s.operate(ctx, r, func(tx *state.Tx) (map[string]string, error) {
		old, err := s.namespace(tx.View, id)
		if err != nil {
			return nil, err
		}
		if old.Type != kind {
			return nil, invalid("The namespace %s is of type %s, not %s", old.ID, old.Type, kind)
		}
		row := *old
		change(&row)
		tx.Namespaces.Put(&row)
		return targetNamespace(&row), nil
	})
}

// DeleteNamespace deletes a namespace without services.
func (s *Service) DeleteNamespace(ctx context.Context, in *api.DeleteNamespaceInput) (*api.DeleteNamespaceOutput, error) {
	r := request{kind: types.OperationTypeDeleteNamespace, in: in}
	id, err := s.operate(ctx, r, func(tx *state.Tx) (map[string]string, error) {
		row, err := s.namespace(tx.View, in.Id)
		if err != nil {
			return nil, err
		}
		if n := countServices(tx.View, row); n > 0 {
			return nil, inUse("The namespace %s has %d services. Delete them first.", row.ID, n)
		}
		tx.Namespaces.Delete(row.ID)
		return targetNamespace(row), nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteNamespaceOutput{OperationId: id}, nil
}

func countServices(v *state.View, n *state.Namespace) (count int) {
	for range v.DiscoveryServicesOf(n.ID) {
		count++
	}
	return count
}

// GetNamespace describes a namespace.
func (s *Service) GetNamespace(_ context.Context, in *api.GetNamespaceInput) (*api.GetNamespaceOutput, error) {
	v := s.store.View()
	row, err := s.namespace(v, in.Id)
	if err != nil {
		return nil, err
	}
	return &api.GetNamespaceOutput{Namespace: &types.Namespace{
		Id:               &row.ID,
		Arn:              &row.ARN,
		ResourceOwner:    &s.opts.ID,
		Name:             &row.Name,
		Type:             row.Type,
		Description:      some(row.Description),
		ServiceCount:     new(int32(countServices(v, row))),
		Properties:       properties(row),
		CreateDate:       &row.Created,
		CreatorRequestId: some(row.CreatorRequestID),
	}}, nil
}

func properties(n *state.Namespace) *types.NamespaceProperties {
	p := &types.NamespaceProperties{HttpProperties: &types.HttpProperties{HttpName: &n.Name}, DnsProperties: &types.DnsProperties{}}
	if n.HasNames() {
		p.DnsProperties = &types.DnsProperties{HostedZoneId: &n.HostedZone, SOA: &types.SOA{TTL: &n.TTL}}
	}
	return p
}

// ListNamespaces lists the namespaces that pass all filters.
func (s *Service) ListNamespaces(_ context.Context, in *api.ListNamespacesInput) (*api.ListNamespacesOutput, error) {
	var filters []filter
	for _, f := range in.Filters {
		filters = append(filters, filter{string(f.Name), f.Condition, f.Values})
	}
	if err := checkFilters(filters, namespaceConditions); err != nil {
		return nil, err
	}
	v := s.store.View()
	page, next, err := account.Behind(listing("ListNamespaces"), in.MaxResults, in.NextToken, v.Namespaces.Behind,
		func(n *state.Namespace) string { return n.ID }, func(n *state.Namespace) bool {
			return !slices.ContainsFunc(filters, func(f filter) bool { return !f.passes(namespaceValue(n, f.name)) })
		})
	if err != nil {
		return nil, err
	}
	out := &api.ListNamespacesOutput{Namespaces: []types.NamespaceSummary{}, NextToken: next}
	for _, row := range page {
		out.Namespaces = append(out.Namespaces, types.NamespaceSummary{
			Id:            &row.ID,
			Arn:           &row.ARN,
			ResourceOwner: &s.opts.ID,
			Name:          &row.Name,
			Type:          row.Type,
			Description:   some(row.Description),
			ServiceCount:  new(int32(countServices(v, row))),
			Properties:    properties(row),
			CreateDate:    &row.Created,
		})
	}
	return out, nil
}

// namespaceConditions are the conditions of each filter: API_NamespaceFilter.
var namespaceConditions = map[string][]types.FilterCondition{
	"TYPE":           {types.FilterConditionEq, types.FilterConditionIn},
	"NAME":           {types.FilterConditionEq, types.FilterConditionBeginsWith},
	"HTTP_NAME":      {types.FilterConditionEq, types.FilterConditionBeginsWith},
	"RESOURCE_OWNER": {types.FilterConditionEq},
}

func namespaceValue(n *state.Namespace, name string) string {
	switch name {
	case "TYPE":
		return string(n.Type)
	case "RESOURCE_OWNER":
		return ownSelf
	}
	return n.Name
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
