// Package notifications sends what changes of objects owe to queues. A message is kept with the change that
// owes it, and struck out once the queue has it: a crash in between sends it twice rather than never. It sends
// through the interface of an SQS client, and knows neither S3 nor SQS.
package notifications

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/s3/objects"
)

// Queues is where messages go.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options say how messages are sent.
type Options struct {
	Now      func() time.Time
	Queues   Queues
	QueueURL func(arn string) string
	Log      *slog.Logger
}

// Bounds of the loop: how many messages it takes and sends at a time, how long it waits after a failure, from
// the first to the longest, and how long it goes on.
const (
	batch    = 256
	sending  = 16
	soonest  = time.Second
	latest   = 5 * time.Minute
	patience = 24 * time.Hour
)

// Run sends until ctx ends.
func Run(ctx context.Context, store *objects.Store, opts Options) error {
	for {
		due, next, err := store.Owed(ctx, batch)
		if err != nil {
			return err
		}
		if len(due) > 0 {
			if err := sendAll(ctx, store, opts, due); err != nil {
				return err
			}
			continue
		}
		if err := wait(ctx, store, next, opts.Now()); err != nil {
			return err
		}
	}
}

// wait waits until something is newly owed, or until a time, if it is one.
func wait(ctx context.Context, store *objects.Store, next, now time.Time) error {
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(next.Sub(now))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-store.Owing():
	case <-timer:
	}
	return nil
}

func sendAll(ctx context.Context, store *objects.Store, opts Options, due []*objects.Owed) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sending)
	for _, o := range due {
		g.Go(func() error { return send(ctx, store, opts, o) })
	}
	return g.Wait()
}

// send sends one message, and strikes it out or puts it off.
func send(ctx context.Context, store *objects.Store, opts Options, o *objects.Owed) error {
	_, err := opts.Queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(opts.QueueURL(o.Destination)), MessageBody: aws.String(string(o.Body))})
	if ctx.Err() != nil {
		return ctx.Err() // it is owed still
	}
	now := opts.Now()
	switch {
	case err == nil:
		return store.Settle(ctx, o.ID)
	case gone(err), now.Sub(o.Since) > patience:
		opts.Log.Warn("notification given up", "queue", o.Destination, "tries", o.Tries+1, "error", err)
		return store.Settle(ctx, o.ID)
	}
	opts.Log.Info("notification put off", "queue", o.Destination, "tries", o.Tries+1, "error", err)
	return store.Postpone(ctx, o.ID, now.Add(delay(o.Tries)))
}

// delay is how long a message waits after so many failures before this one.
func delay(tries int) time.Duration {
	return min(soonest<<min(tries, 20), latest)
}

// gone says that the queue is not there. S3 drops what is for such a queue, too.
func gone(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return true
	}
	return false
}
