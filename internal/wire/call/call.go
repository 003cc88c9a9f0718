// Package call is what a service may know of the call that it answers: whose it is, and the request
// id under which it is logged. Wire puts it into the context and services take it out, so that
// neither needs to know the other. It holds no behaviour.
package call

import (
	"context"
	"math"
)

// Call is one API call.
type Call struct {
	RequestID   string
	Service     string // as signatures name it: "ecs"
	Operation   string // "RunTask"
	AccessKeyID string // as the request says, which is proof only where signatures are checked
	Principal   string // the ARN of who signed; empty where signatures are not checked
	Peer        string // the address that the call came from, where wire says it
}

// Zero is what wire makes of a 0 that a caller has sent for a number that the SDK's struct holds without a pointer, where the
// service tells a 0 from nothing: SDK's own clients cannot.
const Zero = math.MinInt32

// S3 is the Principal of what S3 does by itself: buckets' lifecycle rules.
const S3 = "s3.amazonaws.com"

type key struct{}

// With returns a context for answering c.
func With(ctx context.Context, c Call) context.Context { return context.WithValue(ctx, key{}, &c) }

// From returns the call that ctx belongs to; the zero Call outside of one.
func From(ctx context.Context) Call {
	if c, ok := ctx.Value(key{}).(*Call); ok {
		return *c
	}
	return Call{}
}
