package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The limits of calls about tags: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
const (
	maxTagPage   = 1000
	maxTagTarget = 1000 // resources of one call
)

func keyAndValue(t types.Tag) (key, value *string) { return t.Key, t.Value }

// checkTags refuses tags that EC2 would refuse.
func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, keyAndValue), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TooManyTags:
		return tooManyTags()
	case account.TagReserved:
		return reservedTag()
	case account.TagValueLength:
		return refuse("InvalidParameterValue", "Tag value exceeds the maximum length of %d characters", account.MaxTagValue)
	case account.TagTwice:
		return refuse("InvalidParameterValue", "Duplicate tag key '%s' specified.", fault.Key)
	}
	if fault.Key == "" {
		return refuse("InvalidParameterValue", "Tag key cannot be empty.")
	}
	return refuse("InvalidParameterValue", "Tag key exceeds the maximum length of %d characters", account.MaxTagKey)
}

func isSystemTag(t types.Tag) bool { return account.IsSystemTag(t.Key) }

func withoutSystemTags(tags []types.Tag) []types.Tag {
	return slices.DeleteFunc(slices.Clone(tags), isSystemTag)
}

// checkNewTags checks the tags of what a call makes, among which CloudFormation's calls have system tags.
func checkNewTags(ctx context.Context, tags []types.Tag) error {
	if call.From(ctx).Via == "cloudformation" {
		tags = withoutSystemTags(tags)
	}
	return checkTags(tags)
}

func reservedTag() error {
	return refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
}

func tooManyTags() error {
	return refuse("TagLimitExceeded", "The maximum number of tags for a resource is %d.", account.MaxTags)
}

// taggable is a kind of resource with tags.
type taggable interface {
	idPrefix() string
	retag(tx *state.Tx, id string, change func([]types.Tag) []types.Tag) error
	each(v *state.View, yield func(kind types.ResourceType, id *string, tags []types.Tag))
}

var launchedInstances = kind[state.Instance]{
	name:   types.ResourceTypeInstance,
	prefix: "i",
	code:   "InvalidID",
	text:   "The ID '%s' is not that of an instance that Pintle has started",
	table:  func(v *state.View) state.Table[*state.Instance] { return v.Instances },
	of:     func(r *state.Instance) (*string, *[]types.Tag) { return r.InstanceId, &r.Tags },
}

var launchTemplates = kind[state.LaunchTemplate]{
	name:   types.ResourceTypeLaunchTemplate,
	prefix: "lt",
	code:   "InvalidLaunchTemplateId.NotFound",
	text:   "The specified launch template, with template ID %s, does not exist.",
	table:  func(v *state.View) state.Table[*state.LaunchTemplate] { return v.LaunchTemplates },
	of:     func(r *state.LaunchTemplate) (*string, *[]types.Tag) { return r.LaunchTemplateId, &r.Tags },
}

// network are the kinds of resources of networks.
var network = []taggable{
	addresses, dhcpOptions, egressOnlyGateways, internetGateways, keyPairs, natGateways, networkACLs, networkInterfaces, placementGroups,
	routeTables, securityGroupRules, securityGroups, subnets, volumeTags{volumes}, vpcEndpoints, vpcs,
}

// retag changes the tags of resources, of all or of none.
func (s *Service) retag(ctx context.Context, resources []string, dryRun *bool, change func([]types.Tag) []types.Tag) error {
	if n := len(resources); n == 0 || n > maxTagTarget {
		return refuse("MissingParameter", "The request must contain the parameter resourceIdSet, with at most %d members", maxTagTarget)
	}
	if err := checkDryRun(dryRun); err != nil {
		return err
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, id := range resources {
			prefix, _, _ := strings.Cut(id, "-")
			kinds := append([]taggable{launchedInstances, launchTemplates}, network...)
			at := slices.IndexFunc(kinds, func(k taggable) bool { return k.idPrefix() == prefix })
			if at < 0 {
				return refuse("InvalidID", "The ID '%s' is not valid", id)
			}
			if err := kinds[at].retag(tx, id, change); err != nil {
				return err
			}
		}
		return nil
	})
}

// CreateTags adds or changes tags.
func (s *Service) CreateTags(ctx context.Context, in *ec2.CreateTagsInput) (*ec2.CreateTagsOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, refuse("MissingParameter", "The request must contain the parameter tagSet")
	}
	err := s.retag(ctx, in.Resources, in.DryRun, func(tags []types.Tag) []types.Tag {
		return account.MergeTags(tags, in.Tags, keyAndValue)
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateTagsOutput{}, nil
}

// DeleteTags removes all tags but those of AWS's services, tags with certain keys, or tags with certain keys and values.
func (s *Service) DeleteTags(ctx context.Context, in *ec2.DeleteTagsInput) (*ec2.DeleteTagsOutput, error) {
	if slices.ContainsFunc(in.Tags, isSystemTag) {
		return nil, reservedTag()
	}
	err := s.retag(ctx, in.Resources, in.DryRun, func(tags []types.Tag) []types.Tag {
		if len(in.Tags) == 0 {
			return slices.DeleteFunc(tags, func(t types.Tag) bool { return !isSystemTag(t) })
		}
		for _, t := range in.Tags {
			tags = removeTag(tags, t.Key, t.Value)
		}
		return tags
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteTagsOutput{}, nil
}

// removeTag removes the tag with a key. If value is given, it removes the tag only if it has that value.
func removeTag(tags []types.Tag, key, value *string) []types.Tag {
	return slices.DeleteFunc(tags, func(t types.Tag) bool {
		return aws.ToString(t.Key) == aws.ToString(key) && (value == nil || aws.ToString(t.Value) == *value)
	})
}

var tagFields = fields[types.TagDescription]{
	"key":           func(t *types.TagDescription) []string { return optional(t.Key) },
	"value":         func(t *types.TagDescription) []string { return optional(t.Value) },
	"resource-id":   func(t *types.TagDescription) []string { return optional(t.ResourceId) },
	"resource-type": func(t *types.TagDescription) []string { return []string{string(t.ResourceType)} },
}

// DescribeTags lists the tags of all resources.
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
	for _, k := range append([]taggable{launchTemplates}, network...) {
		k.each(v, add)
	}
	key := func(t types.TagDescription) string { return *t.ResourceId + " " + *t.Key }
	account.SortBy(all, key)
	all, next, err := account.Sorted(listing("DescribeTags", maxTagPage), all, in.MaxResults, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeTagsOutput{Tags: all, NextToken: next}, nil
}
