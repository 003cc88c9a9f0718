package iam

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/state"
)

func (s *Service) profile(v *state.View, p *state.InstanceProfile) types.InstanceProfile {
	out := types.InstanceProfile{
		Arn:                 aws.String(s.arn("instance-profile", p.Path, p.Name)),
		CreateDate:          &p.Created,
		InstanceProfileId:   &p.ID,
		InstanceProfileName: &p.Name,
		Path:                &p.Path,
		Roles:               []types.Role{},
	}
	if p.Role != "" {
		out.Roles = append(out.Roles, s.role(v.Roles.Get(state.NameKey(p.Role))))
	}
	return out
}

func (s *Service) wholeProfile(v *state.View, p *state.InstanceProfile) *types.InstanceProfile {
	out := s.profile(v, p)
	out.Tags = p.Tags
	return &out
}

// findProfile returns an instance profile, or NoSuchEntity.
func findProfile(v *state.View, name string) (*state.InstanceProfile, error) {
	if p := v.InstanceProfiles.Get(state.NameKey(name)); p != nil && p.Name == name {
		return p, nil
	}
	return nil, noSuch("Instance Profile %s cannot be found.", name)
}

// profilesOf returns the instance profiles that hold a role.
func profilesOf(v *state.View, role string) (holding []*state.InstanceProfile) {
	for p := range v.InstanceProfiles.All() {
		if p.Role == role {
			holding = append(holding, p)
		}
	}
	return holding
}

// CreateInstanceProfile creates an instance profile.
func (s *Service) CreateInstanceProfile(
	ctx context.Context, in *iam.CreateInstanceProfileInput,
) (*iam.CreateInstanceProfileOutput, error) {
	i, err := s.newIdentity(in.InstanceProfileName, in.Path, nil, in.Tags, "AIPA")
	if err != nil {
		return nil, err
	}
	row := &state.InstanceProfile{Name: i.Name, Path: i.Path, ID: i.ID, Created: i.Created, Tags: i.Tags}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.InstanceProfiles.Get(state.NameKey(i.Name)) != nil {
			return exists("Instance Profile %s already exists.", i.Name)
		}
		tx.InstanceProfiles.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.CreateInstanceProfileOutput{InstanceProfile: s.wholeProfile(nil, row)}, nil
}

// GetInstanceProfile returns an instance profile.
func (s *Service) GetInstanceProfile(_ context.Context, in *iam.GetInstanceProfileInput) (*iam.GetInstanceProfileOutput, error) {
	v := s.store.View()
	p, err := findProfile(v, *in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	return &iam.GetInstanceProfileOutput{InstanceProfile: s.wholeProfile(v, p)}, nil
}

// changeProfile changes an instance profile.
func (s *Service) changeProfile(ctx context.Context, name string, change func(*state.Tx, *state.InstanceProfile) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findProfile(tx.View, name)
		if err != nil {
			return err
		}
		p := *old
		if err := change(tx, &p); err != nil {
			return err
		}
		tx.InstanceProfiles.Put(&p)
		return nil
	})
}

// DeleteInstanceProfile deletes an instance profile that holds no role.
func (s *Service) DeleteInstanceProfile(
	ctx context.Context, in *iam.DeleteInstanceProfileInput,
) (*iam.DeleteInstanceProfileOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		p, err := findProfile(tx.View, *in.InstanceProfileName)
		if err != nil {
			return err
		}
		if p.Role != "" {
			return conflict("Cannot delete entity, must remove roles from instance profile first.")
		}
		tx.InstanceProfiles.Delete(state.NameKey(p.Name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteInstanceProfileOutput{}, nil
}

// AddRoleToInstanceProfile puts a role into an instance profile, which holds at most one.
func (s *Service) AddRoleToInstanceProfile(
	ctx context.Context, in *iam.AddRoleToInstanceProfileInput,
) (*iam.AddRoleToInstanceProfileOutput, error) {
	err := s.changeProfile(ctx, *in.InstanceProfileName, func(tx *state.Tx, p *state.InstanceProfile) error {
		r, err := roleKind.find(tx.View, *in.RoleName)
		if err != nil {
			return err
		}
		if err := unprotected(roleKind, r); err != nil {
			return err
		}
		if p.Role != "" {
			return exceeded("Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
		}
		p.Role = r.Name
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.AddRoleToInstanceProfileOutput{}, nil
}

// RemoveRoleFromInstanceProfile takes a role out of an instance profile.
func (s *Service) RemoveRoleFromInstanceProfile(
	ctx context.Context, in *iam.RemoveRoleFromInstanceProfileInput,
) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	err := s.changeProfile(ctx, *in.InstanceProfileName, func(tx *state.Tx, p *state.InstanceProfile) error {
		if _, err := roleKind.find(tx.View, *in.RoleName); err != nil {
			return err
		}
		if p.Role != *in.RoleName {
			return noSuch("Role %s in Instance Profile %s cannot be found.", *in.RoleName, p.Name)
		}
		p.Role = ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
}

// ListInstanceProfiles lists instance profiles.
func (s *Service) ListInstanceProfiles(
	_ context.Context, in *iam.ListInstanceProfilesInput,
) (*iam.ListInstanceProfilesOutput, error) {
	v := s.store.View()
	rows := under(v.InstanceProfiles.All(), in.PathPrefix, func(p *state.InstanceProfile) string { return p.Path })
	on, truncated, next, err := page("ListInstanceProfiles", rows, in.MaxItems, in.Marker, profileName)
	if err != nil {
		return nil, err
	}
	profiles := mapped(on, func(p *state.InstanceProfile) types.InstanceProfile { return s.profile(v, p) })
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: profiles, IsTruncated: truncated, Marker: next}, nil
}

func profileName(p *state.InstanceProfile) string { return p.Name }

// ListInstanceProfilesForRole lists the instance profiles that hold a role.
func (s *Service) ListInstanceProfilesForRole(
	_ context.Context, in *iam.ListInstanceProfilesForRoleInput,
) (*iam.ListInstanceProfilesForRoleOutput, error) {
	v := s.store.View()
	if _, err := roleKind.find(v, *in.RoleName); err != nil {
		return nil, err
	}
	all := profilesOf(v, *in.RoleName)
	on, truncated, next, err := page("ListInstanceProfilesForRole", all, in.MaxItems, in.Marker, profileName)
	if err != nil {
		return nil, err
	}
	profiles := mapped(on, func(p *state.InstanceProfile) types.InstanceProfile { return s.profile(v, p) })
	return &iam.ListInstanceProfilesForRoleOutput{InstanceProfiles: profiles, IsTruncated: truncated, Marker: next}, nil
}
