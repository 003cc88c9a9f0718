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
		for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
			in.Tags = append(in.Tags, types.Tag{Key: &key, Value: new(p.Tags[key])})
		}
		_, err := call.Do[ssm.PutParameterOutput](ctx, s.Services, in)
		return *in.Name, err
	},
	update: func(ctx context.Context, s Step, name string, before, after *parameter) error {
		in := putParameter(s, after)
		in.Name, in.Overwrite = &name, aws.Bool(true)
		if _, err := call.Do[ssm.PutParameterOutput](ctx, s.Services, in); err != nil {
			return err
		}
		return tagParameter(ctx, s, name, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, name string, _ *parameter) error {
		_, err := call.Do[ssm.DeleteParameterOutput](ctx, s.Services, &ssm.DeleteParameterInput{Name: &name})
		return err
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
	var gone []string
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; !stays {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 {
		in := &ssm.RemoveTagsFromResourceInput{ResourceId: &name, ResourceType: types.ResourceTypeForTaggingParameter, TagKeys: gone}
		if _, err := call.Do[ssm.RemoveTagsFromResourceOutput](ctx, s.Services, in); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return nil
	}
	in := &ssm.AddTagsToResourceInput{ResourceId: &name, ResourceType: types.ResourceTypeForTaggingParameter}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		in.Tags = append(in.Tags, types.Tag{Key: &key, Value: new(after[key])})
	}
	_, err := call.Do[ssm.AddTagsToResourceOutput](ctx, s.Services, in)
	return err
}
