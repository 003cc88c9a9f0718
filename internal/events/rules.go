package events

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/eventpattern"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// maxRules is the most rules of a bus: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
const maxRules = 300

// PutRule makes a rule, or replaces what it had but its targets and tags.
func (s *Service) PutRule(ctx context.Context, in *eventbridge.PutRuleInput) (*eventbridge.PutRuleOutput, error) {
	if err := checkRule(in); err != nil {
		return nil, err
	}
	var arn string
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		b, err := s.bus(tx.View, in.EventBusName)
		if err != nil {
			return err
		}
		if in.ScheduleExpression != nil && b.Name != state.DefaultBus {
			return invalid("ScheduleExpression is supported only on the default event bus.")
		}
		arn = s.ruleARN(b.Name, *in.Name)
		row := &state.EventRule{CreatedBy: s.opts.ID, Since: s.now(), Tags: in.Tags}
		if old := tx.EventRules.Get(arn); old != nil {
			row.Since, row.Tags, row.Targets = old.Since, old.Tags, old.Targets
			if aws.ToString(old.ScheduleExpression) != aws.ToString(in.ScheduleExpression) {
				row.Since = s.now()
			}
		} else if count(tx.View, b.Name) >= maxRules {
			return errTooMany
		}
		row.Rule = types.Rule{
			Arn:                &arn,
			Name:               in.Name,
			Description:        in.Description,
			EventBusName:       &b.Name,
			EventPattern:       optional(aws.ToString(in.EventPattern)),
			RoleArn:            in.RoleArn,
			ScheduleExpression: optional(aws.ToString(in.ScheduleExpression)),
			State:              in.State,
		}
		if row.State == "" {
			row.State = types.RuleStateEnabled
		}
		s.put(tx, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &eventbridge.PutRuleOutput{RuleArn: &arn}, nil
}

func count(v *state.View, bus string) (n int) {
	for range v.EventRulesOf(bus) {
		n++
	}
	return n
}

// checkRule refuses what no rule can be.
func checkRule(in *eventbridge.PutRuleInput) error {
	switch {
	case aws.ToString(in.EventPattern) == "" && aws.ToString(in.ScheduleExpression) == "":
		return invalid("Parameter(s) EventPattern or ScheduleExpression must be specified.")
	case in.State == types.RuleStateEnabledWithAllCloudtrailManagementEvents:
		return unsupported("State", "there is no CloudTrail here.")
	}
	if text := aws.ToString(in.EventPattern); text != "" {
		if err := checkPattern(text); err != nil {
			return err
		}
	}
	if text := aws.ToString(in.ScheduleExpression); text != "" {
		if _, err := schedule(text, time.Time{}); err != nil {
			return err
		}
	}
	return checkTags(in.Tags)
}

// checkPattern refuses a pattern that isn't one, in EventBridge's words.
func checkPattern(text string) error {
	_, err := eventpattern.New(text)
	if malformed, ok := errors.AsType[*eventpattern.Error](err); ok {
		return refuse("InvalidEventPatternException", "%s", malformed)
	}
	return err
}

// schedule reads a rule's schedule. Rates count from when it was put.
func schedule(text string, since time.Time) (scaling.Schedule, error) {
	parsed, err := scaling.ParseSchedule(text, "")
	if err != nil || strings.HasPrefix(text, "at(") {
		return parsed, invalid("Parameter ScheduleExpression is not valid.")
	}
	parsed.Created = since
	return parsed, nil
}

// put stores a rule, with what follows from the rest of it.
func (s *Service) put(tx *state.Tx, r *state.EventRule) {
	r.Sources, r.DetailTypes, r.Next = nil, nil, nil
	if r.EventPattern != nil {
		if p := s.pattern(r); p != nil {
			r.Sources, r.DetailTypes = p.Sources(), p.DetailTypes()
		}
	}
	if r.ScheduleExpression != nil && r.IsEnabled() {
		r.Next = nextOf(r, s.opts.Now())
	}
	tx.EventRules.Put(r)
}

// nextOf returns when a rule's schedule is next due after a time, or nil.
func nextOf(r *state.EventRule, after time.Time) *time.Time {
	parsed, err := schedule(aws.ToString(r.ScheduleExpression), r.Since)
	if err != nil {
		return nil // it was checked
	}
	if at, ok := parsed.Next(after); ok {
		return &at
	}
	return nil
}

// updateRule changes a rule in a transaction.
func (s *Service) updateRule(ctx context.Context, name, bus *string, change func(*state.EventRule) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.rule(tx.View, name, bus)
		if err != nil {
			return err
		}
		row := *old
		if err := change(&row); err != nil {
			return err
		}
		if row.State == old.State && (row.Next != nil || old.Next == nil) {
			tx.EventRules.Put(&row)
			return nil
		}
		s.put(tx, &row)
		return nil
	})
}

