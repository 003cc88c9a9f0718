package appautoscaling

import (
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

// maxPolicies is the quota of scaling policies for each scalable target.
const maxPolicies = 50

// policyName is PutScalingPolicy's pattern: printable characters.
var policyName = pattern.New(`^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$`, 256)

// PutScalingPolicy creates or changes a scaling policy, and puts its alarms. The alarms come first: if the call is cut off
// between the two, repeating it puts the same alarms again.
func (s *Service) PutScalingPolicy(ctx context.Context, in *api.PutScalingPolicyInput) (*api.PutScalingPolicyOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	if !policyName.MatchString(aws.ToString(in.PolicyName)) {
		return nil, invalid("policyName %q must have 1 to 256 printable characters", aws.ToString(in.PolicyName))
	}
	oldAlarms, row, err := s.newPolicy(s.store.View(), r, in)
	if err != nil {
		return nil, err
	}
	if err := s.putAlarms(ctx, row); err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if _, _, err := s.newPolicy(tx.View, r, in); err != nil {
			return err // meanwhile the target was deleted, or others reached the quota
		}
		tx.ScalingPolicies.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.deleteAlarms(ctx, without(oldAlarms, row.Alarms)); err != nil {
		return nil, err
	}
	return &api.PutScalingPolicyOutput{PolicyARN: row.PolicyARN, Alarms: notNil(row.Alarms)}, nil
}

// newPolicy makes a policy's row from a call. It also returns the alarms that the policy had before.
func (s *Service) newPolicy(v *state.View, r resource, in *api.PutScalingPolicyInput) ([]types.Alarm, *state.ScalingPolicy, error) {
	target := v.ScalableTargets.Get(r.key())
	if target == nil {
		return nil, nil, notFound("scalable target registered", r)
	}
	uuid := account.UUID(*target.ScalableTargetARN, *in.PolicyName)
	id := "scalingPolicy:" + uuid + ":resource/ecs/" + *in.ResourceId + ":policyName/" + *in.PolicyName
	row := &state.ScalingPolicy{ScalingPolicy: types.ScalingPolicy{
		ServiceNamespace:  in.ServiceNamespace,
		ScalableDimension: in.ScalableDimension,
		ResourceId:        in.ResourceId,
		PolicyName:        in.PolicyName,
		PolicyType:        types.PolicyTypeStepScaling,
		CreationTime:      s.now(),
		PolicyARN:         new(s.opts.ARN("autoscaling", id)),
	}}
	old := v.ScalingPolicies.Get(row.Key())
	if old != nil {
		*row = *old
	} else if count(v.ScalingPolicies.By(state.ScalingPoliciesByTarget, r.key()), maxPolicies) >= maxPolicies {
		return nil, nil, tooMany("The scalable target already has %d scaling policies, the maximum", maxPolicies)
	}
	oldAlarms := row.Alarms
	if err := configure(row, in); err != nil {
		return nil, nil, err
	}
	if isTaken(v, row) {
		return nil, nil, invalid(scaling.OneOfAMetric)
	}
	row.Alarms = s.alarms(row)
	return oldAlarms, row, nil
}

// isTaken reports whether another policy of the target tracks the policy's metric.
func isTaken(v *state.View, row *state.ScalingPolicy) bool {
	config := row.TargetTrackingScalingPolicyConfiguration
	if config == nil {
		return false
	}
	target := resource{row.ServiceNamespace, row.ScalableDimension, row.ResourceId}
	for p := range v.ScalingPolicies.By(state.ScalingPoliciesByTarget, target.key()) {
		other := p.TargetTrackingScalingPolicyConfiguration
		if other != nil && p.Key() != row.Key() && scaling.MetricOf(other) == scaling.MetricOf(config) {
			return true
		}
	}
	return false
}

// configure sets the members of a policy that a call gives, and checks the result.
func configure(row *state.ScalingPolicy, in *api.PutScalingPolicyInput) error {
	if in.PolicyType != "" {
		row.PolicyType = in.PolicyType
	}
	if in.PredictiveScalingPolicyConfiguration != nil && row.PolicyType != types.PolicyTypePredictiveScaling {
		return invalid("predictiveScalingPolicyConfiguration is not for the policyType %s", row.PolicyType)
	}
	if in.StepScalingPolicyConfiguration != nil {
		row.StepScalingPolicyConfiguration = in.StepScalingPolicyConfiguration
	}
	if in.TargetTrackingScalingPolicyConfiguration != nil {
		row.TargetTrackingScalingPolicyConfiguration = in.TargetTrackingScalingPolicyConfiguration
	}
	switch row.PolicyType {
	case types.PolicyTypeStepScaling:
		row.TargetTrackingScalingPolicyConfiguration = nil
		if in.TargetTrackingScalingPolicyConfiguration != nil {
			return invalid("targetTrackingScalingPolicyConfiguration is not for the policyType StepScaling")
		}
		return checkStep(row.StepScalingPolicyConfiguration)
	case types.PolicyTypeTargetTrackingScaling:
		row.StepScalingPolicyConfiguration = nil
		if in.StepScalingPolicyConfiguration != nil {
			return invalid("stepScalingPolicyConfiguration is not for the policyType TargetTrackingScaling")
		}
		return checkTargetTracking(row.TargetTrackingScalingPolicyConfiguration)
	}
	return invalid("policyType %s is not supported by Pintle; it takes StepScaling and TargetTrackingScaling", row.PolicyType)
}

func checkStep(c *types.StepScalingPolicyConfiguration) error {
	if c == nil {
		return missing("stepScalingPolicyConfiguration")
	}
	if err := checkCooldown("stepScalingPolicyConfiguration.cooldown", c.Cooldown); err != nil {
		return err
	}
	step, _ := scaling.StepOf(c)
	if err := step.Check(); err != nil {
		return invalid("stepScalingPolicyConfiguration: %v", err)
	}
	return nil
}

func checkCooldown(field string, seconds *int32) error {
	if seconds != nil && *seconds < 0 {
		return invalid("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value "+
			"greater than or equal to 0", *seconds, field)
	}
	return nil
}

// DeleteScalingPolicy deletes a policy and the alarms that it owns.
func (s *Service) DeleteScalingPolicy(ctx context.Context, in *api.DeleteScalingPolicyInput) (*api.DeleteScalingPolicyOutput, error) {
	r := resource{in.ServiceNamespace, in.ScalableDimension, in.ResourceId}
	if err := r.check(); err != nil {
		return nil, err
	}
	key := r.key() + " " + *in.PolicyName
	row := s.store.View().ScalingPolicies.Get(key)
	if row == nil {
		return nil, notFound("scaling policy named "+*in.PolicyName+" found", r)
	}
	if err := s.deleteAlarms(ctx, row.Alarms); err != nil {
		return nil, err
	}
	if err := s.store.Update(ctx, func(tx *state.Tx) error { tx.ScalingPolicies.Delete(key); return nil }); err != nil {
		return nil, err
	}
	return &api.DeleteScalingPolicyOutput{}, nil
}

// DescribeScalingPolicies lists policies: all, a resource's, or some by name.
func (s *Service) DescribeScalingPolicies(
	_ context.Context, in *api.DescribeScalingPoliciesInput,
) (*api.DescribeScalingPoliciesOutput, error) {
	if err := checkListed(in.ServiceNamespace, in.ScalableDimension); err != nil {
		return nil, err
	}
	if in.ScalableDimension != "" && in.ResourceId == nil {
		return nil, invalid("resourceId must be given with scalableDimension")
	}
	all := filter(s.store.View().ScalingPolicies.All(), func(p *state.ScalingPolicy) bool {
		return p.ServiceNamespace == in.ServiceNamespace && (in.ResourceId == nil || *p.ResourceId == *in.ResourceId) &&
			(len(in.PolicyNames) == 0 || slices.Contains(in.PolicyNames, *p.PolicyName))
	})
	list := listing("DescribeScalingPolicies")
	rows, next, err := account.Sorted(list, all, in.MaxResults, in.NextToken, (*state.ScalingPolicy).Key)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScalingPoliciesOutput{ScalingPolicies: []types.ScalingPolicy{}, NextToken: next}
	for _, row := range rows {
		p := row.ScalingPolicy
		p.Alarms = notNil(p.Alarms)
		out.ScalingPolicies = append(out.ScalingPolicies, p)
	}
	return out, nil
}

// without returns the alarms that aren't among the others.
func without(alarms, others []types.Alarm) []types.Alarm {
	return slices.DeleteFunc(slices.Clone(alarms), func(a types.Alarm) bool {
		return slices.ContainsFunc(others, func(o types.Alarm) bool { return *o.AlarmName == *a.AlarmName })
	})
}

func notNil(alarms []types.Alarm) []types.Alarm {
	if alarms == nil {
		return []types.Alarm{}
	}
	return alarms
}
