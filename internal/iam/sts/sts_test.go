package sts

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

const (
	arns = "arn:aws:iam::000000000000:"
	job  = "arn:aws:sts::000000000000:assumed-role/caller/job"
	task = "arn:aws:ecs:us-east-1:000000000000:task/default/a"
)

// TestWhoMayAssumeRoles: the owner may, a role's session if the trust policy and its own policies allow it. What a task assumes is still the
// task's.
func TestWhoMayAssumeRoles(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	owner := accounttest.New(now)
	issuer, err := NewIssuer(bytes.Repeat([]byte{7}, 32), owner)
	if err != nil {
		t.Fatal(err)
	}
	roles := iam.New(statetest.Open(t), iam.Options{Account: owner})
	create := func(name, trust string) {
		t.Helper()
		_, err := roles.CreateRole(t.Context(), &awsiam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(
			`{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": ` + trust + `}}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	create("caller", `{"Service": "ecs-tasks.amazonaws.com"}`)
	create("forcaller", `{"AWS": "`+arns+`role/caller"}`)
	create("foraccount", `{"AWS": "000000000000"}`)
	create("forservice", `{"Service": "ec2.amazonaws.com"}`)
	create("forid", `{"AWS": "`+arns+`role/caller"}, "Condition": {"StringEquals": {"sts:ExternalId": "abc"}}`)
	s := New(Options{Account: owner, Issuer: issuer, Roles: roles})
	caller := call.Identity{Principal: job, Role: arns + "role/caller"}
	byName := call.Identity{Principal: "arn:aws:sts::000000000000:assumed-role/name/1", Role: arns + "role/name"}
	for _, c := range []struct {
		name string
		who  call.Identity
		in   sts.AssumeRoleInput
		want string // the code, "" if the role is assumed
	}{
		{"owner", call.Identity{}, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forservice")}, ""},
		{"root", call.Identity{Principal: arns + "root"}, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forservice")}, ""},
		{"named", caller, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forcaller")}, ""},
		{"account named, no policy of its own", caller, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/foraccount")}, "AccessDenied"},
		{"account named, role a name alone", byName, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/foraccount")}, ""},
		{"not named", caller, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forservice")}, "AccessDenied"},
		{"without the external id", caller, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forid")}, "AccessDenied"},
		{"with it", caller, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forid"), ExternalId: aws.String("abc")}, ""},
		{"a task, role a name alone", call.Identity{Principal: job, Role: arns + "role/name", Task: task}, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/other")}, ""},
		{"another account's", caller, sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::111122223333:role/x")}, "AccessDenied"},
		{"a name", caller, sts.AssumeRoleInput{RoleArn: aws.String("nothing-valid-in-here")}, "ValidationError"},
		{"no partition", caller, sts.AssumeRoleInput{RoleArn: aws.String("arn::iam::000000000000:role/x")}, "ValidationError"},
		{"no resource", caller, sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::000000000000:")}, "ValidationError"},
		{"too long", call.Identity{}, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forcaller"), DurationSeconds: aws.Int32(3601)}, "ValidationError"},
		{"too long for a session", byName, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/other"), DurationSeconds: aws.Int32(3601)}, "ValidationError"},
		{"a policy", call.Identity{}, sts.AssumeRoleInput{RoleArn: aws.String(arns + "role/forcaller"), Policy: aws.String("{}")}, "MalformedPolicyDocument"},
	} {
		c.in.RoleSessionName = aws.String("mine")
		out, err := s.AssumeRole(call.With(t.Context(), call.Call{Identity: c.who}), &c.in)
		var refused smithy.APIError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &refused) || refused.ErrorCode() != c.want):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		case c.want == "":
			got, err := issuer.Lookup(*out.Credentials.AccessKeyId, *out.Credentials.SessionToken)
			if err != nil || got.Role != *c.in.RoleArn || got.Task != c.who.Task || got.Arn != *out.AssumedRoleUser.Arn || !got.Expires.Equal(now().Add(time.Hour)) {
				t.Errorf("%s: %+v %v", c.name, got, err)
			}
		}
	}
	out, err := s.GetCallerIdentity(call.With(t.Context(), call.Call{Identity: caller}), nil)
	if err != nil || *out.Arn != job || *out.UserId != roles.RoleID(arns+"role/caller")+":job" {
		t.Errorf("got %v %v", out, err)
	}
	made, err := roles.CreateUser(t.Context(), &awsiam.CreateUserInput{UserName: aws.String("eve"), Path: aws.String("/team/")})
	if err != nil {
		t.Fatal(err)
	}
	for principal, want := range map[string]string{
		*made.User.Arn:   *made.User.UserId,
		arns + "root":    "000000000000",
		"":               "000000000000",
		arns + "user/no": "000000000000", // deleted meanwhile
	} {
		who := call.Identity{Principal: principal}
		out, err := s.GetCallerIdentity(call.With(t.Context(), call.Call{Identity: who}), nil)
		if err != nil || *out.UserId != want {
			t.Errorf("%s: got %v %v, want the id %s", principal, out, err, want)
		}
	}
}
