package resources

import (
	"context"
	"reflect"
	"slices"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// policy has the properties of AWS::IAM::Policy, which is embedded in roles, users and groups. Its physical ID is a name that only the stack
// knows.
type policy struct {
	PolicyName     *string `cfn:"required"`
	PolicyDocument any     `cfn:"required"`
	Groups         []string
	Roles          []string
	Users          []string
}

// holders are who has a policy, by kind.
type holders struct {
	kind  principal
	names []string
}

func holdersOf(groups, roles, users []string) []holders {
	return []holders{{iamGroups, groups}, {iamRoles, roles}, {iamUsers, users}}
}

func (p *policy) inline() policies {
	return policies{inline: []inlinePolicy{{p.PolicyName, p.PolicyDocument}}}
}

var _ = add(&kind[*policy]{
	name:       "AWS::IAM::Policy",
	live:       livePolicy,
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, p *policy) (string, error) {
		id := s.generated(128)
		if err := setPolicy(ctx, s, &policy{}, p); err != nil {
			return "", undo(ctx, s, id, p, dropPolicy, err)
		}
		return id, nil
	},
	update: func(ctx context.Context, s Step, _ string, before, after *policy) error {
		return setPolicy(ctx, s, before, after)
	},
	delete: dropPolicy,
	read: func(_ context.Context, _ Step, id string, _ *policy) (Made, error) {
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

func setPolicy(ctx context.Context, s Step, before, after *policy) error {
	were := holdersOf(before.Groups, before.Roles, before.Users)
	for i, h := range holdersOf(after.Groups, after.Roles, after.Users) {
		for _, name := range h.names {
			old := policies{}
			if slices.Contains(were[i].names, name) {
				old = before.inline()
			}
			if err := h.kind.set(ctx, s, name, old, after.inline()); err != nil {
				return err
			}
		}
		for _, name := range others(were[i].names, h.names) {
			if err := h.kind.clear(ctx, s, name, before.inline(), policies{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func dropPolicy(ctx context.Context, s Step, _ string, p *policy) error {
	return setPolicy(ctx, s, p, &policy{})
}

// managedPolicy has the properties of AWS::IAM::ManagedPolicy. Its physical ID is the ARN.
type managedPolicy struct {
	ManagedPolicyName *string `cfn:"create"`
	Description       *string `cfn:"create"`
	Path              *string `cfn:"create"`
	PolicyDocument    any     `cfn:"required"`
	Groups            []string
	Roles             []string
	Users             []string
}

var _ = add(&kind[*managedPolicy]{
	name:       "AWS::IAM::ManagedPolicy",
	live:       liveManagedPolicy,
	list:       listManagedPolicies,
	identifier: []string{"PolicyArn"},
	attributes: []string{"PolicyArn", "PolicyId"},
	id: func(s Step, p *managedPolicy) string {
		path := "/"
		if p.Path != nil {
			path = *p.Path
		}
		return "arn:aws:iam::" + s.Account.ID + ":policy" + path + s.named(p.ManagedPolicyName, 128)
	},
	create: func(ctx context.Context, s Step, p *managedPolicy) (string, error) {
		out, err := call.Do[iam.CreatePolicyOutput](ctx, s.Services, &iam.CreatePolicyInput{
			PolicyName:     new(s.named(p.ManagedPolicyName, 128)),
			Description:    p.Description,
			Path:           p.Path,
			PolicyDocument: document(p.PolicyDocument),
		})
		if err != nil {
			return "", err
		}
		if err := attachPolicy(ctx, s, *out.Policy.Arn, &managedPolicy{}, p); err != nil {
			return "", undo(ctx, s, *out.Policy.Arn, p, deletePolicy, err)
		}
		return *out.Policy.Arn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *managedPolicy) error {
		isChanged := before.PolicyDocument != nil && !reflect.DeepEqual(before.PolicyDocument, after.PolicyDocument)
		if isChanged {
			if err := newVersion(ctx, s, arn, after); err != nil {
				return err
			}
		}
		return attachPolicy(ctx, s, arn, before, after)
	},
	delete: deletePolicy,
	read: func(ctx context.Context, s Step, arn string, _ *managedPolicy) (Made, error) {
		out, err := call.Do[iam.GetPolicyOutput](ctx, s.Services, &iam.GetPolicyInput{PolicyArn: &arn})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"PolicyArn": arn, "PolicyId": *out.Policy.PolicyId}}, nil
	},
})

// attachPolicy attaches a managed policy to those who are to have it, and takes it from those who aren't any more.
func attachPolicy(ctx context.Context, s Step, arn string, before, after *managedPolicy) error {
	this := policies{managed: []string{arn}}
	were := holdersOf(before.Groups, before.Roles, before.Users)
	for i, h := range holdersOf(after.Groups, after.Roles, after.Users) {
		for _, name := range h.names {
			if err := h.kind.set(ctx, s, name, policies{}, this); err != nil {
				return err
			}
		}
		for _, name := range others(were[i].names, h.names) {
			if err := h.kind.clear(ctx, s, name, this, policies{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPolicyVersions is how many versions IAM keeps of a policy.
const maxPolicyVersions = 5

// newVersion makes another document the one that counts. The oldest version makes room for it.
func newVersion(ctx context.Context, s Step, arn string, p *managedPolicy) error {
	old, err := oldVersions(ctx, s, arn)
	if err != nil {
		return err
	}
	if len(old) >= maxPolicyVersions-1 {
		if err := deleteVersion(ctx, s, arn, old[len(old)-1]); err != nil {
			return err
		}
	}
	in := &iam.CreatePolicyVersionInput{PolicyArn: &arn, PolicyDocument: document(p.PolicyDocument), SetAsDefault: true}
	return did[iam.CreatePolicyVersionOutput](ctx, s, in)
}

// oldVersions returns the versions of a policy that don't count, the newest first.
func oldVersions(ctx context.Context, s Step, arn string) ([]types.PolicyVersion, error) {
	out, err := call.Do[iam.ListPolicyVersionsOutput](ctx, s.Services, &iam.ListPolicyVersionsInput{PolicyArn: &arn})
	if err != nil {
		return nil, err
	}
	old := slices.DeleteFunc(out.Versions, func(v types.PolicyVersion) bool { return v.IsDefaultVersion })
	sort.Slice(old, func(i, j int) bool { return aws.ToTime(old[i].CreateDate).After(aws.ToTime(old[j].CreateDate)) })
	return old, nil
}

func deleteVersion(ctx context.Context, s Step, arn string, v types.PolicyVersion) error {
	in := &iam.DeletePolicyVersionInput{PolicyArn: &arn, VersionId: v.VersionId}
	return did[iam.DeletePolicyVersionOutput](ctx, s, in)
}

func deletePolicy(ctx context.Context, s Step, arn string, p *managedPolicy) error {
	if err := attachPolicy(ctx, s, arn, p, &managedPolicy{}); err != nil {
		return err
	}
	old, err := oldVersions(ctx, s, arn)
	if err != nil {
		return err
	}
	for _, v := range old {
		if err := deleteVersion(ctx, s, arn, v); err != nil {
			return err
		}
	}
	return did[iam.DeletePolicyOutput](ctx, s, &iam.DeletePolicyInput{PolicyArn: &arn})
}

// livePolicy reads the policy where it was put. The document is the one that isn't as it's to be, if there's one.
func livePolicy(ctx context.Context, s Step, _ string, p *policy) (*policy, error) {
	live := &policy{PolicyName: p.PolicyName}
	lists := []*[]string{&live.Groups, &live.Roles, &live.Users}
	for i, h := range holdersOf(p.Groups, p.Roles, p.Users) {
		for _, name := range h.names {
			text, err := h.kind.get(ctx, s, name, *p.PolicyName)
			if isMissing(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			*lists[i] = append(*lists[i], name)
			found := unescaped(text)
			if live.PolicyDocument == nil || !reflect.DeepEqual(canonical(found), canonical(p.PolicyDocument)) {
				live.PolicyDocument = found
			}
		}
	}
	if live.PolicyDocument == nil {
		return nil, errMissing
	}
	return live, nil
}

func liveManagedPolicy(ctx context.Context, s Step, arn string, _ *managedPolicy) (*managedPolicy, error) {
	out, err := call.Do[iam.GetPolicyOutput](ctx, s.Services, &iam.GetPolicyInput{PolicyArn: &arn})
	if err != nil {
		return nil, err
	}
	version, err := call.Do[iam.GetPolicyVersionOutput](ctx, s.Services,
		&iam.GetPolicyVersionInput{PolicyArn: &arn, VersionId: out.Policy.DefaultVersionId})
	if err != nil {
		return nil, err
	}
	live := &managedPolicy{
		ManagedPolicyName: out.Policy.PolicyName,
		Description:       out.Policy.Description,
		Path:              out.Policy.Path,
		PolicyDocument:    unescaped(version.PolicyVersion.Document),
	}
	has, err := call.Do[iam.ListEntitiesForPolicyOutput](ctx, s.Services, &iam.ListEntitiesForPolicyInput{PolicyArn: &arn})
	if err != nil {
		return nil, err
	}
	for _, g := range has.PolicyGroups {
		live.Groups = append(live.Groups, *g.GroupName)
	}
	for _, r := range has.PolicyRoles {
		live.Roles = append(live.Roles, *r.RoleName)
	}
	for _, u := range has.PolicyUsers {
		live.Users = append(live.Users, *u.UserName)
	}
	live.Groups = withoutHolders(s, "AWS::IAM::Group", arn, live.Groups)
	live.Roles = withoutHolders(s, "AWS::IAM::Role", arn, live.Roles)
	live.Users = withoutHolders(s, "AWS::IAM::User", arn, live.Users)
	return live, nil
}

// withoutHolders takes those out of a policy's holders who name it themselves in the stack's template.
func withoutHolders(s Step, kind, arn string, names []string) []string {
	for _, o := range s.others(kind) {
		if listed(o.Properties["ManagedPolicyArns"], arn) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == o.ID })
		}
	}
	return names
}

func listManagedPolicies(ctx context.Context, s Step, _ *managedPolicy) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[iam.ListPoliciesOutput](ctx, s.Services, &iam.ListPoliciesInput{Marker: token, Scope: types.PolicyScopeTypeLocal})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Policies {
			ids = append(ids, *x.Arn)
		}
		return ids, out.Marker, nil
	})
}
