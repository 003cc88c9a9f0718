package worker

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A message can be kept invisible for 12 hours from its receipt at most: "Amazon SQS visibility timeout" in SQS's developer guide. Work
// stops a little earlier, so that there's time left to settle the message.
const (
	maxVisibility = 12 * time.Hour
	maxWork       = maxVisibility - time.Minute
)

// lease keeps the messages of a batch invisible until each is let go.
type lease struct {
	w    *Worker
	mu   sync.Mutex // held during calls to SQS too, so that a message isn't extended after it was let go
	held map[string]*message
}

// hold keeps messages invisible until ctx ends.
func (w *Worker) hold(ctx context.Context, messages []*message) (l *lease, release func()) {
	l = &lease{w: w, held: map[string]*message{}}
	for i, m := range messages {
		l.held[strconv.Itoa(i)] = m
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	return l, func() { cancel(); <-done }
}

// letGo ends the lease of one message.
func (l *lease) letGo(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.held, func(_ string, held *message) bool { return held == m })
}

// run extends the visibility time-out when half of it has passed, and retries soon after a failure.
func (l *lease) run(ctx context.Context) {
	every := l.w.opts.Visibility / 2
	for wait := every; ; {
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		wait = every
		if !l.extend(ctx) {
			wait = max(time.Second, every/4)
		}
	}
}

// extend extends all held messages, and reports whether that worked for all.
func (l *lease) extend(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		return true
	}
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &l.w.opts.Queue}
	for _, id := range slices.Sorted(maps.Keys(l.held)) {
		m := l.held[id]
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id:                &id,
			ReceiptHandle:     m.ReceiptHandle,
			VisibilityTimeout: seconds(min(l.w.opts.Visibility, maxVisibility-time.Since(m.received))),
		})
	}
	ctx, cancel := context.WithTimeout(ctx, min(callTime, max(time.Second, l.w.opts.Visibility/4)))
	defer cancel()
	out, err := l.w.opts.SQS.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		if ctx.Err() != context.Canceled {
			l.w.opts.Log.Warn("cannot keep messages invisible", "error", err)
		}
		return false
	}
	for _, f := range out.Failed {
		id := l.held[aws.ToString(f.Id)].id()
		l.w.opts.Log.Warn("cannot keep a message invisible", "message_id", id, "error", aws.ToString(f.Message))
	}
	return len(out.Failed) == 0
}
