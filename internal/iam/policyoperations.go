package iam

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// The operations on policies of users, groups and roles differ by what they name alone; attachments.go does the work.

// PutUserPolicy puts a policy of a user's own.
func (s *Service) PutUserPolicy(ctx context.Context, in *iam.PutUserPolicyInput) (*iam.PutUserPolicyOutput, error) {
	return &iam.PutUserPolicyOutput{}, s.putInline(ctx, userKind, *in.UserName, *in.PolicyName, *in.PolicyDocument)
}

// DeleteUserPolicy deletes a policy of a user's own.
func (s *Service) DeleteUserPolicy(ctx context.Context, in *iam.DeleteUserPolicyInput) (*iam.DeleteUserPolicyOutput, error) {
	return &iam.DeleteUserPolicyOutput{}, s.deleteInline(ctx, userKind, *in.UserName, *in.PolicyName)
}

// AttachUserPolicy attaches a managed policy to a user.
func (s *Service) AttachUserPolicy(ctx context.Context, in *iam.AttachUserPolicyInput) (*iam.AttachUserPolicyOutput, error) {
	return &iam.AttachUserPolicyOutput{}, s.attach(ctx, userKind, *in.UserName, *in.PolicyArn)
}

// DetachUserPolicy detaches a managed policy from a user.
func (s *Service) DetachUserPolicy(ctx context.Context, in *iam.DetachUserPolicyInput) (*iam.DetachUserPolicyOutput, error) {
	return &iam.DetachUserPolicyOutput{}, s.detach(ctx, userKind, *in.UserName, *in.PolicyArn)
}

// GetUserPolicy returns a policy of a user's own.
func (s *Service) GetUserPolicy(_ context.Context, in *iam.GetUserPolicyInput) (*iam.GetUserPolicyOutput, error) {
	document, err := s.inline(userKind, *in.UserName, *in.PolicyName)
	if err != nil {
		return nil, err
	}
	return &iam.GetUserPolicyOutput{UserName: in.UserName, PolicyName: in.PolicyName, PolicyDocument: document}, nil
}

