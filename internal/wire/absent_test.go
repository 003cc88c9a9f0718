package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/sign"
)

// TestAbsentServices: a service that isn't here is named, in the protocol in which its clients read errors.
func TestAbsentServices(t *testing.T) {
	h, err := New(Options{}, STS(nil), S3(nil), elb.API(nil))
	if err != nil {
		t.Fatal(err)
	}
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name, scope, method, path, header, value, body string
		want                                           []string
	}{
		{
			"a form", "sns", "POST", "/", "Content-Type", form, "Action=ListTopics&Version=2010-03-31",
			[]string{"<ErrorResponse", "<Code>NotImplemented</Code>", "Pintle has no Amazon SNS. docs/coverage.md lists what there is."},
		},
		{
			"JSON", "dynamodb", "POST", "/", sign.TargetHeader, "DynamoDB_20120810.ListTables", "{}",
			[]string{`{"__type":"NotImplementedException"`, "Pintle has no Amazon DynamoDB."},
		},
		{"paths and JSON", "lambda", "GET", "/2015-03-31/functions", "", "", "", []string{`{"__type"`, "Pintle has no AWS Lambda."}},
		{
			"paths and XML", "route53", "GET", "/2013-04-01/hostedzone", "", "", "",
			[]string{"<ErrorResponse", "Pintle has no Amazon Route 53."},
		},
		{
			"CBOR", "arc-region-switch", "POST", "/service/ArcRegionSwitch/operation/ListPlans", smithyHeader, "rpc-v2-cbor", "\xa0",
			[]string{"NotImplementedException", "Pintle has no service arc-region-switch."},
		},
		{
			"a version", "elasticloadbalancing", "POST", "/", "Content-Type", form, "Action=DescribeLoadBalancers&Version=2012-06-01",
			[]string{"<ErrorResponse", "<Code>NotImplemented</Code>", "Pintle has no Elastic Load Balancing (classic)."},
		},
		{"unsigned", "", "POST", "/", sign.TargetHeader, "Foo.Bar", "{}", []string{"Foo.Bar", "UnknownOperationException"}},
		{"a wrong target", "sts", "POST", "/", sign.TargetHeader, "Foo.Bar", "{}", []string{"Foo.Bar", "UnknownOperationException"}},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if c.scope != "" {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/"+c.scope+
				"/aws4_request, SignedHeaders=host, Signature="+strings.Repeat("0", 64))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		for _, want := range c.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s, without %s", c.name, w.Code, w.Body, want)
			}
		}
		if strings.Contains(w.Body.String(), "Pintle has no") != (w.Code == http.StatusNotImplemented) {
			t.Errorf("%s: %d", c.name, w.Code)
		}
	}
}

// TestAbsentAreAbsent: no service that is here is in the list of those that aren't.
func TestAbsentAreAbsent(t *testing.T) {
	for _, api := range []model.API{
		ECS(nil), Logs(nil), CloudWatch(nil), EC2(nil), SQS(nil), STS(nil), ApplicationAutoScaling(nil), S3(nil), AutoScaling(nil),
		CloudFormation(nil),
		SecretsManager(nil),
		ECR(nil),
		SSM(nil),
	} {
		if title := absent[api.Name]; title != "" {
			t.Errorf("%s is here", title)
		}
	}
}
