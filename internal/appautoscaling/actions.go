package appautoscaling

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// maxActions is the quota of scheduled actions for each scalable target.
const maxActions = 200

// actionName is PutScheduledAction's pattern: no colon, slash, bar or control character, and no blank at either end.
var actionName = pattern.New(`^[^ :/|\x00-\x1f\x7f-\x{9f}]([^:/|\x00-\x1f\x7f-\x{9f}]*[^ :/|\x00-\x1f\x7f-\x{9f}])?$`, 256)

// PutScheduledAction creates a scheduled action, or changes the given members of one.
func (s *Service) PutScheduledAction(ctx context.Context, in *api.PutScheduledActionInput) (*api.PutScheduledActionOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	if !actionName.MatchString(aws.ToString(in.ScheduledActionName)) {
		return nil, invalid("scheduledActionName %q must have 1 to 256 characters, none of them :, /, | or a control character, and "+
			"no blank at either end", aws.ToString(in.ScheduledActionName))
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.ScalableTargets.Get(r.key()) == nil {
			return notFound("scalable target registered", r)
		}
		row := s.newAction(in)
		if old := tx.ScheduledActions.Get(row.Key()); old != nil {
			*row = *old
		} else if count(tx.ScheduledActions.By(state.ScheduledActionsByTarget, r.key()), maxActions) >= maxActions {
			return tooMany("The scalable target already has %d scheduled actions, the maximum", maxActions)
		}
		if err := s.setAction(row, in); err != nil {
			return err
		}
		tx.ScheduledActions.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutScheduledActionOutput{}, nil
}

// newAction makes a scheduled action with the members that never change.
func (s *Service) newAction(in *api.PutScheduledActionInput) *state.ScheduledAction {
	name := *in.ScheduledActionName
	uuid := account.UUID(*in.ResourceId, name, s.now().String())
	id := "scheduledAction:" + uuid + ":resource/ecs/" + *in.ResourceId + ":scheduledActionName/" + name
	return &state.ScheduledAction{ScheduledAction: types.ScheduledAction{
		ServiceNamespace:    in.ServiceNamespace,
		ScalableDimension:   in.ScalableDimension,
		ResourceId:          in.ResourceId,
		ScheduledActionName: &name,
		ScheduledActionARN:  new(s.opts.ARN("autoscaling", id)),
		CreationTime:        s.now(),
	}}
}

// setAction sets the members of an action that a call gives, checks the result, and computes when the action is due.
func (s *Service) setAction(row *state.ScheduledAction, in *api.PutScheduledActionInput) error {
	if in.Schedule != nil {
		row.Schedule = in.Schedule
		row.Timezone = in.Timezone
	} else if in.Timezone != nil {
		row.Timezone = in.Timezone
	}
	row.StartTime = cmp.Or(in.StartTime, row.StartTime)
	row.EndTime = cmp.Or(in.EndTime, row.EndTime)
	row.ScalableTargetAction = cmp.Or(in.ScalableTargetAction, row.ScalableTargetAction)
	if err := checkAction(row); err != nil {
		return err
	}
	when, err := scaling.ScheduleOf(&row.ScheduledAction)
	if err != nil {
		return invalid("%v", err)
	}
	row.DueAt = nil
	if at, ok := when.Next(*s.now()); ok {
		row.DueAt = &at
	}
	return nil
}

func checkAction(row *state.ScheduledAction) error {
	action := row.ScalableTargetAction
	switch {
	case row.Schedule == nil:
		return missing("schedule")
	case row.StartTime != nil && row.EndTime != nil && !row.EndTime.After(*row.StartTime):
		return invalid("endTime must be after startTime")
	case action == nil || action.MinCapacity == nil && action.MaxCapacity == nil:
		return invalid("scalableTargetAction must have a minCapacity or a maxCapacity")
	case action.MinCapacity != nil && action.MaxCapacity != nil && *action.MaxCapacity < *action.MinCapacity:
		return invalid("Maximum capacity cannot be less than minimum capacity: scalableTargetAction has the maxCapacity %d and the "+
			"minCapacity %d", *action.MaxCapacity, *action.MinCapacity)
	}
	if err := checkCapacity("scalableTargetAction.minCapacity", action.MinCapacity); err != nil {
		return err
	}
	return checkCapacity("scalableTargetAction.maxCapacity", action.MaxCapacity)
}

// DeleteScheduledAction deletes a scheduled action.
func (s *Service) DeleteScheduledAction(ctx context.Context, in *api.DeleteScheduledActionInput) (*api.DeleteScheduledActionOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		key := r.key() + " " + *in.ScheduledActionName
		if tx.ScheduledActions.Get(key) == nil {
			return notFound("scheduled action named "+*in.ScheduledActionName+" found", r)
		}
		tx.ScheduledActions.Delete(key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteScheduledActionOutput{}, nil
}

// DescribeScheduledActions lists scheduled actions: all, a resource's, or some by name.
func (s *Service) DescribeScheduledActions(
	_ context.Context, in *api.DescribeScheduledActionsInput,
) (*api.DescribeScheduledActionsOutput, error) {
	if err := checkListed(in.ServiceNamespace, in.ScalableDimension); err != nil {
		return nil, err
	}
	if in.ScalableDimension != "" && in.ResourceId == nil {
		return nil, invalid("resourceId must be given with scalableDimension")
	}
	all := filter(s.store.View().ScheduledActions.All(), func(a *state.ScheduledAction) bool {
		return a.ServiceNamespace == in.ServiceNamespace && (in.ResourceId == nil || *a.ResourceId == *in.ResourceId) &&
			(len(in.ScheduledActionNames) == 0 || slices.Contains(in.ScheduledActionNames, *a.ScheduledActionName))
	})
	list := listing("DescribeScheduledActions")
	rows, next, err := account.Sorted(list, all, in.MaxResults, in.NextToken, (*state.ScheduledAction).Key)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScheduledActionsOutput{ScheduledActions: []types.ScheduledAction{}, NextToken: next}
	for _, row := range rows {
		out.ScheduledActions = append(out.ScheduledActions, row.ScheduledAction)
	}
	return out, nil
}
