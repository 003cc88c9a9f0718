package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// providerAssociations has the properties of AWS::ECS::ClusterCapacityProviderAssociations. Its physical ID is the cluster.
type providerAssociations struct {
	Cluster                         *string                              `cfn:"required,create"`
	CapacityProviders               []string                             `cfn:"required"`
	DefaultCapacityProviderStrategy []types.CapacityProviderStrategyItem `cfn:"required"`
}

var _ = add(&kind[*providerAssociations]{
	name:       "AWS::ECS::ClusterCapacityProviderAssociations",
	live:       liveAssociations,
	identifier: []string{"Cluster"},
	create: func(ctx context.Context, s Step, a *providerAssociations) (string, error) {
		return *a.Cluster, associate(ctx, s, a)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *providerAssociations) error {
		return associate(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, cluster string, _ *providerAssociations) error {
		return associate(ctx, s, &providerAssociations{Cluster: &cluster})
	},
})

// associate gives a cluster its capacity providers, and takes those away that it had.
func associate(ctx context.Context, s Step, a *providerAssociations) error {
	return did[ecs.PutClusterCapacityProvidersOutput](ctx, s, &ecs.PutClusterCapacityProvidersInput{
		Cluster:                         a.Cluster,
		CapacityProviders:               append([]string{}, a.CapacityProviders...),
		DefaultCapacityProviderStrategy: append([]types.CapacityProviderStrategyItem{}, a.DefaultCapacityProviderStrategy...),
	})
}

func liveAssociations(ctx context.Context, s Step, name string, _ *providerAssociations) (*providerAssociations, error) {
	c, err := describeCluster(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return &providerAssociations{
		Cluster:                         &name,
		CapacityProviders:               c.CapacityProviders,
		DefaultCapacityProviderStrategy: c.DefaultCapacityProviderStrategy,
	}, nil
}
