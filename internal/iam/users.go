package iam

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// user returns a user as answers have it. Lists leave out tags and boundary.
func (s *Service) user(u *state.User) types.User {
	return types.User{
		Arn:        aws.String(s.arn("user", u.Path, u.Name)),
		CreateDate: &u.Created,
		Path:       &u.Path,
		UserId:     &u.ID,
		UserName:   &u.Name,
	}
}

func (s *Service) wholeUser(u *state.User) *types.User {
	out := s.user(u)
	out.Tags = u.Tags
	out.PermissionsBoundary = boundaryOf(&u.Identity)
	return &out
}

// boundaryType is what answers say. The SDK's constant is another word, which IAM doesn't use (API_AttachedPermissionsBoundary).
const boundaryType types.PermissionsBoundaryAttachmentType = "Policy"

func boundaryOf(i *state.Identity) *types.AttachedPermissionsBoundary {
	if i.Boundary == "" {
		return nil
	}
	return &types.AttachedPermissionsBoundary{
		PermissionsBoundaryArn:  &i.Boundary,
		PermissionsBoundaryType: boundaryType,
	}
}

// findUser returns a user's row, or NoSuchEntity.
func findUser(v *state.View, name string) (*state.User, error) {
	if _, err := userKind.find(v, name); err != nil {
		return nil, err
	}
	return v.Users.Get(state.NameKey(name)), nil
}

// callingUser returns the user that a call is about if it names none: the caller.
func (s *Service) callingUser(ctx context.Context, name *string) (string, error) {
	if name != nil {
		return *name, nil
	}
	if path, ok := s.opts.GlobalResourceOf("iam", "user/", call.From(ctx).Principal); ok {
		return path[strings.LastIndexByte(path, '/')+1:], nil
	}
	return "", invalid("Must specify userName when calling with non-User credentials")
}

// CreateUser creates a user.
func (s *Service) CreateUser(ctx context.Context, in *iam.CreateUserInput) (*iam.CreateUserOutput, error) {
	i, err := s.newIdentity(in.UserName, in.Path, in.PermissionsBoundary, in.Tags, "AIDA")
	if err != nil {
		return nil, err
	}
	row := &state.User{Identity: i}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.Users.Get(state.NameKey(i.Name)) != nil {
			return exists("User with name %s already exists.", i.Name)
		}
		if err := s.checkBoundary(tx.View, i.Boundary); err != nil {
			return err
		}
		tx.Users.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.CreateUserOutput{User: s.wholeUser(row)}, nil
}

// GetUser returns a user, or the caller.
func (s *Service) GetUser(ctx context.Context, in *iam.GetUserInput) (*iam.GetUserOutput, error) {
	if who := call.From(ctx).Principal; in.UserName == nil && (who == "" || who == s.opts.Root()) {
		return &iam.GetUserOutput{User: &types.User{
			Arn:        aws.String(s.opts.Root()),
			UserId:     &s.opts.ID,
			UserName:   aws.String("root"),
			Path:       aws.String("/"),
			CreateDate: aws.Time(awsCreated),
		}}, nil
	}
	name, err := s.callingUser(ctx, in.UserName)
	if err != nil {
		return nil, err
	}
	u, err := findUser(s.store.View(), name)
	if err != nil {
		return nil, err
	}
	return &iam.GetUserOutput{User: s.wholeUser(u)}, nil
}

// UpdateUser changes a user's name or path.
func (s *Service) UpdateUser(ctx context.Context, in *iam.UpdateUserInput) (*iam.UpdateUserOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findUser(tx.View, *in.UserName)
		if err != nil {
			return err
		}
		u := *old
		if err := rename(&u.Identity, in.NewUserName, in.NewPath); err != nil {
			return err
		}
		if other := tx.Users.Get(state.NameKey(u.Name)); other != nil && other != old {
			return exists("User with name %s already exists.", u.Name)
		}
		for k := range tx.AccessKeys.By(state.AccessKeysByUser, old.Name) {
			moved := *k
			moved.User = u.Name
			tx.AccessKeys.Put(&moved)
		}
		tx.Users.Delete(state.NameKey(old.Name))
		tx.Users.Put(&u)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateUserOutput{}, nil
}

func rename(i *state.Identity, name, path *string) error {
	if name != nil {
		i.Name = *name
	}
	if path == nil {
		return nil
	}
	i.Path = *path
	return checkPath(i.Path)
}

