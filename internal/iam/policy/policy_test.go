package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestMalformedDocuments(t *testing.T) {
	const syntaxErrors = "Syntax errors in policy."
	statement := func(rest string) string {
		return `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", ` + rest + `}]}`
	}
	for _, c := range []struct {
		name     string
		kind     Kind
		document string
		want     string // the message; "" if the document is right
	}{
		{"whole", Identity, statement(`"Sid": "a1", "Action": ["s3:Get*"], "Resource": "arn:aws:s3:::b/*"`), ""},
		{"no version", Identity, `{"Statement": {"Effect": "Deny", "NotAction": "iam:*", "NotResource": ["*"]}}`, ""},
		{"old version", Identity, `{"Version": "2008-10-17", "Id": "x", "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}`, ""},
		{"other version", Identity, `{"Version": "2012-10-18", "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}`, syntaxErrors},
		{"empty", Identity, ``, syntaxErrors},
		{"cut", Identity, `{"Statement": [`, syntaxErrors},
		{"trust cut", Trust, `{"Statement": [`, "This policy contains invalid Json"},
		{"two documents", Identity, statement(`"Action": "*", "Resource": "*"`) + `{}`, syntaxErrors},
		{"a name twice", Identity, statement(`"Action": "a:b", "Action": "*", "Resource": "*"`), syntaxErrors},
		{"no statement", Identity, `{"Version": "2012-10-17"}`, syntaxErrors},
		{"empty list", Identity, `{"Statement": []}`, syntaxErrors},
		{"a number", Identity, `{"Statement": [1]}`, syntaxErrors},
		{"unknown element", Identity, statement(`"Action": "*", "Resource": "*", "Extra": 1`), syntaxErrors},
		{"no effect", Identity, `{"Statement": {"Action": "*", "Resource": "*"}}`, syntaxErrors},
		{"no action", Identity, statement(`"Resource": "*"`), "Policy statement must contain actions."},
		{"empty action", Identity, statement(`"Action": [], "Resource": "*"`), "Policy statement must contain actions."},
		{"both actions", Identity, statement(`"Action": "*", "NotAction": "*", "Resource": "*"`), syntaxErrors},
		{"no vendor", Identity, statement(`"Action": "GetObject", "Resource": "*"`),
			"Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."},
		{"two colons", Identity, statement(`"Action": "s3:a:b", "Resource": "*"`), "Actions/Condition can contain only one colon."},
		{"bad vendor", Identity, statement(`"Action": "s_3:a", "Resource": "*"`), "Vendor s_3 is not valid"},
		{"no resource", Identity, statement(`"Action": "*"`), "Policy statement must contain resources."},
		{"name as resource", Identity, statement(`"Action": "*", "Resource": "bucket"`), `Resource bucket must be in ARN format or "*".`},
		{"short ARN", Identity, statement(`"Action": "*", "Resource": "arn:aws:s3"`), "The policy failed legacy parsing"},
		{"partition", Identity, statement(`"Action": "*", "Resource": "arn:asw:s3:::b"`),
			`Partition "asw" is not valid for resource "arn:asw:s3:::b".`},
		{"principal", Identity, statement(`"Action": "*", "Resource": "*", "Principal": "*"`),
			"Policy document should not specify a principal."},
		{"condition", Identity, statement(`"Action": "*", "Resource": "*", "Condition": {"StringIs": {"aws:x": "y"}}`),
			"Invalid Condition type : StringIs."},
		{"ids", Identity, `{"Statement": [{"Sid": "a", "Effect": "Deny", "Action": "*", "Resource": "*"},
			{"Sid": "a", "Effect": "Deny", "Action": "*", "Resource": "*"}]}`, "Statement IDs (SID) in a single policy must be unique."},
		{"id with a blank", Identity, statement(`"Sid": "a b", "Action": "*", "Resource": "*"`),
			"Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]*"},
		{"no service", Trust, statement(`"Action": "sts:AssumeRole", "Principal": {"Service": "nonsense"}`), `Invalid principal in policy: "SERVICE":"nonsense"`},
		{"no service of AWS's", Trust, statement(`"Action": "sts:AssumeRole", "Principal": {"Service": "ecs.example.com"}`), `Invalid principal in policy: "SERVICE":"ecs.example.com"`},
		{"a service in a region", Trust, statement(`"Action": "sts:AssumeRole", "Principal": {"Service": "states.us-east-1.amazonaws.com"}`), ""},
		{"trust", Trust, statement(`"Action": "sts:AssumeRole", "Principal": {"Service": ["ecs-tasks.amazonaws.com"], "AWS": "000000000000"}`), ""},
		{"trust without principal", Trust, statement(`"Action": "sts:AssumeRole"`), "Missing required field Principal"},
		{"trust with resource", Trust, statement(`"Action": "sts:AssumeRole", "Principal": "*", "Resource": "*"`), "Has prohibited field Resource"},
		{"trust of others", Trust, statement(`"Action": "s3:*", "Principal": "*"`), "AssumeRole policy may only specify STS AssumeRole actions."},
		{"trust in nobody", Trust, statement(`"Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::0:user/x"}`),
			`Invalid principal in policy: "AWS":"arn:aws:iam::0:user/x"`},
		{"bucket", Resource, statement(`"Action": "s3:*", "Principal": "*", "Resource": "arn:aws:s3:::b"`), ""},
		{"repository", Resource, statement(`"Action": "ecr:*", "Principal": {"AWS": "*"}`), ""},
		{"too long", Identity, strings.Repeat(" ", MaxDocument+1), syntaxErrors},
		{"deep", Identity, strings.Repeat(`{"Statement":`, 5000), syntaxErrors},
	} {
		_, err := Check(c.kind, c.document)
		var m *Malformed
		if got := ""; errors.As(err, &m) {
			if got = m.Message; got != c.want {
				t.Errorf("%s: %s, want %q", c.name, got, c.want)
			}
		} else if c.want != "" || err != nil {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestStoredPoliciesStay: a policy that was stored when services could have any domain means what it did, all its statements.
func TestStoredPoliciesStay(t *testing.T) {
	const document = `{"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": ["ci.example.com", "ecs.amazonaws.com"]}},
		{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::000000000000:user/ann"}}]}`
	if _, err := Check(Trust, document); err == nil {
		t.Error("it can be put anew")
	}
	p := must(t, Trust, document)
	for _, c := range []struct {
		who  Principal
		want Effect
	}{
		{Principal{Service: "ci.example.com"}, Allowed},
		{Principal{Service: "ecs.amazonaws.com"}, Allowed},
		{Principal{Service: "ec2.amazonaws.com"}, ImplicitDeny},
		{Principal{ARN: "arn:aws:iam::000000000000:user/ann"}, Allowed},
		{Principal{ARN: "arn:aws:iam::000000000000:user/bob"}, ImplicitDeny},
	} {
		if got := Evaluate(Request{Principal: c.who, Action: "sts:AssumeRole"}, Policies{Resource: p}).Effect; got != c.want {
			t.Errorf("%+v: %v, want %v", c.who, got, c.want)
		}
	}
}

func TestStatementsAreWhereTheyAre(t *testing.T) {
	const document = "{\"Statement\": [ {\"Effect\":\"Allow\",\"Action\":\"*\",\"Resource\":\"*\"} ,\n" +
		"  {\"Effect\":\"Deny\",\"Action\":\"*\",\"Resource\":\"*\"}]}"
	p := must(t, Identity, document)
	for i, want := range []string{`{"Effect":"Allow","Action":"*","Resource":"*"}`, `{"Effect":"Deny","Action":"*","Resource":"*"}`} {
		if got := document[p.Statements[i].Start:p.Statements[i].End]; got != want {
			t.Errorf("statement %d is %q", i, got)
		}
	}
}

func TestKeys(t *testing.T) {
	p := must(t, Identity, identity("Allow", `"Action": "*", "Resource": "arn:aws:s3:::${aws:username}${*}/${aws:PrincipalTag/a, 'b'}",
		"Condition": {"StringLike": {"s3:prefix": "${AWS:UserName}/${aws:userid}"}, "Null": {"aws:TagKeys": true}}`))
	want := []string{"aws:username", "aws:PrincipalTag/a", "aws:TagKeys", "s3:prefix", "aws:userid"}
	if got := p.Keys(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func must(t testing.TB, kind Kind, document string) *Policy {
	t.Helper()
	p, err := Parse(kind, document)
	if err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return p
}

const (
	account = "arn:aws:iam::111122223333:root"
	carlos  = "arn:aws:iam::111122223333:user/carlossalazar"
	worker  = "arn:aws:iam::111122223333:role/worker"
	session = "arn:aws:sts::111122223333:assumed-role/worker/job"
)

// identity returns a policy of one statement.
func identity(effect, rest string) string {
	return `{"Version": "2012-10-17", "Statement": {"Effect": "` + effect + `", ` + rest + `}}`
}

// TestMatching asks one statement that allows about one request: AWS's examples of its elements, and their edges.
func TestMatching(t *testing.T) {
	const all = `"Action": "*", "Resource": "*"`
	when := func(condition string) string { return all + `, "Condition": {` + condition + `}` }
	for _, c := range []struct {
		name      string
		statement string
		action    string
		resource  string
		context   Context
		want      bool
	}{
		{"one action", `"Action": "ec2:StartInstances", "Resource": "*"`, "ec2:StartInstances", "*", nil, true},
		{"case of actions", `"Action": "IAM:listAccessKeys", "Resource": "*"`, "iam:ListAccessKeys", "*", nil, true},
		{"another service", `"Action": "ec2:*", "Resource": "*"`, "ecs:RunTask", "*", nil, false},
		{"several", `"Action": ["sqs:SendMessage", "iam:*AccessKey*"], "Resource": "*"`, "iam:UpdateAccessKey", "*", nil, true},
		{"one letter", `"Action": "s3:Get?bject", "Resource": "*"`, "s3:GetObject", "*", nil, true},
		{"no letter", `"Action": "s3:Get?Object", "Resource": "*"`, "s3:GetObject", "*", nil, false},
		{"NotAction", `"NotAction": "iam:*", "Resource": "*"`, "s3:GetObject", "*", nil, true},
		{"NotAction names it", `"NotAction": ["iam:*", "s3:*"], "Resource": "*"`, "s3:GetObject", "*", nil, false},
		{"resource", `"Action": "*", "Resource": "arn:aws:s3:::b/*"`, "s3:GetObject", "arn:aws:s3:::b/a/c", nil, true},
		{"case of resources", `"Action": "*", "Resource": "arn:aws:s3:::B/*"`, "s3:GetObject", "arn:aws:s3:::b/a", nil, false},
		{"bucket isn't its objects", `"Action": "*", "Resource": "arn:aws:s3:::b/*"`, "s3:ListBucket", "arn:aws:s3:::b", nil, false},
		{"NotResource", `"Action": "*", "NotResource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]`, "s3:GetObject", "arn:aws:s3:::c/x", nil, true},
		{"NotResource names it", `"Action": "*", "NotResource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]`, "s3:GetObject", "arn:aws:s3:::b/x", nil, false},

		{"variable", `"Action": "*", "Resource": "arn:aws:s3:::b/${aws:username}/*"`, "s3:x", "arn:aws:s3:::b/ann/x", Context{"aws:username": {"ann"}}, true},
		{"variable's wildcards are letters", `"Action": "*", "Resource": "arn:aws:s3:::b/${aws:username}"`, "s3:x", "arn:aws:s3:::b/ann", Context{"aws:username": {"*"}}, false},
		{"variable without value", `"Action": "*", "Resource": "arn:aws:s3:::b/${aws:username}*"`, "s3:x", "arn:aws:s3:::b/ann", nil, false},
		{"not the variable without value", `"Action": "*", "NotResource": "arn:aws:s3:::b/${aws:username}"`, "s3:x", "arn:aws:s3:::b/ann", nil, false},
		{"default", `"Action": "*", "Resource": "arn:aws:s3:::b-${aws:PrincipalTag/team, 'company-wide'}"`, "s3:x", "arn:aws:s3:::b-company-wide", nil, true},
		{"default unused", `"Action": "*", "Resource": "arn:aws:s3:::b-${aws:PrincipalTag/team, 'company-wide'}"`, "s3:x", "arn:aws:s3:::b-yellow", Context{"aws:principaltag/team": {"yellow"}}, true},
		{"literal star", `"Action": "*", "Resource": "arn:aws:s3:::b/${*}"`, "s3:x", "arn:aws:s3:::b/x", nil, false},
		{"the star itself", `"Action": "*", "Resource": "arn:aws:s3:::b/${*}${?}${$}"`, "s3:x", "arn:aws:s3:::b/*?$", nil, true},

		{"StringEquals", when(`"StringEquals": {"aws:UserAgent": ["x", "y"]}`), "a:b", "*", Context{"aws:useragent": {"y"}}, true},
		{"StringEquals has no wildcards", when(`"StringEquals": {"aws:a": "*"}`), "a:b", "*", Context{"aws:a": {"y"}}, false},
		{"StringEquals without key", when(`"StringEquals": {"aws:a": "y"}`), "a:b", "*", nil, false},
		{"StringNotEquals without key", when(`"StringNotEquals": {"aws:a": "y"}`), "a:b", "*", nil, true},
		{"StringNotEquals none of", when(`"StringNotEquals": {"aws:a": ["x", "y"]}`), "a:b", "*", Context{"aws:a": {"y"}}, false},
		{"StringEqualsIgnoreCase", when(`"StringEqualsIgnoreCase": {"aws:a": "JOHN"}`), "a:b", "*", Context{"aws:a": {"john"}}, true},
		{"StringLike", when(`"StringLike": {"s3:prefix": ["", "home/", "home/${aws:username}/*"]}`), "a:b", "*", Context{"s3:prefix": {"home/ann/x"}, "aws:username": {"ann"}}, true},
		{"StringNotLike", when(`"StringNotLike": {"s3:prefix": "home/*"}`), "a:b", "*", Context{"s3:prefix": {"home/x"}}, false},
		{"IfExists without key", when(`"StringLikeIfExists": {"ec2:InstanceType": ["t1.*", "m3.*"]}`), "a:b", "*", nil, true},
		{"IfExists with key", when(`"StringLikeIfExists": {"ec2:InstanceType": ["t1.*", "m3.*"]}`), "a:b", "*", Context{"ec2:instancetype": {"p3.2xlarge"}}, false},
		{"NumericLessThanEquals", when(`"NumericLessThanEquals": {"s3:max-keys": "10"}`), "a:b", "*", Context{"s3:max-keys": {"10"}}, true},
		{"a number without quotes", when(`"NumericGreaterThan": {"s3:max-keys": 10.5}`), "a:b", "*", Context{"s3:max-keys": {"10"}}, false},
		{"no number", when(`"NumericLessThan": {"s3:max-keys": "10"}`), "a:b", "*", Context{"s3:max-keys": {"few"}}, false},
		{"DateGreaterThan", when(`"DateGreaterThan": {"aws:TokenIssueTime": "2020-01-01T00:00:01Z"}`), "a:b", "*", Context{"aws:tokenissuetime": {"2020-01-01T00:00:02Z"}}, true},
		{"DateLessThan in seconds", when(`"DateLessThan": {"aws:CurrentTime": "2020-01-01"}`), "a:b", "*", Context{"aws:currenttime": {"1577836800"}}, false},
		{"Bool", when(`"Bool": {"aws:SecureTransport": false}`), "a:b", "*", Context{"aws:securetransport": {"false"}}, true},
		{"BoolIfExists", when(`"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}`), "a:b", "*", nil, true},
		{"BinaryEquals", when(`"BinaryEquals": {"a:key": "QmluYXJ5"}`), "a:b", "*", Context{"a:key": {"QmluYXJ5"}}, true},
		{"IpAddress", when(`"IpAddress": {"aws:SourceIp": ["203.0.113.0/24", "2001:DB8:1234:5678::/64"]}`), "a:b", "*", Context{"aws:sourceip": {"2001:db8:1234:5678::7"}}, true},
		{"NotIpAddress", when(`"NotIpAddress": {"aws:SourceIp": "203.0.113.7"}`), "a:b", "*", Context{"aws:sourceip": {"203.0.113.7"}}, false},
		{"ArnLike", when(`"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:111122223333:t*"}`), "a:b", "*", Context{"aws:sourcearn": {"arn:aws:sns:eu-west-1:111122223333:topic"}}, true},
		{"ArnLike part by part", when(`"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:topic"}`), "a:b", "*", Context{"aws:sourcearn": {"arn:aws:sns:eu-west-1:111122223333:topic"}}, false},
		{"ArnNotEquals", when(`"ArnNotEquals": {"aws:SourceArn": "arn:aws:s3:::b"}`), "a:b", "*", Context{"aws:sourcearn": {"arn:aws:s3:::c"}}, true},
		{"Null: absent", when(`"Null": {"aws:TokenIssueTime": "true"}`), "a:b", "*", nil, true},
		{"Null: present", when(`"Null": {"aws:TokenIssueTime": "false"}`), "a:b", "*", nil, false},
		{"ForAllValues", when(`"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`), "a:b", "*", Context{"aws:tagkeys": {"a", "c"}}, false},
		{"ForAllValues without key", when(`"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}`), "a:b", "*", nil, true},
		{"ForAnyValue", when(`"ForAnyValue:StringEquals": {"aws:TagKeys": ["a", "b"]}`), "a:b", "*", Context{"aws:tagkeys": {"c", "b"}}, true},
		{"ForAnyValue without key", when(`"ForAnyValue:StringEqualsIfExists": {"aws:TagKeys": ["a", "b"]}`), "a:b", "*", nil, false},
		{"ForAllValues not", when(`"ForAllValues:StringNotEquals": {"aws:TagKeys": "a"}`), "a:b", "*", Context{"aws:tagkeys": {"b", "a"}}, false},
		{"ForAnyValue not", when(`"ForAnyValue:StringNotLike": {"aws:TagKeys": "a*"}`), "a:b", "*", Context{"aws:tagkeys": {"b", "a"}}, true},
		{"two operators", when(`"Bool": {"aws:a": "true"}, "StringEquals": {"aws:b": "x"}`), "a:b", "*", Context{"aws:a": {"true"}, "aws:b": {"y"}}, false},
		{"two keys", when(`"StringEquals": {"aws:a": "x", "aws:B": "x"}`), "a:b", "*", Context{"aws:a": {"x"}, "aws:b": {"x"}}, true},
	} {
		r := Request{Principal: Principal{ARN: carlos}, Action: c.action, Resource: c.resource, Context: c.context}
		d := Evaluate(r, Policies{Identity: []*Policy{must(t, Identity, identity("Allow", c.statement))}})
		if got := d.Effect == Allowed; got != c.want {
			t.Errorf("%s: allowed: %v, want %v", c.name, got, c.want)
		}
	}
	old := must(t, Identity, `{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "arn:aws:s3:::${aws:username}"}}`)
	r := Request{Principal: Principal{ARN: carlos}, Action: "s3:x", Resource: "arn:aws:s3:::${aws:username}", Context: Context{"aws:username": {"a"}}}
	if d := Evaluate(r, Policies{Identity: []*Policy{old}}); d.Effect != Allowed {
		t.Error("a document of 2008 has no variables")
	}
}

// TestOrderOfEvaluation follows AWS's "Policy evaluation for requests within a single account" and what it says of boundaries and sessions.
func TestOrderOfEvaluation(t *testing.T) {
	const nothing = `"NotAction": "*", "Resource": "*"`
	const everything = `"Action": "*", "Resource": "*"`
	to := func(effect, principal string) string {
		return identity(effect, `"Action": "s3:*", "Resource": "*", "Principal": `+principal)
	}
	aws := func(arn string) string { return `{"AWS": "` + arn + `"}` }
	for _, c := range []struct {
		name      string
		principal Principal
		identity  string
		resource  string
		boundary  string
		session   string
		want      string // Allowed, or the reason
	}{
		{"nothing", Principal{ARN: carlos}, "", "", "", "", "because no identity-based policy allows the s3:GetObject action"},
		{"identity", Principal{ARN: carlos}, identity("Allow", everything), "", "", "", "Allowed"},
		{"identity denies", Principal{ARN: carlos}, identity("Deny", everything), to("Allow", aws(carlos)), "", "", "with an explicit deny in an identity-based policy"},
		{"resource", Principal{ARN: carlos}, "", to("Allow", aws(carlos)), "", "", "Allowed"},
		{"resource denies", Principal{ARN: carlos}, identity("Allow", everything), to("Deny", `"*"`), "", "", "with an explicit deny in a resource-based policy"},
		{"resource allows another", Principal{ARN: carlos}, "", to("Allow", aws(worker)), "", "", "because no identity-based policy allows the s3:GetObject action"},
		{"resource allows the account", Principal{ARN: carlos}, "", to("Allow", aws(account)), "", "", "because no identity-based policy allows the s3:GetObject action"},
		{"boundary allows nothing", Principal{ARN: carlos}, identity("Allow", everything), "", identity("Allow", nothing), "", "because no permissions boundary allows the s3:GetObject action"},
		{"boundary denies", Principal{ARN: carlos}, identity("Allow", everything), "", identity("Deny", everything), "", "with an explicit deny in a permissions boundary"},
		{"boundary alone", Principal{ARN: carlos}, "", "", identity("Allow", everything), "", "because no identity-based policy allows the s3:GetObject action"},
		{"resource names the user behind a boundary", Principal{ARN: carlos}, "", to("Allow", aws(carlos)), identity("Allow", nothing), "", "Allowed"},
		{"session allows less", Principal{ARN: session, Role: worker}, identity("Allow", everything), "", "", identity("Allow", nothing), "because no session policy allows the s3:GetObject action"},
		{"session denies", Principal{ARN: session, Role: worker}, identity("Allow", everything), "", "", identity("Deny", everything), "with an explicit deny in a session policy"},
		{"resource names the role", Principal{ARN: session, Role: worker}, "", to("Allow", aws(worker)), "", "", "Allowed"},
		{"resource names the role behind a boundary", Principal{ARN: session, Role: worker}, "", to("Allow", aws(worker)), identity("Allow", nothing), "", "because no permissions boundary allows the s3:GetObject action"},
		{"resource names the role, session less", Principal{ARN: session, Role: worker}, "", to("Allow", aws(worker)), "", identity("Allow", nothing), "because no session policy allows the s3:GetObject action"},
		{"resource names the session", Principal{ARN: session, Role: worker}, "", to("Allow", aws(session)), identity("Allow", nothing), identity("Allow", nothing), "Allowed"},
		{"root", Principal{ARN: account}, "", "", "", "", "Allowed"},
		{"root denied by a bucket", Principal{ARN: account}, "", to("Deny", `"*"`), "", "", "with an explicit deny in a resource-based policy"},
		{"another account, both allow", Principal{ARN: "arn:aws:iam::444455556666:user/bob"}, identity("Allow", everything), to("Allow", aws("444455556666")), "", "", "Allowed"},
		{"another account, only theirs", Principal{ARN: "arn:aws:iam::444455556666:user/bob"}, identity("Allow", everything), "", "", "", "because no resource-based policy allows the s3:GetObject action"},
		{"another account, only ours", Principal{ARN: "arn:aws:iam::444455556666:user/bob"}, "", to("Allow", `"*"`), "", "", "because no identity-based policy allows the s3:GetObject action"},
		{"anonymous", Principal{}, "", to("Allow", `"*"`), "", "", "Allowed"},
		{"anonymous, others allowed", Principal{}, "", to("Allow", aws(account)), "", "", "because no resource-based policy allows the s3:GetObject action"},
		{"service", Principal{Service: "ecs-tasks.amazonaws.com"}, "", to("Allow", `{"Service": "ecs-tasks.amazonaws.com"}`), "", "", "Allowed"},
		{"another service", Principal{Service: "ec2.amazonaws.com"}, "", to("Allow", `{"Service": "ecs-tasks.amazonaws.com"}`), "", "", "because no resource-based policy allows the s3:GetObject action"},
	} {
		p := Policies{}
		if c.identity != "" {
			p.Identity = append(p.Identity, must(t, Identity, c.identity))
		}
		if c.resource != "" {
			p.Resource = must(t, Resource, c.resource)
		}
		if c.boundary != "" {
			p.Boundary = must(t, Identity, c.boundary)
		}
		if c.session != "" {
			p.Session = append(p.Session, must(t, Identity, c.session))
		}
		r := Request{Principal: c.principal, Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k", ResourceAccount: "111122223333"}
		d := Evaluate(r, p)
		got := d.Reason(r.Action)
		if d.Effect == Allowed {
			got = "Allowed"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNotPrincipal(t *testing.T) {
	not := func(effect, list string) *Policy {
		return must(t, Resource, identity(effect, `"Action": "s3:*", "Resource": "*", "NotPrincipal": {"AWS": [`+list+`]}`))
	}
	for _, c := range []struct {
		name   string
		who    Principal
		policy *Policy
		want   Effect
	}{
		{"user and account", Principal{ARN: carlos}, not("Deny", `"`+carlos+`", "`+account+`"`), Allowed},
		{"user alone", Principal{ARN: carlos}, not("Deny", `"`+carlos+`"`), ExplicitDeny},
		{"somebody else", Principal{ARN: carlos}, not("Deny", `"`+worker+`", "`+account+`"`), ExplicitDeny},
		{"session, role and account", Principal{ARN: session, Role: worker}, not("Deny", `"`+session+`", "`+worker+`", "`+account+`"`), Allowed},
		{"session without role", Principal{ARN: session, Role: worker}, not("Deny", `"`+session+`", "`+account+`"`), ExplicitDeny},
	} {
		r := Request{Principal: c.who, Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k"}
		all := must(t, Identity, identity("Allow", `"Action": "*", "Resource": "*"`))
		if d := Evaluate(r, Policies{Identity: []*Policy{all}, Resource: c.policy}); d.Effect != c.want {
			t.Errorf("%s: %v, want %v", c.name, d.Effect, c.want)
		}
	}
	r := Request{Principal: Principal{ARN: carlos}, Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k"}
	if d := Evaluate(r, Policies{Resource: not("Allow", `"`+carlos+`"`)}); d.Effect != ImplicitDeny {
		t.Error("whom an Allow leaves out is not allowed")
	}
	if d := Evaluate(r, Policies{Resource: not("Allow", `"`+worker+`"`)}); d.Effect != Allowed {
		t.Error("an Allow of all but one allows the others")
	}
}

// TestWildcardsAreNotExponential: forty stars against a text that doesn't fit would never end by trying each.
func TestWildcardsAreNotExponential(t *testing.T) {
	if wild(strings.Repeat("*a", 2000) + "b").matches(strings.Repeat("a", 20_000)) {
		t.Error("a text without b matches a pattern that ends with it")
	}
}
