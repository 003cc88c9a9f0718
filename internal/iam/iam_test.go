package iam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
	"github.com/pintle/pintle/internal/wire/call"
)

const (
	trust    = `{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ecs-tasks.amazonaws.com"}}}`
	anything = `{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`
	nothing  = `{"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}`
)

type world struct {
	*Service
	t   *testing.T
	dir string
}

func newWorld(t *testing.T) *world {
	v := vaulttest.New(t, 7)
	dir := t.TempDir()
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	return &world{New(statetest.OpenIn(t, dir), Options{Account: accounttest.New(now), Vault: v}), t, dir}
}

// try makes a call and returns the code and the message of its refusal, or "".
func try[In, Out any](w *world, method func(context.Context, *In) (*Out, error), in *In) string {
	w.t.Helper()
	_, err := method(w.t.Context(), in)
	if err == nil {
		return ""
	}
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		w.t.Fatal(err)
	}
	return refused.ErrorCode() + ": " + refused.ErrorMessage()
}

// do makes a call that mustn't be refused.
func do[In, Out any](w *world, method func(context.Context, *In) (*Out, error), in *In) *Out {
	w.t.Helper()
	out, err := method(w.t.Context(), in)
	if err != nil {
		w.t.Fatalf("%T: %v", in, err)
	}
	return out
}

func (w *world) role(name string) {
	do(w, w.CreateRole, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust)})
}

func (w *world) user(name string) { do(w, w.CreateUser, &iam.CreateUserInput{UserName: &name}) }

func (w *world) policy(name string) string {
	return *do(w, w.CreatePolicy, &iam.CreatePolicyInput{PolicyName: &name, PolicyDocument: aws.String(anything)}).Policy.Arn
}

