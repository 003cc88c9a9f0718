package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/pintle/pintle/internal/wire/call"
)

// user has the properties of AWS::IAM::User. Its physical ID is the name. Passwords (LoginProfile) aren't there.
type user struct {
	UserName            *string `cfn:"create"`
	Groups              []string
	ManagedPolicyArns   []string
	Path                *string
	PermissionsBoundary *string
	Policies            []inlinePolicy
	Tags                []Tag
}

func (u *user) policies() policies { return policies{u.ManagedPolicyArns, u.Policies} }

var _ = add(&kind[*user]{
	name:       "AWS::IAM::User",
	live:       liveUser,
	list:       listUsers,
	identifier: []string{"UserName"},
	attributes: []string{"Arn"},
	id:         func(s Step, u *user) string { return s.named(u.UserName, 64) },
	create: func(ctx context.Context, s Step, u *user) (string, error) {
		name := s.named(u.UserName, 64)
		in := &iam.CreateUserInput{UserName: &name, Path: u.Path, PermissionsBoundary: u.PermissionsBoundary, Tags: tagList(u.Tags, iamTag)}
		if err := did[iam.CreateUserOutput](ctx, s, in); err != nil {
			return "", err
		}
		if err := setUser(ctx, s, name, &user{}, u); err != nil {
			return "", undo(ctx, s, name, u, deleteUser, err)
		}
		return name, nil
	},
	update: updateUser,
	delete: deleteUser,
	read: func(ctx context.Context, s Step, name string, _ *user) (Made, error) {
		out, err := call.Do[iam.GetUserOutput](ctx, s.Services, &iam.GetUserInput{UserName: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.User.Arn}}, nil
	},
})

func updateUser(ctx context.Context, s Step, name string, before, after *user) error {
	if err := did[iam.UpdateUserOutput](ctx, s, &iam.UpdateUserInput{UserName: &name, NewPath: rootPath(after.Path)}); err != nil {
		return err
	}
	if after.PermissionsBoundary != nil {
		in := &iam.PutUserPermissionsBoundaryInput{UserName: &name, PermissionsBoundary: after.PermissionsBoundary}
		if err := did[iam.PutUserPermissionsBoundaryOutput](ctx, s, in); err != nil {
			return err
		}
	} else if before.PermissionsBoundary != nil {
		in := &iam.DeleteUserPermissionsBoundaryInput{UserName: &name}
		if err := did[iam.DeleteUserPermissionsBoundaryOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if err := setUser(ctx, s, name, before, after); err != nil {
		return err
	}
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[iam.UntagUserOutput](ctx, s, &iam.UntagUserInput{UserName: &name, TagKeys: gone})
	}, func() error {
		return did[iam.TagUserOutput](ctx, s, &iam.TagUserInput{UserName: &name, Tags: tagList(after.Tags, iamTag)})
	})
}

// rootPath returns the path that a template gives, or that of all that have none.
func rootPath(given *string) *string {
	if given != nil {
		return given
	}
	return new("/")
}

// setUser gives a user its policies and groups.
func setUser(ctx context.Context, s Step, name string, before, after *user) error {
	if err := iamUsers.set(ctx, s, name, before.policies(), after.policies()); err != nil {
		return err
	}
	for _, group := range after.Groups {
		if err := did[iam.AddUserToGroupOutput](ctx, s, &iam.AddUserToGroupInput{UserName: &name, GroupName: &group}); err != nil {
			return err
		}
	}
	return leave(ctx, s, name, others(before.Groups, after.Groups))
}

// leave takes a user from groups.
func leave(ctx context.Context, s Step, name string, groups []string) error {
	for _, group := range groups {
		in := &iam.RemoveUserFromGroupInput{UserName: &name, GroupName: &group}
		if err := did[iam.RemoveUserFromGroupOutput](ctx, s, in); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

func deleteUser(ctx context.Context, s Step, name string, u *user) error {
	if err := iamUsers.clear(ctx, s, name, u.policies(), policies{}); err != nil {
		return err
	}
	if err := leave(ctx, s, name, u.Groups); err != nil {
		return err
	}
	return did[iam.DeleteUserOutput](ctx, s, &iam.DeleteUserInput{UserName: &name})
}

func liveUser(ctx context.Context, s Step, name string, _ *user) (*user, error) {
	out, err := call.Do[iam.GetUserOutput](ctx, s.Services, &iam.GetUserInput{UserName: &name})
	if err != nil {
		return nil, err
	}
	has, err := iamUsers.own(ctx, s, name)
	if err != nil {
		return nil, err
	}
	groups, err := call.Do[iam.ListGroupsForUserOutput](ctx, s.Services, &iam.ListGroupsForUserInput{UserName: &name})
	if err != nil {
		return nil, err
	}
	live := &user{
		UserName:          out.User.UserName,
		ManagedPolicyArns: has.managed,
		Path:              out.User.Path,
		Policies:          has.inline,
		Tags:              ownTags(out.User.Tags, iamTagPair),
	}
	for _, g := range groups.Groups {
		isAdded := func(o Other) bool {
			return o.Properties["GroupName"] == *g.GroupName && listed(o.Properties["Users"], name)
		}
		if !slices.ContainsFunc(s.others("AWS::IAM::UserToGroupAddition"), isAdded) {
			live.Groups = append(live.Groups, *g.GroupName)
		}
	}
	if out.User.PermissionsBoundary != nil {
		live.PermissionsBoundary = out.User.PermissionsBoundary.PermissionsBoundaryArn
	}
	return live, nil
}

func listUsers(ctx context.Context, s Step, _ *user) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[iam.ListUsersOutput](ctx, s.Services, &iam.ListUsersInput{Marker: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Users {
			ids = append(ids, *x.UserName)
		}
		return ids, out.Marker, nil
	})
}
