package iam

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// The quotas of managed policies: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
const (
	maxManaged       = 6144 // characters of a document
	maxVersions      = 5
	maxAttached      = 10 // of one identity
	maxGroupsPerUser = 10
	maxKeysPerUser   = 2
)

func (s *Service) policyARN(p *state.ManagedPolicy) string {
	if s.aws[awsARN(strings.TrimPrefix(p.Path, "/")+p.Name)] == p {
		return awsARN(strings.TrimPrefix(p.Path, "/") + p.Name)
	}
	return s.arn("policy", p.Path, p.Name)
}

// managed returns the policy with an ARN, AWS's or the account's, or nil.
func (s *Service) managed(v *state.View, arn string) *state.ManagedPolicy {
	if p := s.aws[arn]; p != nil {
		return p
	}
	rest, ok := s.opts.GlobalResourceOf("iam", "policy/", arn)
	if !ok {
		return nil
	}
	p := v.ManagedPolicies.Get(state.NameKey(rest[strings.LastIndexByte(rest, '/')+1:]))
	if p == nil || p.Path+p.Name != "/"+rest {
		return nil
	}
	return p
}

// findPolicy returns the policy with an ARN, or NoSuchEntity.
func (s *Service) findPolicy(v *state.View, arn string) (*state.ManagedPolicy, error) {
	if p := s.managed(v, arn); p != nil {
		return p, nil
	}
	if !strings.HasPrefix(arn, "arn:") {
		return nil, invalidInput("ARN %s is not valid.", arn)
	}
	return nil, noSuch("Policy %s was not found.", arn)
}

// attachable returns the policy with an ARN, or the error of those who would attach it.
func (s *Service) attachable(v *state.View, arn string) (*state.ManagedPolicy, error) {
	if p := s.managed(v, arn); p != nil {
		return p, nil
	}
	if !strings.HasPrefix(arn, "arn:") {
		return nil, invalid("Invalid ARN:  Could not be parsed!")
	}
	return nil, noSuch("Policy %s does not exist or is not attachable.", arn)
}

func (s *Service) checkBoundary(v *state.View, arn string) error {
	if arn != "" && s.managed(v, arn) == nil {
		return noSuch("Scope ARN: %s does not exist or is not attachable.", arn)
	}
	return nil
}

// uses counts how often policies are attached, and how often they bound permissions, by ARN.
type uses struct{ attached, bounds map[string]int32 }

func usesOf(v *state.View) uses {
	u := uses{map[string]int32{}, map[string]int32{}}
	for _, k := range kinds {
		for i := range k.all(v) {
			for _, arn := range i.Attached {
				u.attached[arn]++
			}
			if i.Boundary != "" {
				u.bounds[i.Boundary]++
			}
		}
	}
	return u
}

func versionID(number int) *string { return aws.String("v" + strconv.Itoa(number)) }

// policy returns a policy as lists have it.
func (s *Service) policy(p *state.ManagedPolicy, u uses) types.Policy {
	arn := s.policyARN(p)
	return types.Policy{
		Arn:                           &arn,
		AttachmentCount:               aws.Int32(u.attached[arn]),
		CreateDate:                    &p.Created,
		DefaultVersionId:              versionID(p.Default),
		IsAttachable:                  true,
		Path:                          &p.Path,
		PermissionsBoundaryUsageCount: aws.Int32(u.bounds[arn]),
		PolicyId:                      &p.ID,
		PolicyName:                    &p.Name,
		UpdateDate:                    &p.Updated,
	}
}

func (s *Service) wholePolicy(p *state.ManagedPolicy, u uses) *types.Policy {
	out := s.policy(p, u)
	out.Tags = p.Tags
	if p.Description != "" {
		out.Description = &p.Description
	}
	return &out
}

// checkManaged checks the document of a managed policy.
func checkManaged(document string) error {
	if _, err := parse(policy.Identity, document); err != nil {
		return err
	}
	if length(document) > maxManaged {
		return exceeded("Cannot exceed quota for PolicySize: %d", maxManaged)
	}
	return nil
}

