package appautoscaling

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxTargets is the quota of scalable targets for ECS.
const maxTargets = 3000

// RegisterScalableTarget registers a service for scaling, or changes the bounds of a registered one.
func (s *Service) RegisterScalableTarget(
	ctx context.Context, in *api.RegisterScalableTargetInput,
) (*api.RegisterScalableTargetOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(in.Tags) > account.MaxTags {
		return nil, tooMany("tags has %d members, at most %d are allowed", len(in.Tags), account.MaxTags)
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := checkCapacities(in.MinCapacity, in.MaxCapacity); err != nil {
		return nil, err
	}
	if err := s.checkExists(ctx, r); err != nil {
		return nil, err
	}
	var row *state.ScalableTarget
	err := s.store.Update(ctx, func(tx *state.Tx) (err error) {
		old := tx.ScalableTargets.Get(r.key())
		switch {
		case old != nil && len(in.Tags) > 0:
			return invalid("Tags can be given only when the scalable target is registered first; use TagResource")
		case old == nil && count(tx.ScalableTargets.All(), maxTargets) >= maxTargets:
			return tooMany("There are already %d scalable targets, the maximum", maxTargets)
		}
		if row, err = s.register(old, in); err == nil {
			tx.ScalableTargets.Put(row)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.RegisterScalableTargetOutput{ScalableTargetARN: row.ScalableTargetARN}, nil
}

// register makes a target's row from a call, over the old row if there is one.
func (s *Service) register(old *state.ScalableTarget, in *api.RegisterScalableTargetInput) (*state.ScalableTarget, error) {
	row := &state.ScalableTarget{ScalableTarget: types.ScalableTarget{
		ServiceNamespace:  in.ServiceNamespace,
		ScalableDimension: in.ScalableDimension,
		ResourceId:        in.ResourceId,
		CreationTime:      s.now(),
		ScalableTargetARN: new(s.opts.ARN("application-autoscaling", "scalable-target/"+state.NewID())),
		RoleARN: new(s.opts.GlobalARN("iam",
			"role/aws-service-role/ecs.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_ECSService")),
		SuspendedState: &types.SuspendedState{
			DynamicScalingInSuspended:  new(false),
			DynamicScalingOutSuspended: new(false),
			ScheduledScalingSuspended:  new(false),
		},
	}, Tags: in.Tags}
	if old != nil {
		*row = *old
	}
	if err := setBounds(row, in.MinCapacity, in.MaxCapacity); err != nil {
		return nil, err
	}
	if in.RoleARN != nil {
		row.RoleARN = in.RoleARN
	}
	row.SuspendedState = mergeSuspended(row.SuspendedState, in.SuspendedState)
	return row, nil
}

// setBounds sets the bounds that are given, and marks the target so that the loop brings its capacity within them.
func setBounds(row *state.ScalableTarget, lowest, highest *int32) error {
	row.MinCapacity = cmp.Or(lowest, row.MinCapacity)
	row.MaxCapacity = cmp.Or(highest, row.MaxCapacity)
	switch {
	case row.MinCapacity == nil:
		return missing("minCapacity")
	case row.MaxCapacity == nil:
		return missing("maxCapacity")
	case *row.MaxCapacity < *row.MinCapacity:
		return invalid("Maximum capacity cannot be less than minimum capacity: maxCapacity is %d, minCapacity %d",
			*row.MaxCapacity, *row.MinCapacity)
	}
	row.Unsettled = row.Unsettled || lowest != nil || highest != nil
	return nil
}

func checkCapacities(lowest, highest *int32) error {
	if err := checkCapacity("minCapacity", lowest); err != nil {
		return err
	}
	return checkCapacity("maxCapacity", highest)
}

func checkCapacity(field string, n *int32) error {
	if n != nil && *n < 0 {
		return invalid("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value "+
			"greater than or equal to 0", *n, field)
	}
	return nil
}

// mergeSuspended returns the old state with the given members changed.
func mergeSuspended(old, change *types.SuspendedState) *types.SuspendedState {
	if change == nil {
		return old
	}
	return &types.SuspendedState{
		DynamicScalingInSuspended:  cmp.Or(change.DynamicScalingInSuspended, old.DynamicScalingInSuspended),
		DynamicScalingOutSuspended: cmp.Or(change.DynamicScalingOutSuspended, old.DynamicScalingOutSuspended),
		ScheduledScalingSuspended:  cmp.Or(change.ScheduledScalingSuspended, old.ScheduledScalingSuspended),
	}
}

// DeregisterScalableTarget deletes a target, with its policies, their alarms, and its scheduled actions.
func (s *Service) DeregisterScalableTarget(
	ctx context.Context, in *api.DeregisterScalableTargetInput,
) (*api.DeregisterScalableTargetOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	v := s.store.View()
	if v.ScalableTargets.Get(r.key()) == nil {
		return nil, notFound("scalable target found", r)
	}
	for p := range v.ScalingPolicies.By(state.ScalingPoliciesByTarget, r.key()) {
		if err := s.deleteAlarms(ctx, p.Alarms); err != nil {
			return nil, err
		}
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, p := range slices.Collect(tx.ScalingPolicies.By(state.ScalingPoliciesByTarget, r.key())) {
			tx.ScalingPolicies.Delete(p.Key())
		}
		for _, a := range slices.Collect(tx.ScheduledActions.By(state.ScheduledActionsByTarget, r.key())) {
			tx.ScheduledActions.Delete(a.Key())
		}
		tx.ScalableTargets.Delete(r.key())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeregisterScalableTargetOutput{}, nil
}

// DescribeScalableTargets lists targets: all, or those of some resources.
func (s *Service) DescribeScalableTargets(
	_ context.Context, in *api.DescribeScalableTargetsInput,
) (*api.DescribeScalableTargetsOutput, error) {
	if err := checkListed(in.ServiceNamespace, in.ScalableDimension); err != nil {
		return nil, err
	}
	if in.ScalableDimension != "" && len(in.ResourceIds) == 0 {
		return nil, invalid("resourceIds must be given with scalableDimension")
	}
	keep := func(t *state.ScalableTarget) bool {
		return t.ServiceNamespace == in.ServiceNamespace &&
			(len(in.ResourceIds) == 0 || slices.Contains(in.ResourceIds, *t.ResourceId))
	}
	rows, next, err := account.Sorted(listing("DescribeScalableTargets"), filter(s.store.View().ScalableTargets.All(), keep),
		in.MaxResults, in.NextToken, (*state.ScalableTarget).Key)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScalableTargetsOutput{ScalableTargets: []types.ScalableTarget{}, NextToken: next}
	for _, row := range rows {
		out.ScalableTargets = append(out.ScalableTargets, row.ScalableTarget)
	}
	return out, nil
}

// DescribeScalingActivities lists scaling activities, newest first. On request it includes those that didn't scale.
func (s *Service) DescribeScalingActivities(
	_ context.Context, in *api.DescribeScalingActivitiesInput,
) (*api.DescribeScalingActivitiesOutput, error) {
	if err := checkListed(in.ServiceNamespace, in.ScalableDimension); err != nil {
		return nil, err
	}
	if in.ScalableDimension != "" && in.ResourceId == nil {
		return nil, invalid("resourceId must be given with scalableDimension")
	}
	all := filter(s.store.View().ScalingActivities.All(), func(a *state.ScalingActivity) bool {
		return a.ServiceNamespace == in.ServiceNamespace && (in.ResourceId == nil || *a.ResourceId == *in.ResourceId) &&
			(len(a.NotScaledReasons) == 0 || aws.ToBool(in.IncludeNotScaledActivities))
	})
	slices.Reverse(all)
	rows, next, err := account.Ordered(listing("DescribeScalingActivities"), all, in.MaxResults, in.NextToken,
		func(a *state.ScalingActivity) string { return *a.ActivityId })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScalingActivitiesOutput{ScalingActivities: []types.ScalingActivity{}, NextToken: next}
	for _, row := range rows {
		out.ScalingActivities = append(out.ScalingActivities, row.ScalingActivity)
	}
	return out, nil
}
