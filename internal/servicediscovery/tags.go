package servicediscovery

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

// checkTags checks the tags of a resource, whose ARN is empty if it's a new one.
func checkTags(tags []types.Tag, arn string) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	switch {
	case fault == nil:
		return nil
	case fault.Rule == account.TooManyTags:
		return &types.TooManyTagsException{
			Message:      account.Message("A resource can have at most %d tags", account.MaxTags),
			ResourceName: some(arn),
		}
	}
	return invalid("Tags: the tag '%s' is not valid", fault.Key)
}

func noResource(arn string) error {
	return &types.ResourceNotFoundException{Message: account.Message("Resource %s not found.", arn)}
}

// retag changes the tags of a namespace or a service.
func (s *Service) retag(ctx context.Context, arn *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if n := tx.Namespaces.Get(s.withoutARN("namespace", arn)); n != nil && n.ARN == *arn {
			row := *n
			row.Tags = change(row.Tags)
			tx.Namespaces.Put(&row)
			return checkTags(row.Tags, *arn)
		}
		d := tx.DiscoveryServices.Get(s.withoutARN("service", arn))
		if d == nil || d.ARN != *arn {
			return noResource(*arn)
		}
		row := *d
		row.Tags = change(row.Tags)
		tx.DiscoveryServices.Put(&row)
		return checkTags(row.Tags, *arn)
	})
}

// TagResource adds tags to a namespace or a service, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *api.TagResourceInput) (*api.TagResourceOutput, error) {
	if err := checkTags(in.Tags, *in.ResourceARN); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceARN, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) })
	if err != nil {
		return nil, err
	}
	return &api.TagResourceOutput{}, nil
}

// UntagResource removes tags from a namespace or a service.
func (s *Service) UntagResource(ctx context.Context, in *api.UntagResourceInput) (*api.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceARN, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, parts) })
	if err != nil {
		return nil, err
	}
	return &api.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a namespace or a service.
func (s *Service) ListTagsForResource(_ context.Context, in *api.ListTagsForResourceInput) (*api.ListTagsForResourceOutput, error) {
	v := s.store.View()
	arn := aws.ToString(in.ResourceARN)
	if n := v.Namespaces.Get(s.withoutARN("namespace", &arn)); n != nil && n.ARN == arn {
		return &api.ListTagsForResourceOutput{Tags: append([]types.Tag{}, n.Tags...)}, nil
	}
	if d := v.DiscoveryServices.Get(s.withoutARN("service", &arn)); d != nil && d.ARN == arn {
		return &api.ListTagsForResourceOutput{Tags: append([]types.Tag{}, d.Tags...)}, nil
	}
	return nil, noResource(arn)
}
