package resources

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The tags that EC2's resources and groups get in the call that makes them. AWS has the first three. The last one is by which a resource is found
// again whose maker was killed before it could note the ID: no two creations share it.
const (
	tagStackName = "aws:cloudformation:stack-name"
	tagStackID   = state.StackTag
	tagLogicalID = "aws:cloudformation:logical-id"
	tagToken     = "aws:cloudformation:token"
)

// ec2Tags returns the tags that a resource of EC2's is made with: the template's and CloudFormation's.
func ec2Tags(s Step, kind types.ResourceType, tags []Tag) ([]types.TagSpecification, error) {
	if slices.ContainsFunc(tags, func(t Tag) bool { return isReserved(t.Key) }) {
		return nil, reservedTag()
	}
	all := slices.Concat(tags, []Tag{{tagToken, s.Token}}, systemTags(s))
	return []types.TagSpecification{{ResourceType: kind, Tags: tagList(all, ec2Tag)}}, nil
}

// systemTags returns the tags that say of which stack a resource is.
func systemTags(s Step) []Tag {
	if s.StackID == "" {
		return nil
	}
	return []Tag{{tagStackName, s.Stack}, {tagStackID, s.StackID}, {tagLogicalID, s.Name}}
}

func isReserved(key string) bool { return strings.HasPrefix(strings.ToLower(key), "aws:") }

func reservedTag() error {
	return template.Errorf("Tag keys starting with 'aws:' are reserved for internal use")
}

func ec2TagPair(t types.Tag) (key, value *string) { return t.Key, t.Value }

func ec2Tag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

// findEC2 returns the ID of what an earlier process made in this step's place before it was killed, or "".
func findEC2[P any](ctx context.Context, s Step, _ P) (string, error) {
	in := &ec2.DescribeTagsInput{Filters: []types.Filter{filter("key", tagToken), filter("value", s.Token)}}
	out, err := call.Do[ec2.DescribeTagsOutput](ctx, s.Services, in)
	if err != nil || len(out.Tags) == 0 {
		return "", err
	}
	return *out.Tags[0].ResourceId, nil
}

// retagEC2 changes the tags of something of EC2's.
func retagEC2(ctx context.Context, s Step, id string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		in := &ec2.DeleteTagsInput{Resources: []string{id}}
		for _, key := range gone {
			in.Tags = append(in.Tags, types.Tag{Key: &key})
		}
		return did[ec2.DeleteTagsOutput](ctx, s, in)
	}, func() error {
		return did[ec2.CreateTagsOutput](ctx, s, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tagList(after, ec2Tag)})
	})
}

// filter returns a filter on one value.
func filter(name, value string) types.Filter {
	return types.Filter{Name: &name, Values: []string{value}}
}