// EnableRule has a rule act again.
func (s *Service) EnableRule(ctx context.Context, in *eventbridge.EnableRuleInput) (*eventbridge.EnableRuleOutput, error) {
	err := s.updateRule(ctx, in.Name, in.EventBusName, func(r *state.EventRule) error {
		r.State = types.RuleStateEnabled
		return nil
	})
	return &eventbridge.EnableRuleOutput{}, err
}

// DisableRule has a rule do nothing.
func (s *Service) DisableRule(ctx context.Context, in *eventbridge.DisableRuleInput) (*eventbridge.DisableRuleOutput, error) {
	err := s.updateRule(ctx, in.Name, in.EventBusName, func(r *state.EventRule) error {
		r.State = types.RuleStateDisabled
		return nil
	})
	return &eventbridge.DisableRuleOutput{}, err
}

// DeleteRule removes a rule without targets. One that isn't there counts as removed. No rule here is managed by a service, so Force changes
// nothing.
func (s *Service) DeleteRule(ctx context.Context, in *eventbridge.DeleteRuleInput) (*eventbridge.DeleteRuleOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		b, err := s.bus(tx.View, in.EventBusName)
		if err != nil {
			return err
		}
		r := tx.EventRules.Get(s.ruleARN(b.Name, *in.Name))
		if r != nil && len(r.Targets) > 0 {
			return invalid("Rule can't be deleted since it has targets.")
		}
		if r != nil {
			tx.EventRules.Delete(*r.Arn)
		}
		return nil
	})
	return &eventbridge.DeleteRuleOutput{}, err
}

// DescribeRule describes a rule.
func (s *Service) DescribeRule(_ context.Context, in *eventbridge.DescribeRuleInput) (*eventbridge.DescribeRuleOutput, error) {
	r, err := s.rule(s.store.View(), in.Name, in.EventBusName)
	if err != nil {
		return nil, err
	}
	return &eventbridge.DescribeRuleOutput{
		Arn:                r.Arn,
		Name:               r.Name,
		Description:        r.Description,
		EventBusName:       r.EventBusName,
		EventPattern:       r.EventPattern,
		RoleArn:            r.RoleArn,
		ScheduleExpression: r.ScheduleExpression,
		State:              r.State,
		CreatedBy:          &r.CreatedBy,
	}, nil
}

// ListRules lists a bus's rules.
func (s *Service) ListRules(_ context.Context, in *eventbridge.ListRulesInput) (*eventbridge.ListRulesOutput, error) {
	rows, next, err := s.rules(listing("ListRules"), in.EventBusName, in.Limit, in.NextToken, func(r *state.EventRule) bool {
		return strings.HasPrefix(*r.Name, aws.ToString(in.NamePrefix))
	})
	if err != nil {
		return nil, err
	}
	out := &eventbridge.ListRulesOutput{Rules: []types.Rule{}, NextToken: next}
	for _, r := range rows {
		out.Rules = append(out.Rules, r.Rule)
	}
	return out, nil
}

// rules returns a page of a bus's rules, sorted by their names.
func (s *Service) rules(l account.List, bus *string, limit *int32, token *string, keep func(*state.EventRule) bool) ([]*state.EventRule, *string, error) {
	v := s.store.View()
	b, err := s.bus(v, bus)
	if err != nil {
		return nil, nil, err
	}
	rows := []*state.EventRule{}
	for r := range v.EventRulesOf(b.Name) {
		if keep(r) {
			rows = append(rows, r)
		}
	}
	return account.Sorted(l, rows, limit, token, func(r *state.EventRule) string { return *r.Arn })
}

// ListRuleNamesByTarget lists the rules that have a target.
func (s *Service) ListRuleNamesByTarget(
	_ context.Context, in *eventbridge.ListRuleNamesByTargetInput,
) (*eventbridge.ListRuleNamesByTargetOutput, error) {
	rows, next, err := s.rules(listing("ListRuleNamesByTarget"), in.EventBusName, in.Limit, in.NextToken, func(r *state.EventRule) bool {
		for i := range r.Targets {
			if *r.Targets[i].Arn == *in.TargetArn {
				return true
			}
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	out := &eventbridge.ListRuleNamesByTargetOutput{RuleNames: []string{}, NextToken: next}
	for _, r := range rows {
		out.RuleNames = append(out.RuleNames, *r.Name)
	}
	return out, nil
}

// TestEventPattern reports whether a pattern matches an event.
func (s *Service) TestEventPattern(_ context.Context, in *eventbridge.TestEventPatternInput) (*eventbridge.TestEventPatternOutput, error) {
	value, err := eventpattern.Decode(*in.Event)
	event, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return nil, invalid("Parameter Event is not valid.")
	}
	if err := checkPattern(*in.EventPattern); err != nil {
		return nil, err
	}
	for _, member := range []string{"id", "account", "source", "time", "region", "detail-type"} {
		if _, given := event[member]; !given {
			return nil, invalid("Parameter Event is not valid. Reason: it has no %s.", member)
		}
	}
	p, err := eventpattern.New(*in.EventPattern)
	if err != nil {
		return nil, err
	}
	return &eventbridge.TestEventPatternOutput{Result: p.Match(event)}, nil
}