// CreatePolicy creates a managed policy.
func (s *Service) CreatePolicy(ctx context.Context, in *iam.CreatePolicyInput) (*iam.CreatePolicyOutput, error) {
	i, err := s.newIdentity(in.PolicyName, in.Path, nil, in.Tags, "ANPA")
	if err != nil {
		return nil, err
	}
	if err := checkManaged(*in.PolicyDocument); err != nil {
		return nil, err
	}
	row := &state.ManagedPolicy{
		Name:        i.Name,
		Path:        i.Path,
		ID:          i.ID,
		Description: aws.ToString(in.Description),
		Created:     i.Created,
		Updated:     i.Created,
		Tags:        i.Tags,
		Default:     1,
		Latest:      1,
		Versions:    []state.PolicyVersion{{Number: 1, Document: *in.PolicyDocument, Created: i.Created}},
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.ManagedPolicies.Get(state.NameKey(i.Name)) != nil {
			return exists("A policy called %s already exists. Duplicate names are not allowed.", i.Name)
		}
		tx.ManagedPolicies.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.CreatePolicyOutput{Policy: s.wholePolicy(row, uses{})}, nil
}

// GetPolicy returns a managed policy, without its document.
func (s *Service) GetPolicy(_ context.Context, in *iam.GetPolicyInput) (*iam.GetPolicyOutput, error) {
	v := s.store.View()
	p, err := s.findPolicy(v, *in.PolicyArn)
	if err != nil {
		return nil, err
	}
	return &iam.GetPolicyOutput{Policy: s.wholePolicy(p, usesOf(v))}, nil
}

// changePolicy changes a managed policy of the account's. AWS's own can't be changed.
func (s *Service) changePolicy(ctx context.Context, arn string, change func(*state.Tx, *state.ManagedPolicy) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findPolicy(tx.View, arn)
		if err != nil {
			return err
		}
		if s.aws[arn] != nil {
			return invalidInput("Policy %s is AWS's own, and can't be changed.", arn)
		}
		p := *old
		p.Versions = slices.Clone(old.Versions)
		if err := change(tx, &p); err != nil {
			return err
		}
		tx.ManagedPolicies.Put(&p)
		return nil
	})
}

