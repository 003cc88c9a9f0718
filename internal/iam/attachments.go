package iam

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// attach attaches a policy. One that is attached already stays.
func (s *Service) attach(ctx context.Context, k *kind, name, arn string) error {
	return s.change(ctx, k, name, func(tx *state.Tx, i *state.Identity) error {
		if _, err := s.attachable(tx.View, arn); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(arn, awsARN("aws-service-role/")):
			return &types.PolicyNotAttachableException{Message: aws.String("Cannot attach a Service Role Policy to a Customer Role.")}
		case slices.Contains(i.Attached, arn):
			return nil
		case len(i.Attached) == maxAttached:
			return exceeded("Cannot exceed quota for PoliciesPer%s: %d", k.quota, maxAttached)
		}
		i.Attached = append(i.Attached, arn)
		slices.Sort(i.Attached)
		return nil
	})
}

func (s *Service) detach(ctx context.Context, k *kind, name, arn string) error {
	return s.change(ctx, k, name, func(_ *state.Tx, i *state.Identity) error {
		at := slices.Index(i.Attached, arn)
		if at < 0 {
			return noSuch("Policy %s was not found.", arn)
		}
		i.Attached = slices.Delete(i.Attached, at, at+1)
		return nil
	})
}

// attached returns a page of an identity's managed policies.
func (s *Service) attached(
	k *kind, name string, prefix *string, limit *int32, marker *string,
) (on []types.AttachedPolicy, truncated bool, next *string, err error) {
	v := s.store.View()
	i, err := k.find(v, name)
	if err != nil {
		return nil, false, nil, err
	}
	all := slices.DeleteFunc(s.attachedTo(v, i), func(p types.AttachedPolicy) bool {
		return !strings.HasPrefix(s.managed(v, *p.PolicyArn).Path, aws.ToString(prefix))
	})
	account.SortBy(all, func(p types.AttachedPolicy) string { return state.NameKey(*p.PolicyArn) })
	return page("ListAttachedPolicies", all, limit, marker, func(p types.AttachedPolicy) string { return *p.PolicyArn })
}

func (s *Service) attachedTo(v *state.View, i *state.Identity) []types.AttachedPolicy {
	return mapped(i.Attached, func(arn string) types.AttachedPolicy {
		return types.AttachedPolicy{PolicyArn: &arn, PolicyName: &s.managed(v, arn).Name}
	})
}

// putInline puts a policy of an identity's own, or replaces it.
func (s *Service) putInline(ctx context.Context, k *kind, name, policyName, document string) error {
	if _, err := parse(policy.Identity, document); err != nil {
		return err
	}
	return s.change(ctx, k, name, func(_ *state.Tx, i *state.Identity) error {
		if i.Inline == nil {
			i.Inline = map[string]string{}
		}
		i.Inline[policyName] = document
		total := 0
		for _, d := range i.Inline {
			total += length(d)
		}
		if total > k.maxInline {
			return exceeded("Maximum policy size of %d bytes exceeded for %s %s", k.maxInline, k.noun, name)
		}
		return nil
	})
}

// inline returns the document of an identity's own policy.
func (s *Service) inline(k *kind, name, policyName string) (*string, error) {
	i, err := k.find(s.store.View(), name)
	if err != nil {
		return nil, err
	}
	document, ok := i.Inline[policyName]
	if !ok {
		return nil, k.noInline(policyName)
	}
	return encoded(document), nil
}

func (k *kind) noInline(policyName string) error {
	return noSuch("The %s policy with name %s cannot be found.", k.noun, policyName)
}

func (s *Service) deleteInline(ctx context.Context, k *kind, name, policyName string) error {
	return s.change(ctx, k, name, func(_ *state.Tx, i *state.Identity) error {
		if _, ok := i.Inline[policyName]; !ok {
			return k.noInline(policyName)
		}
		delete(i.Inline, policyName)
		return nil
	})
}

func (s *Service) inlineNames(k *kind, name string, limit *int32, marker *string) (on []string, truncated bool, next *string, err error) {
	i, err := k.find(s.store.View(), name)
	if err != nil {
		return nil, false, nil, err
	}
	names := slices.SortedFunc(maps.Keys(i.Inline), func(a, b string) int {
		return strings.Compare(state.NameKey(a), state.NameKey(b))
	})
	return page("ListInlinePolicies", names, limit, marker, func(name string) string { return name })
}

// bound sets or, with "", removes an identity's permissions boundary.
func (s *Service) bound(ctx context.Context, k *kind, name, arn string) error {
	return s.change(ctx, k, name, func(tx *state.Tx, i *state.Identity) error {
		i.Boundary = arn
		return s.checkBoundary(tx.View, arn)
	})
}

// PutRolePermissionsBoundary bounds what a role may be allowed.
func (s *Service) PutRolePermissionsBoundary(
	ctx context.Context, in *iam.PutRolePermissionsBoundaryInput,
) (*iam.PutRolePermissionsBoundaryOutput, error) {
	return &iam.PutRolePermissionsBoundaryOutput{}, s.bound(ctx, roleKind, *in.RoleName, *in.PermissionsBoundary)
}

// DeleteRolePermissionsBoundary removes a role's permissions boundary.
func (s *Service) DeleteRolePermissionsBoundary(
	ctx context.Context, in *iam.DeleteRolePermissionsBoundaryInput,
) (*iam.DeleteRolePermissionsBoundaryOutput, error) {
	return &iam.DeleteRolePermissionsBoundaryOutput{}, s.bound(ctx, roleKind, *in.RoleName, "")
}

// PutUserPermissionsBoundary bounds what a user may be allowed.
func (s *Service) PutUserPermissionsBoundary(
	ctx context.Context, in *iam.PutUserPermissionsBoundaryInput,
) (*iam.PutUserPermissionsBoundaryOutput, error) {
	return &iam.PutUserPermissionsBoundaryOutput{}, s.bound(ctx, userKind, *in.UserName, *in.PermissionsBoundary)
}

// DeleteUserPermissionsBoundary removes a user's permissions boundary.
func (s *Service) DeleteUserPermissionsBoundary(
	ctx context.Context, in *iam.DeleteUserPermissionsBoundaryInput,
) (*iam.DeleteUserPermissionsBoundaryOutput, error) {
	return &iam.DeleteUserPermissionsBoundaryOutput{}, s.bound(ctx, userKind, *in.UserName, "")
}
