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
	live:       liveGroup,
	list:       listGroups,
	identifier: []string{"GroupName"},
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

func liveGroup(ctx context.Context, s Step, name string, _ *group) (*group, error) {
	out, err := call.Do[iam.GetGroupOutput](ctx, s.Services, &iam.GetGroupInput{GroupName: &name})
	if err != nil {
		return nil, err
	}
	has, err := iamGroups.own(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return &group{GroupName: out.Group.GroupName, ManagedPolicyArns: has.managed, Path: out.Group.Path, Policies: has.inline}, nil
}

func listGroups(ctx context.Context, s Step, _ *group) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[iam.ListGroupsOutput](ctx, s.Services, &iam.ListGroupsInput{Marker: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Groups {
			ids = append(ids, *x.GroupName)
		}
		return ids, out.Marker, nil
	})
}
