package plane

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
)

func sessionTags(pairs ...string) (tags []types.Tag) {
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		tags = append(tags, types.Tag{Key: &key, Value: &value})
	}
	return tags
}

func session(p *Plane, c *types.Credentials) aws.Config {
	return p.config(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
}

// trusting makes a role with the tag team=role, whose queues are those named by its session's team, and which trusts the account with actions.
func trusting(t *testing.T, p *Plane, name, actions, condition string) {
	t.Helper()
	createRole(t, p, name, `{"Effect": "Allow", "Action": "sts:*", "Resource": "*"},
		{"Effect": "Allow", "Action": "sqs:CreateQueue", "Resource": "arn:aws:sqs:*:*:${aws:PrincipalTag/Team}"},
		{"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*", "Condition": {"StringEquals": {"aws:SourceIdentity": "ann"}}}`)
	_, err := p.IAM.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: aws.String(
		`{"Statement": {"Effect": "Allow", "Action": ` + actions + `, "Principal": {"AWS": "000000000000"}` + condition + `}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.IAM.TagRole(t.Context(), &iam.TagRoleInput{RoleName: &name, Tags: []iamtypes.Tag{{Key: aws.String("Team"), Value: aws.String("role")}}}); err != nil {
		t.Fatal(err)
	}
}

// TestSessionTags: a session's tags stand for its role's, a source identity stays, and a role's trust policy must allow both, also where they
// are handed on.
func TestSessionTags(t *testing.T) {
	p := serveSigned(t)
	const all = `["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]`
	trusting(t, p, "first", all, "")
	trusting(t, p, "plain", `"sts:AssumeRole"`, "")
	trusting(t, p, "only-a", all, `, "Condition": {"StringEquals": {"aws:RequestTag/team": "a"}}`)
	trusting(t, p, "of-ann", all, `, "Condition": {"StringEquals": {"sts:SourceIdentity": "ann"}}`)
	assume := func(by aws.Config, in sts.AssumeRoleInput, role string) (*sts.AssumeRoleOutput, error) {
		in.RoleArn, in.RoleSessionName = aws.String(roleARNs+role), aws.String("mine")
		return sts.NewFromConfig(by).AssumeRole(t.Context(), &in)
	}
	may := func(by aws.Config, queue string) bool {
		_, err := sqs.NewFromConfig(by).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &queue})
		return err == nil
	}
	owner := p.config("AKID", "secret", "")
	plain, err := assume(owner, sts.AssumeRoleInput{}, "first")
	if err != nil || plain.PackedPolicySize != nil || plain.SourceIdentity != nil {
		t.Fatal(plain, err)
	}
	untagged := session(p, plain.Credentials)
	out, err := assume(untagged, sts.AssumeRoleInput{
		Tags: sessionTags("team=a", "other=b"), TransitiveTagKeys: []string{"Team"}, SourceIdentity: aws.String("ann"),
	}, "first")
	if err != nil || aws.ToInt32(out.PackedPolicySize) == 0 || aws.ToString(out.SourceIdentity) != "ann" {
		t.Fatal(out, err)
	}
	tagged := session(p, out.Credentials)
	if !may(untagged, "role") || may(untagged, "a") || may(tagged, "role") || !may(tagged, "a") {
		t.Error("the session's tag doesn't stand for the role's")
	}
	if _, err := sqs.NewFromConfig(tagged).ListQueues(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if next, err := assume(tagged, sts.AssumeRoleInput{Tags: sessionTags("new=1")}, "first"); err != nil || aws.ToString(next.SourceIdentity) != "ann" {
		t.Errorf("a chained session: %v %v", next, err)
	} else if s := session(p, next.Credentials); may(s, "role") || !may(s, "a") {
		t.Error("a transitive tag isn't handed on")
	}
	for name, c := range map[string]struct {
		by   aws.Config
		role string
		in   sts.AssumeRoleInput
		want string
	}{
		"tags without leave":             {untagged, "plain", sts.AssumeRoleInput{Tags: sessionTags("team=a")}, "AccessDenied"},
		"an identity without leave":      {untagged, "plain", sts.AssumeRoleInput{SourceIdentity: aws.String("ann")}, "AccessDenied"},
		"handed on without leave":        {tagged, "plain", sts.AssumeRoleInput{}, "AccessDenied"},
		"neither":                        {untagged, "plain", sts.AssumeRoleInput{}, ""},
		"the tag that is asked for":      {untagged, "only-a", sts.AssumeRoleInput{Tags: sessionTags("team=a")}, ""},
		"another":                        {untagged, "only-a", sts.AssumeRoleInput{Tags: sessionTags("team=b")}, "AccessDenied"},
		"the identity that is asked for": {untagged, "of-ann", sts.AssumeRoleInput{SourceIdentity: aws.String("ann")}, ""},
		"another identity":               {untagged, "of-ann", sts.AssumeRoleInput{SourceIdentity: aws.String("bob")}, "AccessDenied"},
		"an identity that is kept":       {tagged, "first", sts.AssumeRoleInput{SourceIdentity: aws.String("ann")}, ""},
		"an identity that is changed":    {tagged, "first", sts.AssumeRoleInput{SourceIdentity: aws.String("bob")}, "ValidationError"},
		"a tag that is handed on":        {tagged, "first", sts.AssumeRoleInput{Tags: sessionTags("TEAM=b")}, "InvalidParameterValue"},
		"a tag that isn't":               {tagged, "first", sts.AssumeRoleInput{Tags: sessionTags("other=c")}, ""},
		"transitive without a tag":       {owner, "first", sts.AssumeRoleInput{TransitiveTagKeys: []string{"x"}}, "InvalidParameterValue"},
		"a tag twice":                    {owner, "first", sts.AssumeRoleInput{Tags: sessionTags("a=1", "A=2")}, "InvalidParameterValue"},
		"a reserved tag":                 {owner, "first", sts.AssumeRoleInput{Tags: sessionTags("aws:a=1")}, "InvalidParameterValue"},
		"MFA":                            {owner, "first", sts.AssumeRoleInput{SerialNumber: aws.String("123456789")}, "ValidationError"},
	} {
		if _, err := assume(c.by, c.in, c.role); code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestTrustIsNeeded: whoever may assume all roles by its own policies still needs the trust of each.
func TestTrustIsNeeded(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "caller", `{"Effect": "Allow", "Action": "sts:*", "Resource": "*"}`)
	_, err := p.IAM.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("other"), AssumeRolePolicyDocument: aws.String(
		`{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sts.NewFromConfig(asTask(t, p, "caller")).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(roleARNs + "other"), RoleSessionName: aws.String("mine"),
	})
	if code(err) != "AccessDenied" {
		t.Errorf("got %v", err)
	}
}
