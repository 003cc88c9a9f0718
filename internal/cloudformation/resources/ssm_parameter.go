package resources

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// parameter has the properties of AWS::SSM::Parameter. Its physical ID is the name.
type parameter struct {
	Name           *string             `cfn:"create"`
	Type           types.ParameterType `cfn:"required"`
	Value          *string             `cfn:"required"`
	AllowedPattern *string
	DataType       *string
	Description    *string
	Policies       *string
	Tags           map[string]string
	Tier           types.ParameterTier
}

var _ = add(&kind[*parameter]{
	name:       "AWS::SSM::Parameter",
	attributes: []string{"Type", "Value"},
	id:         parameterName,
	create: func(ctx context.Context, s Step, p *parameter) (string, error) {
		in := putParameter(s, p)
		in.Tags = tagList(sortedTags(p.Tags), parameterTag)
		err := did[ssm.PutParameterOutput](ctx, s, in)
		return *in.Name, err
	},
	update: func(ctx context.Context, s Step, name string, before, after *parameter) error {
		in := putParameter(s, after)
		in.Name, in.Overwrite = &name, aws.Bool(true)
		if err := did[ssm.PutParameterOutput](ctx, s, in); err != nil {
			return err
		}
		return tagParameter(ctx, s, name, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, name string, _ *parameter) error {
		return did[ssm.DeleteParameterOutput](ctx, s, &ssm.DeleteParameterInput{Name: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *parameter) (Made, error) {
		out, err := call.Do[ssm.GetParameterOutput](ctx, s.Services, &ssm.GetParameterInput{Name: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Type": string(out.Parameter.Type), "Value": *out.Parameter.Value}}, nil
	},
})

func parameterName(s Step, p *parameter) string {
	if p.Name != nil {
		return *p.Name
	}
	return "CFN-" + s.Name + "-" + s.random()
}

func putParameter(s Step, p *parameter) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{
		Name:           new(parameterName(s, p)),
		AllowedPattern: p.AllowedPattern,
		DataType:       p.DataType,
		Description:    p.Description,
		Policies:       p.Policies,
		Tier:           p.Tier,
		Type:           p.Type,
		Value:          p.Value,
	}
}

func tagParameter(ctx context.Context, s Step, name string, before, after map[string]string) error {
	const kind = types.ResourceTypeForTaggingParameter
	return retag(sortedTags(before), sortedTags(after), func(gone []string) error {
		in := &ssm.RemoveTagsFromResourceInput{ResourceId: &name, ResourceType: kind, TagKeys: gone}
		return did[ssm.RemoveTagsFromResourceOutput](ctx, s, in)
	}, func() error {
		in := &ssm.AddTagsToResourceInput{ResourceId: &name, ResourceType: kind, Tags: tagList(sortedTags(after), parameterTag)}
		return did[ssm.AddTagsToResourceOutput](ctx, s, in)
	})
}

// sortedTags returns tags that a template has as an object.
func sortedTags(tags map[string]string) (list []Tag) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, Tag{key, tags[key]})
	}
	return list
}

func parameterTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }
