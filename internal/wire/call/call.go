// Package call carries what a service may know about the call it answers, such as the caller and the request id. Wire puts it into the
// context and services take it out, so neither needs to know the other. It has no behavior.
package call

import (
	"context"
	"math"
	"net/http"

	"github.com/pintle/pintle/internal/awsname"
)

// Call is one API call.
type Call struct {
	RequestID   string
	Service     string // its name in signatures: "ecs"
	Operation   string // "RunTask"
	AccessKeyID string // as the request claims; proven only if signatures are checked
	Peer        string // the caller's address; empty for calls within the process
	Endpoint    string // the URL at which the caller reached us, without a path; empty for calls within the process
	Trace       string // the header X-Amzn-Trace-Id
	Traceparent string // the header traceparent, W3C's
	Form        bool   // a web page's form uploads the object that PutObject puts
	Via         string // the service in this process that makes the call for its caller, as aws:CalledVia has it; empty for all other calls
	Stack       string // the ID of the stack of which CloudFormation makes a resource by the call; empty for all other calls
	// Token is the same for a call that CloudFormation makes once more, because it was killed before it noted how the first ended. It's empty
	// for calls that have such a token among their parameters, and for all that come from outside.
	Token    string
	Identity // of the caller
}

// EndpointOf returns the URL at which a request reached us, as its Host header has it, or "" if the header is missing. What came for a name of
// AWS's came over TLS, which ended at whoever stands in for AWS.
func EndpointOf(r *http.Request) string {
	switch {
	case r.Host == "":
		return ""
	case r.TLS != nil || awsname.IsAWS(awsname.Fold(r.Host)):
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Zero stands for a 0 that a caller sent explicitly, in numbers that the SDK's struct holds without a pointer. Only services that tell 0
// from no value get it.
const Zero = math.MinInt32

// S3 is the Principal of S3's own actions: buckets' lifecycle rules.
const S3 = "s3.amazonaws.com"

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Call) context.Context { return context.WithValue(ctx, key{}, &c) }

// From returns the call in ctx, or the zero Call.
func From(ctx context.Context) Call {
	if c, ok := ctx.Value(key{}).(*Call); ok {
		return *c
	}
	return Call{}
}
