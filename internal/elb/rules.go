package elb

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxRules is the quota of a load balancer's rules, without default ones.
const maxRules = 100

// sameActions reports whether two lists of actions do the same.
func sameActions(a, b []types.Action) bool { return reflect.DeepEqual(a, b) }

// CreateRule creates a rule of a listener.
func (s *Service) CreateRule(ctx context.Context, in *api.CreateRuleInput) (*api.CreateRuleOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if len(in.Transforms) > 0 {
		return nil, notSupported("Transforms")
	}
	made := &state.ListenerRule{Listener: *in.ListenerArn, Number: *in.Priority, Tags: in.Tags}
	made.Priority = new(strconv.Itoa(int(*in.Priority)))
	made.IsDefault = new(false)
	made.RuleArn = new(below(*in.ListenerArn, "listener", "listener-rule", newID()))
	err := s.store.Update(ctx, func(tx *state.Tx) (err error) {
		l, err := findListener(tx.View, in.ListenerArn)
		if err != nil {
			return err
		}
		rules := tx.RulesOf(*in.ListenerArn)
		switch {
		case slices.ContainsFunc(rules, func(r *state.ListenerRule) bool { return r.Number == made.Number }):
			return priorityInUse(made.Number)
		case len(rules) >= maxRules:
			return &types.TooManyRulesException{Message: account.Message("A load balancer can have at most %d rules", maxRules)}
		}
		return setRule(tx, l, made, in.Conditions, in.Actions)
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateRuleOutput{Rules: []types.Rule{made.Rule}}, nil
}

func priorityInUse(n int32) error {
	return &types.PriorityInUseException{Message: account.Message("Priority '%d' is currently in use", n)}
}

// setRule gives a rule its conditions and actions, unless they can't be carried out, and puts it.
func setRule(tx *state.Tx, l *state.Listener, rule *state.ListenerRule, conditions []types.RuleCondition, actions []types.Action) (err error) {
	if rule.Conditions, err = completeConditions(conditions); err != nil {
		return err
	}
	if rule.Actions, err = completeActions(actions); err != nil {
		return err
	}
	b, err := findLoadBalancer(tx.View, l.LoadBalancerArn)
	if err != nil {
		return err
	}
	if b.Type != types.LoadBalancerTypeEnumApplication {
		return badProtocol("Rules are not supported for listeners with the %s protocol", l.Protocol)
	}
	if err := checkListener(tx.View, b, l, rule); err != nil {
		return err
	}
	tx.ListenerRules.Put(rule)
	return nil
}

// defaultRule returns a listener's default rule as the API has it.
func defaultRule(l *state.Listener) types.Rule {
	return types.Rule{
		RuleArn:    &l.DefaultRule,
		Priority:   aws.String("default"),
		IsDefault:  new(true),
		Conditions: []types.RuleCondition{},
		Actions:    l.DefaultActions,
	}
}

// listenerOf returns the listener of a rule's ARN, or nil.
func listenerOf(v *state.View, rule string) *state.Listener {
	end := strings.LastIndexByte(rule, '/')
	if end < 0 {
		return nil
	}
	return v.Listeners.Get(strings.Replace(rule[:end], ":listener-rule/", ":listener/", 1))
}

// DescribeRules lists the rules of a listener, or those with the given ARNs.
func (s *Service) DescribeRules(_ context.Context, in *api.DescribeRulesInput) (*api.DescribeRulesOutput, error) {
	v := s.store.View()
	rows := []types.Rule{}
	switch {
	case in.ListenerArn != nil && len(in.RuleArns) > 0:
		return nil, invalid("Listener rule ARNs and a listener ARN cannot be specified at the same time")
	case in.ListenerArn != nil:
		l, err := findListener(v, in.ListenerArn)
		if err != nil {
			return nil, err
		}
		for _, r := range v.RulesOf(*in.ListenerArn) {
			rows = append(rows, r.Rule)
		}
		rows = append(rows, defaultRule(l))
	case len(in.RuleArns) == 0:
		return nil, invalid("You must specify either listener rule ARNs or a listener ARN")
	}
	for _, arn := range in.RuleArns {
		row := v.ListenerRules.Get(arn)
		l := listenerOf(v, arn)
		switch {
		case row != nil:
			rows = append(rows, row.Rule)
		case l != nil && l.DefaultRule == arn:
			rows = append(rows, defaultRule(l))
		default:
			return nil, noRule()
		}
	}
	page, next, err := account.Ordered(listing("DescribeRules"), rows, in.PageSize, in.Marker, func(r types.Rule) string { return *r.RuleArn })
	if err != nil {
		return nil, err
	}
	return &api.DescribeRulesOutput{Rules: page, NextMarker: next}, nil
}

// findRule returns a rule that isn't a default one.
func findRule(v *state.View, arn, verb string) (*state.ListenerRule, error) {
	if row := v.ListenerRules.Get(arn); row != nil {
		return row, nil
	}
	if l := listenerOf(v, arn); l != nil && l.DefaultRule == arn {
		return nil, notPermitted("Default rule '%s' cannot be %s", arn, verb)
	}
	return nil, noRule()
}

// ModifyRule changes a rule's conditions or actions.
func (s *Service) ModifyRule(ctx context.Context, in *api.ModifyRuleInput) (*api.ModifyRuleOutput, error) {
	if len(in.Transforms) > 0 {
		return nil, notSupported("Transforms")
	}
	if len(in.Conditions) == 0 && len(in.Actions) == 0 {
		return nil, invalid("Either conditions or actions must be specified")
	}
	var row state.ListenerRule
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findRule(tx.View, *in.RuleArn, "modified")
		if err != nil {
			return err
		}
		l, err := findListener(tx.View, &old.Listener)
		if err != nil {
			return err
		}
		row = *old
		conditions, actions := row.Conditions, row.Actions
		if len(in.Conditions) > 0 {
			conditions = in.Conditions
		}
		if len(in.Actions) > 0 {
			actions = in.Actions
		}
		return setRule(tx, l, &row, conditions, actions)
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyRuleOutput{Rules: []types.Rule{row.Rule}}, nil
}

// DeleteRule deletes a rule.
func (s *Service) DeleteRule(ctx context.Context, in *api.DeleteRuleInput) (*api.DeleteRuleOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := findRule(tx.View, *in.RuleArn, "deleted"); err != nil {
			return err
		}
		tx.ListenerRules.Delete(*in.RuleArn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteRuleOutput{}, nil
}

// SetRulePriorities gives rules of a listener other priorities, all at once.
func (s *Service) SetRulePriorities(ctx context.Context, in *api.SetRulePrioritiesInput) (*api.SetRulePrioritiesOutput, error) {
	changed := map[string]*state.ListenerRule{}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		listener := ""
		for _, p := range in.RulePriorities {
			old, err := findRule(tx.View, text(p.RuleArn), "reprioritized")
			if err != nil {
				return err
			}
			switch {
			case p.Priority == nil:
				return invalid("A priority must be specified for rule '%s'", *p.RuleArn)
			case changed[*p.RuleArn] != nil:
				return invalid("Rule '%s' was provided multiple times", *p.RuleArn)
			case listener != "" && listener != old.Listener:
				return invalid("All rules must belong to the same listener")
			}
			listener = old.Listener
			row := *old
			row.Number = *p.Priority
			row.Priority = new(strconv.Itoa(int(*p.Priority)))
			changed[*p.RuleArn] = &row
			tx.ListenerRules.Put(&row)
		}
		taken := map[int32]bool{}
		for _, r := range tx.RulesOf(listener) {
			if taken[r.Number] {
				return priorityInUse(r.Number)
			}
			taken[r.Number] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &api.SetRulePrioritiesOutput{}
	for _, p := range in.RulePriorities {
		out.Rules = append(out.Rules, changed[*p.RuleArn].Rule)
	}
	return out, nil
}
