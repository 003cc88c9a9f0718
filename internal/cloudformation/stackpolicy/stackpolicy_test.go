package stackpolicy

import (
	"strings"
	"testing"
)

const open = `{"Effect":"Allow","Action":"Update:*","Principal":"*","Resource":"*"}`

func TestCheck(t *testing.T) {
	deny := func(rest string) string {
		return `{"Statement":[` + open + `,{"Effect":"Deny","Principal":"*",` + rest + `}]}`
	}
	for name, c := range map[string]struct {
		policy string
		do     Action
		id     string
		kind   string
		want   string // what the reason begins with
	}{
		"all is allowed":             {`{"Statement":` + open + `}`, Replace, "Queue", "AWS::SQS::Queue", ""},
		"nothing is allowed":         {`{"Statement":[` + strings.Replace(open, "Update:*", "Update:Modify", 1) + `]}`, Delete, "Queue", "AWS::SQS::Queue", "Action not allowed by stack policy"},
		"one resource is denied":     {deny(`"Action":"Update:*","Resource":"LogicalResourceId/Queue"`), Modify, "Queue", "AWS::SQS::Queue", "Action denied by stack policy: Statement [#2] does not allow [Update:Modify] for resource [LogicalResourceId/Queue]"},
		"another isn't":              {deny(`"Action":"Update:*","Resource":"LogicalResourceId/Queue"`), Modify, "Queue2", "AWS::SQS::Queue", ""},
		"stars in names":             {deny(`"Action":["Update:Replace","Update:Delete"],"Resource":"LogicalResourceId/Q*e"`), Delete, "Queue", "AWS::SQS::Queue", "Action denied"},
		"another action":             {deny(`"Action":["Update:Replace","Update:Delete"],"Resource":"LogicalResourceId/Q*e"`), Modify, "Queue", "AWS::SQS::Queue", ""},
		"all but one":                {deny(`"Action":"Update:*","NotResource":"LogicalResourceId/Queue"`), Modify, "Bucket", "AWS::S3::Bucket", "Action denied"},
		"that one":                   {deny(`"Action":"Update:*","NotResource":"LogicalResourceId/Queue"`), Modify, "Queue", "AWS::SQS::Queue", ""},
		"all actions but one":        {deny(`"NotAction":"Update:Modify","Resource":"*"`), Replace, "Queue", "AWS::SQS::Queue", "Action denied"},
		"that action":                {deny(`"NotAction":"Update:Modify","Resource":"*"`), Modify, "Queue", "AWS::SQS::Queue", ""},
		"by type":                    {deny(`"Action":"Update:*","Resource":"*","Condition":{"StringEquals":{"ResourceType":["AWS::EC2::VPC","AWS::SQS::Queue"]}}`), Modify, "Queue", "AWS::SQS::Queue", "Action denied"},
		"by another type":            {deny(`"Action":"Update:*","Resource":"*","Condition":{"StringEquals":{"ResourceType":"AWS::SQS::*"}}`), Modify, "Queue", "AWS::SQS::Queue", ""},
		"by types with a star":       {deny(`"Action":"Update:*","Resource":"*","Condition":{"StringLike":{"ResourceType":"AWS::SQS::*"}}`), Modify, "Queue", "AWS::SQS::Queue", "Action denied"},
		"signs are only signs":       {deny(`"Action":"Update:*","Resource":"LogicalResourceId/Q.*"`), Modify, "Queue", "AWS::SQS::Queue", ""},
		"everybody in its long form": {`{"Statement":[` + strings.Replace(open, `"*"`, `{"AWS":"*"}`, 1) + `]}`, Modify, "Queue", "AWS::SQS::Queue", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Check(c.do, c.id, c.kind)
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for policy, want := range map[string]string{
		``:                                   "not JSON",
		`[]`:                                 "cannot unmarshal",
		`{}`:                                 "no Statement",
		`{"Statements":[]}`:                  "unknown field",
		`{"Statement":[{}]}`:                 "Effect",
		`{"Statement":[{"Effect":"Allow"}]}`: "Action or NotAction",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*"}]}`:                                                                       "Resource or NotResource",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*","Resource":"*"}]}`:                                                        "Principal",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*","Resource":"*","Principal":"me"}]}`:                                       "Principal",
		`{"Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*","Principal":"*"}]}`:                                            "unknown action",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*","Resource":"Queue","Principal":"*"}]}`:                                    "invalid resource",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*","Resource":"*","Principal":"*","Condition":{"Bool":{}}}]}`:                "unknown condition",
		`{"Statement":[{"Effect":"Allow","Action":"Update:*","Resource":"*","Principal":"*","Condition":{"StringEquals":{"a":"b"}}}]}`: "unknown condition key",
	} {
		if _, err := Parse(policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", policy, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"Statement":` + open + `}`)
	f.Add(`{"Statement":[{"Effect":"Deny","NotAction":"Update:Modify","NotResource":"LogicalResourceId/a*","Principal":{"AWS":"*"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err == nil {
			p.Check(Modify, "Queue", "AWS::SQS::Queue")
		}
	})
}
