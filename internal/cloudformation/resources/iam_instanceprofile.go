package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// instanceProfile has the properties of AWS::IAM::InstanceProfile. Its physical ID is the name.
type instanceProfile struct {
	InstanceProfileName *string  `cfn:"create"`
	Path                *string  `cfn:"create"`
	Roles               []string `cfn:"required"` // one
}

var _ = add(&kind[*instanceProfile]{
	name:       "AWS::IAM::InstanceProfile",
	live:       liveProfile,
	list:       listInstanceProfiles,
	identifier: []string{"InstanceProfileName"},
	attributes: []string{"Arn"},
	id:         func(s Step, p *instanceProfile) string { return s.named(p.InstanceProfileName, 128) },
	create: func(ctx context.Context, s Step, p *instanceProfile) (string, error) {
		name := s.named(p.InstanceProfileName, 128)
		in := &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: p.Path}
		if err := did[iam.CreateInstanceProfileOutput](ctx, s, in); err != nil {
			return "", err
		}
		if err := setRoles(ctx, s, name, nil, p.Roles); err != nil {
			if err := deleteProfile(ctx, s, name, &instanceProfile{}); err != nil {
				return "", err
			}
			return "", err
		}
		return name, nil
	},
	update: func(ctx context.Context, s Step, name string, before, after *instanceProfile) error {
		return setRoles(ctx, s, name, before.Roles, after.Roles)
	},
	delete: deleteProfile,
	read: func(ctx context.Context, s Step, name string, _ *instanceProfile) (Made, error) {
		in := &iam.GetInstanceProfileInput{InstanceProfileName: &name}
		out, err := call.Do[iam.GetInstanceProfileOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.InstanceProfile.Arn}}, nil
	},
})

// setRoles gives a profile other roles. There's room for one, so the old ones go first.
func setRoles(ctx context.Context, s Step, name string, before, after []string) error {
	for _, role := range before {
		in := &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: &role}
		if err := did[iam.RemoveRoleFromInstanceProfileOutput](ctx, s, in); err != nil && !isMissing(err) {
			return err
		}
	}
	there, err := call.Do[iam.GetInstanceProfileOutput](ctx, s.Services, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return err
	}
	for _, role := range after {
		if slices.ContainsFunc(there.InstanceProfile.Roles, func(r types.Role) bool { return *r.RoleName == role }) {
			continue // added before a kill
		}
		in := &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role}
		if err := did[iam.AddRoleToInstanceProfileOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}

func deleteProfile(ctx context.Context, s Step, name string, p *instanceProfile) error {
	if err := setRoles(ctx, s, name, p.Roles, nil); err != nil {
		return err
	}
	in := &iam.DeleteInstanceProfileInput{InstanceProfileName: &name}
	return did[iam.DeleteInstanceProfileOutput](ctx, s, in)
}

func liveProfile(ctx context.Context, s Step, name string, _ *instanceProfile) (*instanceProfile, error) {
	out, err := call.Do[iam.GetInstanceProfileOutput](ctx, s.Services, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return nil, err
	}
	live := &instanceProfile{InstanceProfileName: out.InstanceProfile.InstanceProfileName, Path: out.InstanceProfile.Path}
	for _, r := range out.InstanceProfile.Roles {
		live.Roles = append(live.Roles, *r.RoleName)
	}
	return live, nil
}

func listInstanceProfiles(ctx context.Context, s Step, _ *instanceProfile) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[iam.ListInstanceProfilesOutput](ctx, s.Services, &iam.ListInstanceProfilesInput{Marker: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.InstanceProfiles {
			ids = append(ids, *x.InstanceProfileName)
		}
		return ids, out.Marker, nil
	})
}
