package ecs

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/trace"
	"github.com/pintle/pintle/internal/wire/call"
)

// traced makes the transaction of a request that starts something, under a span of that request: what it does is one part, and what the
// journal takes another. do gets the span for what it starts, or "".
func (s *Service) traced(ctx context.Context, operation, part string, do func(tx *state.Tx, span string) error) error {
	c := call.From(ctx)
	request := s.opts.Tracer.Begin(operation, c.Traceparent, trace.Attribute{Name: "rpc.system", Value: "aws-api"},
		trace.Attribute{Name: "rpc.service", Value: "ECS"}, trace.Attribute{Name: "rpc.method", Value: operation}, trace.Attribute{Name: "aws.request_id", Value: c.RequestID})
	var began, done time.Time
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		began = time.Now()
		defer func() { done = time.Now() }()
		return do(tx, request.Context())
	})
	if !done.IsZero() {
		request.Add(part, began, done)
	}
	if err == nil {
		request.Add("journal commit", done, time.Now())
	}
	request.End(err)
	return err
}
