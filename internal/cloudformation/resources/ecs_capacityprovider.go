package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// capacityProvider has the properties of AWS::ECS::CapacityProvider. Its physical ID is the name.
type capacityProvider struct {
	Name                     *string                   `cfn:"create"`
	AutoScalingGroupProvider *autoScalingGroupProvider `cfn:"required"`
	Tags                     []Tag                     `cfn:"lenient"`
}

// autoScalingGroupProvider is an AutoScalingGroupProvider, whose group can be named or given by its ARN.
type autoScalingGroupProvider struct {
	AutoScalingGroupArn          *string `cfn:"required"`
	ManagedDraining              types.ManagedDraining
	ManagedScaling               *types.ManagedScaling
	ManagedTerminationProtection types.ManagedTerminationProtection
}

var _ = add(&kind[*capacityProvider]{
	name:       "AWS::ECS::CapacityProvider",
	live:       liveCapacityProvider,
	list:       listCapacityProviders,
	identifier: []string{"Name"},
	id:         func(s Step, p *capacityProvider) string { return s.named(p.Name, 255) },
	create: func(ctx context.Context, s Step, p *capacityProvider) (string, error) {
		out, err := call.Do[ecs.CreateCapacityProviderOutput](ctx, s.Services, &ecs.CreateCapacityProviderInput{
			Name: new(s.named(p.Name, 255)),
			AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
				AutoScalingGroupArn:          p.AutoScalingGroupProvider.AutoScalingGroupArn,
				ManagedDraining:              p.AutoScalingGroupProvider.ManagedDraining,
				ManagedScaling:               p.AutoScalingGroupProvider.ManagedScaling,
				ManagedTerminationProtection: p.AutoScalingGroupProvider.ManagedTerminationProtection,
			},
			Tags: tagList(p.Tags, ecsTag),
		})
		if err != nil {
			return "", err
		}
		return *out.CapacityProvider.Name, nil
	},
	update: updateCapacityProvider,
	delete: deleteCapacityProvider,
	read: func(ctx context.Context, s Step, name string, _ *capacityProvider) (Made, error) {
		_, err := describeCapacityProvider(ctx, s, name)
		return Made{}, err
	},
})

func updateCapacityProvider(ctx context.Context, s Step, name string, before, after *capacityProvider) error {
	if a := before.AutoScalingGroupProvider; a != nil && *a.AutoScalingGroupArn != *after.AutoScalingGroupProvider.AutoScalingGroupArn {
		return template.Errorf("The Auto Scaling group of a capacity provider can't be changed: give the resource another name in the template.")
	}
	err := did[ecs.UpdateCapacityProviderOutput](ctx, s, &ecs.UpdateCapacityProviderInput{
		Name: &name,
		AutoScalingGroupProvider: &types.AutoScalingGroupProviderUpdate{
			ManagedDraining:              after.AutoScalingGroupProvider.ManagedDraining,
			ManagedScaling:               after.AutoScalingGroupProvider.ManagedScaling,
			ManagedTerminationProtection: after.AutoScalingGroupProvider.ManagedTerminationProtection,
		},
	})
	if err != nil {
		return err
	}
	return tagECS(ctx, s, s.Account.ARN("ecs", "capacity-provider/"+name), before.Tags, after.Tags)
}

// deleteCapacityProvider deletes a provider. One that a cluster has stays, and ECS tells so in the provider's row.
func deleteCapacityProvider(ctx context.Context, s Step, name string, _ *capacityProvider) error {
	if _, err := describeCapacityProvider(ctx, s, name); err != nil {
		return err
	}
	in := &ecs.DeleteCapacityProviderInput{CapacityProvider: &name}
	out, err := call.Do[ecs.DeleteCapacityProviderOutput](ctx, s.Services, in)
	if err != nil {
		return err
	}
	if p := out.CapacityProvider; p.UpdateStatus == types.CapacityProviderUpdateStatusDeleteFailed {
		return template.Errorf("Resource handler returned message: \"%s\" (HandlerErrorCode: ResourceConflict)", *p.UpdateStatusReason)
	}
	return nil
}

func describeCapacityProvider(ctx context.Context, s Step, name string) (*types.CapacityProvider, error) {
	in := &ecs.DescribeCapacityProvidersInput{CapacityProviders: []string{name}}
	out, err := call.Do[ecs.DescribeCapacityProvidersOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.CapacityProviders) == 0 || out.CapacityProviders[0].Status != types.CapacityProviderStatusActive {
		return nil, errMissing
	}
	return &out.CapacityProviders[0], nil
}

func liveCapacityProvider(ctx context.Context, s Step, name string, asked *capacityProvider) (*capacityProvider, error) {
	in := &ecs.DescribeCapacityProvidersInput{
		CapacityProviders: []string{name},
		Include:           []types.CapacityProviderField{types.CapacityProviderFieldTags},
	}
	out, err := call.Do[ecs.DescribeCapacityProvidersOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.CapacityProviders) == 0 || out.CapacityProviders[0].Status != types.CapacityProviderStatusActive {
		return nil, errMissing
	}
	p := out.CapacityProviders[0]
	live := &capacityProvider{Name: p.Name, Tags: ownTags(p.Tags, ecsTagPair)}
	if g := p.AutoScalingGroupProvider; g != nil {
		arn := *g.AutoScalingGroupArn
		var given *string
		if asked.AutoScalingGroupProvider != nil {
			given = asked.AutoScalingGroupProvider.AutoScalingGroupArn
		}
		live.AutoScalingGroupProvider = &autoScalingGroupProvider{
			AutoScalingGroupArn:          asGiven(given, arn, arn[strings.LastIndex(arn, "/")+1:]),
			ManagedDraining:              g.ManagedDraining,
			ManagedScaling:               g.ManagedScaling,
			ManagedTerminationProtection: g.ManagedTerminationProtection,
		}
	}
	return live, nil
}

func listCapacityProviders(ctx context.Context, s Step, _ *capacityProvider) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ecs.DescribeCapacityProvidersOutput](ctx, s.Services, &ecs.DescribeCapacityProvidersInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.CapacityProviders {
			ids = append(ids, *x.Name)
		}
		return ids, out.NextToken, nil
	})
}