// ListUserPolicies lists the names of a user's own policies.
func (s *Service) ListUserPolicies(_ context.Context, in *iam.ListUserPoliciesInput) (*iam.ListUserPoliciesOutput, error) {
	names, truncated, next, err := s.inlineNames(userKind, *in.UserName, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListUserPoliciesOutput{PolicyNames: names, IsTruncated: truncated, Marker: next}, nil
}

// ListAttachedUserPolicies lists a user's managed policies.
func (s *Service) ListAttachedUserPolicies(
	_ context.Context, in *iam.ListAttachedUserPoliciesInput,
) (*iam.ListAttachedUserPoliciesOutput, error) {
	on, truncated, next, err := s.attached(userKind, *in.UserName, in.PathPrefix, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListAttachedUserPoliciesOutput{AttachedPolicies: on, IsTruncated: truncated, Marker: next}, nil
}

// PutGroupPolicy puts a policy of a group's own.
func (s *Service) PutGroupPolicy(ctx context.Context, in *iam.PutGroupPolicyInput) (*iam.PutGroupPolicyOutput, error) {
	return &iam.PutGroupPolicyOutput{}, s.putInline(ctx, groupKind, *in.GroupName, *in.PolicyName, *in.PolicyDocument)
}

// DeleteGroupPolicy deletes a policy of a group's own.
func (s *Service) DeleteGroupPolicy(ctx context.Context, in *iam.DeleteGroupPolicyInput) (*iam.DeleteGroupPolicyOutput, error) {
	return &iam.DeleteGroupPolicyOutput{}, s.deleteInline(ctx, groupKind, *in.GroupName, *in.PolicyName)
}

// AttachGroupPolicy attaches a managed policy to a group.
func (s *Service) AttachGroupPolicy(ctx context.Context, in *iam.AttachGroupPolicyInput) (*iam.AttachGroupPolicyOutput, error) {
	return &iam.AttachGroupPolicyOutput{}, s.attach(ctx, groupKind, *in.GroupName, *in.PolicyArn)
}

// DetachGroupPolicy detaches a managed policy from a group.
func (s *Service) DetachGroupPolicy(ctx context.Context, in *iam.DetachGroupPolicyInput) (*iam.DetachGroupPolicyOutput, error) {
	return &iam.DetachGroupPolicyOutput{}, s.detach(ctx, groupKind, *in.GroupName, *in.PolicyArn)
}

// GetGroupPolicy returns a policy of a group's own.
func (s *Service) GetGroupPolicy(_ context.Context, in *iam.GetGroupPolicyInput) (*iam.GetGroupPolicyOutput, error) {
	document, err := s.inline(groupKind, *in.GroupName, *in.PolicyName)
	if err != nil {
		return nil, err
	}
	return &iam.GetGroupPolicyOutput{GroupName: in.GroupName, PolicyName: in.PolicyName, PolicyDocument: document}, nil
}

// ListGroupPolicies lists the names of a group's own policies.
func (s *Service) ListGroupPolicies(_ context.Context, in *iam.ListGroupPoliciesInput) (*iam.ListGroupPoliciesOutput, error) {
	names, truncated, next, err := s.inlineNames(groupKind, *in.GroupName, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListGroupPoliciesOutput{PolicyNames: names, IsTruncated: truncated, Marker: next}, nil
}

// ListAttachedGroupPolicies lists a group's managed policies.
func (s *Service) ListAttachedGroupPolicies(
	_ context.Context, in *iam.ListAttachedGroupPoliciesInput,
) (*iam.ListAttachedGroupPoliciesOutput, error) {
	on, truncated, next, err := s.attached(groupKind, *in.GroupName, in.PathPrefix, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListAttachedGroupPoliciesOutput{AttachedPolicies: on, IsTruncated: truncated, Marker: next}, nil
}

// PutRolePolicy puts a policy of a role's own.
func (s *Service) PutRolePolicy(ctx context.Context, in *iam.PutRolePolicyInput) (*iam.PutRolePolicyOutput, error) {
	return &iam.PutRolePolicyOutput{}, s.putInline(ctx, roleKind, *in.RoleName, *in.PolicyName, *in.PolicyDocument)
}

// DeleteRolePolicy deletes a policy of a role's own.
func (s *Service) DeleteRolePolicy(ctx context.Context, in *iam.DeleteRolePolicyInput) (*iam.DeleteRolePolicyOutput, error) {
	return &iam.DeleteRolePolicyOutput{}, s.deleteInline(ctx, roleKind, *in.RoleName, *in.PolicyName)
}

// AttachRolePolicy attaches a managed policy to a role.
func (s *Service) AttachRolePolicy(ctx context.Context, in *iam.AttachRolePolicyInput) (*iam.AttachRolePolicyOutput, error) {
	return &iam.AttachRolePolicyOutput{}, s.attach(ctx, roleKind, *in.RoleName, *in.PolicyArn)
}

// DetachRolePolicy detaches a managed policy from a role.
func (s *Service) DetachRolePolicy(ctx context.Context, in *iam.DetachRolePolicyInput) (*iam.DetachRolePolicyOutput, error) {
	return &iam.DetachRolePolicyOutput{}, s.detach(ctx, roleKind, *in.RoleName, *in.PolicyArn)
}

// GetRolePolicy returns a policy of a role's own.
func (s *Service) GetRolePolicy(_ context.Context, in *iam.GetRolePolicyInput) (*iam.GetRolePolicyOutput, error) {
	document, err := s.inline(roleKind, *in.RoleName, *in.PolicyName)
	if err != nil {
		return nil, err
	}
	return &iam.GetRolePolicyOutput{RoleName: in.RoleName, PolicyName: in.PolicyName, PolicyDocument: document}, nil
}

// ListRolePolicies lists the names of a role's own policies.
func (s *Service) ListRolePolicies(_ context.Context, in *iam.ListRolePoliciesInput) (*iam.ListRolePoliciesOutput, error) {
	names, truncated, next, err := s.inlineNames(roleKind, *in.RoleName, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListRolePoliciesOutput{PolicyNames: names, IsTruncated: truncated, Marker: next}, nil
}

// ListAttachedRolePolicies lists a role's managed policies.
func (s *Service) ListAttachedRolePolicies(
	_ context.Context, in *iam.ListAttachedRolePoliciesInput,
) (*iam.ListAttachedRolePoliciesOutput, error) {
	on, truncated, next, err := s.attached(roleKind, *in.RoleName, in.PathPrefix, in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.ListAttachedRolePoliciesOutput{AttachedPolicies: on, IsTruncated: truncated, Marker: next}, nil
}
