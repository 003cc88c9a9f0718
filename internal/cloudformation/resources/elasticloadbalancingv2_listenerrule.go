package resources

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// listenerRule has the properties of AWS::ElasticLoadBalancingV2::ListenerRule. Its physical ID is the ARN.
type listenerRule struct {
	ListenerArn *string               `cfn:"create"`
	Actions     []types.Action        `cfn:"required"`
	Conditions  []types.RuleCondition `cfn:"required"`
	Priority    *int32                `cfn:"required"`
	Transforms  []types.RuleTransform `cfn:"write"`
}

var _ = add(&kind[*listenerRule]{
	name:       "AWS::ElasticLoadBalancingV2::ListenerRule",
	live:       liveListenerRule,
	identifier: []string{"RuleArn"},
	attributes: []string{"IsDefault", "RuleArn"},
	find:       findListenerRule,
	create: func(ctx context.Context, s Step, r *listenerRule) (string, error) {
		out, err := call.Do[elb.CreateRuleOutput](ctx, s.Services, &elb.CreateRuleInput{
			ListenerArn: r.ListenerArn,
			Actions:     r.Actions,
			Conditions:  r.Conditions,
			Priority:    r.Priority,
			Transforms:  r.Transforms,
		})
		if err != nil {
			return "", err
		}
		return *out.Rules[0].RuleArn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *listenerRule) error {
		if before.Priority != nil && *before.Priority != *after.Priority { // one that was found again was found by its priority
			err := did[elb.SetRulePrioritiesOutput](ctx, s, &elb.SetRulePrioritiesInput{
				RulePriorities: []types.RulePriorityPair{{RuleArn: &arn, Priority: after.Priority}},
			})
			if err != nil {
				return err
			}
		}
		return did[elb.ModifyRuleOutput](ctx, s, &elb.ModifyRuleInput{
			RuleArn:    &arn,
			Actions:    after.Actions,
			Conditions: after.Conditions,
			Transforms: after.Transforms,
		})
	},
	delete: func(ctx context.Context, s Step, arn string, _ *listenerRule) error {
		return did[elb.DeleteRuleOutput](ctx, s, &elb.DeleteRuleInput{RuleArn: &arn})
	},
	read: func(ctx context.Context, s Step, arn string, _ *listenerRule) (Made, error) {
		if _, err := describeListenerRule(ctx, s, arn); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"RuleArn": arn, "IsDefault": "false"}}, nil
	},
})

func describeListenerRule(ctx context.Context, s Step, arn string) (types.Rule, error) {
	out, err := call.Do[elb.DescribeRulesOutput](ctx, s.Services, &elb.DescribeRulesInput{RuleArns: []string{arn}})
	if err != nil {
		return types.Rule{}, err
	}
	return out.Rules[0], nil
}

// findListenerRule returns the rule that a process made before it was killed: the one with the same priority and as many conditions and the same
// types of actions.
func findListenerRule(ctx context.Context, s Step, r *listenerRule) (string, error) {
	out, err := call.Do[elb.DescribeRulesOutput](ctx, s.Services, &elb.DescribeRulesInput{ListenerArn: r.ListenerArn})
	if err != nil {
		return "", err
	}
	kinds := func(all []types.Action) (out []types.ActionTypeEnum) {
		for _, a := range all {
			out = append(out, a.Type)
		}
		return out
	}
	for _, is := range out.Rules {
		if *is.Priority == strconv.Itoa(int(*r.Priority)) && len(is.Conditions) == len(r.Conditions) &&
			reflect.DeepEqual(kinds(is.Actions), kinds(r.Actions)) {
			return *is.RuleArn, nil
		}
	}
	return "", nil
}

func liveListenerRule(ctx context.Context, s Step, arn string, asked *listenerRule) (*listenerRule, error) {
	is, err := describeListenerRule(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(*is.Priority, 10, 32)
	if err != nil {
		return nil, err
	}
	return &listenerRule{
		ListenerArn: new(listenerOf(arn)),
		Actions:     actionsAs(asked.Actions, is.Actions),
		Conditions:  conditionsAs(asked.Conditions, is.Conditions),
		Priority:    new(int32(n)),
	}, nil
}

// listenerOf returns the ARN of a rule's listener.
func listenerOf(rule string) string {
	return strings.Replace(rule[:strings.LastIndexByte(rule, '/')], ":listener-rule/", ":listener/", 1)
}

// conditionsAs returns the conditions that there are in the form in which others are: AWS lists paths and hosts in two forms.
func conditionsAs(asked, are []types.RuleCondition) []types.RuleCondition {
	out := slices.Clone(are)
	for i := range out {
		if i >= len(asked) {
			break
		}
		c, form := &out[i], asked[i]
		if len(form.Values) > 0 {
			c.HostHeaderConfig = as(form.HostHeaderConfig, c.HostHeaderConfig)
			c.PathPatternConfig = as(form.PathPatternConfig, c.PathPatternConfig)
		} else {
			c.Values = nil
		}
	}
	return out
}

// as returns what is there if that was asked for.
func as[T any](asked, is *T) *T {
	if asked == nil {
		return nil
	}
	return is
}
