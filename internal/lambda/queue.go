package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/state"
)

// How asynchronous invocations are tried: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	defaultRetries = 2
	defaultAge     = 6 * time.Hour
	retryPause     = time.Minute // before the first retry, and twice that before the second
	minPause       = time.Second // after there was no room, doubled up to maxPause
	maxPause       = 5 * time.Minute
)

// maxTries is how many asynchronous invocations are tried at a time. A function may have as many as are left free, and so half of them alone: whatever
// others have, there is always room for one that had none.
const maxTries = 512

// tries are the invocations that are being tried.
type tries struct {
	mu    sync.Mutex
	busy  map[string]bool // by ID
	of    map[string]int  // how many of each function
	ended chan struct{}
}

// begin notes that an invocation is tried, unless its function has its share.
func (t *tries) begin(i *state.Invocation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[i.Function] >= maxTries-len(t.busy) {
		return false
	}
	t.busy[i.ID] = true
	t.of[i.Function]++
	return true
}

func (t *tries) end(i *state.Invocation) {
	t.mu.Lock()
	delete(t.busy, i.ID)
	if t.of[i.Function]--; t.of[i.Function] == 0 {
		delete(t.of, i.Function)
	}
	t.mu.Unlock()
	select {
	case t.ended <- struct{}{}:
	default:
	}
}

func (t *tries) isBusy(i *state.Invocation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[i.ID]
}

// RunQueue tries asynchronous invocations until ctx ends. A row goes once its invocation is over and who is to know of that is owed it, so a
// crash may try one twice.
func (s *Service) RunQueue(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	t := &tries{busy: map[string]bool{}, of: map[string]int{}, ended: make(chan struct{}, 1)}
	for {
		v := s.store.Watch()
		for range v.InvocationsByDue() {
			break // another one is a change
		}
		var next time.Time
		for f := v.InvokedAfter(""); f != ""; f = v.InvokedAfter(f) {
			due := s.beginDue(v, f, t, func(i *state.Invocation) {
				all.Go(func() {
					defer t.end(i)
					s.try(ctx, i)
				})
			})
			if next.IsZero() || !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		if err := s.untilDue(ctx, v, next, t.ended); err != nil {
			return err
		}
	}
}

// beginDue begins what is due of a function, as far as its share goes, and returns when the next one is due, or zero if none will be.
func (s *Service) beginDue(v *state.View, function string, t *tries, begin func(*state.Invocation)) time.Time {
	for i := range v.InvocationsOf(function) {
		switch {
		case i.Due.After(s.opts.Now()):
			return i.Due
		case t.isBusy(i):
		case !t.begin(i):
			return time.Time{} // one that ends makes room
		case s.store.View().Invocations.Get(i.ID) != i: // it has ended since the view
			t.end(i)
		default:
			begin(i)
		}
	}
	return time.Time{}
}

// untilDue waits until there may be more to do.
func (s *Service) untilDue(ctx context.Context, v *state.View, next time.Time, ended <-chan struct{}) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var due <-chan time.Time
	if wait := next.Sub(s.opts.Now()); !next.IsZero() && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-watching.Done():
	case <-v.ChangedCh(watching):
	case <-ended:
	case <-due:
	}
	return ctx.Err()
}

