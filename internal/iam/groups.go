package iam

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/state"
)

func (s *Service) group(g *state.UserGroup) types.Group {
	return types.Group{
		Arn:        aws.String(s.arn("group", g.Path, g.Name)),
		CreateDate: &g.Created,
		GroupId:    &g.ID,
		GroupName:  &g.Name,
		Path:       &g.Path,
	}
}

// members returns the users in a group.
func members(v *state.View, group string) (in []*state.User) {
	for u := range v.Users.All() {
		if slices.Contains(u.Groups, group) {
			in = append(in, u)
		}
	}
	return in
}

// CreateGroup creates a group.
func (s *Service) CreateGroup(ctx context.Context, in *iam.CreateGroupInput) (*iam.CreateGroupOutput, error) {
	i, err := s.newIdentity(in.GroupName, in.Path, nil, nil, "AGPA")
	if err != nil {
		return nil, err
	}
	row := &state.UserGroup{Identity: i}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.UserGroups.Get(state.NameKey(i.Name)) != nil {
			return exists("Group with name %s already exists.", i.Name)
		}
		tx.UserGroups.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	group := s.group(row)
	return &iam.CreateGroupOutput{Group: &group}, nil
}

// GetGroup returns a group and the users in it.
func (s *Service) GetGroup(_ context.Context, in *iam.GetGroupInput) (*iam.GetGroupOutput, error) {
	v := s.store.View()
	if _, err := groupKind.find(v, *in.GroupName); err != nil {
		return nil, err
	}
	all := members(v, *in.GroupName)
	on, truncated, next, err := page("GetGroup", all, in.MaxItems, in.Marker, func(u *state.User) string { return u.Name })
	if err != nil {
		return nil, err
	}
	group := s.group(v.UserGroups.Get(state.NameKey(*in.GroupName)))
	return &iam.GetGroupOutput{Group: &group, Users: mapped(on, s.user), IsTruncated: truncated, Marker: next}, nil
}

// UpdateGroup changes a group's name or path.
func (s *Service) UpdateGroup(ctx context.Context, in *iam.UpdateGroupInput) (*iam.UpdateGroupOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := groupKind.find(tx.View, *in.GroupName)
		if err != nil {
			return err
		}
		g := state.UserGroup{Identity: *old}
		if err := rename(&g.Identity, in.NewGroupName, in.NewPath); err != nil {
			return err
		}
		if other := tx.UserGroups.Get(state.NameKey(g.Name)); other != nil && other.Name != old.Name {
			return exists("Group with name %s already exists.", g.Name)
		}
		for _, u := range members(tx.View, old.Name) {
			moved := *u
			moved.Groups = slices.Clone(u.Groups)
			moved.Groups[slices.Index(moved.Groups, old.Name)] = g.Name
			tx.Users.Put(&moved)
		}
		tx.UserGroups.Delete(state.NameKey(old.Name))
		tx.UserGroups.Put(&g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateGroupOutput{}, nil
}

// DeleteGroup deletes a group that has nothing left.
func (s *Service) DeleteGroup(ctx context.Context, in *iam.DeleteGroupInput) (*iam.DeleteGroupOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		g, err := groupKind.find(tx.View, *in.GroupName)
		if err != nil {
			return err
		}
		if err := bare(g); err != nil {
			return err
		}
		if len(members(tx.View, g.Name)) > 0 {
			return conflict("Cannot delete entity, must remove users from group first.")
		}
		tx.UserGroups.Delete(state.NameKey(g.Name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteGroupOutput{}, nil
}

// ListGroups lists groups.
func (s *Service) ListGroups(_ context.Context, in *iam.ListGroupsInput) (*iam.ListGroupsOutput, error) {
	rows := under(s.store.View().UserGroups.All(), in.PathPrefix, func(g *state.UserGroup) string { return g.Path })
	on, truncated, next, err := page("ListGroups", rows, in.MaxItems, in.Marker, func(g *state.UserGroup) string { return g.Name })
	if err != nil {
		return nil, err
	}
	return &iam.ListGroupsOutput{Groups: mapped(on, s.group), IsTruncated: truncated, Marker: next}, nil
}
