package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// groupPolicy has the properties of AWS::AutoScaling::ScalingPolicy. Its physical ID is the ARN.
type groupPolicy struct {
	AutoScalingGroupName           *string `cfn:"required,create"`
	AdjustmentType                 *string
	Cooldown                       *int32
	EstimatedInstanceWarmup        *int32
	MetricAggregationType          *string
	MinAdjustmentMagnitude         *int32
	PolicyType                     *string
	PredictiveScalingConfiguration *types.PredictiveScalingConfiguration
	ScalingAdjustment              *int32
	StepAdjustments                []types.StepAdjustment
	TargetTrackingConfiguration    *types.TargetTrackingConfiguration
}

var _ = add(&kind[*groupPolicy]{
	name:       "AWS::AutoScaling::ScalingPolicy",
	live:       liveGroupPolicy,
	list:       listGroupPolicies,
	identifier: []string{"Arn"},
	attributes: []string{"Arn", "PolicyName"},
	create: func(ctx context.Context, s Step, p *groupPolicy) (string, error) {
		return putGroupPolicy(ctx, s, s.generated(255), p)
	},
	update: func(ctx context.Context, s Step, arn string, _, after *groupPolicy) error {
		_, err := putGroupPolicy(ctx, s, arn[strings.LastIndex(arn, "/")+1:], after)
		return err
	},
	delete: func(ctx context.Context, s Step, arn string, p *groupPolicy) error {
		if _, err := readGroupPolicy(ctx, s, arn, p); err != nil {
			return err
		}
		in := &autoscaling.DeletePolicyInput{AutoScalingGroupName: p.AutoScalingGroupName, PolicyName: &arn}
		return did[autoscaling.DeletePolicyOutput](ctx, s, in)
	},
	read: readGroupPolicy,
})

// putGroupPolicy puts a policy. Its name is the resource's own, so that a second call changes what the first has made.
func putGroupPolicy(ctx context.Context, s Step, name string, p *groupPolicy) (arn string, err error) {
	out, err := call.Do[autoscaling.PutScalingPolicyOutput](ctx, s.Services, &autoscaling.PutScalingPolicyInput{
		AutoScalingGroupName:           p.AutoScalingGroupName,
		PolicyName:                     &name,
		AdjustmentType:                 p.AdjustmentType,
		Cooldown:                       p.Cooldown,
		EstimatedInstanceWarmup:        p.EstimatedInstanceWarmup,
		MetricAggregationType:          p.MetricAggregationType,
		MinAdjustmentMagnitude:         p.MinAdjustmentMagnitude,
		PolicyType:                     p.PolicyType,
		PredictiveScalingConfiguration: p.PredictiveScalingConfiguration,
		ScalingAdjustment:              p.ScalingAdjustment,
		StepAdjustments:                p.StepAdjustments,
		TargetTrackingConfiguration:    p.TargetTrackingConfiguration,
	})
	if err != nil {
		return "", err
	}
	return *out.PolicyARN, nil
}

func readGroupPolicy(ctx context.Context, s Step, arn string, p *groupPolicy) (Made, error) {
	if _, err := describeGroup(ctx, s, *p.AutoScalingGroupName); err != nil {
		return Made{}, err
	}
	in := &autoscaling.DescribePoliciesInput{AutoScalingGroupName: p.AutoScalingGroupName, PolicyNames: []string{arn}}
	out, err := call.Do[autoscaling.DescribePoliciesOutput](ctx, s.Services, in)
	if err != nil {
		return Made{}, err
	}
	if len(out.ScalingPolicies) == 0 {
		return Made{}, errMissing
	}
	return Made{Attributes: map[string]any{"Arn": arn, "PolicyName": *out.ScalingPolicies[0].PolicyName}}, nil
}

func liveGroupPolicy(ctx context.Context, s Step, arn string, _ *groupPolicy) (*groupPolicy, error) {
	in := &autoscaling.DescribePoliciesInput{PolicyNames: []string{arn}}
	out, err := call.Do[autoscaling.DescribePoliciesOutput](ctx, s.Services, in)
	if err == nil && len(out.ScalingPolicies) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	p := out.ScalingPolicies[0]
	return &groupPolicy{
		AutoScalingGroupName:           p.AutoScalingGroupName,
		AdjustmentType:                 p.AdjustmentType,
		Cooldown:                       p.Cooldown,
		EstimatedInstanceWarmup:        p.EstimatedInstanceWarmup,
		MetricAggregationType:          p.MetricAggregationType,
		MinAdjustmentMagnitude:         p.MinAdjustmentMagnitude,
		PolicyType:                     p.PolicyType,
		PredictiveScalingConfiguration: p.PredictiveScalingConfiguration,
		ScalingAdjustment:              p.ScalingAdjustment,
		StepAdjustments:                p.StepAdjustments,
		TargetTrackingConfiguration:    p.TargetTrackingConfiguration,
	}, nil
}

func listGroupPolicies(ctx context.Context, s Step, _ *groupPolicy) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[autoscaling.DescribePoliciesOutput](ctx, s.Services, &autoscaling.DescribePoliciesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.ScalingPolicies {
			ids = append(ids, *x.PolicyARN)
		}
		return ids, out.NextToken, nil
	})
}
