package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// userAddition has the properties of AWS::IAM::UserToGroupAddition. Its physical ID is a name that only the stack knows.
type userAddition struct {
	GroupName *string  `cfn:"required"`
	Users     []string `cfn:"required"`
}

var _ = add(&kind[*userAddition]{
	name:       "AWS::IAM::UserToGroupAddition",
	live:       liveUserAddition,
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, a *userAddition) (string, error) {
		id := s.generated(128)
		if err := setUserAddition(ctx, s, id, &userAddition{}, a); err != nil {
			return "", undo(ctx, s, id, a, deleteUserAddition, err)
		}
		return id, nil
	},
	update: setUserAddition,
	delete: deleteUserAddition,
	read: func(_ context.Context, _ Step, id string, _ *userAddition) (Made, error) {
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

// setUserAddition puts users into a group, and takes those out that aren't to be in it, or that were in another one.
func setUserAddition(ctx context.Context, s Step, _ string, before, after *userAddition) error {
	for _, name := range after.Users {
		if err := did[iam.AddUserToGroupOutput](ctx, s, &iam.AddUserToGroupInput{UserName: &name, GroupName: after.GroupName}); err != nil {
			return err
		}
	}
	isOther := before.GroupName != nil && (after.GroupName == nil || *after.GroupName != *before.GroupName)
	for _, name := range before.Users {
		if !isOther && slices.Contains(after.Users, name) {
			continue
		}
		if err := leave(ctx, s, name, []string{*before.GroupName}); err != nil {
			return err
		}
	}
	return nil
}

func deleteUserAddition(ctx context.Context, s Step, id string, a *userAddition) error {
	return setUserAddition(ctx, s, id, a, &userAddition{})
}

// liveUserAddition reads which of the users are in the group. Others may be in it for other reasons.
func liveUserAddition(ctx context.Context, s Step, _ string, a *userAddition) (*userAddition, error) {
	out, err := call.Do[iam.GetGroupOutput](ctx, s.Services, &iam.GetGroupInput{GroupName: a.GroupName})
	if err != nil {
		return nil, err
	}
	live := &userAddition{GroupName: a.GroupName}
	for _, name := range a.Users {
		if slices.ContainsFunc(out.Users, func(u types.User) bool { return *u.UserName == name }) {
			live.Users = append(live.Users, name)
		}
	}
	if live.Users == nil {
		return nil, errMissing
	}
	return live, nil
}
