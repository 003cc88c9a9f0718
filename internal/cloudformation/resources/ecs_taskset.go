package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// taskSet has the properties of AWS::ECS::TaskSet, of a service whose deployments are somebody else's. Its physical ID is
// CLUSTER|SERVICE|ID, the first two as the template has them.
type taskSet struct {
	Cluster                  *string                              `cfn:"required,create"`
	Service                  *string                              `cfn:"required,create"`
	TaskDefinition           *string                              `cfn:"required,create"`
	CapacityProviderStrategy []types.CapacityProviderStrategyItem `cfn:"create"`
	ExternalId               *string                              `cfn:"create"`
	LaunchType               types.LaunchType                     `cfn:"create"`
	LoadBalancers            []types.LoadBalancer                 `cfn:"create"`
	NetworkConfiguration     *types.NetworkConfiguration          `cfn:"create"`
	PlatformVersion          *string                              `cfn:"create"`
	ServiceRegistries        []types.ServiceRegistry              `cfn:"create"`
	Tags                     []Tag                                `cfn:"create,lenient"` // ECS's TagResource takes no task sets
	Scale                    *types.Scale
}

func (t *taskSet) id(set string) string {
	return strings.Join([]string{*t.Cluster, *t.Service, set}, "|")
}

// setOf returns ECS's ID of a task set, which is the last part of the physical one.
func setOf(id string) string { return id[strings.LastIndexByte(id, '|')+1:] }

var _ = add(&kind[*taskSet]{
	name:       "AWS::ECS::TaskSet",
	live:       liveTaskSet,
	identifier: []string{"Cluster", "Service", "Id"},
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, t *taskSet) (string, error) {
		out, err := call.Do[ecs.CreateTaskSetOutput](ctx, s.Services, &ecs.CreateTaskSetInput{
			ClientToken:              &s.Token,
			Cluster:                  t.Cluster,
			Service:                  t.Service,
			TaskDefinition:           t.TaskDefinition,
			CapacityProviderStrategy: t.CapacityProviderStrategy,
			ExternalId:               t.ExternalId,
			LaunchType:               t.LaunchType,
			LoadBalancers:            t.LoadBalancers,
			NetworkConfiguration:     t.NetworkConfiguration,
			PlatformVersion:          t.PlatformVersion,
			ServiceRegistries:        t.ServiceRegistries,
			Scale:                    t.Scale,
			Tags:                     tagList(t.Tags, ecsTag),
		})
		if err != nil {
			return "", err
		}
		return t.id(*out.TaskSet.Id), nil
	},
	update: func(ctx context.Context, s Step, id string, _, after *taskSet) error {
		scale := after.Scale
		if scale == nil {
			scale = &types.Scale{Unit: types.ScaleUnitPercent, Value: 100} // what a new one without has
		}
		in := &ecs.UpdateTaskSetInput{Cluster: after.Cluster, Service: after.Service, TaskSet: new(setOf(id)), Scale: scale}
		return did[ecs.UpdateTaskSetOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, id string, t *taskSet) error {
		force := true
		in := &ecs.DeleteTaskSetInput{Cluster: t.Cluster, Service: t.Service, TaskSet: new(setOf(id)), Force: &force}
		if err := did[ecs.DeleteTaskSetOutput](ctx, s, in); err != nil {
			return err
		}
		return ErrPending
	},
	settled: func(ctx context.Context, s Step, id string, t *taskSet) (bool, error) {
		found, err := describeTaskSet(ctx, s, id, t)
		return err == nil && found.StabilityStatus == types.StabilityStatusSteadyState, err
	},
	read: func(ctx context.Context, s Step, id string, t *taskSet) (Made, error) {
		if _, err := describeTaskSet(ctx, s, id, t); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Id": setOf(id)}}, nil
	},
})

func describeTaskSet(ctx context.Context, s Step, id string, t *taskSet) (*types.TaskSet, error) {
	in := &ecs.DescribeTaskSetsInput{
		Cluster: t.Cluster, Service: t.Service, TaskSets: []string{setOf(id)}, Include: []types.TaskSetField{types.TaskSetFieldTags},
	}
	out, err := call.Do[ecs.DescribeTaskSetsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.TaskSets) == 0 {
		return nil, errMissing
	}
	return &out.TaskSets[0], nil
}

func liveTaskSet(ctx context.Context, s Step, id string, asked *taskSet) (*taskSet, error) {
	is, err := describeTaskSet(ctx, s, id, asked)
	if err != nil {
		return nil, err
	}
	return &taskSet{
		Cluster:                  asGiven(asked.Cluster, *is.ClusterArn, state.NameOf(*is.ClusterArn)),
		Service:                  asGiven(asked.Service, *is.ServiceArn, state.NameOf(*is.ServiceArn)),
		TaskDefinition:           asGiven(asked.TaskDefinition, *is.TaskDefinition, state.NameOf(*is.TaskDefinition)),
		CapacityProviderStrategy: is.CapacityProviderStrategy,
		ExternalId:               is.ExternalId,
		LaunchType:               is.LaunchType,
		LoadBalancers:            is.LoadBalancers,
		NetworkConfiguration:     is.NetworkConfiguration,
		PlatformVersion:          is.PlatformVersion,
		ServiceRegistries:        is.ServiceRegistries,
		Scale:                    is.Scale,
		Tags:                     ownTags(is.Tags, ecsTagPair),
	}, nil
}

// primaryTaskSet has the properties of AWS::ECS::PrimaryTaskSet: which of a service's task sets is the primary one. Its physical ID is
// CLUSTER|SERVICE. Its deletion changes nothing, as on AWS.
type primaryTaskSet struct {
	Cluster   *string `cfn:"required,create"`
	Service   *string `cfn:"required,create"`
	TaskSetId *string `cfn:"required"`
}

var _ = add(&kind[*primaryTaskSet]{
	name: "AWS::ECS::PrimaryTaskSet",
	create: func(ctx context.Context, s Step, p *primaryTaskSet) (string, error) {
		return *p.Cluster + "|" + *p.Service, choosePrimary(ctx, s, p)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *primaryTaskSet) error {
		return choosePrimary(ctx, s, after)
	},
	delete: func(context.Context, Step, string, *primaryTaskSet) error { return nil },
})

func choosePrimary(ctx context.Context, s Step, p *primaryTaskSet) error {
	in := &ecs.UpdateServicePrimaryTaskSetInput{Cluster: p.Cluster, Service: p.Service, PrimaryTaskSet: p.TaskSetId}
	return did[ecs.UpdateServicePrimaryTaskSetOutput](ctx, s, in)
}
