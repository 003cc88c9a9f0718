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
	cause, details string
	base           int // that it counts from
	// refusal is the code of the reason for which it wants nothing, where that is to be told.
	refusal string
}

// policies lets the policies act whose alarms are in ALARM: when an alarm gets there, and then every
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
	called := map[string]bool{} // targets whose policies see something themselves
	for target, policies := range targets {
		if l.watches(policies) {
			called[target] = true
		}
	}
	due, alarms, err := l.triggers.Due(ctx, now, len(called) > 0)
	if err != nil {
		l.warn("cannot read alarms", err)
		return ctx.Err()
	}
	for target, policies := range targets {
		acts := called[target] || slices.ContainsFunc(policies, func(p *state.ScalingPolicy) bool { return due[*p.PolicyARN] })
		if row := v.ScalableTargets.Get(target); acts && row != nil {
			if err := l.scale(ctx, row, policies, alarms, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// scale asks a target's policies what they want and does what wins.
func (l *Loop) scale(ctx context.Context, target *state.ScalableTarget, policies []*state.ScalingPolicy, alarms map[string][]cloudwatchtypes.MetricAlarm, now time.Time) error {
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
		wishes, proposals = append(wishes, w), append(proposals, w.Proposal)
	}
	won := scaling.Combine(capacity, proposals)
	if won == nil {
		return l.explain(ctx, target, wishes, capacity, now)
	}
	w := wishes[slices.IndexFunc(wishes, func(w wish) bool { return w.Policy == won.Policy })]
	if code := scaling.Why(capacity, won.Desired, bounds(target)); code != "" {
		return l.refuse(ctx, notScaled(target, w, code, capacity, now))
	}
	desired := bounds(target).Clamp(won.Desired)
	return l.begin(ctx, target.Key(), setting(target, desired, w, now), &state.LastScaling{At: now, From: w.base, To: desired}, now)
}

// explain tells why nothing was scaled, where a policy has a reason to tell.
func (l *Loop) explain(ctx context.Context, target *state.ScalableTarget, wishes []wish, capacity int, now time.Time) error {
	i := slices.IndexFunc(wishes, func(w wish) bool { return w.refusal != "" })
	if i < 0 {
		return nil
	}
	code := wishes[i].refusal
	if code == scaling.AnticipatedFlapping && capacity <= bounds(target).Min {
		code = scaling.AlreadyAtMinCapacity
	}
	return l.refuse(ctx, notScaled(target, wishes[i], code, capacity, now))
}

// refuse writes down that a policy has come to nothing, once and not every period anew.
func (l *Loop) refuse(ctx context.Context, a *state.ScalingActivity) error {
	if !news(l.store.View(), a) {
		return nil
	}
	return l.record(ctx, a)
}

// wish is what a policy wants, whose alarms in ALARM are given.
func (l *Loop) wish(ctx context.Context, target *state.ScalableTarget, p *state.ScalingPolicy, alarms []cloudwatchtypes.MetricAlarm, s *ecstypes.Service, now time.Time) (wish, error) {
	capacity := int(s.DesiredCount)
	if queue := queueOf(p); queue != "" && l.opts.Metrics != nil {
		w, err := l.queueWish(queue, p, s, now)
		if !allowed(target, w.Desired, capacity) {
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
		values := meaningful(p, a, points, past, now)
		if len(values) == 0 {
			continue // an alarm that treats missing data as breaching tells no amount
		}
		switch desired, base := want(p, a, values, capacity, past, now); {
		case desired != capacity && allowed(target, desired, capacity):
			w.Desired, w.base, w.cause, w.refusal = desired, base, triggered(&a, *p.PolicyName), ""
		case desired == capacity && w.cause == "" && flaps(p, a, past, now):
			w.cause, w.refusal = triggered(&a, *p.PolicyName), scaling.AnticipatedFlapping
		}
	}
	return w, nil
}

// flaps says of an alarm that asks to scale in, and came to nothing, that it was not for a cool-down: the metric would
// come back above its target.
func flaps(p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, past scaling.Past, now time.Time) bool {
	c := p.TargetTrackingScalingPolicyConfiguration
	if c == nil || aws.ToBool(c.DisableScaleIn) || !low(a) {
		return false
	}
	return !past.BlocksIn(scaling.TargetTrackingOf(c).ScaleInCooldown, now)
}

// meaningful are the values that a policy can go by. Target tracking multiplies the metric by the capacity that it was
// measured at; so once the cool-down of a scale-out is over, whose base is that of before, it leaves out what was measured
// before the last change.
func meaningful(p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, points []triggers.Point, past scaling.Past, now time.Time) (values []float64) {
	since := past.At
	if c := p.TargetTrackingScalingPolicyConfiguration; c == nil || !low(a) && past.Base(past.To, scaling.TargetTrackingOf(c).ScaleOutCooldown, now) != past.To {
		since = time.Time{}
	}
	for _, p := range points {
		if !p.At.Before(since) {
			values = append(values, p.Value)
		}
	}
	return values
}

// want is the capacity that a policy wants because of an alarm, from the metric's values, the newest
// first, and the one that a scale-out counts from.
func want(p *state.ScalingPolicy, a cloudwatchtypes.MetricAlarm, values []float64, capacity int, past scaling.Past, now time.Time) (desired, base int) {
	if p.StepScalingPolicyConfiguration != nil {
		step, cooldown := scaling.StepOf(p.StepScalingPolicyConfiguration)
		base = past.Base(capacity, cooldown, now)
		if desired = step.Desired(capacity, values[0], aws.ToFloat64(a.Threshold)); desired < capacity {
			return held(desired, capacity, past, cooldown, now), capacity
		}
		return max(capacity, step.Desired(base, values[0], aws.ToFloat64(a.Threshold))), base
	}
	t := scaling.TargetTrackingOf(p.TargetTrackingScalingPolicyConfiguration)
	if low(a) {
		// The highest of what the alarm has seen: one quiet period among them is no reason to give up more.
		return held(t.In(capacity, slices.Max(values)), capacity, past, t.ScaleInCooldown, now), capacity
	}
	base = past.Base(capacity, t.ScaleOutCooldown, now)
	return max(capacity, t.Out(base, values[0])), base
}

// held holds a scale-in back while the cool-down of the last one lasts.
func held(desired, capacity int, past scaling.Past, cooldown time.Duration, now time.Time) int {
	if past.BlocksIn(cooldown, now) {
		return capacity
	}
	return desired
}

// low reports whether an alarm goes off when its metric is low.
func low(a cloudwatchtypes.MetricAlarm) bool {
	return a.ComparisonOperator == cloudwatchtypes.ComparisonOperatorLessThanThreshold || a.ComparisonOperator == cloudwatchtypes.ComparisonOperatorLessThanOrEqualToThreshold
}

// allowed reports whether the target may be scaled that way.
func allowed(t *state.ScalableTarget, desired, capacity int) bool {
	s := t.SuspendedState
	return !(desired > capacity && aws.ToBool(s.DynamicScalingOutSuspended) || desired < capacity && aws.ToBool(s.DynamicScalingInSuspended))
}
