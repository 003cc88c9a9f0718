package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TooManyTags:
		return tooManyTags()
	case account.TagKeyLength:
		return invalid("The tag key %q must have between 1 and %d characters.", fault.Key, account.MaxTagKey)
	case account.TagValueLength:
		return invalid("The value of the tag %q must have at most %d characters.", fault.Key, account.MaxTagValue)
	case account.TagTwice:
		return invalid("The tag key %q is given twice.", fault.Key)
	}
	return invalid("The tag key %q begins with aws:, which is reserved for AWS.", fault.Key)
}

func tooManyTags() error { return invalid("A secret can have at most %d tags.", account.MaxTags) }

// TagResource adds tags to a secret, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *secretsmanager.TagResourceInput) (*secretsmanager.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, *in.SecretId, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) })
	if err != nil {
		return nil, err
	}
	return &secretsmanager.TagResourceOutput{}, nil
}

// UntagResource removes tags from a secret.
func (s *Service) UntagResource(ctx context.Context, in *secretsmanager.UntagResourceInput) (*secretsmanager.UntagResourceOutput, error) {
	err := s.retag(ctx, *in.SecretId, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, parts) })
	if err != nil {
		return nil, err
	}
	return &secretsmanager.UntagResourceOutput{}, nil
}

func (s *Service) retag(ctx context.Context, id string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findActive(tx.View, id)
		if err != nil {
			return err
		}
		secret := *old
		if secret.Tags = change(old.Tags); len(secret.Tags) > account.MaxTags {
			return tooManyTags()
		}
		tx.Secrets.Put(&secret)
		return nil
	})
}