// DeletePolicy deletes a managed policy that nothing uses.
func (s *Service) DeletePolicy(ctx context.Context, in *iam.DeletePolicyInput) (*iam.DeletePolicyOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		p, err := s.findPolicy(tx.View, *in.PolicyArn)
		if err != nil {
			return err
		}
		u := usesOf(tx.View)
		switch {
		case s.aws[*in.PolicyArn] != nil:
			return invalidInput("Policy %s is AWS's own, and can't be deleted.", *in.PolicyArn)
		case u.attached[*in.PolicyArn] > 0 || u.bounds[*in.PolicyArn] > 0:
			return conflict("Cannot delete a policy attached to entities.")
		case len(p.Versions) > 1:
			return conflict("This policy has more than one version. Before you delete a policy, you must delete the policy's versions. " +
				"The default version is deleted with the policy.")
		}
		tx.ManagedPolicies.Delete(state.NameKey(p.Name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeletePolicyOutput{}, nil
}

// ListPolicies lists managed policies, of the account and of AWS.
func (s *Service) ListPolicies(_ context.Context, in *iam.ListPoliciesInput) (*iam.ListPoliciesOutput, error) {
	v := s.store.View()
	u := usesOf(v)
	var rows []*state.ManagedPolicy
	if in.Scope != types.PolicyScopeTypeAws {
		rows = under(v.ManagedPolicies.All(), in.PathPrefix, func(p *state.ManagedPolicy) string { return p.Path })
	}
	if in.Scope != types.PolicyScopeTypeLocal {
		rows = append(rows, under(maps.Values(s.aws), in.PathPrefix, func(p *state.ManagedPolicy) string { return p.Path })...)
	}
	rows = slices.DeleteFunc(rows, func(p *state.ManagedPolicy) bool {
		arn := s.policyARN(p)
		switch {
		case in.OnlyAttached || in.PolicyUsageFilter == types.PolicyUsageTypePermissionsPolicy:
			return u.attached[arn] == 0
		case in.PolicyUsageFilter == types.PolicyUsageTypePermissionsBoundary:
			return u.bounds[arn] == 0
		}
		return false
	})
	key := func(p *state.ManagedPolicy) string { return p.Name + " " + s.policyARN(p) } // AWS's may have the name of one of the account's
	slices.SortFunc(rows, func(a, b *state.ManagedPolicy) int {
		return strings.Compare(state.NameKey(key(a)), state.NameKey(key(b)))
	})
	on, truncated, next, err := page("ListPolicies", rows, in.MaxItems, in.Marker, key)
	if err != nil {
		return nil, err
	}
	policies := mapped(on, func(p *state.ManagedPolicy) types.Policy { return s.policy(p, u) })
	return &iam.ListPoliciesOutput{Policies: policies, IsTruncated: truncated, Marker: next}, nil
}

// version returns a version as answers have it.
func version(p *state.ManagedPolicy, v state.PolicyVersion) types.PolicyVersion {
	return types.PolicyVersion{CreateDate: &v.Created, IsDefaultVersion: v.Number == p.Default, VersionId: versionID(v.Number)}
}

// CreatePolicyVersion puts a new version of a policy.
func (s *Service) CreatePolicyVersion(ctx context.Context, in *iam.CreatePolicyVersionInput) (*iam.CreatePolicyVersionOutput, error) {
	if err := checkManaged(*in.PolicyDocument); err != nil {
		return nil, err
	}
	var out types.PolicyVersion
	err := s.changePolicy(ctx, *in.PolicyArn, func(_ *state.Tx, p *state.ManagedPolicy) error {
		if len(p.Versions) == maxVersions {
			return exceeded("A managed policy can have up to %d versions. Before you create a new version, you must delete an existing version.",
				maxVersions)
		}
		p.Latest++
		p.Updated = s.now()
		if in.SetAsDefault {
			p.Default = p.Latest
		}
		made := state.PolicyVersion{Number: p.Latest, Document: *in.PolicyDocument, Created: p.Updated}
		p.Versions = append(p.Versions, made)
		out = version(p, made)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.CreatePolicyVersionOutput{PolicyVersion: &out}, nil
}

// versionOf returns the version of a policy that a call names, or NoSuchEntity.
func versionOf(p *state.ManagedPolicy, arn, id string) (*state.PolicyVersion, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(id, "v"))
	if v := p.Version(number); err == nil && v != nil {
		return v, nil
	}
	return nil, noSuch("Policy %s version %s does not exist or is not attachable.", arn, id)
}

// GetPolicyVersion returns a version of a policy with its document.
func (s *Service) GetPolicyVersion(_ context.Context, in *iam.GetPolicyVersionInput) (*iam.GetPolicyVersionOutput, error) {
	p, err := s.findPolicy(s.store.View(), *in.PolicyArn)
	if err != nil {
		return nil, err
	}
	v, err := versionOf(p, *in.PolicyArn, *in.VersionId)
	if err != nil {
		return nil, err
	}
	out := version(p, *v)
	out.Document = encoded(v.Document)
	return &iam.GetPolicyVersionOutput{PolicyVersion: &out}, nil
}

// ListPolicyVersions lists a policy's versions, the newest first.
func (s *Service) ListPolicyVersions(_ context.Context, in *iam.ListPolicyVersionsInput) (*iam.ListPolicyVersionsOutput, error) {
	p, err := s.findPolicy(s.store.View(), *in.PolicyArn)
	if err != nil {
		return nil, err
	}
	rows := slices.Clone(p.Versions)
	slices.Reverse(rows)
	age := func(v state.PolicyVersion) string { return strconv.Itoa(math.MaxInt - v.Number) } // the more, the older
	on, truncated, next, err := page("ListPolicyVersions", rows, in.MaxItems, in.Marker, age)
	if err != nil {
		return nil, err
	}
	versions := mapped(on, func(v state.PolicyVersion) types.PolicyVersion { return version(p, v) })
	return &iam.ListPolicyVersionsOutput{Versions: versions, IsTruncated: truncated, Marker: next}, nil
}

// DeletePolicyVersion deletes a version that isn't the default one.
func (s *Service) DeletePolicyVersion(ctx context.Context, in *iam.DeletePolicyVersionInput) (*iam.DeletePolicyVersionOutput, error) {
	err := s.changePolicy(ctx, *in.PolicyArn, func(_ *state.Tx, p *state.ManagedPolicy) error {
		v, err := versionOf(p, *in.PolicyArn, *in.VersionId)
		if err != nil {
			return err
		}
		number := v.Number
		if number == p.Default {
			return conflict("Cannot delete the default version of a policy.")
		}
		p.Updated = s.now()
		p.Versions = slices.DeleteFunc(p.Versions, func(v state.PolicyVersion) bool { return v.Number == number })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeletePolicyVersionOutput{}, nil
}

// SetDefaultPolicyVersion makes a version the one that counts.
func (s *Service) SetDefaultPolicyVersion(
	ctx context.Context, in *iam.SetDefaultPolicyVersionInput,
) (*iam.SetDefaultPolicyVersionOutput, error) {
	err := s.changePolicy(ctx, *in.PolicyArn, func(_ *state.Tx, p *state.ManagedPolicy) error {
		v, err := versionOf(p, *in.PolicyArn, *in.VersionId)
		if err != nil {
			return err
		}
		p.Default = v.Number
		p.Updated = s.now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.SetDefaultPolicyVersionOutput{}, nil
}

// ListEntitiesForPolicy lists who has a policy attached, or is bounded by it.
func (s *Service) ListEntitiesForPolicy(
	_ context.Context, in *iam.ListEntitiesForPolicyInput,
) (*iam.ListEntitiesForPolicyOutput, error) {
	v := s.store.View()
	if _, err := s.findPolicy(v, *in.PolicyArn); err != nil {
		return nil, err
	}
	type entity struct {
		*kind
		*state.Identity
	}
	var rows []entity
	for _, k := range kinds {
		for i := range k.all(v) {
			attached := slices.Contains(i.Attached, *in.PolicyArn) && in.PolicyUsageFilter != types.PolicyUsageTypePermissionsBoundary
			bounds := i.Boundary == *in.PolicyArn && in.PolicyUsageFilter != types.PolicyUsageTypePermissionsPolicy
			wanted := in.EntityFilter == "" || strings.EqualFold(string(in.EntityFilter), k.noun)
			if (attached || bounds) && wanted && strings.HasPrefix(i.Path, aws.ToString(in.PathPrefix)) {
				rows = append(rows, entity{k, i})
			}
		}
	}
	key := func(e entity) string { return e.noun + " " + e.Name }
	account.SortBy(rows, func(e entity) string { return state.NameKey(key(e)) })
	on, truncated, next, err := page("ListEntitiesForPolicy", rows, in.MaxItems, in.Marker, key)
	if err != nil {
		return nil, err
	}
	out := &iam.ListEntitiesForPolicyOutput{
		PolicyGroups: []types.PolicyGroup{},
		PolicyRoles:  []types.PolicyRole{},
		PolicyUsers:  []types.PolicyUser{},
		IsTruncated:  truncated,
		Marker:       next,
	}
	for _, e := range on {
		switch e.kind {
		case userKind:
			out.PolicyUsers = append(out.PolicyUsers, types.PolicyUser{UserId: &e.ID, UserName: &e.Name})
		case groupKind:
			out.PolicyGroups = append(out.PolicyGroups, types.PolicyGroup{GroupId: &e.ID, GroupName: &e.Name})
		case roleKind:
			out.PolicyRoles = append(out.PolicyRoles, types.PolicyRole{RoleId: &e.ID, RoleName: &e.Name})
		}
	}
	return out, nil
}
