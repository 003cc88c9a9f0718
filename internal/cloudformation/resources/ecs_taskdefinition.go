package resources

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// taskDefinition has the properties of AWS::ECS::TaskDefinition. Its physical ID is the ARN with the revision.
type taskDefinition struct {
	ContainerDefinitions    []types.ContainerDefinition               `cfn:"create"`
	Cpu                     *string                                   `cfn:"create"`
	EnableFaultInjection    *bool                                     `cfn:"create"`
	EphemeralStorage        *types.EphemeralStorage                   `cfn:"create"`
	ExecutionRoleArn        *string                                   `cfn:"create"`
	Family                  *string                                   `cfn:"create"`
	InferenceAccelerators   []types.InferenceAccelerator              `cfn:"create"`
	IpcMode                 types.IpcMode                             `cfn:"create"`
	Memory                  *string                                   `cfn:"create"`
	NetworkMode             types.NetworkMode                         `cfn:"create"`
	PidMode                 types.PidMode                             `cfn:"create"`
	PlacementConstraints    []types.TaskDefinitionPlacementConstraint `cfn:"create"`
	ProxyConfiguration      *types.ProxyConfiguration                 `cfn:"create"`
	RequiresCompatibilities []types.Compatibility                     `cfn:"create"`
	RuntimePlatform         *types.RuntimePlatform                    `cfn:"create"`
	TaskRoleArn             *string                                   `cfn:"create"`
	Volumes                 []types.Volume                            `cfn:"create"`
	Tags                    []Tag                                     `cfn:"lenient"`
}

var _ = add(&kind[*taskDefinition]{
	name:       "AWS::ECS::TaskDefinition",
	live:       liveTaskDefinition,
	list:       listTaskDefinitions,
	identifier: []string{"TaskDefinitionArn"},
	attributes: []string{"TaskDefinitionArn"},
	find:       registered,
	create: func(ctx context.Context, s Step, d *taskDefinition) (string, error) {
		out, err := call.Do[ecs.RegisterTaskDefinitionOutput](ctx, s.Services, &ecs.RegisterTaskDefinitionInput{
			Family:                  new(s.named(d.Family, 255)),
			ContainerDefinitions:    d.ContainerDefinitions,
			Cpu:                     d.Cpu,
			EnableFaultInjection:    d.EnableFaultInjection,
			EphemeralStorage:        d.EphemeralStorage,
			ExecutionRoleArn:        d.ExecutionRoleArn,
			InferenceAccelerators:   d.InferenceAccelerators,
			IpcMode:                 d.IpcMode,
			Memory:                  d.Memory,
			NetworkMode:             d.NetworkMode,
			PidMode:                 d.PidMode,
			PlacementConstraints:    d.PlacementConstraints,
			ProxyConfiguration:      d.ProxyConfiguration,
			RequiresCompatibilities: d.RequiresCompatibilities,
			RuntimePlatform:         d.RuntimePlatform,
			Tags:                    tagList(d.Tags, ecsTag),
			TaskRoleArn:             d.TaskRoleArn,
			Volumes:                 d.Volumes,
		})
		if err != nil {
			return "", err
		}
		return *out.TaskDefinition.TaskDefinitionArn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *taskDefinition) error {
		return tagECS(ctx, s, arn, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, arn string, _ *taskDefinition) error {
		return did[ecs.DeregisterTaskDefinitionOutput](ctx, s, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: &arn})
	},
	read: func(ctx context.Context, s Step, arn string, _ *taskDefinition) (Made, error) {
		return Made{Attributes: map[string]any{"TaskDefinitionArn": arn}}, nil
	},
})

// registered returns the revision that a process registered before it was killed, if one did.
func registered(ctx context.Context, s Step, d *taskDefinition) (string, error) {
	in := &ecs.DescribeTaskDefinitionInput{TaskDefinition: new(s.named(d.Family, 255))}
	out, err := call.Do[ecs.DescribeTaskDefinitionOutput](ctx, s.Services, in)
	if err != nil {
		return "", nil //nolint:nilerr // the family has no revision
	}
	arn := *out.TaskDefinition.TaskDefinitionArn
	if out.TaskDefinition.RegisteredAt.Before(s.Since.Truncate(time.Millisecond)) || slices.Contains(s.Former, arn) {
		return "", nil
	}
	return arn, nil
}

func liveTaskDefinition(ctx context.Context, s Step, arn string, _ *taskDefinition) (*taskDefinition, error) {
	out, err := call.Do[ecs.DescribeTaskDefinitionOutput](ctx, s.Services, &ecs.DescribeTaskDefinitionInput{
		TaskDefinition: &arn,
		Include:        []types.TaskDefinitionField{types.TaskDefinitionFieldTags},
	})
	if hasCode(err, "ClientException") || err == nil && out.TaskDefinition.Status != types.TaskDefinitionStatusActive {
		return nil, errMissing // ECS has no other error for one that isn't there
	}
	if err != nil {
		return nil, err
	}
	d := out.TaskDefinition
	return &taskDefinition{
		ContainerDefinitions:    d.ContainerDefinitions,
		Cpu:                     d.Cpu,
		EnableFaultInjection:    d.EnableFaultInjection,
		EphemeralStorage:        d.EphemeralStorage,
		ExecutionRoleArn:        d.ExecutionRoleArn,
		Family:                  d.Family,
		InferenceAccelerators:   d.InferenceAccelerators,
		IpcMode:                 d.IpcMode,
		Memory:                  d.Memory,
		NetworkMode:             d.NetworkMode,
		PidMode:                 d.PidMode,
		PlacementConstraints:    d.PlacementConstraints,
		ProxyConfiguration:      d.ProxyConfiguration,
		RequiresCompatibilities: d.RequiresCompatibilities,
		RuntimePlatform:         d.RuntimePlatform,
		TaskRoleArn:             d.TaskRoleArn,
		Volumes:                 d.Volumes,
		Tags:                    ownTags(out.Tags, ecsTagPair),
	}, nil
}

func listTaskDefinitions(ctx context.Context, s Step, _ *taskDefinition) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ecs.ListTaskDefinitionsOutput](ctx, s.Services, &ecs.ListTaskDefinitionsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		return out.TaskDefinitionArns, out.NextToken, nil
	})
}
