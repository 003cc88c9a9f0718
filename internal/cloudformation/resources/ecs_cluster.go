package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"

	"github.com/pintle/pintle/internal/wire/call"
)

// cluster has the properties of AWS::ECS::Cluster. Its physical ID is the name.
type cluster struct {
	ClusterName                     *string `cfn:"create"`
	CapacityProviders               []string
	ClusterSettings                 []types.ClusterSetting
	Configuration                   *types.ClusterConfiguration
	DefaultCapacityProviderStrategy []types.CapacityProviderStrategyItem
	ServiceConnectDefaults          *types.ClusterServiceConnectDefaultsRequest
	Tags                            []Tag `cfn:"lenient"`
}

var _ = add(&kind[*cluster]{
	name:       "AWS::ECS::Cluster",
	live:       liveCluster,
	list:       listClusters,
	identifier: []string{"ClusterName"},
	attributes: []string{"Arn"},
	id:         clusterName,
	create: func(ctx context.Context, s Step, c *cluster) (string, error) {
		out, err := call.Do[ecs.CreateClusterOutput](ctx, s.Services, &ecs.CreateClusterInput{
			ClusterName:                     new(clusterName(s, c)),
			CapacityProviders:               c.CapacityProviders,
			Configuration:                   c.Configuration,
			DefaultCapacityProviderStrategy: c.DefaultCapacityProviderStrategy,
			ServiceConnectDefaults:          c.ServiceConnectDefaults,
			Settings:                        c.ClusterSettings,
			Tags:                            tagList(c.Tags, ecsTag),
		})
		if err != nil {
			return "", err
		}
		return *out.Cluster.ClusterName, nil
	},
	update: updateCluster,
	delete: func(ctx context.Context, s Step, name string, _ *cluster) error {
		return did[ecs.DeleteClusterOutput](ctx, s, &ecs.DeleteClusterInput{Cluster: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *cluster) (Made, error) {
		out, err := call.Do[ecs.DescribeClustersOutput](ctx, s.Services, &ecs.DescribeClustersInput{Clusters: []string{name}})
		if err != nil {
			return Made{}, err
		}
		if len(out.Clusters) == 0 || *out.Clusters[0].Status != "ACTIVE" {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"Arn": *out.Clusters[0].ClusterArn}}, nil
	},
})

func clusterName(s Step, c *cluster) string { return s.named(c.ClusterName, 255) }

func updateCluster(ctx context.Context, s Step, name string, before, after *cluster) error {
	defaults := after.ServiceConnectDefaults
	if defaults == nil && before.ServiceConnectDefaults != nil {
		defaults = &types.ClusterServiceConnectDefaultsRequest{Namespace: aws.String("")} // which removes them
	}
	err := did[ecs.UpdateClusterOutput](ctx, s, &ecs.UpdateClusterInput{
		Cluster:                &name,
		Configuration:          after.Configuration,
		ServiceConnectDefaults: defaults,
		Settings:               after.ClusterSettings,
	})
	if err != nil {
		return err
	}
	if len(before.CapacityProviders)+len(after.CapacityProviders) > 0 {
		err := did[ecs.PutClusterCapacityProvidersOutput](ctx, s, &ecs.PutClusterCapacityProvidersInput{
			Cluster:                         &name,
			CapacityProviders:               append([]string{}, after.CapacityProviders...),
			DefaultCapacityProviderStrategy: append([]types.CapacityProviderStrategyItem{}, after.DefaultCapacityProviderStrategy...),
		})
		if err != nil {
			return err
		}
	}
	return tagECS(ctx, s, s.Account.ARN("ecs", "cluster/"+name), before.Tags, after.Tags)
}

func ecsTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

// tagECS changes the tags of something of ECS's.
func tagECS(ctx context.Context, s Step, arn string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		return did[ecs.UntagResourceOutput](ctx, s, &ecs.UntagResourceInput{ResourceArn: &arn, TagKeys: gone})
	}, func() error {
		return did[ecs.TagResourceOutput](ctx, s, &ecs.TagResourceInput{ResourceArn: &arn, Tags: tagList(after, ecsTag)})
	})
}

func liveCluster(ctx context.Context, s Step, name string, asked *cluster) (*cluster, error) {
	c, err := describeCluster(ctx, s, name)
	if err != nil {
		return nil, err
	}
	live := &cluster{
		ClusterName:                     c.ClusterName,
		CapacityProviders:               c.CapacityProviders,
		ClusterSettings:                 c.Settings,
		Configuration:                   c.Configuration,
		DefaultCapacityProviderStrategy: c.DefaultCapacityProviderStrategy,
		Tags:                            ownTags(c.Tags, ecsTagPair),
	}
	if d := c.ServiceConnectDefaults; d != nil && d.Namespace != nil {
		namespace := *d.Namespace
		if given := asked.ServiceConnectDefaults; given != nil && !strings.HasPrefix(aws.ToString(given.Namespace), "arn:") {
			out, err := call.Do[servicediscovery.GetNamespaceOutput](ctx, s.Services, &servicediscovery.GetNamespaceInput{Id: d.Namespace})
			if err != nil {
				return nil, err
			}
			namespace = *out.Namespace.Name
		}
		live.ServiceConnectDefaults = &types.ClusterServiceConnectDefaultsRequest{Namespace: &namespace}
	}
	return live, nil
}

func describeCluster(ctx context.Context, s Step, name string) (*types.Cluster, error) {
	out, err := call.Do[ecs.DescribeClustersOutput](ctx, s.Services, &ecs.DescribeClustersInput{
		Clusters: []string{name},
		Include:  []types.ClusterField{types.ClusterFieldConfigurations, types.ClusterFieldSettings, types.ClusterFieldTags},
	})
	if err != nil {
		return nil, err
	}
	if len(out.Clusters) == 0 || *out.Clusters[0].Status != "ACTIVE" {
		return nil, errMissing
	}
	return &out.Clusters[0], nil
}

func ecsTagPair(t types.Tag) (key, value *string) { return t.Key, t.Value }

func listClusters(ctx context.Context, s Step, _ *cluster) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ecs.ListClustersOutput](ctx, s.Services, &ecs.ListClustersInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.ClusterArns {
			ids = append(ids, x[strings.LastIndex(x, "/")+1:])
		}
		return ids, out.NextToken, nil
	})
}
