package wire

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHosts: an unsigned request belongs to the service whose host it names, whatever is in the bucket's name and the path.
func TestHosts(t *testing.T) {
	h, err := New(Options{}, STS(nil), SQS(nil), S3(nil), ECR(nil), ECS(nil))
	if err != nil {
		t.Fatal(err)
	}
	h.Handle("/v2/", http.NotFoundHandler())
	for host, want := range map[string]string{
		"sqs.us-east-1.amazonaws.com":                  "sqs",
		"queue.amazonaws.com":                          "sqs",
		"eu-west-1.queue.amazonaws.com":                "sqs",
		"sts.amazonaws.com":                            "sts",
		"sts.us-east-1.amazonaws.com:443":              "sts",
		"ecs-t-1.us-east-1.amazonaws.com":              "ecs",
		"api.ecr.us-east-1.amazonaws.com":              "ecr",
		"000000000000.dkr.ecr.us-east-1.amazonaws.com": "ecr",
		"s3.amazonaws.com":                             "s3",
		"sqs.s3.amazonaws.com":                         "s3",
		"sqs.s3.us-east-1.amazonaws.com":               "s3",
		"dynamodb.us-east-1.amazonaws.com":             "",
		"x.sqs.us-east-1.amazonaws.com":                "",
	} {
		r := httptest.NewRequest("GET", "http://"+host+"/v2/key", nil)
		got := ""
		if api := h.apiOf(r); api != nil {
			got = api.Name
		}
		if got != want {
			t.Errorf("%s is %q's", host, got)
		}
		if isREST := h.restOf(r) != nil; isREST != (want == "s3") {
			t.Errorf("%s is S3's: %v", host, isREST)
		}
	}
}
