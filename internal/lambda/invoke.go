package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The most bytes of a payload: of one whose answer is waited for, and of others. API_Invoke.
const (
	maxPayload      = 6 << 20
	maxEventPayload = 1 << 20
)

// ARNPrefix begins the ARNs of functions, whatever their region.
const ARNPrefix = "arn:aws:lambda:"

// Invoke runs a function and answers with what it returned, or has it run later.
func (s *Service) Invoke(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
	v, row, qualifier, err := s.read1(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	payload := in.Payload
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if err := checkInvocation(in, payload); err != nil {
		return nil, err
	}
	switch in.InvocationType {
	case types.InvocationTypeDryRun:
		return &lambda.InvokeOutput{StatusCode: 204}, nil
	case types.InvocationTypeEvent:
		return s.accept(ctx, *row.FunctionName, qualifier, payload)
	}
	f := v.Functions.Get(*row.FunctionName)
	w := s.work(v, f, row, qualifier, call.From(ctx).RequestID, payload)
	w.Context = aws.ToString(in.ClientContext)
	w.Trace = call.From(ctx).Trace
	w.Tail = in.LogType == types.LogTypeTail
	r, err := s.opts.Runner.Do(ctx, w)
	if err != nil {
		return nil, err
	}
	out := &lambda.InvokeOutput{StatusCode: 200, Payload: r.Payload, ExecutedVersion: row.Version}
	if r.Error != "" {
		out.FunctionError = &r.Error
	}
	if w.Tail {
		out.LogResult = aws.String(base64.StdEncoding.EncodeToString(r.Tail))
	}
	return out, nil
}

func checkInvocation(in *lambda.InvokeInput, payload []byte) error {
	most := maxPayload
	if in.InvocationType == types.InvocationTypeEvent {
		most = maxEventPayload
	}
	switch {
	case in.DurableExecutionName != nil:
		return invalid("DurableExecutionName: Pintle has no durable functions.")
	case in.TenantId != nil:
		return invalid("TenantId: Pintle has no tenants.")
	case len(payload) > most:
		return account.Refuse("RequestTooLargeException", "Request must be smaller than %d bytes for the InvokeFunction operation", most)
	case !json.Valid(payload): // decoding takes many times its memory
		var text any
		return account.Refuse("InvalidRequestContentException", "Could not parse request body into json: %v", json.Unmarshal(payload, &text))
	case !isClientContext(in.ClientContext):
		return account.Refuse("InvalidRequestContentException", "Client context must be a valid Base64-encoded JSON object.")
	}
	return nil
}

// isClientContext reports whether a client's context can be handed to a function; none can.
func isClientContext(text *string) bool {
	b, err := base64.StdEncoding.DecodeString(aws.ToString(text))
	return err == nil && (len(b) == 0 || json.Valid(b) && bytes.TrimSpace(b)[0] == '{')
}

// work returns an invocation of a version.
func (s *Service) work(
	v *state.View, f *state.Function, row *state.FunctionVersion, qualifier, request string, payload []byte,
) environments.Work {
	shared := MaxConcurrency
	for other := range v.Functions.All() {
		shared -= int(aws.ToInt32(other.Concurrency))
	}
	if request == "" {
		request = state.NewUUID()
	}
	return environments.Work{
		RequestID: request, Version: row, Tags: f.Tags, ARN: s.functionARN(f.Name, qualifier), Payload: payload,
		Reserved: f.Concurrency, Shared: shared,
	}
}

// accept keeps an invocation for later. It's durable before the caller is told.
func (s *Service) accept(ctx context.Context, name, qualifier string, payload []byte) (*lambda.InvokeOutput, error) {
	now := s.opts.Now()
	c := call.From(ctx)
	row := &state.Invocation{ID: c.RequestID, Function: name, Version: qualifier, Payload: payload, At: now, Due: now}
	if row.ID == "" {
		row.ID = state.NewUUID()
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if s.store.Undelivered.Invocations > state.Room {
			return throttled()
		}
		if tx.Invocations.Get(row.ID) != nil { // callers choose what's their request's ID, if they call from inside
			row.ID = state.NewUUID()
		}
		tx.Invocations.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.measure(row, "AsyncEventsReceived", "Count", 1)
	return &lambda.InvokeOutput{StatusCode: 202}, nil
}

func throttled() error {
	return &types.TooManyRequestsException{
		Message: aws.String("Rate Exceeded."), Reason: types.ThrottleReasonConcurrentInvocationLimitExceeded,
	}
}

// Tell is the route by which services reach functions: the debt's body is the event. A function that is not there is gone.
func (s *Service) Tell(ctx context.Context, d delivery.Debt) error {
	body := d.Body
	if !json.Valid([]byte(body)) {
		body = encode(body)
	}
	_, err := s.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &d.Destination, InvocationType: types.InvocationTypeEvent, Payload: []byte(body),
	})
	if refused, is := errors.AsType[smithy.APIError](err); is && !strings.HasPrefix(refused.ErrorCode(), "TooManyRequests") {
		return fmt.Errorf("%w: %w", delivery.ErrGone, err)
	}
	return err
}
