package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// targetPolicy has the properties of AWS::ApplicationAutoScaling::ScalingPolicy. Its physical ID is the ARN. It names its target by the
// target's ID, or by its parts.
type targetPolicy struct {
	PolicyName                               *string                 `cfn:"required,create"`
	PolicyType                               types.PolicyType        `cfn:"required"`
	ResourceId                               *string                 `cfn:"create"`
	ScalableDimension                        types.ScalableDimension `cfn:"create"`
	ScalingTargetId                          *string                 `cfn:"create"`
	ServiceNamespace                         types.ServiceNamespace  `cfn:"create"`
	PredictiveScalingPolicyConfiguration     *types.PredictiveScalingPolicyConfiguration
	StepScalingPolicyConfiguration           *types.StepScalingPolicyConfiguration
	TargetTrackingScalingPolicyConfiguration *types.TargetTrackingScalingPolicyConfiguration
}

// target returns what the policy is for.
func (p *targetPolicy) target() (*scalableTarget, error) {
	if p.ScalingTargetId == nil {
		return &scalableTarget{ResourceId: p.ResourceId, ScalableDimension: p.ScalableDimension, ServiceNamespace: p.ServiceNamespace}, nil
	}
	parts := strings.Split(*p.ScalingTargetId, "|")
	if len(parts) != 3 || p.ResourceId != nil || p.ScalableDimension != "" || p.ServiceNamespace != "" {
		return nil, template.Errorf("A policy needs the ScalingTargetId of a scalable target, or ResourceId, ScalableDimension and ServiceNamespace")
	}
	return &scalableTarget{
		ResourceId:        &parts[0],
		ScalableDimension: types.ScalableDimension(parts[1]),
		ServiceNamespace:  types.ServiceNamespace(parts[2]),
	}, nil
}

var _ = add(&kind[*targetPolicy]{
	name:       "AWS::ApplicationAutoScaling::ScalingPolicy",
	live:       liveTargetPolicy,
	identifier: []string{"Arn", "ScalableDimension"},
	physical:   "Arn",
	attributes: []string{"Arn"},
	create:     putTargetPolicy,
	update: func(ctx context.Context, s Step, _ string, _, after *targetPolicy) error {
		_, err := putTargetPolicy(ctx, s, after)
		return err
	},
	delete: func(ctx context.Context, s Step, _ string, p *targetPolicy) error {
		t, err := p.target()
		if err != nil {
			return err
		}
		return did[applicationautoscaling.DeleteScalingPolicyOutput](ctx, s, &applicationautoscaling.DeleteScalingPolicyInput{
			PolicyName:        p.PolicyName,
			ResourceId:        t.ResourceId,
			ScalableDimension: t.ScalableDimension,
			ServiceNamespace:  t.ServiceNamespace,
		})
	},
	read: func(_ context.Context, _ Step, arn string, _ *targetPolicy) (Made, error) {
		return Made{Attributes: map[string]any{"Arn": arn}}, nil
	},
})

func putTargetPolicy(ctx context.Context, s Step, p *targetPolicy) (string, error) {
	t, err := p.target()
	if err != nil {
		return "", err
	}
	out, err := call.Do[applicationautoscaling.PutScalingPolicyOutput](ctx, s.Services, &applicationautoscaling.PutScalingPolicyInput{
		PolicyName:                               p.PolicyName,
		PolicyType:                               p.PolicyType,
		ResourceId:                               t.ResourceId,
		ScalableDimension:                        t.ScalableDimension,
		ServiceNamespace:                         t.ServiceNamespace,
		PredictiveScalingPolicyConfiguration:     p.PredictiveScalingPolicyConfiguration,
		StepScalingPolicyConfiguration:           p.StepScalingPolicyConfiguration,
		TargetTrackingScalingPolicyConfiguration: p.TargetTrackingScalingPolicyConfiguration,
	})
	if err != nil {
		return "", err
	}
	return *out.PolicyARN, nil
}

func liveTargetPolicy(ctx context.Context, s Step, arn string, p *targetPolicy) (*targetPolicy, error) {
	namespace, _, _ := strings.Cut(string(p.ScalableDimension), ":")
	if t, err := p.target(); err == nil && t.ServiceNamespace != "" {
		namespace = string(t.ServiceNamespace)
	}
	in := &applicationautoscaling.DescribeScalingPoliciesInput{
		PolicyNames:      []string{arn[strings.LastIndex(arn, "/")+1:]},
		ServiceNamespace: types.ServiceNamespace(namespace),
	}
	out, err := call.Do[applicationautoscaling.DescribeScalingPoliciesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	for _, is := range out.ScalingPolicies {
		if *is.PolicyARN != arn {
			continue
		}
		live := &targetPolicy{
			PolicyName:                               is.PolicyName,
			PolicyType:                               is.PolicyType,
			PredictiveScalingPolicyConfiguration:     is.PredictiveScalingPolicyConfiguration,
			StepScalingPolicyConfiguration:           is.StepScalingPolicyConfiguration,
			TargetTrackingScalingPolicyConfiguration: is.TargetTrackingScalingPolicyConfiguration,
		}
		live.aimAt(p, &is)
		return live, nil
	}
	return nil, errMissing
}

// aimAt says what a live policy is for: as it was asked for, by the target's ID or by its parts.
func (p *targetPolicy) aimAt(asked *targetPolicy, is *types.ScalingPolicy) {
	if asked.ScalingTargetId != nil {
		t := scalableTarget{ResourceId: is.ResourceId, ScalableDimension: is.ScalableDimension, ServiceNamespace: is.ServiceNamespace}
		p.ScalingTargetId, p.ScalableDimension = new(t.id()), is.ScalableDimension // which identifies the policy
		return
	}
	p.ResourceId, p.ScalableDimension, p.ServiceNamespace = is.ResourceId, is.ScalableDimension, is.ServiceNamespace
}
