package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

func keyAndValue(t types.TagDescription) (key, value *string) { return t.Key, t.Value }

// isForStack reports whether CloudFormation makes the call. It alone sets system tags.
func isForStack(ctx context.Context) bool { return call.From(ctx).Via == "cloudformation" }

// mergeTags adds tags to a group's own, and replaces those with the same key. Only those with system may add system tags.
func mergeTags(old []types.TagDescription, name string, tags []types.Tag, system bool) ([]types.TagDescription, error) {
	out := old
	for _, t := range tags {
		if !system && account.IsSystemTag(t.Key) {
			return nil, badTag(*t.Key)
		}
		if err := checkTagged(t); err != nil {
			return nil, err
		}
		if t.ResourceId != nil && *t.ResourceId != name {
			return nil, invalid("Tags: the ResourceId %q is not the group %s", *t.ResourceId, name)
		}
		out = account.MergeTags(out, []types.TagDescription{{
			Key:               t.Key,
			Value:             aws.String(aws.ToString(t.Value)),
			PropagateAtLaunch: new(aws.ToBool(t.PropagateAtLaunch)),
			ResourceId:        &name,
			ResourceType:      aws.String(groupType),
		}}, keyAndValue)
	}
	own := slices.DeleteFunc(slices.Clone(out), func(t types.TagDescription) bool { return account.IsSystemTag(t.Key) })
	fault := account.CheckTags(account.TagPairs(own, keyAndValue), account.MaxTags)
	if fault == nil {
		return out, nil
	}
	if fault.Rule == account.TooManyTags {
		return nil, invalid("Tags: a group has at most %d", account.MaxTags)
	}
	return nil, badTag(fault.Key)
}

func badTag(key string) error {
	return invalid("Tags: the key %q must have 1 to 128 characters and not begin with aws:, and its value at most 256", key)
}

// checkTagged refuses a tag of something that isn't a group.
func checkTagged(t types.Tag) error {
	if t.ResourceType != nil && *t.ResourceType != groupType {
		return invalid("Tags: the ResourceType %q of the tag %s must be %s", *t.ResourceType, aws.ToString(t.Key), groupType)
	}
	return nil
}

// checkComplete refuses tags that don't say what they're for. A group that is being created needs no such words.
func checkComplete(tags []types.Tag) error {
	bad := ""
	for _, t := range tags {
		if t.ResourceId == nil || t.ResourceType == nil {
			propagate := "null"
			if t.PropagateAtLaunch != nil {
				propagate = strconv.FormatBool(*t.PropagateAtLaunch)
			}
			bad += fmt.Sprintf("Tag - 'Key:%s,PropagateAtLaunch:%s,ResourceId:%s,ResourceType:%s' , ", orNull(t.Key), propagate,
				orNull(t.ResourceId), orNull(t.ResourceType))
		}
	}
	if bad != "" {
		return invalid("Incomplete tags information for these tags. %s", bad)
	}
	return nil
}

func orNull(s *string) string { return aws.ToString(cmp.Or(s, aws.String("null"))) }

// retag changes the groups that a call's tags name: all of them, or none after an error.
func (s *Service) retag(ctx context.Context, tags []types.Tag, change func(*state.AutoScalingGroup, types.Tag) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, t := range tags {
			old, err := findGroup(tx.View, t.ResourceId)
			if err != nil {
				return err
			}
			g := old.Clone()
			if err := change(g, t); err != nil {
				return err
			}
			tx.AutoScalingGroups.Put(g)
		}
		return nil
	})
}

// CreateOrUpdateTags adds tags to groups, or changes their values.
func (s *Service) CreateOrUpdateTags(ctx context.Context, in *api.CreateOrUpdateTagsInput) (*api.CreateOrUpdateTagsOutput, error) {
	if err := checkComplete(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.Tags, func(g *state.AutoScalingGroup, t types.Tag) (err error) {
		g.Tags, err = mergeTags(g.Tags, g.Name(), []types.Tag{t}, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateOrUpdateTagsOutput{}, nil
}

// DeleteTags removes tags from groups.
func (s *Service) DeleteTags(ctx context.Context, in *api.DeleteTagsInput) (*api.DeleteTagsOutput, error) {
	err := s.retag(ctx, in.Tags, func(g *state.AutoScalingGroup, t types.Tag) error {
		if err := checkTagged(t); err != nil {
			return err
		}
		if account.IsSystemTag(t.Key) {
			return badTag(*t.Key)
		}
		g.Tags = slices.DeleteFunc(g.Tags, func(o types.TagDescription) bool { return *o.Key == aws.ToString(t.Key) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteTagsOutput{}, nil
}

// DescribeTags lists the tags of groups.
func (s *Service) DescribeTags(_ context.Context, in *api.DescribeTagsInput) (*api.DescribeTagsOutput, error) {
	all := []types.TagDescription{}
	for g := range s.store.View().AutoScalingGroups.All() {
		all = append(all, g.Tags...)
	}
	for _, f := range in.Filters {
		field := map[string]func(types.TagDescription) string{
			"auto-scaling-group":  func(t types.TagDescription) string { return *t.ResourceId },
			"key":                 func(t types.TagDescription) string { return *t.Key },
			"value":               func(t types.TagDescription) string { return *t.Value },
			"propagate-at-launch": func(t types.TagDescription) string { return strconv.FormatBool(*t.PropagateAtLaunch) },
		}[aws.ToString(f.Name)]
		if field == nil {
			return nil, invalid("The filter %q must be auto-scaling-group, key, value or propagate-at-launch", aws.ToString(f.Name))
		}
		all = slices.DeleteFunc(all, func(t types.TagDescription) bool { return !slices.Contains(f.Values, field(t)) })
	}
	all, next, err := account.Ordered(listing("DescribeTags", pageDefault, pageMost), all, in.MaxRecords, in.NextToken,
		func(t types.TagDescription) string { return *t.ResourceId + "/" + *t.Key })
	if err != nil {
		return nil, err
	}
	return &api.DescribeTagsOutput{Tags: all, NextToken: next}, nil
}
