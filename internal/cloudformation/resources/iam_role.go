package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// role has the properties of AWS::IAM::Role. Its physical ID is the name.
type role struct {
	RoleName                 *string `cfn:"create"`
	Path                     *string `cfn:"create"`
	AssumeRolePolicyDocument any     `cfn:"required"`
	Description              *string
	ManagedPolicyArns        []string
	MaxSessionDuration       *int32
	PermissionsBoundary      *string
	Policies                 []inlinePolicy
	Tags                     []Tag
}

// inlinePolicy is a policy that is a role's, a user's or a group's own.
type inlinePolicy struct {
	PolicyName     *string `cfn:"required"`
	PolicyDocument any     `cfn:"required"`
}

var _ = add(&kind[*role]{
	name:       "AWS::IAM::Role",
	live:       liveRole,
	list:       listRoles,
	identifier: []string{"RoleName"},
	attributes: []string{"Arn", "RoleId"},
	id:         func(s Step, r *role) string { return s.named(r.RoleName, 64) },
	create: func(ctx context.Context, s Step, r *role) (string, error) {
		name := s.named(r.RoleName, 64)
		err := did[iam.CreateRoleOutput](ctx, s, &iam.CreateRoleInput{
			RoleName:                 &name,
			AssumeRolePolicyDocument: document(r.AssumeRolePolicyDocument),
			Description:              r.Description,
			MaxSessionDuration:       r.MaxSessionDuration,
			Path:                     r.Path,
			PermissionsBoundary:      r.PermissionsBoundary,
			Tags:                     tagList(r.Tags, iamTag),
		})
		if err != nil {
			return "", err
		}
		if err := iamRoles.set(ctx, s, name, policies{}, r.policies()); err != nil {
			return "", undo(ctx, s, name, r, deleteRole, err)
		}
		return name, nil
	},
	update: updateRole,
	delete: deleteRole,
	read: func(ctx context.Context, s Step, name string, _ *role) (Made, error) {
		out, err := call.Do[iam.GetRoleOutput](ctx, s.Services, &iam.GetRoleInput{RoleName: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.Role.Arn, "RoleId": *out.Role.RoleId}}, nil
	},
})

func iamTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func updateRole(ctx context.Context, s Step, name string, before, after *role) error {
	trust := &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: document(after.AssumeRolePolicyDocument)}
	if err := did[iam.UpdateAssumeRolePolicyOutput](ctx, s, trust); err != nil {
		return err
	}
	in := &iam.UpdateRoleInput{RoleName: &name, Description: after.Description, MaxSessionDuration: after.MaxSessionDuration}
	if err := did[iam.UpdateRoleOutput](ctx, s, in); err != nil {
		return err
	}
	if err := bound(ctx, s, name, before, after); err != nil {
		return err
	}
	if err := iamRoles.set(ctx, s, name, before.policies(), after.policies()); err != nil {
		return err
	}
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[iam.UntagRoleOutput](ctx, s, &iam.UntagRoleInput{RoleName: &name, TagKeys: gone})
	}, func() error {
		return did[iam.TagRoleOutput](ctx, s, &iam.TagRoleInput{RoleName: &name, Tags: tagList(after.Tags, iamTag)})
	})
}

// bound sets a role's permissions boundary, or takes it away.
func bound(ctx context.Context, s Step, name string, before, after *role) error {
	if after.PermissionsBoundary != nil {
		in := &iam.PutRolePermissionsBoundaryInput{RoleName: &name, PermissionsBoundary: after.PermissionsBoundary}
		return did[iam.PutRolePermissionsBoundaryOutput](ctx, s, in)
	}
	if before.PermissionsBoundary == nil {
		return nil
	}
	in := &iam.DeleteRolePermissionsBoundaryInput{RoleName: &name}
	return did[iam.DeleteRolePermissionsBoundaryOutput](ctx, s, in)
}

func (r *role) policies() policies { return policies{r.ManagedPolicyArns, r.Policies} }

func deleteRole(ctx context.Context, s Step, name string, r *role) error {
	if err := iamRoles.clear(ctx, s, name, r.policies(), policies{}); err != nil {
		return err
	}
	return did[iam.DeleteRoleOutput](ctx, s, &iam.DeleteRoleInput{RoleName: &name})
}

func liveRole(ctx context.Context, s Step, name string, _ *role) (*role, error) {
	out, err := call.Do[iam.GetRoleOutput](ctx, s.Services, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return nil, err
	}
	has, err := iamRoles.own(ctx, s, name)
	if err != nil {
		return nil, err
	}
	r := out.Role
	live := &role{
		RoleName:                 r.RoleName,
		Path:                     r.Path,
		AssumeRolePolicyDocument: unescaped(r.AssumeRolePolicyDocument),
		Description:              r.Description,
		ManagedPolicyArns:        has.managed,
		MaxSessionDuration:       r.MaxSessionDuration,
		Policies:                 has.inline,
		Tags:                     ownTags(r.Tags, iamTagPair),
	}
	if r.PermissionsBoundary != nil {
		live.PermissionsBoundary = r.PermissionsBoundary.PermissionsBoundaryArn
	}
	return live, nil
}

func iamTagPair(t types.Tag) (key, value *string) { return t.Key, t.Value }

func listRoles(ctx context.Context, s Step, _ *role) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[iam.ListRolesOutput](ctx, s.Services, &iam.ListRolesInput{Marker: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Roles {
			ids = append(ids, *x.RoleName)
		}
		return ids, out.Marker, nil
	})
}
