package events

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, tagParts), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TagTwice:
		return invalid("Parameter Tags is not valid. Reason: the key %s is given twice.", fault.Key)
	case account.TooManyTags:
		return errTooMany
	case account.TagReserved:
		return invalid("Parameter Tags is not valid. Reason: the key %s begins with aws:, which is reserved.", fault.Key)
	}
	return invalid("Parameter Tags is not valid. Reason: a key has 1 to %d characters, and a value at most %d, unlike those of %s.",
		account.MaxTagKey, account.MaxTagValue, fault.Key)
}

// tagged returns the bus or the rule with an ARN.
func (s *Service) tagged(v *state.View, arn string) (*state.EventBus, *state.EventRule, error) {
	if name, isBus := s.opts.ResourceOf("events", "event-bus/", arn); isBus {
		b, err := s.bus(v, &name)
		return b, nil, err
	}
	rest, isRule := s.opts.ResourceOf("events", "rule/", arn)
	if !isRule {
		return nil, nil, invalid("Parameter ResourceARN is not valid. Reason: Provided Arn is not in correct format.")
	}
	if r := v.EventRules.Get(arn); r != nil {
		return nil, r, nil
	}
	bus, name, onBus := strings.Cut(rest, "/")
	if !onBus {
		bus, name = state.DefaultBus, rest
	}
	return nil, nil, noRule(name, bus)
}

// retag replaces the tags of a bus or a rule.
func (s *Service) retag(ctx context.Context, arn *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		b, r, err := s.tagged(tx.View, aws.ToString(arn))
		if err != nil {
			return err
		}
		if b != nil {
			row := *b
			row.Tags = change(b.Tags)
			tx.EventBuses.Put(&row)
			return checkTags(row.Tags)
		}
		row := *r
		row.Tags = change(r.Tags)
		tx.EventRules.Put(&row)
		return checkTags(row.Tags)
	})
}

// TagResource adds tags to a bus or a rule, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *eventbridge.TagResourceInput) (*eventbridge.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceARN, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, tagParts) })
	return &eventbridge.TagResourceOutput{}, err
}

// UntagResource removes tags from a bus or a rule.
func (s *Service) UntagResource(ctx context.Context, in *eventbridge.UntagResourceInput) (*eventbridge.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceARN, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, tagParts) })
	return &eventbridge.UntagResourceOutput{}, err
}

// ListTagsForResource lists the tags of a bus or a rule.
func (s *Service) ListTagsForResource(
	_ context.Context, in *eventbridge.ListTagsForResourceInput,
) (*eventbridge.ListTagsForResourceOutput, error) {
	b, r, err := s.tagged(s.store.View(), aws.ToString(in.ResourceARN))
	if err != nil {
		return nil, err
	}
	out := &eventbridge.ListTagsForResourceOutput{Tags: []types.Tag{}}
	if b != nil {
		out.Tags = append(out.Tags, b.Tags...)
	} else {
		out.Tags = append(out.Tags, r.Tags...)
	}
	return out, nil
}
