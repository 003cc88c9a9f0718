package ssm

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

// checkTags checks tags. How many there may be, the operations know.
func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), len(tags))
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TagKeyLength:
		return invalid("The tag key %q must have between 1 and %d characters.", fault.Key, account.MaxTagKey)
	case account.TagValueLength:
		return invalid("The value of the tag %q must have at most %d characters.", fault.Key, account.MaxTagValue)
	case account.TagTwice:
		return invalid("The tag key %q is given twice.", fault.Key)
	}
	return invalid("aws: prefixed tag key names are not allowed for external use.")
}

// tagged returns the parameter that a call about tags names.
func (s *Service) tagged(v *state.View, kind types.ResourceTypeForTagging, id string) (*state.Parameter, error) {
	if kind != types.ResourceTypeForTaggingParameter {
		return nil, &types.InvalidResourceType{Message: account.Message("Pintle has no resources of the type %s, only Parameter.", kind)}
	}
	p := s.parameter(v, reference{names: []string{id}})
	if p == nil {
		return nil, &types.InvalidResourceId{Message: account.Message("There is no parameter %s.", id)}
	}
	return p, nil
}

// AddTagsToResource adds tags to a parameter, or changes their values.
func (s *Service) AddTagsToResource(ctx context.Context, in *ssm.AddTagsToResourceInput) (*ssm.AddTagsToResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceType, *in.ResourceId, func(p *state.Parameter) error {
		if p.Tags = account.MergeTags(p.Tags, in.Tags, parts); len(p.Tags) > account.MaxTags {
			return &types.TooManyTagsError{Message: account.Message("A parameter can have at most %d tags.", account.MaxTags)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ssm.AddTagsToResourceOutput{}, nil
}

// RemoveTagsFromResource removes tags from a parameter.
func (s *Service) RemoveTagsFromResource(
	ctx context.Context, in *ssm.RemoveTagsFromResourceInput,
) (*ssm.RemoveTagsFromResourceOutput, error) {
	err := s.retag(ctx, in.ResourceType, *in.ResourceId, func(p *state.Parameter) error {
		p.Tags = account.RemoveTags(p.Tags, in.TagKeys, parts)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ssm.RemoveTagsFromResourceOutput{}, nil
}

// ListTagsForResource lists a parameter's tags.
func (s *Service) ListTagsForResource(
	_ context.Context, in *ssm.ListTagsForResourceInput,
) (*ssm.ListTagsForResourceOutput, error) {
	p, err := s.tagged(s.store.View(), in.ResourceType, *in.ResourceId)
	if err != nil {
		return nil, err
	}
	return &ssm.ListTagsForResourceOutput{TagList: append([]types.Tag{}, p.Tags...)}, nil
}

func (s *Service) retag(ctx context.Context, kind types.ResourceTypeForTagging, id string, change func(*state.Parameter) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.tagged(tx.View, kind, id)
		if err != nil {
			return err
		}
		p := *old
		if err := change(&p); err != nil {
			return err
		}
		tx.Parameters.Put(&p)
		return nil
	})
}
