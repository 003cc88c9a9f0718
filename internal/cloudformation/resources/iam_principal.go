package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// principal is a kind of what has policies in IAM: roles, users and groups. All have the same four calls.
type principal struct {
	attach func(ctx context.Context, s Step, name, arn string) error
	detach func(ctx context.Context, s Step, name, arn string) error
	put    func(ctx context.Context, s Step, name, policy string, document *string) error
	drop   func(ctx context.Context, s Step, name, policy string) error
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

var iamRoles = principal{
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
}

var iamUsers = principal{
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
}

var iamGroups = principal{
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
}