// try tries an invocation once, and notes what comes of it.
func (s *Service) try(ctx context.Context, i *state.Invocation) {
	v := s.store.View()
	policy := s.policyOf(v, i)
	row, err := s.version(v, i.Function, i.Version)
	f := v.Functions.Get(i.Function)
	var r environments.Result
	switch {
	case err != nil || f == nil: // it's deleted, and so is what was to be done
		s.end(ctx, i, nil)
		return
	case s.opts.Now().Sub(i.At) > policy.age:
		s.over(ctx, i, row, policy, "EventAgeExceeded", r)
		return
	case f.Concurrency != nil && *f.Concurrency == 0:
		s.over(ctx, i, row, policy, "ZeroReservedConcurrency", r)
		return
	}
	s.measure(i, "AsyncEventAge", "Milliseconds", float64(s.opts.Now().Sub(i.At).Milliseconds()))
	r, err = s.opts.Runner.Do(ctx, s.work(v, f, row, i.Version, i.ID, i.Payload))
	switch {
	case ctx.Err() != nil: // it's tried again by the next process
	case err != nil:
		s.postpone(ctx, i, min(minPause<<min(i.Throttled, 10), maxPause), func(row *state.Invocation) { row.Throttled++ })
	case r.Error == "":
		s.over(ctx, i, row, policy, "Success", r)
	case i.Tries >= policy.retries:
		s.over(ctx, i, row, policy, "RetriesExhausted", r)
	default:
		s.postpone(ctx, i, retryPause<<i.Tries, func(row *state.Invocation) { row.Tries++ })
	}
}

// measure adds a value to a metric of asynchronous invocations, of the function and of all together.
func (s *Service) measure(i *state.Invocation, metric, unit string, value float64) {
	if s.opts.Measure != nil {
		s.opts.Measure("AWS/Lambda", metric, unit, value, []string{"FunctionName", i.Function}, nil)
	}
}

// postpone has an invocation tried again.
func (s *Service) postpone(ctx context.Context, i *state.Invocation, after time.Duration, change func(*state.Invocation)) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Invocations.Get(i.ID)
		if old == nil {
			return nil
		}
		row := *old
		row.Due = s.opts.Now().Add(after)
		change(&row)
		tx.Invocations.Put(&row)
		return nil
	})
	s.note(ctx, i, err)
}

func (s *Service) note(ctx context.Context, i *state.Invocation, err error) {
	if err != nil && ctx.Err() == nil {
		s.opts.Log.Error("cannot note what came of a function's asynchronous invocation", "function", i.Function, "request", i.ID, "error", err)
	}
}

// retryPolicy is how long and how often an invocation is tried, and who is told of its end.
type retryPolicy struct {
	retries              int
	age                  time.Duration
	onSuccess, onFailure string
}

func (s *Service) policyOf(v *state.View, i *state.Invocation) retryPolicy {
	p := retryPolicy{retries: defaultRetries, age: defaultAge}
	qualifier := i.Version
	if qualifier == "" {
		qualifier = state.Latest
	}
	c := v.FunctionInvokeConfigs.Get(state.FunctionKey(i.Function, qualifier))
	if c == nil {
		return p
	}
	if c.MaximumRetryAttempts != nil {
		p.retries = int(*c.MaximumRetryAttempts)
	}
	if c.MaximumEventAgeInSeconds != nil {
		p.age = time.Duration(*c.MaximumEventAgeInSeconds) * time.Second
	}
	if d := c.DestinationConfig; d != nil && d.OnSuccess != nil {
		p.onSuccess = aws.ToString(d.OnSuccess.Destination)
	}
	if d := c.DestinationConfig; d != nil && d.OnFailure != nil {
		p.onFailure = aws.ToString(d.OnFailure.Destination)
	}
	return p
}

// record is what destinations get: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
type record struct {
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	RequestContext  requestContext   `json:"requestContext"`
	RequestPayload  json.RawMessage  `json:"requestPayload"`
	ResponseContext *responseContext `json:"responseContext,omitempty"`
	ResponsePayload json.RawMessage  `json:"responsePayload,omitempty"`
}

type requestContext struct {
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"`
	Invocations int    `json:"approximateInvokeCount"`
}

type responseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError,omitempty"`
}

