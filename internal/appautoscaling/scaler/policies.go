package scaler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/scaling/triggers"
	"github.com/pintle/pintle/internal/state"
)

// wish is what a policy wants, and why.
type wish struct {
	scaling.Proposal
	cause   string
	details string
	base    int // the capacity that it counts from
	// refusal is the code of the reason why the policy wants no change, if the reason is worth recording.
	refusal string
}

// policies lets policies act on their alarms: when an alarm changes to a state with the policy as its action, and then every
// period that it stays there, as CloudWatch does for scaling actions.
func (l *Loop) policies(ctx context.Context, now time.Time) error {
	v := l.store.View()
	targets := map[string][]*state.ScalingPolicy{}
	for p := range v.ScalingPolicies.All() {
		targets[p.TargetKey()] = append(targets[p.TargetKey()], p)
	}
	maps.DeleteFunc(l.watched, func(policy string, _ *watch) bool { return v.ScalingPolicies.Get(policy) == nil })
	if len(targets) == 0 {
		return nil
	}
	watching := map[string]bool{} // targets with policies that watch a queue
	for target, policies := range targets {
		if l.watchesQueue(policies) {
			watching[target] = true
		}
	}
	due, alarms, err := l.triggers.Due(ctx, now, len(watching) > 0)
	if err != nil {
		l.warn("cannot read alarms", err)
		return ctx.Err()
	}
	for target, policies := range targets {
		acts := watching[target] || slices.ContainsFunc(policies, func(p *state.ScalingPolicy) bool { return due[*p.PolicyARN] })
		if row := v.ScalableTargets.Get(target); acts && row != nil {
			if err := l.scale(ctx, row, policies, alarms, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// scale asks a target's policies what they want and does what wins.
func (l *Loop) scale(
	ctx context.Context, target *state.ScalableTarget, policies []*state.ScalingPolicy,
	alarms map[string][]cloudwatchtypes.MetricAlarm, now time.Time,
) error {
	s, err := l.service(ctx, *target.ResourceId)
	if err != nil {
		l.warn("cannot read a service's desired count", err, "resource", *target.ResourceId)
		return ctx.Err()
	}
	capacity := int(s.DesiredCount)
	var wishes []wish
	var proposals []scaling.Proposal
	for _, p := range policies {
		w, err := l.wish(ctx, target, p, alarms[*p.PolicyARN], s, now)
		if err != nil {
			l.warn("cannot read a policy's metric", err, "policy", *p.PolicyARN)
			return ctx.Err()
		}
		wishes = append(wishes, w)
		proposals = append(proposals, w.Proposal)
	}
	won := scaling.Combine(capacity, proposals)
	if won == nil {
		return l.explain(ctx, target, wishes, capacity, now)
	}
	w := wishes[slices.IndexFunc(wishes, func(w wish) bool { return w.Policy == won.Policy })]
	if code := scaling.Why(capacity, won.Desired, bounds(target)); code != "" {
		return l.recordNotScaled(ctx, newNotScaled(target, w, code, capacity, now))
	}
	desired := bounds(target).Clamp(won.Desired)
	return l.begin(ctx, target.Key(), newSetting(target, desired, w, now), &state.LastScaling{At: now, From: w.base, To: desired}, now)
}

// explain records why nothing was scaled, if a policy has a reason worth recording.
func (l *Loop) explain(ctx context.Context, target *state.ScalableTarget, wishes []wish, capacity int, now time.Time) error {
	i := slices.IndexFunc(wishes, func(w wish) bool { return w.refusal != "" })
	if i < 0 {
		return nil
	}
	code := wishes[i].refusal
	if code == scaling.AnticipatedFlapping && capacity <= bounds(target).Min {
		code = scaling.AlreadyAtMinCapacity
	}
	return l.recordNotScaled(ctx, newNotScaled(target, wishes[i], code, capacity, now))
}

// recordNotScaled stores an activity that didn't scale, unless the target's last one said the same.
func (l *Loop) recordNotScaled(ctx context.Context, a *state.ScalingActivity) error {
	if !isNews(l.store.View(), a) {
		return nil
	}
	return l.record(ctx, a)
}

// wish returns what a policy wants. alarms are those that act on it in their current state.
func (l *Loop) wish(
	ctx context.Context, target *state.ScalableTarget, p *state.ScalingPolicy,
	alarms []cloudwatchtypes.MetricAlarm, s *ecstypes.Service, now time.Time,
) (wish, error) {
	capacity := int(s.DesiredCount)
	if queue := queueOf(p); queue != "" && l.opts.Metrics != nil {
		w, err := l.queueWish(queue, p, s, now)
		if !isAllowed(target, w.Desired, capacity) {
			w.Desired = capacity
		}
		return w, err
	}
	w := wish{Proposal: scaling.Proposal{Policy: *p.PolicyName, Desired: capacity}}
	if c := p.TargetTrackingScalingPolicyConfiguration; c == nil || aws.ToBool(c.DisableScaleIn) {
		w.Consents = true
	}
	var past scaling.Past
	if target.Last != nil {
		past = scaling.Past(*target.Last)
	}
	for _, a := range alarms {
		points, err := l.triggers.Points(ctx, a, now)
		if err != nil {
			return w, err
		}
		values := usable(p, a, points, past, now)
		if len(values) == 0 {
			continue // the alarm treats missing data as breaching, which doesn't say how much to scale
		}
		switch desired, base := want(p, a, values, capacity, past, now); {
		case desired != capacity && isAllowed(target, desired, capacity):
			w.Desired = desired
			w.base = base
			w.cause = alarmCause(&a, *p.PolicyName)
			w.refusal = ""
		case desired == capacity && w.cause == "" && wouldFlap(p, a, past, now):
			w.cause = alarmCause(&a, *p.PolicyName)
			w.refusal = scaling.AnticipatedFlapping
		}
	}
	return w, nil
}

// wouldFlap reports whether an alarm that asked to scale in had no effect because the metric would return above its target.
// Otherwise a cool-down held it back.
func wouldFlap(p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, past scaling.Past, now time.Time) bool {
	c := p.TargetTrackingScalingPolicyConfiguration
	if c == nil || aws.ToBool(c.DisableScaleIn) || !isLowAlarm(a) {
		return false
	}
	return !past.BlocksIn(scaling.TargetTrackingOf(c).ScaleInCooldown, now)
}

// usable returns the values that a policy can use.
func usable(
	p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, points []triggers.Point, past scaling.Past, now time.Time,
) (values []float64) {
	since := time.Time{}
	if c := p.TargetTrackingScalingPolicyConfiguration; c != nil {
		since = scaling.TargetTrackingOf(c).Since(isLowAlarm(a), past, now)
	}
	for _, p := range points {
		if !p.At.Before(since) {
			values = append(values, p.Value)
		}
	}
	return values
}

// want returns the capacity that a policy wants because of an alarm, and the capacity that a scale-out counts from. values are
// the metric's, newest first.
func want(
	p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, values []float64, capacity int, past scaling.Past, now time.Time,
) (desired, base int) {
	if p.StepScalingPolicyConfiguration != nil {
		step, cooldown := scaling.StepOf(p.StepScalingPolicyConfiguration)
		base = past.Base(capacity, cooldown, now)
		desired = step.Desired(capacity, values[0], aws.ToFloat64(a.Threshold))
		switch {
		case desired < capacity && past.BlocksIn(cooldown, now):
			return capacity, capacity
		case desired < capacity:
			return desired, capacity
		}
		return max(capacity, step.Desired(base, values[0], aws.ToFloat64(a.Threshold))), base
	}
	t := scaling.TargetTrackingOf(p.TargetTrackingScalingPolicyConfiguration)
	return t.Want(isLowAlarm(a), values, capacity, past, now)
}

// isLowAlarm reports whether an alarm goes off when its metric is low.
func isLowAlarm(a cloudwatchtypes.MetricAlarm) bool {
	return a.ComparisonOperator == cloudwatchtypes.ComparisonOperatorLessThanThreshold ||
		a.ComparisonOperator == cloudwatchtypes.ComparisonOperatorLessThanOrEqualToThreshold
}

// isAllowed reports whether scaling in that direction isn't suspended.
func isAllowed(t *state.ScalableTarget, desired, capacity int) bool {
	s := t.SuspendedState
	return !(desired > capacity && aws.ToBool(s.DynamicScalingOutSuspended) ||
		desired < capacity && aws.ToBool(s.DynamicScalingInSuspended))
}
