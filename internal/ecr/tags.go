package ecr

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	switch {
	case fault == nil:
		return nil
	case fault.Rule == account.TooManyTags:
		return tooManyTags()
	case fault.Rule == account.TagReserved:
		return &types.InvalidTagParameterException{Message: account.Message(
			"The tag key %q begins with aws:, which is reserved for AWS.", fault.Key)}
	}
	return &types.InvalidTagParameterException{Message: account.Message("Tag parameters are invalid")}
}

func tooManyTags() error {
	return &types.TooManyTagsException{Message: account.Message("A repository can have at most %d tags.", account.MaxTags)}
}

// named returns the name in a repository's ARN.
func (s *Service) named(arn string) (*string, error) {
	name, ok := s.opts.ResourceOf("ecr", "repository/", arn)
	if !ok {
		return nil, badParameter("resourceArn", "Invalid ARN")
	}
	return &name, nil
}

// TagResource adds tags to a repository, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *ecr.TagResourceInput) (*ecr.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, *in.ResourceArn, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) })
	if err != nil {
		return nil, err
	}
	return &ecr.TagResourceOutput{}, nil
}

// UntagResource removes tags from a repository.
func (s *Service) UntagResource(ctx context.Context, in *ecr.UntagResourceInput) (*ecr.UntagResourceOutput, error) {
	err := s.retag(ctx, *in.ResourceArn, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, parts) })
	if err != nil {
		return nil, err
	}
	return &ecr.UntagResourceOutput{}, nil
}

func (s *Service) retag(ctx context.Context, arn string, change func([]types.Tag) []types.Tag) error {
	name, err := s.named(arn)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, nil, name, func(r *state.Repository) error {
		if r.Tags = change(r.Tags); len(r.Tags) > account.MaxTags {
			return tooManyTags()
		}
		return nil
	})
	return err
}

// ListTagsForResource lists a repository's tags.
func (s *Service) ListTagsForResource(_ context.Context, in *ecr.ListTagsForResourceInput) (*ecr.ListTagsForResourceOutput, error) {
	name, err := s.named(*in.ResourceArn)
	if err != nil {
		return nil, err
	}
	r, err := s.find(s.store.View(), nil, name)
	if err != nil {
		return nil, err
	}
	return &ecr.ListTagsForResourceOutput{Tags: append([]types.Tag{}, r.Tags...)}, nil
}
