package resources

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// scalableTarget has the properties of AWS::ApplicationAutoScaling::ScalableTarget. Its physical ID is RESOURCE|DIMENSION|NAMESPACE.
type scalableTarget struct {
	ResourceId        *string                 `cfn:"required,create"`
	ScalableDimension types.ScalableDimension `cfn:"required,create"`
	ServiceNamespace  types.ServiceNamespace  `cfn:"required,create"`
	MaxCapacity       *int32                  `cfn:"required"`
	MinCapacity       *int32                  `cfn:"required"`
	RoleARN           *string
	ScheduledActions  []targetAction
	SuspendedState    *types.SuspendedState
}

// targetAction is a scheduled action of a scalable target.
type targetAction struct {
	ScheduledActionName  *string `cfn:"required"`
	Schedule             *string `cfn:"required"`
	EndTime              *time.Time
	ScalableTargetAction *types.ScalableTargetAction
	StartTime            *time.Time
	Timezone             *string
}

func (t *scalableTarget) id() string {
	return *t.ResourceId + "|" + string(t.ScalableDimension) + "|" + string(t.ServiceNamespace)
}

var _ = add(&kind[*scalableTarget]{
	name:       "AWS::ApplicationAutoScaling::ScalableTarget",
	live:       liveTarget,
	identifier: []string{"ResourceId", "ScalableDimension", "ServiceNamespace"},
	id:         func(_ Step, t *scalableTarget) string { return t.id() },
	create: func(ctx context.Context, s Step, t *scalableTarget) (string, error) {
		return t.id(), registerTarget(ctx, s, new(scalableTarget), t)
	},
	update: func(ctx context.Context, s Step, _ string, before, after *scalableTarget) error {
		return registerTarget(ctx, s, before, after)
	},
	delete: func(ctx context.Context, s Step, _ string, t *scalableTarget) error {
		in := &applicationautoscaling.DeregisterScalableTargetInput{
			ResourceId:        t.ResourceId,
			ScalableDimension: t.ScalableDimension,
			ServiceNamespace:  t.ServiceNamespace,
		}
		return did[applicationautoscaling.DeregisterScalableTargetOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, _ string, t *scalableTarget) (Made, error) {
		in := &applicationautoscaling.DescribeScalableTargetsInput{
			ResourceIds:       []string{*t.ResourceId},
			ScalableDimension: t.ScalableDimension,
			ServiceNamespace:  t.ServiceNamespace,
		}
		out, err := call.Do[applicationautoscaling.DescribeScalableTargetsOutput](ctx, s.Services, in)
		if err == nil && len(out.ScalableTargets) == 0 {
			err = errMissing
		}
		return Made{}, err
	},
})

func registerTarget(ctx context.Context, s Step, before, after *scalableTarget) error {
	in := &applicationautoscaling.RegisterScalableTargetInput{
		ResourceId:        after.ResourceId,
		ScalableDimension: after.ScalableDimension,
		ServiceNamespace:  after.ServiceNamespace,
		MaxCapacity:       after.MaxCapacity,
		MinCapacity:       after.MinCapacity,
		RoleARN:           after.RoleARN,
		SuspendedState:    after.SuspendedState,
	}
	if err := did[applicationautoscaling.RegisterScalableTargetOutput](ctx, s, in); err != nil {
		return err
	}
	return scheduleTarget(ctx, s, before, after)
}

// scheduleTarget changes the scheduled actions that a target's own list has.
func scheduleTarget(ctx context.Context, s Step, before, after *scalableTarget) error {
	stays := map[string]bool{}
	for _, a := range after.ScheduledActions {
		stays[*a.ScheduledActionName] = true
		err := did[applicationautoscaling.PutScheduledActionOutput](ctx, s, &applicationautoscaling.PutScheduledActionInput{
			ResourceId:           after.ResourceId,
			ScalableDimension:    after.ScalableDimension,
			ServiceNamespace:     after.ServiceNamespace,
			ScheduledActionName:  a.ScheduledActionName,
			EndTime:              a.EndTime,
			ScalableTargetAction: a.ScalableTargetAction,
			Schedule:             a.Schedule,
			StartTime:            a.StartTime,
			Timezone:             a.Timezone,
		})
		if err != nil {
			return err
		}
	}
	for _, a := range before.ScheduledActions {
		if stays[*a.ScheduledActionName] {
			continue
		}
		in := &applicationautoscaling.DeleteScheduledActionInput{
			ResourceId:          after.ResourceId,
			ScalableDimension:   after.ScalableDimension,
			ServiceNamespace:    after.ServiceNamespace,
			ScheduledActionName: a.ScheduledActionName,
		}
		if err := did[applicationautoscaling.DeleteScheduledActionOutput](ctx, s, in); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

func liveTarget(ctx context.Context, s Step, _ string, t *scalableTarget) (*scalableTarget, error) {
	out, err := call.Do[applicationautoscaling.DescribeScalableTargetsOutput](ctx, s.Services, &applicationautoscaling.DescribeScalableTargetsInput{
		ResourceIds:       []string{*t.ResourceId},
		ScalableDimension: t.ScalableDimension,
		ServiceNamespace:  t.ServiceNamespace,
	})
	if err == nil && len(out.ScalableTargets) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	is := out.ScalableTargets[0]
	live := &scalableTarget{
		ResourceId:        is.ResourceId,
		ScalableDimension: is.ScalableDimension,
		ServiceNamespace:  is.ServiceNamespace,
		MaxCapacity:       is.MaxCapacity,
		MinCapacity:       is.MinCapacity,
		RoleARN:           is.RoleARN,
		SuspendedState:    is.SuspendedState,
	}
	live.ScheduledActions, err = targetActions(ctx, s, t)
	return live, err
}

// targetActions returns the scheduled actions of a target.
func targetActions(ctx context.Context, s Step, t *scalableTarget) (list []targetAction, err error) {
	out, err := call.Do[applicationautoscaling.DescribeScheduledActionsOutput](ctx, s.Services,
		&applicationautoscaling.DescribeScheduledActionsInput{
			ResourceId:        t.ResourceId,
			ScalableDimension: t.ScalableDimension,
			ServiceNamespace:  t.ServiceNamespace,
		})
	if err != nil {
		return nil, err
	}
	for _, a := range out.ScheduledActions {
		list = append(list, targetAction{
			ScheduledActionName:  a.ScheduledActionName,
			Schedule:             a.Schedule,
			EndTime:              a.EndTime,
			ScalableTargetAction: a.ScalableTargetAction,
			StartTime:            a.StartTime,
			Timezone:             a.Timezone,
		})
	}
	return list, nil
}
