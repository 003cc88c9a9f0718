package ec2

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// The limits of tags: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
const (
	maxTags      = 50
	maxTagKey    = 128
	maxTagValue  = 256
	maxTagPage   = 1000
	maxTagTarget = 1000 // resources of one call
)

func checkTags(tags []types.Tag) error {
	if len(tags) > maxTags {
		return refuse("TagLimitExceeded", "The maximum number of tags for a resource is %d.", maxTags)
	}
	for _, t := range tags {
		key := aws.ToString(t.Key)
		switch {
		case key == "":
			return refuse("InvalidParameterValue", "Tag key cannot be empty.")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		case utf8.RuneCountInString(key) > maxTagKey:
			return refuse("InvalidParameterValue", "Tag key exceeds the maximum length of %d characters", maxTagKey)
		case utf8.RuneCountInString(aws.ToString(t.Value)) > maxTagValue:
			return refuse("InvalidParameterValue", "Tag value exceeds the maximum length of %d characters", maxTagValue)
		}
	}
	return nil
}

// retag changes the tags of instances and launch templates.
func (s *Service) retag(ctx context.Context, resources []string, dryRun *bool, change func([]types.Tag) []types.Tag) error {
	if n := len(resources); n == 0 || n > maxTagTarget {
		return refuse("MissingParameter", "The request must contain the parameter resourceIdSet, with at most %d members", maxTagTarget)
	}
	if err := checkDryRun(dryRun); err != nil {
		return err
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, id := range resources {
			instance, template := tx.Instances.Get(id), tx.LaunchTemplates.Get(id)
			switch {
			case instance != nil:
				row := instance.Clone()
				if row.Tags = change(row.Tags); len(row.Tags) > maxTags {
					return checkTags(row.Tags)
				}
				tx.Instances.Put(row)
			case template != nil:
				row := new(*template)
				if row.Tags = change(slices.Clone(row.Tags)); len(row.Tags) > maxTags {
					return checkTags(row.Tags)
				}
				tx.LaunchTemplates.Put(row)
			default:
				return refuse("InvalidID", "The ID '%s' is not that of an instance that Pintle has started, or of a launch template", id)
			}
		}
		return nil
	})
}

// CreateTags adds tags, or changes them.
func (s *Service) CreateTags(ctx context.Context, in *ec2.CreateTagsInput) (*ec2.CreateTagsOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, refuse("MissingParameter", "The request must contain the parameter tagSet")
	}
	err := s.retag(ctx, in.Resources, in.DryRun, func(tags []types.Tag) []types.Tag {
		for _, t := range in.Tags {
			tags = append(without(tags, t.Key, nil), t)
		}
		return tags
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateTagsOutput{}, nil
}

// DeleteTags takes tags away: all of them, or those of some keys, or of some keys with some values.
func (s *Service) DeleteTags(ctx context.Context, in *ec2.DeleteTagsInput) (*ec2.DeleteTagsOutput, error) {
	err := s.retag(ctx, in.Resources, in.DryRun, func(tags []types.Tag) []types.Tag {
		if len(in.Tags) == 0 {
			return []types.Tag{}
		}
		for _, t := range in.Tags {
			tags = without(tags, t.Key, t.Value)
		}
		return tags
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteTagsOutput{}, nil
}

// without are the tags but for one; of a value alone, where one is given.
func without(tags []types.Tag, key, value *string) []types.Tag {
	return slices.DeleteFunc(tags, func(t types.Tag) bool {
		return aws.ToString(t.Key) == aws.ToString(key) && (value == nil || aws.ToString(t.Value) == *value)
	})
}

var tagFields = fields[types.TagDescription]{
	"key":           func(t *types.TagDescription) []string { return given(t.Key) },
	"value":         func(t *types.TagDescription) []string { return given(t.Value) },
	"resource-id":   func(t *types.TagDescription) []string { return given(t.ResourceId) },
	"resource-type": func(t *types.TagDescription) []string { return []string{string(t.ResourceType)} },
}

// DescribeTags lists the tags of instances and launch templates.
func (s *Service) DescribeTags(_ context.Context, in *ec2.DescribeTagsInput) (*ec2.DescribeTagsOutput, error) {
	match, err := matcher(in.Filters, tagFields, nil)
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	all := []types.TagDescription{}
	add := func(kind types.ResourceType, id *string, tags []types.Tag) {
		for _, t := range tags {
			if d := (types.TagDescription{Key: t.Key, Value: t.Value, ResourceId: id, ResourceType: kind}); match(&d) {
				all = append(all, d)
			}
		}
	}
	for _, i := range s.instances(v) {
		add(types.ResourceTypeInstance, i.InstanceId, i.Tags)
	}
	for t := range v.LaunchTemplates.All() {
		add(types.ResourceTypeLaunchTemplate, t.LaunchTemplateId, t.Tags)
	}
	key := func(t types.TagDescription) string { return *t.ResourceId + " " + *t.Key }
	slices.SortFunc(all, func(a, b types.TagDescription) int { return cmp.Compare(key(a), key(b)) })
	all, next, err := page(all, in.MaxResults, maxTagPage, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeTagsOutput{Tags: all, NextToken: next}, nil
}
