package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// privateNamespace has the properties of AWS::ServiceDiscovery::PrivateDnsNamespace. Its physical ID is the namespace's.
type privateNamespace struct {
	Name        *string `cfn:"required,create"`
	Vpc         *string `cfn:"create,write"` // creation needs it, and nothing tells it of a namespace that is there
	Description *string
	Properties  *types.PrivateDnsNamespaceProperties
	Tags        []Tag
}

var _ = add(&kind[*privateNamespace]{
	name:       "AWS::ServiceDiscovery::PrivateDnsNamespace",
	identifier: []string{"Id"},
	attributes: []string{"Arn", "HostedZoneId", "Id"},
	find: func(ctx context.Context, s Step, n *privateNamespace) (string, error) {
		return namespaceOf(ctx, s, types.NamespaceTypeDnsPrivate, *n.Name)
	},
	create: func(ctx context.Context, s Step, n *privateNamespace) (string, error) {
		out, err := call.Do[servicediscovery.CreatePrivateDnsNamespaceOutput](ctx, s.Services, &servicediscovery.CreatePrivateDnsNamespaceInput{
			Name:        n.Name,
			Vpc:         n.Vpc,
			Description: n.Description,
			Properties:  n.Properties,
			Tags:        discoveryTags(n.Tags),
		})
		if err != nil {
			return "", err
		}
		return madeNamespace(ctx, s, out.OperationId)
	},
	update: func(ctx context.Context, s Step, id string, before, after *privateNamespace) error {
		change := &types.PrivateDnsNamespaceChange{Description: aws.String(aws.ToString(after.Description))}
		if p := after.Properties; p != nil && p.DnsProperties != nil && p.DnsProperties.SOA != nil {
			change.Properties = &types.PrivateDnsNamespacePropertiesChange{DnsProperties: &types.PrivateDnsPropertiesMutableChange{
				SOA: &types.SOAChange{TTL: p.DnsProperties.SOA.TTL},
			}}
		}
		in := &servicediscovery.UpdatePrivateDnsNamespaceInput{Id: &id, Namespace: change}
		if err := did[servicediscovery.UpdatePrivateDnsNamespaceOutput](ctx, s, in); err != nil {
			return err
		}
		return retagNamespace(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *privateNamespace) error {
		return deleteNamespace(ctx, s, id)
	},
	read: func(ctx context.Context, s Step, id string, _ *privateNamespace) (Made, error) {
		n, err := getNamespace(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		zone := aws.ToString(n.Properties.DnsProperties.HostedZoneId)
		return Made{Attributes: map[string]any{"Arn": *n.Arn, "HostedZoneId": zone, "Id": id}}, nil
	},
	list: func(ctx context.Context, s Step, _ *privateNamespace) ([]string, error) {
		return listNamespaces(ctx, s, types.NamespaceTypeDnsPrivate, "")
	},
	live: func(ctx context.Context, s Step, id string, _ *privateNamespace) (*privateNamespace, error) {
		n, err := getNamespace(ctx, s, id)
		if err != nil {
			return nil, err
		}
		live := &privateNamespace{Name: n.Name, Description: n.Description, Properties: &types.PrivateDnsNamespaceProperties{
			DnsProperties: &types.PrivateDnsPropertiesMutable{SOA: n.Properties.DnsProperties.SOA},
		}}
		live.Tags, err = liveDiscoveryTags(ctx, s, *n.Arn)
		return live, err
	},
})

// httpNamespace has the properties of AWS::ServiceDiscovery::HttpNamespace. Its physical ID is the namespace's.
type httpNamespace struct {
	Name        *string `cfn:"required,create"`
	Description *string
	Tags        []Tag
}

var _ = add(&kind[*httpNamespace]{
	name:       "AWS::ServiceDiscovery::HttpNamespace",
	identifier: []string{"Id"},
	attributes: []string{"Arn", "Id"},
	find: func(ctx context.Context, s Step, n *httpNamespace) (string, error) {
		return namespaceOf(ctx, s, types.NamespaceTypeHttp, *n.Name)
	},
	create: func(ctx context.Context, s Step, n *httpNamespace) (string, error) {
		in := &servicediscovery.CreateHttpNamespaceInput{Name: n.Name, Description: n.Description, Tags: discoveryTags(n.Tags)}
		out, err := call.Do[servicediscovery.CreateHttpNamespaceOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return madeNamespace(ctx, s, out.OperationId)
	},
	update: func(ctx context.Context, s Step, id string, before, after *httpNamespace) error {
		change := &types.HttpNamespaceChange{Description: aws.String(aws.ToString(after.Description))}
		in := &servicediscovery.UpdateHttpNamespaceInput{Id: &id, Namespace: change}
		if err := did[servicediscovery.UpdateHttpNamespaceOutput](ctx, s, in); err != nil {
			return err
		}
		return retagNamespace(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *httpNamespace) error {
		return deleteNamespace(ctx, s, id)
	},
	read: func(ctx context.Context, s Step, id string, _ *httpNamespace) (Made, error) {
		n, err := getNamespace(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *n.Arn, "Id": id}}, nil
	},
	list: func(ctx context.Context, s Step, _ *httpNamespace) ([]string, error) {
		return listNamespaces(ctx, s, types.NamespaceTypeHttp, "")
	},
	live: func(ctx context.Context, s Step, id string, _ *httpNamespace) (*httpNamespace, error) {
		n, err := getNamespace(ctx, s, id)
		if err != nil {
			return nil, err
		}
		live := &httpNamespace{Name: n.Name, Description: n.Description}
		live.Tags, err = liveDiscoveryTags(ctx, s, *n.Arn)
		return live, err
	},
})

// madeNamespace returns the namespace that an operation has made. Pintle's are done when they are begun.
func madeNamespace(ctx context.Context, s Step, operation *string) (string, error) {
	in := &servicediscovery.GetOperationInput{OperationId: operation}
	out, err := call.Do[servicediscovery.GetOperationOutput](ctx, s.Services, in)
	if err != nil {
		return "", err
	}
	return out.Operation.Targets[string(types.OperationTargetTypeNamespace)], nil
}

func getNamespace(ctx context.Context, s Step, id string) (*types.Namespace, error) {
	out, err := call.Do[servicediscovery.GetNamespaceOutput](ctx, s.Services, &servicediscovery.GetNamespaceInput{Id: &id})
	if err != nil {
		return nil, err
	}
	return out.Namespace, nil
}

func deleteNamespace(ctx context.Context, s Step, id string) error {
	return did[servicediscovery.DeleteNamespaceOutput](ctx, s, &servicediscovery.DeleteNamespaceInput{Id: &id})
}

// listNamespaces returns the ids of the namespaces of a type, or of the one with a name.
func listNamespaces(ctx context.Context, s Step, kind types.NamespaceType, name string) ([]string, error) {
	filters := []types.NamespaceFilter{{Name: types.NamespaceFilterNameType, Values: []string{string(kind)}}}
	if name != "" {
		filters = append(filters, types.NamespaceFilter{Name: types.NamespaceFilterNameName, Values: []string{name}})
	}
	return pages(func(token *string) (ids []string, next *string, err error) {
		in := &servicediscovery.ListNamespacesInput{Filters: filters, NextToken: token}
		out, err := call.Do[servicediscovery.ListNamespacesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range out.Namespaces {
			ids = append(ids, *n.Id)
		}
		return ids, out.NextToken, nil
	})
}

// namespaceOf returns the id of the namespace of a type with a name, or "" if there is none.
func namespaceOf(ctx context.Context, s Step, kind types.NamespaceType, name string) (string, error) {
	ids, err := listNamespaces(ctx, s, kind, name)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

func retagNamespace(ctx context.Context, s Step, id string, before, after []Tag) error {
	return retagDiscovery(ctx, s, s.Account.ARN("servicediscovery", "namespace/"+id), before, after)
}

// retagDiscovery changes the tags of a namespace or a service.
func retagDiscovery(ctx context.Context, s Step, arn string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		return did[servicediscovery.UntagResourceOutput](ctx, s, &servicediscovery.UntagResourceInput{ResourceARN: &arn, TagKeys: gone})
	}, func() error {
		return did[servicediscovery.TagResourceOutput](ctx, s, &servicediscovery.TagResourceInput{ResourceARN: &arn, Tags: discoveryTags(after)})
	})
}

func discoveryTags(tags []Tag) []types.Tag {
	return tagList(tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

func liveDiscoveryTags(ctx context.Context, s Step, arn string) ([]Tag, error) {
	in := &servicediscovery.ListTagsForResourceInput{ResourceARN: &arn}
	out, err := call.Do[servicediscovery.ListTagsForResourceOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	return ownTags(out.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value }), nil
}