// over ends an invocation, and tells who is to know.
func (s *Service) over(
	ctx context.Context, i *state.Invocation, v *state.FunctionVersion, p retryPolicy, condition string, r environments.Result,
) {
	to := p.onSuccess
	if condition != "Success" {
		to = p.onFailure
		s.toDeadLetters(ctx, i, v, condition, r)
		s.measure(i, "AsyncEventsDropped", "Count", 1)
	}
	if to == "" {
		s.end(ctx, i, nil)
		return
	}
	qualifier := i.Version
	if qualifier == "" {
		qualifier = state.Latest
	}
	told := record{
		Version:   "1.0",
		Timestamp: s.opts.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext: requestContext{
			RequestID: i.ID, FunctionARN: s.functionARN(i.Function, qualifier), Condition: condition, Invocations: i.Tries + 1,
		},
		RequestPayload: i.Payload,
	}
	if r.Payload != nil {
		told.ResponseContext = &responseContext{200, *v.Version, r.Error}
		told.ResponsePayload = r.Payload
	}
	s.end(ctx, i, &delivery.Debt{Destination: to, Body: encode(told), Until: s.opts.Now().Add(defaultAge)})
}

// end forgets an invocation, and owes what somebody is to be told.
func (s *Service) end(ctx context.Context, i *state.Invocation, told *delivery.Debt) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		tx.Invocations.Delete(i.ID)
		if told != nil {
			tx.Owe(state.Delivery{Debt: *told}, s.opts.Now())
		}
		return nil
	})
	s.note(ctx, i, err)
}

// toDeadLetters sends the event of an invocation that has failed to the function's dead-letter queue or topic, if it has one.
func (s *Service) toDeadLetters(ctx context.Context, i *state.Invocation, v *state.FunctionVersion, condition string, r environments.Result) {
	if v.DeadLetterConfig == nil {
		return
	}
	arn, body := *v.DeadLetterConfig.TargetArn, string(i.Payload)
	about := map[string]string{"RequestID": i.ID, "ErrorCode": "200", "ErrorMessage": condition}
	var failed struct{ ErrorMessage string }
	if json.Unmarshal(r.Payload, &failed) == nil && failed.ErrorMessage != "" {
		about["ErrorMessage"] = failed.ErrorMessage[:min(len(failed.ErrorMessage), 1024)]
	}
	var err error
	if strings.HasPrefix(arn, "arn:aws:sqs:") {
		in := &sqs.SendMessageInput{QueueUrl: aws.String(s.opts.QueueURL(arn)), MessageBody: &body, MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
		for name, text := range about {
			in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String(attributeType(name)), StringValue: &text}
		}
		_, err = s.opts.Queues.SendMessage(ctx, in)
	} else {
		in := &sns.PublishInput{TopicArn: &arn, Message: &body, MessageAttributes: map[string]snstypes.MessageAttributeValue{}}
		for name, text := range about {
			in.MessageAttributes[name] = snstypes.MessageAttributeValue{DataType: aws.String(attributeType(name)), StringValue: &text}
		}
		_, err = s.opts.Topics.Publish(ctx, in)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if _, refused := errors.AsType[smithy.APIError](err); refused {
		s.measure(i, "DeadLetterErrors", "Count", 1)
		s.opts.Log.Error("a function's dead letter is lost: where it should go refuses it", "function", i.Function, "to", arn, "error", err)
		return
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		tx.Owe(state.Delivery{Debt: delivery.Debt{Destination: arn, Body: body, Until: s.opts.Now().Add(defaultAge)}}, s.opts.Now())
		return nil
	})
	s.note(ctx, i, err)
}

func attributeType(name string) string {
	if name == "ErrorCode" {
		return "Number"
	}
	return "String"
}

// checkDestinations refuses destinations that Pintle can't tell.
func (s *Service) checkDestinations(c *types.DestinationConfig) error {
	if c == nil {
		return nil
	}
	if c.OnSuccess != nil {
		if err := s.checkDestination("DestinationConfig.OnSuccess.Destination", aws.ToString(c.OnSuccess.Destination), "sqs", "sns", "lambda"); err != nil {
			return err
		}
	}
	if c.OnFailure != nil {
		return s.checkDestination("DestinationConfig.OnFailure.Destination", aws.ToString(c.OnFailure.Destination), "sqs", "sns", "lambda")
	}
	return nil
}