// TestAWSPoliciesAreRight: their documents parse, no two have one id, and those that templates name are there.
func TestAWSPoliciesAreRight(t *testing.T) {
	all := awsPolicies()
	ids := map[string]bool{}
	for arn, p := range all {
		parsed, err := policy.Parse(policy.Identity, p.Document())
		if err != nil || len(parsed.Statements) == 0 || ids[p.ID] {
			t.Errorf("%s: %v", arn, err)
		}
		ids[p.ID] = true
	}
	for _, name := range []string{
		"AdministratorAccess", "AmazonS3FullAccess", "AmazonEC2FullAccess", "AmazonECS_FullAccess", "CloudWatchAgentServerPolicy",
		"service-role/AmazonECSTaskExecutionRolePolicy", "service-role/AmazonEC2ContainerServiceforEC2Role",
		"service-role/AWSLambdaBasicExecutionRole", "AmazonSSMManagedInstanceCore", "AmazonECSInfrastructureRolePolicyForLoadBalancers",
	} {
		if all[awsARN(name)] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	for service, linked := range linkedServices {
		if all[awsARN("aws-service-role/"+linked.policy)] == nil {
			t.Errorf("%s's policy %s is missing", service, linked.policy)
		}
	}
}

// TestEmptyListsAreThere: clients read the names and the tags of what has none without asking whether the list is there.
func TestEmptyListsAreThere(t *testing.T) {
	w := newWorld(t)
	w.user("ann")
	w.role("worker")
	arn := w.policy("frames")
	user, role := aws.String("ann"), aws.String("worker")
	entities := do(w, w.ListEntitiesForPolicy, &iam.ListEntitiesForPolicyInput{PolicyArn: &arn})
	for name, missing := range map[string]bool{
		"ListUserPolicies":         do(w, w.ListUserPolicies, &iam.ListUserPoliciesInput{UserName: user}).PolicyNames == nil,
		"ListRolePolicies":         do(w, w.ListRolePolicies, &iam.ListRolePoliciesInput{RoleName: role}).PolicyNames == nil,
		"ListAttachedRolePolicies": do(w, w.ListAttachedRolePolicies, &iam.ListAttachedRolePoliciesInput{RoleName: role}).AttachedPolicies == nil,
		"ListUserTags":             do(w, w.ListUserTags, &iam.ListUserTagsInput{UserName: user}).Tags == nil,
		"ListRoleTags":             do(w, w.ListRoleTags, &iam.ListRoleTagsInput{RoleName: role}).Tags == nil,
		"ListPolicyTags":           do(w, w.ListPolicyTags, &iam.ListPolicyTagsInput{PolicyArn: &arn}).Tags == nil,
		"ListGroups":               do(w, w.ListGroups, &iam.ListGroupsInput{}).Groups == nil,
		"ListEntitiesForPolicy":    entities.PolicyGroups == nil || entities.PolicyRoles == nil || entities.PolicyUsers == nil,
	} {
		if missing {
			t.Errorf("%s: the list is missing", name)
		}
	}
}

// TestRefusals: each refusal in AWS's words. A refused call changes nothing, so their order is of no matter.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.role("worker")
	w.user("ann")
	arn := w.policy("frames")
	do(w, w.AttachRolePolicy, &iam.AttachRolePolicyInput{RoleName: aws.String("worker"), PolicyArn: &arn})
	for i, c := range []struct{ got, want string }{
		{try(w, w.CreateRole, &iam.CreateRoleInput{RoleName: aws.String("WORKER"), AssumeRolePolicyDocument: aws.String(trust)}),
			"EntityAlreadyExists: Role with name WORKER already exists."},
		{try(w, w.CreateUser, &iam.CreateUserInput{UserName: aws.String("ann")}), "EntityAlreadyExists: User with name ann already exists."},
		{try(w, w.GetRole, &iam.GetRoleInput{RoleName: aws.String("none")}), "NoSuchEntity: The role with name none cannot be found."},
		{try(w, w.DeleteRole, &iam.DeleteRoleInput{RoleName: aws.String("worker")}),
			"DeleteConflict: Cannot delete entity, must detach all policies first."},
		{try(w, w.DeletePolicy, &iam.DeletePolicyInput{PolicyArn: &arn}), "DeleteConflict: Cannot delete a policy attached to entities."},
		{try(w, w.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("frames"), PolicyDocument: aws.String(anything)}),
			"EntityAlreadyExists: A policy called frames already exists. Duplicate names are not allowed."},
		{try(w, w.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("x"), PolicyDocument: aws.String(trust)}),
			"MalformedPolicyDocument: Policy document should not specify a principal."},
		{try(w, w.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("x"), PolicyDocument: aws.String(
			strings.Replace(anything, `"*"`, `"s3:`+strings.Repeat("x", maxManaged)+`"`, 1))}), "LimitExceeded: Cannot exceed quota for PolicySize: 6144"},
		{try(w, w.AttachUserPolicy, &iam.AttachUserPolicyInput{UserName: aws.String("ann"), PolicyArn: aws.String(awsARN("NoSuchThing"))}),
			"NoSuchEntity: Policy arn:aws:iam::aws:policy/NoSuchThing does not exist or is not attachable."},
		{try(w, w.AttachUserPolicy, &iam.AttachUserPolicyInput{UserName: aws.String("ann"), PolicyArn: aws.String("nameandnoarnwhatever")}),
			"ValidationError: Invalid ARN:  Could not be parsed!"},
		{try(w, w.DetachUserPolicy, &iam.DetachUserPolicyInput{UserName: aws.String("ann"), PolicyArn: &arn}),
			"NoSuchEntity: Policy " + arn + " was not found."},
		{try(w, w.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("worker"), PolicyDocument: aws.String(
			`{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::000000000000:user/nobody"}}}`)}),
			`MalformedPolicyDocument: Invalid principal in policy: "AWS":"arn:aws:iam::000000000000:user/nobody"`},
		{try(w, w.DeletePolicy, &iam.DeletePolicyInput{PolicyArn: aws.String(awsARN("AdministratorAccess"))}),
			"InvalidInput: Policy arn:aws:iam::aws:policy/AdministratorAccess is AWS's own, and can't be deleted."},
		{try(w, w.CreateUser, &iam.CreateUserInput{UserName: aws.String("x"), Tags: []types.Tag{
			{Key: aws.String("a"), Value: aws.String("")}, {Key: aws.String("A"), Value: aws.String("")}}}),
			"InvalidInput: Duplicate tag keys found. Please note that Tag keys are case insensitive."},
		{try(w, w.CreateUser, &iam.CreateUserInput{UserName: aws.String("x"), PermissionsBoundary: aws.String(awsARN("None"))}),
			"NoSuchEntity: Scope ARN: arn:aws:iam::aws:policy/None does not exist or is not attachable."},
		{try(w, w.CreateAccessKey, &iam.CreateAccessKeyInput{}), "ValidationError: Must specify userName when calling with non-User credentials"},
		{try(w, w.ListRoles, &iam.ListRolesInput{Marker: aws.String("x")}), "ValidationError: Invalid Marker."},
	} {
		if c.got != c.want {
			t.Errorf("%d: got %q, want %q", i, c.got, c.want)
		}
	}
	if all := do(w, w.ListPolicies, &iam.ListPoliciesInput{Scope: types.PolicyScopeTypeLocal}).Policies; len(all) != 1 {
		t.Errorf("there are %d policies", len(all))
	}
}

