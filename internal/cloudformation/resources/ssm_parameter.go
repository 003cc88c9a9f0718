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
	Policies       *string `cfn:"write"`
	Tags           map[string]string
	Tier           types.ParameterTier
}

var _ = add(&kind[*parameter]{
	name:       "AWS::SSM::Parameter",
	live:       liveParameter,
	list:       listParameters,
	identifier: []string{"Name"},
	attributes: []string{"Type", "Value"},
	check: func(p *parameter) (faults []string) {
		if p.Type == types.ParameterTypeSecureString {
			faults = append(faults, "#/Type: SSM Parameters of type SecureString cannot be created using CloudFormation")
		}
		return faults
	},
	id: parameterName,
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

func liveParameter(ctx context.Context, s Step, name string, _ *parameter) (*parameter, error) {
	value, err := call.Do[ssm.GetParameterOutput](ctx, s.Services, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return nil, err
	}
	out, err := call.Do[ssm.DescribeParametersOutput](ctx, s.Services, &ssm.DescribeParametersInput{
		ParameterFilters: []types.ParameterStringFilter{{Key: aws.String("Name"), Option: aws.String("Equals"), Values: []string{name}}},
	})
	if err == nil && len(out.Parameters) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	tags, err := call.Do[ssm.ListTagsForResourceOutput](ctx, s.Services,
		&ssm.ListTagsForResourceInput{ResourceId: &name, ResourceType: types.ResourceTypeForTaggingParameter})
	if err != nil {
		return nil, err
	}
	p := out.Parameters[0]
	return &parameter{
		Name:           p.Name,
		Type:           p.Type,
		Value:          value.Parameter.Value,
		AllowedPattern: p.AllowedPattern,
		DataType:       p.DataType,
		Description:    p.Description,
		Tags:           tagMap(ownTags(tags.TagList, func(t types.Tag) (key, value *string) { return t.Key, t.Value })),
		Tier:           p.Tier,
	}, nil
}

func listParameters(ctx context.Context, s Step, _ *parameter) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ssm.DescribeParametersOutput](ctx, s.Services, &ssm.DescribeParametersInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Parameters {
			ids = append(ids, *x.Name)
		}
		return ids, out.NextToken, nil
	})
}
