package sns

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func tagParts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, tagParts), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TagTwice:
		return invalid("Duplicated keys are not allowed.")
	case account.TooManyTags:
		return refuse("TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded")
	case account.TagReserved:
		return invalid("Tags Reason: the key %s begins with aws:, which is reserved", fault.Key)
	}
	return invalid("Tags Reason: a key has 1 to %d characters, and a value at most %d, unlike those of %s",
		account.MaxTagKey, account.MaxTagValue, fault.Key)
}

// taggedTopic is the topic of a call about tags, which has an error of its own for topics that aren't there.
func taggedTopic(v *state.View, arn *string) (*state.Topic, error) {
	t := v.Topics.Get(valueOf(arn))
	if t == nil {
		return nil, account.RefuseWith(404, "ResourceNotFound", "Resource does not exist")
	}
	return t, nil
}

// retag replaces the tags of a topic.
func (s *Service) retag(ctx context.Context, arn *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := taggedTopic(tx.View, arn)
		if err != nil {
			return err
		}
		row := *old
		row.Tags = change(old.Tags)
		if err := checkTags(row.Tags); err != nil {
			return err
		}
		tx.Topics.Put(&row)
		return nil
	})
}

// TagResource adds tags to a topic, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *sns.TagResourceInput) (*sns.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, tagParts) })
	return &sns.TagResourceOutput{}, err
}

// UntagResource removes tags from a topic.
func (s *Service) UntagResource(ctx context.Context, in *sns.UntagResourceInput) (*sns.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, tagParts) })
	return &sns.UntagResourceOutput{}, err
}

// ListTagsForResource lists a topic's tags.
func (s *Service) ListTagsForResource(_ context.Context, in *sns.ListTagsForResourceInput) (*sns.ListTagsForResourceOutput, error) {
	t, err := taggedTopic(s.store.View(), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return &sns.ListTagsForResourceOutput{Tags: append([]types.Tag{}, t.Tags...)}, nil
}
