package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/pintle/pintle/internal/wire/call"
)

// group has the properties of AWS::IAM::Group. Its physical ID is the name.
type group struct {
	GroupName         *string `cfn:"create"`
	ManagedPolicyArns []string
	Path              *string
	Policies          []inlinePolicy
}

func (g *group) policies() policies { return policies{g.ManagedPolicyArns, g.Policies} }

var _ = add(&kind[*group]{
	name:       "AWS::IAM::Group",
	attributes: []string{"Arn"},
	id:         func(s Step, g *group) string { return s.named(g.GroupName, 128) },
	create: func(ctx context.Context, s Step, g *group) (string, error) {
		name := s.named(g.GroupName, 128)
		if err := did[iam.CreateGroupOutput](ctx, s, &iam.CreateGroupInput{GroupName: &name, Path: g.Path}); err != nil {
			return "", err
		}
		if err := iamGroups.set(ctx, s, name, policies{}, g.policies()); err != nil {
			return "", undo(ctx, s, name, g, deleteGroup, err)
		}
		return name, nil
	},
	update: func(ctx context.Context, s Step, name string, before, after *group) error {
		in := &iam.UpdateGroupInput{GroupName: &name, NewPath: rootPath(after.Path)}
		if err := did[iam.UpdateGroupOutput](ctx, s, in); err != nil {
			return err
		}
		return iamGroups.set(ctx, s, name, before.policies(), after.policies())
	},
	delete: deleteGroup,
	read: func(ctx context.Context, s Step, name string, _ *group) (Made, error) {
		out, err := call.Do[iam.GetGroupOutput](ctx, s.Services, &iam.GetGroupInput{GroupName: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.Group.Arn}}, nil
	},
})

func deleteGroup(ctx context.Context, s Step, name string, g *group) error {
	if err := iamGroups.clear(ctx, s, name, g.policies(), policies{}); err != nil {
		return err
	}
	return did[iam.DeleteGroupOutput](ctx, s, &iam.DeleteGroupInput{GroupName: &name})
}