// TestSecretsOfAccessKeys: a secret is told once, lies nowhere in the clear, and stands for its user as long as the key is active.
func TestSecretsOfAccessKeys(t *testing.T) {
	w := newWorld(t)
	w.user("ann")
	key := do(w, w.CreateAccessKey, &iam.CreateAccessKeyInput{UserName: aws.String("ann")}).AccessKey
	secret, user, ok := w.Secret(*key.AccessKeyId)
	if secret != *key.SecretAccessKey || user != "arn:aws:iam::000000000000:user/ann" || !ok {
		t.Errorf("got %q %q %v", secret, user, ok)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the secret, or can't be read: %v", name, err)
		}
	}
	do(w, w.UpdateUser, &iam.UpdateUserInput{UserName: aws.String("ann"), NewUserName: aws.String("anne"), NewPath: aws.String("/x/")})
	if _, user, _ := w.Secret(*key.AccessKeyId); user != "arn:aws:iam::000000000000:user/x/anne" {
		t.Errorf("renamed, the user is %s", user)
	}
	mine := call.With(t.Context(), call.Call{Identity: call.Identity{Principal: "arn:aws:iam::000000000000:user/x/anne"}})
	if out, err := w.ListAccessKeys(mine, &iam.ListAccessKeysInput{}); err != nil || len(out.AccessKeyMetadata) != 1 {
		t.Errorf("got %v %v", out, err)
	}
	do(w, w.CreateAccessKey, &iam.CreateAccessKeyInput{UserName: aws.String("anne")})
	if got := try(w, w.CreateAccessKey, &iam.CreateAccessKeyInput{UserName: aws.String("anne")}); got !=
		"LimitExceeded: Cannot exceed quota for AccessKeysPerUser: 2" {
		t.Errorf("got %s", got)
	}
	do(w, w.UpdateAccessKey, &iam.UpdateAccessKeyInput{UserName: aws.String("anne"), AccessKeyId: key.AccessKeyId, Status: types.StatusTypeInactive})
	if _, _, ok := w.Secret(*key.AccessKeyId); ok {
		t.Error("an inactive key has a secret")
	}
}

// TestPages: pages together are the list, and those who come meanwhile don't make others appear twice.
func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.role(fmt.Sprintf("Role%d", i))
	}
	var names []string
	in := &iam.ListRolesInput{MaxItems: aws.Int32(2)}
	for {
		out := do(w, w.ListRoles, in)
		for _, r := range out.Roles {
			names = append(names, *r.RoleName)
		}
		if in.Marker = out.Marker; !out.IsTruncated {
			break
		}
		w.role("a" + names[len(names)-1])
	}
	if got := strings.Join(names, " "); got != "Role0 Role1 Role2 Role3 Role4" {
		t.Errorf("got %s", got)
	}
}

// TestSimulation: a user's own policies, its groups', its boundary, and where the statements stand.
func TestSimulation(t *testing.T) {
	w := newWorld(t)
	w.user("ann")
	do(w, w.CreateGroup, &iam.CreateGroupInput{GroupName: aws.String("artists")})
	do(w, w.AddUserToGroup, &iam.AddUserToGroupInput{GroupName: aws.String("artists"), UserName: aws.String("ann")})
	do(w, w.PutGroupPolicy, &iam.PutGroupPolicyInput{GroupName: aws.String("artists"), PolicyName: aws.String("p"), PolicyDocument: aws.String(
		"{\"Version\": \"2012-10-17\",\n \"Statement\": {\"Effect\": \"Allow\", \"Action\": \"s3:*\", \"Resource\": \"arn:aws:s3:::${aws:username}/*\"}}")})
	simulate := func(action, resource string) types.EvaluationResult {
		t.Helper()
		return do(w, w.SimulatePrincipalPolicy, &iam.SimulatePrincipalPolicyInput{
			PolicySourceArn: aws.String("arn:aws:iam::000000000000:user/ann"),
			ActionNames:     []string{action},
			ResourceArns:    []string{resource},
		}).EvaluationResults[0]
	}
	got := simulate("s3:GetObject", "arn:aws:s3:::ann/x")
	if got.EvalDecision != types.PolicyEvaluationDecisionTypeAllowed || len(got.MatchedStatements) != 1 {
		t.Fatalf("got %+v", got)
	}
	if m := got.MatchedStatements[0]; *m.SourcePolicyId != "p" || m.StartPosition.Line != 2 || m.StartPosition.Column != 15 {
		t.Errorf("got %s at %+v", *m.SourcePolicyId, m.StartPosition)
	}
	if got := simulate("s3:GetObject", "arn:aws:s3:::bob/x"); got.EvalDecision != types.PolicyEvaluationDecisionTypeImplicitDeny {
		t.Errorf("got %s", got.EvalDecision)
	}
	do(w, w.PutUserPermissionsBoundary, &iam.PutUserPermissionsBoundaryInput{UserName: aws.String("ann"), PermissionsBoundary: aws.String(awsARN("AmazonSQSFullAccess"))})
	got = simulate("s3:GetObject", "arn:aws:s3:::ann/x")
	if got.EvalDecision != types.PolicyEvaluationDecisionTypeImplicitDeny || got.PermissionsBoundaryDecisionDetail.AllowedByPermissionsBoundary {
		t.Errorf("got %+v", got)
	}
	do(w, w.PutUserPolicy, &iam.PutUserPolicyInput{UserName: aws.String("ann"), PolicyName: aws.String("no"), PolicyDocument: aws.String(nothing)})
	if got := simulate("s3:GetObject", "arn:aws:s3:::ann/x"); got.EvalDecision != types.PolicyEvaluationDecisionTypeExplicitDeny {
		t.Errorf("got %s", got.EvalDecision)
	}
}

