package iam

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	seen := map[string]bool{}
	for _, t := range tags {
		if seen[strings.ToLower(*t.Key)] {
			return invalidInput("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		seen[strings.ToLower(*t.Key)] = true
	}
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	switch {
	case fault == nil:
		return nil
	case fault.Rule == account.TooManyTags:
		return exceeded("The number of tags has reached the maximum limit.")
	case fault.Rule == account.TagReserved:
		return invalidInput("Tag keys can't begin with aws:, as %s does.", fault.Key)
	}
	return invalidInput("The tag %s is too long: a key has from 1 to %d characters, a value at most %d.",
		fault.Key, account.MaxTagKey, account.MaxTagValue)
}

// tagged returns old tags with others added. IAM's tags have no case: a new one replaces an old one that differs by case.
func tagged(old, add []types.Tag) ([]types.Tag, error) {
	kept := slices.DeleteFunc(slices.Clone(old), func(t types.Tag) bool {
		return slices.ContainsFunc(add, func(a types.Tag) bool { return strings.EqualFold(*a.Key, *t.Key) })
	})
	all := append(kept, add...)
	return all, checkTags(all)
}

func untagged(old []types.Tag, keys []string) []types.Tag {
	return slices.DeleteFunc(slices.Clone(old), func(t types.Tag) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(key, *t.Key) })
	})
}

// changeTags changes the tags of a user or a role; those of a role that is linked to a service too.
func (s *Service) changeTags(ctx context.Context, k *kind, name string, change func([]types.Tag) ([]types.Tag, error)) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := k.find(tx.View, name)
		if err != nil {
			return err
		}
		i := *old
		if i.Tags, err = change(old.Tags); err != nil {
			return err
		}
		k.put(tx, name, &i)
		return nil
	})
}

// adding and removing are changes of tags.
func adding(tags []types.Tag) func([]types.Tag) ([]types.Tag, error) {
	return func(old []types.Tag) ([]types.Tag, error) { return tagged(old, tags) }
}

func removing(keys []string) func([]types.Tag) ([]types.Tag, error) {
	return func(old []types.Tag) ([]types.Tag, error) { return untagged(old, keys), nil }
}

// tagPage returns a page of tags, sorted by key.
func tagPage(tags []types.Tag, limit *int32, marker *string) (on []types.Tag, truncated bool, next *string, err error) {
	sorted := slices.Clone(tags)
	account.SortBy(sorted, func(t types.Tag) string { return strings.ToLower(*t.Key) })
	return page("ListTags", sorted, limit, marker, func(t types.Tag) string { return *t.Key })
}

// TagUser adds tags to a user.
func (s *Service) TagUser(ctx context.Context, in *iam.TagUserInput) (*iam.TagUserOutput, error) {
	return &iam.TagUserOutput{}, s.changeTags(ctx, userKind, *in.UserName, adding(in.Tags))
}

// UntagUser removes tags from a user.
func (s *Service) UntagUser(ctx context.Context, in *iam.UntagUserInput) (*iam.UntagUserOutput, error) {
	return &iam.UntagUserOutput{}, s.changeTags(ctx, userKind, *in.UserName, removing(in.TagKeys))
}

// ListUserTags lists a user's tags.
func (s *Service) ListUserTags(_ context.Context, in *iam.ListUserTagsInput) (*iam.ListUserTagsOutput, error) {
	i, err := userKind.find(s.store.View(), *in.UserName)
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := tagPage(i.Tags, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListUserTagsOutput{Tags: on, IsTruncated: truncated, Marker: next}, nil
}

// TagRole adds tags to a role.
func (s *Service) TagRole(ctx context.Context, in *iam.TagRoleInput) (*iam.TagRoleOutput, error) {
	return &iam.TagRoleOutput{}, s.changeTags(ctx, roleKind, *in.RoleName, adding(in.Tags))
}

// UntagRole removes tags from a role.
func (s *Service) UntagRole(ctx context.Context, in *iam.UntagRoleInput) (*iam.UntagRoleOutput, error) {
	return &iam.UntagRoleOutput{}, s.changeTags(ctx, roleKind, *in.RoleName, removing(in.TagKeys))
}

// ListRoleTags lists a role's tags.
func (s *Service) ListRoleTags(_ context.Context, in *iam.ListRoleTagsInput) (*iam.ListRoleTagsOutput, error) {
	i, err := roleKind.find(s.store.View(), *in.RoleName)
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := tagPage(i.Tags, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListRoleTagsOutput{Tags: on, IsTruncated: truncated, Marker: next}, nil
}

func (s *Service) changeProfileTags(ctx context.Context, name string, change func([]types.Tag) ([]types.Tag, error)) error {
	return s.changeProfile(ctx, name, func(_ *state.Tx, p *state.InstanceProfile) (err error) {
		p.Tags, err = change(p.Tags)
		return err
	})
}

// TagInstanceProfile adds tags to an instance profile.
func (s *Service) TagInstanceProfile(ctx context.Context, in *iam.TagInstanceProfileInput) (*iam.TagInstanceProfileOutput, error) {
	return &iam.TagInstanceProfileOutput{}, s.changeProfileTags(ctx, *in.InstanceProfileName, adding(in.Tags))
}

// UntagInstanceProfile removes tags from an instance profile.
func (s *Service) UntagInstanceProfile(
	ctx context.Context, in *iam.UntagInstanceProfileInput,
) (*iam.UntagInstanceProfileOutput, error) {
	return &iam.UntagInstanceProfileOutput{}, s.changeProfileTags(ctx, *in.InstanceProfileName, removing(in.TagKeys))
}

// ListInstanceProfileTags lists an instance profile's tags.
func (s *Service) ListInstanceProfileTags(
	_ context.Context, in *iam.ListInstanceProfileTagsInput,
) (*iam.ListInstanceProfileTagsOutput, error) {
	p, err := findProfile(s.store.View(), *in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := tagPage(p.Tags, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListInstanceProfileTagsOutput{Tags: on, IsTruncated: truncated, Marker: next}, nil
}

func (s *Service) changePolicyTags(ctx context.Context, arn string, change func([]types.Tag) ([]types.Tag, error)) error {
	return s.changePolicy(ctx, arn, func(_ *state.Tx, p *state.ManagedPolicy) (err error) {
		p.Tags, err = change(p.Tags)
		return err
	})
}

// TagPolicy adds tags to a managed policy.
func (s *Service) TagPolicy(ctx context.Context, in *iam.TagPolicyInput) (*iam.TagPolicyOutput, error) {
	return &iam.TagPolicyOutput{}, s.changePolicyTags(ctx, *in.PolicyArn, adding(in.Tags))
}

// UntagPolicy removes tags from a managed policy.
func (s *Service) UntagPolicy(ctx context.Context, in *iam.UntagPolicyInput) (*iam.UntagPolicyOutput, error) {
	return &iam.UntagPolicyOutput{}, s.changePolicyTags(ctx, *in.PolicyArn, removing(in.TagKeys))
}

// ListPolicyTags lists a managed policy's tags.
func (s *Service) ListPolicyTags(_ context.Context, in *iam.ListPolicyTagsInput) (*iam.ListPolicyTagsOutput, error) {
	p, err := s.findPolicy(s.store.View(), *in.PolicyArn)
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := tagPage(p.Tags, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListPolicyTagsOutput{Tags: on, IsTruncated: truncated, Marker: next}, nil
}
