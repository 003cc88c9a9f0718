package keeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/scaling/triggers"
	"github.com/pintle/pintle/internal/state"
)

// policies lets the policies act whose alarms are due.
func (l *Loop) policies(ctx context.Context, now time.Time) error {
	v := l.store.View()
	groups := map[string][]*state.GroupPolicy{}
	for p := range v.GroupPolicies.All() {
		if aws.ToBool(p.Enabled) {
			groups[*p.AutoScalingGroupName] = append(groups[*p.AutoScalingGroupName], p)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	due, alarms, err := l.triggers.Due(ctx, now, false)
	if err != nil {
		l.opts.Log.Warn("cannot read alarms", "error", err)
		return ctx.Err()
	}
	for name, policies := range groups {
		if !slices.ContainsFunc(policies, func(p *state.GroupPolicy) bool { return due[*p.PolicyARN] }) {
			continue
		}
		if err := l.scale(ctx, name, policies, alarms, now); err != nil {
			return err
		}
	}
	return nil
}

// reading is an alarm of a policy, and its metric.
type reading struct {
	alarm  cloudwatchtypes.MetricAlarm
	points []triggers.Point // newest first
}

// scale sets the desired capacity that a group's policies agree on.
func (l *Loop) scale(
	ctx context.Context, name string, policies []*state.GroupPolicy, alarms map[string][]cloudwatchtypes.MetricAlarm, now time.Time,
) error {
	readings := map[string][]reading{}
	for _, p := range policies {
		for _, a := range alarms[*p.PolicyARN] {
			points, err := l.triggers.Points(ctx, a, now)
			if err != nil {
				l.opts.Log.Warn("cannot read a policy's metric", "policy", *p.PolicyARN, "error", err)
				return ctx.Err()
			}
			readings[*p.PolicyARN] = append(readings[*p.PolicyARN], reading{a, points})
		}
	}
	return l.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.AutoScalingGroups.Get(name)
		if old == nil || old.Deleting || old.IsSuspended("AlarmNotification") {
			return nil
		}
		g, capacity := old.Clone(), int(*old.DesiredCapacity)
		causes := map[string]string{}
		var proposals []scaling.Proposal
		for _, p := range policies {
			proposal := scaling.Proposal{
				Policy:   *p.PolicyName,
				Desired:  capacity,
				Consents: p.TargetTrackingConfiguration == nil || aws.ToBool(p.TargetTrackingConfiguration.DisableScaleIn),
			}
			for _, r := range readings[*p.PolicyARN] {
				if desired := want(tx.View, g, p, r, now); desired != capacity {
					proposal.Desired = desired
					causes[*p.PolicyName] = fmt.Sprintf("a monitor alarm %s in state %s triggered policy %s",
						*r.alarm.AlarmName, r.alarm.StateValue, *p.PolicyName)
				}
			}
			proposals = append(proposals, proposal)
		}
		won := scaling.Combine(capacity, proposals)
		if won == nil {
			return nil
		}
		setDesired(g, won.Desired, causes[won.Policy], now)
		if *g.DesiredCapacity != *old.DesiredCapacity {
			tx.AutoScalingGroups.Put(g)
		}
		return nil
	})
}

// want returns the capacity that a policy wants because of an alarm.
//
// Simple scaling waits for the cool-down. The others, when scaling out, don't count instances that are warming up, so that
// only a larger step adds more. They don't scale in while any is warming up. See the user guide's pages on step and target
// tracking policies, and "Set the default instance warmup".
func want(v *state.View, g *state.AutoScalingGroup, p *state.GroupPolicy, r reading, now time.Time) int {
	capacity, threshold := int(*g.DesiredCapacity), aws.ToFloat64(r.alarm.Threshold)
	if *p.PolicyType == "SimpleScaling" {
		if g.IsCoolingDown(p.Cooldown, now) || underWay(v, g) {
			return capacity
		}
		return scaling.StepOfGroup(&p.ScalingPolicy).Desired(capacity, threshold, threshold)
	}
	warming := warmingUp(v, g, warmup(g, p), now)
	base := max(0, capacity-warming)
	if len(r.points) == 0 {
		return capacity // the alarm treats missing data as breaching, which doesn't say how much to scale
	}
	var out, in int
	if c := p.TargetTrackingConfiguration; c != nil {
		t := scaling.TargetTracking{TargetValue: *c.TargetValue, DisableScaleIn: aws.ToBool(c.DisableScaleIn)}
		out, in = t.Out(base, r.points[0].Value), capacity
		if r.alarm.ComparisonOperator == cloudwatchtypes.ComparisonOperatorLessThanThreshold {
			// Take the highest that the alarm saw: one quiet period among them is no reason to give up more.
			highest := slices.MaxFunc(r.points, func(a, b triggers.Point) int { return cmp.Compare(a.Value, b.Value) })
			out, in = capacity, t.In(capacity, highest.Value)
		}
	} else {
		s := scaling.StepOfGroup(&p.ScalingPolicy)
		out, in = s.Desired(base, r.points[0].Value, threshold), s.Desired(capacity, r.points[0].Value, threshold)
	}
	switch {
	case in < capacity && warming > 0:
		return capacity
	case in < capacity:
		return in
	}
	return max(capacity, out)
}

// warmingUp returns how many of a group's instances aren't in service yet or are still warming up.
func warmingUp(v *state.View, g *state.AutoScalingGroup, length time.Duration, now time.Time) (n int) {
	active := v.ActiveMembers(g.Name())
	for _, i := range active {
		if at := i.Member.InServiceAt; at == nil || now.Before(at.Add(length)) {
			n++
		}
	}
	return n + max(0, int(*g.DesiredCapacity)-len(active))
}

// underWay reports whether any instance is launching or leaving.
func underWay(v *state.View, g *state.AutoScalingGroup) bool {
	for i := range v.Instances.By(state.InstancesByGroup, g.Name()) {
		if i.Member.IsWarm() {
			continue
		}
		if i.Member.IsLeaving() || i.Member.InServiceAt == nil && i.Member.LifecycleState != types.LifecycleStateStandby {
			return true
		}
	}
	return len(v.ActiveMembers(g.Name())) != int(*g.DesiredCapacity)
}

// warmup is how long an instance counts as warming up for a policy.
func warmup(g *state.AutoScalingGroup, p *state.GroupPolicy) time.Duration {
	seconds := cmp.Or(p.EstimatedInstanceWarmup, g.DefaultInstanceWarmup, g.DefaultCooldown)
	return time.Duration(max(0, *seconds)) * time.Second
}