// TestPagesOfVersions: a policy's versions come in pages too, the newest first.
func TestPagesOfVersions(t *testing.T) {
	w := newWorld(t)
	arn := do(w, w.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("p"), PolicyDocument: aws.String(anything)}).Policy.Arn
	for range 4 {
		do(w, w.CreatePolicyVersion, &iam.CreatePolicyVersionInput{PolicyArn: arn, PolicyDocument: aws.String(nothing)})
	}
	var got []string
	in := &iam.ListPolicyVersionsInput{PolicyArn: arn, MaxItems: aws.Int32(2)}
	for pages := 1; ; pages++ {
		out := do(w, w.ListPolicyVersions, in)
		for _, v := range out.Versions {
			got = append(got, *v.VersionId)
		}
		if in.Marker = out.Marker; out.IsTruncated != (pages < 3) || out.IsTruncated != (out.Marker != nil) {
			t.Errorf("page %d is truncated: %v", pages, out.IsTruncated)
		}
		if !out.IsTruncated {
			break
		}
	}
	if strings.Join(got, " ") != "v5 v4 v3 v2 v1" {
		t.Errorf("listed %s", got)
	}
	if refused := try(w, w.ListPolicyVersions, &iam.ListPolicyVersionsInput{PolicyArn: arn, Marker: aws.String("x")}); refused != "ValidationError: Invalid Marker." {
		t.Errorf("with another marker: %s", refused)
	}
}

// TestStoredTrust: a role that an earlier version made can be assumed as before, though its policy couldn't be put today.
func TestStoredTrust(t *testing.T) {
	w := newWorld(t)
	w.user("ann")
	w.role("worker")
	const old = `{"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ci.example.com"}},
		{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::000000000000:user/ann"}}]}`
	err := w.store.Update(t.Context(), func(tx *state.Tx) error {
		role := *tx.Roles.Get("worker")
		role.Trust = old
		tx.Roles.Put(&role)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ann := call.With(t.Context(), call.Call{Identity: call.Identity{Principal: "arn:aws:iam::000000000000:user/ann"}})
	if _, err := w.Assumable(ann, "arn:aws:iam::000000000000:role/worker", Assumption{SessionName: "s"}); err != nil {
		t.Errorf("it cannot be assumed: %v", err)
	}
	again := try(w, w.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("worker"), PolicyDocument: aws.String(old)})
	if want := `MalformedPolicyDocument: Invalid principal in policy: "SERVICE":"ci.example.com"`; again != want {
		t.Errorf("got %s, want %s", again, want)
	}
}

// TestEmptyAccount: clients index all four lists, whatever there is.
func TestEmptyAccount(t *testing.T) {
	w := newWorld(t)
	out := do(w, w.GetAccountAuthorizationDetails, &iam.GetAccountAuthorizationDetailsInput{})
	if out.UserDetailList == nil || out.GroupDetailList == nil || out.RoleDetailList == nil || out.Policies == nil {
		t.Errorf("an empty account is %+v", out)
	}
	w.role("r")
	out = do(w, w.GetAccountAuthorizationDetails, &iam.GetAccountAuthorizationDetailsInput{})
	if r := out.RoleDetailList[0]; r.RolePolicyList == nil || r.AttachedManagedPolicies == nil || r.InstanceProfileList == nil {
		t.Errorf("a role with nothing is %+v", r)
	}
}
