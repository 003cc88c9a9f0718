package resources

import (
	"context"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// principal is a kind of what has policies in IAM: roles, users and groups. All have the same calls.
type principal struct {
	// Other resources' properties name whom a policy is for: those of many in a list, those of the type for just one in a name.
	list, typeForOne, name string

	attach func(ctx context.Context, s Step, name, arn string) error
	detach func(ctx context.Context, s Step, name, arn string) error
	put    func(ctx context.Context, s Step, name, policy string, document *string) error
	drop   func(ctx context.Context, s Step, name, policy string) error
	get    func(ctx context.Context, s Step, name, policy string) (document *string, err error)
	// attached lists the managed policies that somebody has, and inline the names of those that are its own.
	attached func(ctx context.Context, s Step, name string) ([]types.AttachedPolicy, error)
	inline   func(ctx context.Context, s Step, name string) ([]string, error)
}

// policies are what a template gives a role, a user or a group.
type policies struct {
	managed []string // ARNs
	inline  []inlinePolicy
}

// set attaches and embeds the policies that somebody is to have, and takes away those that they aren't to have any more.
func (k principal) set(ctx context.Context, s Step, name string, before, after policies) error {
	for _, arn := range after.managed {
		if err := k.attach(ctx, s, name, arn); err != nil {
			return err
		}
	}
	for _, p := range after.inline {
		if err := k.put(ctx, s, name, *p.PolicyName, document(p.PolicyDocument)); err != nil {
			return err
		}
	}
	return k.clear(ctx, s, name, before, after)
}

// clear takes the policies away that somebody isn't to have any more. Those that others gave them stay.
func (k principal) clear(ctx context.Context, s Step, name string, before, after policies) error {
	for _, arn := range others(before.managed, after.managed) {
		if err := k.detach(ctx, s, name, arn); err != nil && !isMissing(err) {
			return err
		}
	}
	for _, p := range before.inline {
		if slices.ContainsFunc(after.inline, func(q inlinePolicy) bool { return *q.PolicyName == *p.PolicyName }) {
			continue
		}
		if err := k.drop(ctx, s, name, *p.PolicyName); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// own returns the policies that somebody has, without those that other resources of the stack gave.
func (k principal) own(ctx context.Context, s Step, name string) (has policies, err error) {
	managed, err := k.attached(ctx, s, name)
	if err != nil {
		return has, err
	}
	given := s.others("AWS::IAM::ManagedPolicy")
	for _, p := range managed {
		isGiven := func(o Other) bool { return o.ID == *p.PolicyArn && listed(o.Properties[k.list], name) }
		if !slices.ContainsFunc(given, isGiven) {
			has.managed = append(has.managed, *p.PolicyArn)
		}
	}
	names, err := k.inline(ctx, s, name)
	if err != nil {
		return has, err
	}
	given = append(s.others("AWS::IAM::Policy"), s.others(k.typeForOne)...)
	for _, policy := range names {
		isGiven := func(o Other) bool {
			return o.Properties["PolicyName"] == policy && (listed(o.Properties[k.list], name) || o.Properties[k.name] == name)
		}
		if slices.ContainsFunc(given, isGiven) {
			continue
		}
		text, err := k.get(ctx, s, name, policy)
		if err != nil {
			return has, err
		}
		has.inline = append(has.inline, inlinePolicy{&policy, unescaped(text)})
	}
	return has, nil
}

// unescaped returns a document as IAM answers it, which is escaped for URLs.
func unescaped(text *string) any {
	if text == nil {
		return nil
	}
	plain, err := url.QueryUnescape(*text)
	if err != nil {
		plain = *text
	}
	return parsed(&plain)
}

var iamRoles = principal{
	list:       "Roles",
	typeForOne: "AWS::IAM::RolePolicy",
	name:       "RoleName",
	attach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.AttachRolePolicyOutput](ctx, s, &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &arn})
	},
	detach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.DetachRolePolicyOutput](ctx, s, &iam.DetachRolePolicyInput{RoleName: &name, PolicyArn: &arn})
	},
	put: func(ctx context.Context, s Step, name, policy string, document *string) error {
		return did[iam.PutRolePolicyOutput](ctx, s, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: &policy, PolicyDocument: document})
	},
	drop: func(ctx context.Context, s Step, name, policy string) error {
		return did[iam.DeleteRolePolicyOutput](ctx, s, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &policy})
	},
	get: func(ctx context.Context, s Step, name, policy string) (*string, error) {
		in := &iam.GetRolePolicyInput{RoleName: &name, PolicyName: &policy}
		out, err := call.Do[iam.GetRolePolicyOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.PolicyDocument, nil
	},
	attached: func(ctx context.Context, s Step, name string) ([]types.AttachedPolicy, error) {
		in := &iam.ListAttachedRolePoliciesInput{RoleName: &name}
		out, err := call.Do[iam.ListAttachedRolePoliciesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.AttachedPolicies, nil
	},
	inline: func(ctx context.Context, s Step, name string) ([]string, error) {
		out, err := call.Do[iam.ListRolePoliciesOutput](ctx, s.Services, &iam.ListRolePoliciesInput{RoleName: &name})
		if err != nil {
			return nil, err
		}
		return out.PolicyNames, nil
	},
}

var iamUsers = principal{
	list:       "Users",
	typeForOne: "AWS::IAM::UserPolicy",
	name:       "UserName",
	attach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.AttachUserPolicyOutput](ctx, s, &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: &arn})
	},
	detach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.DetachUserPolicyOutput](ctx, s, &iam.DetachUserPolicyInput{UserName: &name, PolicyArn: &arn})
	},
	put: func(ctx context.Context, s Step, name, policy string, document *string) error {
		return did[iam.PutUserPolicyOutput](ctx, s, &iam.PutUserPolicyInput{UserName: &name, PolicyName: &policy, PolicyDocument: document})
	},
	drop: func(ctx context.Context, s Step, name, policy string) error {
		return did[iam.DeleteUserPolicyOutput](ctx, s, &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &policy})
	},
	get: func(ctx context.Context, s Step, name, policy string) (*string, error) {
		in := &iam.GetUserPolicyInput{UserName: &name, PolicyName: &policy}
		out, err := call.Do[iam.GetUserPolicyOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.PolicyDocument, nil
	},
	attached: func(ctx context.Context, s Step, name string) ([]types.AttachedPolicy, error) {
		in := &iam.ListAttachedUserPoliciesInput{UserName: &name}
		out, err := call.Do[iam.ListAttachedUserPoliciesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.AttachedPolicies, nil
	},
	inline: func(ctx context.Context, s Step, name string) ([]string, error) {
		out, err := call.Do[iam.ListUserPoliciesOutput](ctx, s.Services, &iam.ListUserPoliciesInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return out.PolicyNames, nil
	},
}

var iamGroups = principal{
	list:       "Groups",
	typeForOne: "AWS::IAM::GroupPolicy",
	name:       "GroupName",
	attach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.AttachGroupPolicyOutput](ctx, s, &iam.AttachGroupPolicyInput{GroupName: &name, PolicyArn: &arn})
	},
	detach: func(ctx context.Context, s Step, name, arn string) error {
		return did[iam.DetachGroupPolicyOutput](ctx, s, &iam.DetachGroupPolicyInput{GroupName: &name, PolicyArn: &arn})
	},
	put: func(ctx context.Context, s Step, name, policy string, document *string) error {
		return did[iam.PutGroupPolicyOutput](ctx, s, &iam.PutGroupPolicyInput{GroupName: &name, PolicyName: &policy, PolicyDocument: document})
	},
	drop: func(ctx context.Context, s Step, name, policy string) error {
		return did[iam.DeleteGroupPolicyOutput](ctx, s, &iam.DeleteGroupPolicyInput{GroupName: &name, PolicyName: &policy})
	},
	get: func(ctx context.Context, s Step, name, policy string) (*string, error) {
		in := &iam.GetGroupPolicyInput{GroupName: &name, PolicyName: &policy}
		out, err := call.Do[iam.GetGroupPolicyOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.PolicyDocument, nil
	},
	attached: func(ctx context.Context, s Step, name string) ([]types.AttachedPolicy, error) {
		in := &iam.ListAttachedGroupPoliciesInput{GroupName: &name}
		out, err := call.Do[iam.ListAttachedGroupPoliciesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, err
		}
		return out.AttachedPolicies, nil
	},
	inline: func(ctx context.Context, s Step, name string) ([]string, error) {
		out, err := call.Do[iam.ListGroupPoliciesOutput](ctx, s.Services, &iam.ListGroupPoliciesInput{GroupName: &name})
		if err != nil {
			return nil, err
		}
		return out.PolicyNames, nil
	},
}