// DeleteUser deletes a user that has nothing left.
func (s *Service) DeleteUser(ctx context.Context, in *iam.DeleteUserInput) (*iam.DeleteUserOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		u, err := findUser(tx.View, *in.UserName)
		if err != nil {
			return err
		}
		if err := bare(&u.Identity); err != nil {
			return err
		}
		if len(u.Groups) > 0 {
			return conflict("Cannot delete entity, must remove users from group first.")
		}
		for range tx.AccessKeys.By(state.AccessKeysByUser, u.Name) {
			return conflict("Cannot delete entity, must delete access keys first.")
		}
		tx.Users.Delete(state.NameKey(u.Name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteUserOutput{}, nil
}

// bare refuses to delete what still has policies.
func bare(i *state.Identity) error {
	if len(i.Attached) > 0 {
		return conflict("Cannot delete entity, must detach all policies first.")
	}
	if len(i.Inline) > 0 {
		return conflict("Cannot delete entity, must delete policies first.")
	}
	return nil
}

// ListUsers lists users.
func (s *Service) ListUsers(_ context.Context, in *iam.ListUsersInput) (*iam.ListUsersOutput, error) {
	rows := under(s.store.View().Users.All(), in.PathPrefix, func(u *state.User) string { return u.Path })
	on, truncated, next, err := page("ListUsers", rows, in.MaxItems, in.Marker, func(u *state.User) string { return u.Name })
	if err != nil {
		return nil, err
	}
	return &iam.ListUsersOutput{Users: mapped(on, s.user), IsTruncated: truncated, Marker: next}, nil
}

// mapped returns what of returns for each row.
func mapped[R, T any](rows []R, of func(R) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = of(row)
	}
	return out
}

// AddUserToGroup adds a user to a group. One that is in it already stays.
func (s *Service) AddUserToGroup(ctx context.Context, in *iam.AddUserToGroupInput) (*iam.AddUserToGroupOutput, error) {
	err := s.changeMember(ctx, *in.GroupName, *in.UserName, func(groups []string) ([]string, error) {
		if slices.Contains(groups, *in.GroupName) {
			return groups, nil
		}
		if len(groups) == maxGroupsPerUser {
			return nil, exceeded("Cannot exceed quota for GroupsPerUser: %d", maxGroupsPerUser)
		}
		return append(slices.Clone(groups), *in.GroupName), nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.AddUserToGroupOutput{}, nil
}

// RemoveUserFromGroup removes a user from a group.
func (s *Service) RemoveUserFromGroup(ctx context.Context, in *iam.RemoveUserFromGroupInput) (*iam.RemoveUserFromGroupOutput, error) {
	err := s.changeMember(ctx, *in.GroupName, *in.UserName, func(groups []string) ([]string, error) {
		if !slices.Contains(groups, *in.GroupName) {
			return nil, noSuch("User %s not in group %s", *in.UserName, *in.GroupName)
		}
		return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == *in.GroupName }), nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.RemoveUserFromGroupOutput{}, nil
}

func (s *Service) changeMember(ctx context.Context, group, user string, change func([]string) ([]string, error)) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := groupKind.find(tx.View, group); err != nil {
			return err
		}
		old, err := findUser(tx.View, user)
		if err != nil {
			return err
		}
		u := *old
		if u.Groups, err = change(old.Groups); err != nil {
			return err
		}
		tx.Users.Put(&u)
		return nil
	})
}

// ListGroupsForUser lists the groups that a user is in.
func (s *Service) ListGroupsForUser(_ context.Context, in *iam.ListGroupsForUserInput) (*iam.ListGroupsForUserOutput, error) {
	v := s.store.View()
	u, err := findUser(v, *in.UserName)
	if err != nil {
		return nil, err
	}
	names := slices.SortedFunc(slices.Values(u.Groups), func(a, b string) int { return strings.Compare(state.NameKey(a), state.NameKey(b)) })
	on, truncated, next, err := page("ListGroupsForUser", names, in.MaxItems, in.Marker, func(name string) string { return name })
	if err != nil {
		return nil, err
	}
	groups := mapped(on, func(name string) types.Group { return s.group(v.UserGroups.Get(state.NameKey(name))) })
	return &iam.ListGroupsForUserOutput{Groups: groups, IsTruncated: truncated, Marker: next}, nil
}
