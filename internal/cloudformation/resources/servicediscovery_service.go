package resources

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// discoveryService has the properties of AWS::ServiceDiscovery::Service. Its physical ID is the service's.
type discoveryService struct {
	Name                    *string                        `cfn:"create"`
	NamespaceId             *string                        `cfn:"create"`
	HealthCheckCustomConfig *types.HealthCheckCustomConfig `cfn:"create"`
	Type                    types.ServiceTypeOption        `cfn:"create"`
	Description             *string
	DnsConfig               *types.DnsConfig
	HealthCheckConfig       *types.HealthCheckConfig
	ServiceAttributes       map[string]string
	Tags                    []Tag
}

// namespace returns the id of the service's namespace, which may be given in either of two places.
func (d *discoveryService) namespace() *string {
	if d.NamespaceId == nil && d.DnsConfig != nil {
		return d.DnsConfig.NamespaceId
	}
	return d.NamespaceId
}

var _ = add(&kind[*discoveryService]{
	name:       "AWS::ServiceDiscovery::Service",
	identifier: []string{"Id"},
	attributes: []string{"Arn", "Id", "Name"},
	find: func(ctx context.Context, s Step, d *discoveryService) (string, error) {
		return discoveryServiceOf(ctx, s, d.namespace(), s.named(d.Name, 64))
	},
	create: createDiscoveryService,
	update: func(ctx context.Context, s Step, id string, before, after *discoveryService) error {
		change := &types.ServiceChange{Description: aws.String(aws.ToString(after.Description)), HealthCheckConfig: after.HealthCheckConfig}
		if after.DnsConfig != nil {
			change.DnsConfig = &types.DnsConfigChange{DnsRecords: after.DnsConfig.DnsRecords}
		}
		in := &servicediscovery.UpdateServiceInput{Id: &id, Service: change}
		if err := did[servicediscovery.UpdateServiceOutput](ctx, s, in); err != nil {
			return err
		}
		if err := setServiceAttributes(ctx, s, id, before.ServiceAttributes, after.ServiceAttributes); err != nil {
			return err
		}
		return retagDiscovery(ctx, s, s.Account.ARN("servicediscovery", "service/"+id), before.Tags, after.Tags)
	},
	delete: deleteDiscoveryService,
	read: func(ctx context.Context, s Step, id string, _ *discoveryService) (Made, error) {
		is, err := getDiscoveryService(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *is.Arn, "Id": id, "Name": *is.Name}}, nil
	},
	list: func(ctx context.Context, s Step, _ *discoveryService) ([]string, error) {
		all, err := discoveryServices(ctx, s, nil)
		var ids []string
		for _, is := range all {
			ids = append(ids, *is.Id)
		}
		return ids, err
	},
	live: liveDiscoveryService,
})

func createDiscoveryService(ctx context.Context, s Step, d *discoveryService) (string, error) {
	out, err := call.Do[servicediscovery.CreateServiceOutput](ctx, s.Services, &servicediscovery.CreateServiceInput{
		Name:                    new(s.named(d.Name, 64)),
		NamespaceId:             d.NamespaceId,
		Description:             d.Description,
		DnsConfig:               d.DnsConfig,
		HealthCheckConfig:       d.HealthCheckConfig,
		HealthCheckCustomConfig: d.HealthCheckCustomConfig,
		Type:                    d.Type,
		Tags:                    discoveryTags(d.Tags),
	})
	if err != nil {
		return "", err
	}
	id := *out.Service.Id
	if err := setServiceAttributes(ctx, s, id, nil, d.ServiceAttributes); err != nil {
		return "", undo(ctx, s, id, d, deleteDiscoveryService, err)
	}
	return id, nil
}

// setServiceAttributes sets a service's attributes, and deletes those that it's to have no more.
func setServiceAttributes(ctx context.Context, s Step, id string, before, after map[string]string) error {
	var gone []string
	for name := range before {
		if _, stays := after[name]; !stays {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		in := &servicediscovery.DeleteServiceAttributesInput{ServiceId: &id, Attributes: gone}
		if err := did[servicediscovery.DeleteServiceAttributesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if len(after) == 0 || reflect.DeepEqual(before, after) {
		return nil
	}
	in := &servicediscovery.UpdateServiceAttributesInput{ServiceId: &id, Attributes: after}
	return did[servicediscovery.UpdateServiceAttributesOutput](ctx, s, in)
}

func deleteDiscoveryService(ctx context.Context, s Step, id string, _ *discoveryService) error {
	return did[servicediscovery.DeleteServiceOutput](ctx, s, &servicediscovery.DeleteServiceInput{Id: &id})
}

func getDiscoveryService(ctx context.Context, s Step, id string) (*types.Service, error) {
	out, err := call.Do[servicediscovery.GetServiceOutput](ctx, s.Services, &servicediscovery.GetServiceInput{Id: &id})
	if err != nil {
		return nil, err
	}
	return out.Service, nil
}

// discoveryServices returns the services of a namespace, or all.
func discoveryServices(ctx context.Context, s Step, namespace *string) (all []types.ServiceSummary, err error) {
	var filters []types.ServiceFilter
	if namespace != nil {
		filters = []types.ServiceFilter{{Name: types.ServiceFilterNameNamespaceId, Values: []string{*namespace}}}
	}
	_, err = pages(func(token *string) (ids []string, next *string, err error) {
		in := &servicediscovery.ListServicesInput{Filters: filters, NextToken: token}
		out, err := call.Do[servicediscovery.ListServicesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, out.Services...)
		return nil, out.NextToken, nil
	})
	return all, err
}

// discoveryServiceOf returns the id of the service of a namespace with a name, or "" if there is none.
func discoveryServiceOf(ctx context.Context, s Step, namespace *string, name string) (string, error) {
	all, err := discoveryServices(ctx, s, namespace)
	for _, is := range all {
		if *is.Name == name {
			return *is.Id, nil
		}
	}
	return "", err
}

func liveDiscoveryService(ctx context.Context, s Step, id string, asked *discoveryService) (*discoveryService, error) {
	is, err := getDiscoveryService(ctx, s, id)
	if err != nil {
		return nil, err
	}
	live := &discoveryService{
		Name:                    is.Name,
		HealthCheckCustomConfig: is.HealthCheckCustomConfig,
		Description:             is.Description,
		DnsConfig:               is.DnsConfig,
		Type:                    asked.Type,
	}
	if asked.NamespaceId != nil {
		live.NamespaceId = is.NamespaceId
	}
	if is.DnsConfig != nil && (asked.DnsConfig == nil || asked.DnsConfig.NamespaceId == nil) {
		c := *is.DnsConfig
		c.NamespaceId = nil
		live.DnsConfig = &c
	}
	in := &servicediscovery.GetServiceAttributesInput{ServiceId: &id}
	attributes, err := call.Do[servicediscovery.GetServiceAttributesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if all := attributes.ServiceAttributes.Attributes; len(all) > 0 {
		live.ServiceAttributes = all
	}
	live.Tags, err = liveDiscoveryTags(ctx, s, *is.Arn)
	return live, err
}
