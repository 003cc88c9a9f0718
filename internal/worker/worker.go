// Package worker is the harness around a command that works through an SQS queue. It receives messages, fetches the S3 objects in them,
// has the command process these, uploads the results, and only then deletes the message. Meanwhile it keeps the messages invisible and
// the task protected from scale-in. It uses only AWS's public APIs, so it runs on AWS as it does on Pintle. pintle worker runs it.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"
)

// SQS is the part of the SQS client that the worker uses.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(
		context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	ChangeMessageVisibility(
		context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// S3 is the part of the S3 client that the worker uses.
type S3 interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Runner runs the command. Each of the worker's loops has its own.
type Runner interface {
	// Ready returns when the command can take work. An error ends the worker.
	Ready(context.Context) error
	// Batches reports whether Run takes several inputs at a time.
	Batches() bool
	// Run has the command process inputs, and returns an error or nil for each. Inputs not done when ctx ends have failed.
	Run(ctx context.Context, inputs []*Input) []error
	Close()
}

// Options configure a worker.
type Options struct {
	SQS SQS
	S3  S3
	// Runner makes a loop's runner.
	Runner func() Runner
	// Protection protects the task while there is work; nil outside a task.
	Protection Protection
	Log        *slog.Logger

	Queue string // its URL
	DeadLetters
	// Bodies says that each message is itself the input, rather than an S3 event.
	Bodies bool
	Results

	Batch      int           // messages to receive at once
	Parallel   int           // number of loops
	Wait       time.Duration // how long a receive waits for messages
	Visibility time.Duration
	// Timeout limits a run of the command; 0 means as long as SQS allows.
	Timeout time.Duration
	// RetryDelay is how long a failed message stays invisible. It doubles with each receive.
	RetryDelay time.Duration
	// StopTimeout is the time between the end of Run's context and the kill of this process.
	StopTimeout time.Duration

	TempDir   string
	MaxInput  int64 // bytes of the objects in one run of the command
	MaxOutput int64 // bytes of the results of one run
}

// Time limits of calls to AWS, on top of any waiting that we ask for.
const (
	callTime = 30 * time.Second
	// receiveTime is shorter, since a stop waits for it.
	receiveTime = 10 * time.Second
	// stopMargin is how much of the stop time-out is reserved for giving messages back and clearing the protection.
	stopMargin = 5 * time.Second
)

// errStopping is the cause when work is aborted because the process is about to be killed.
var errStopping = errors.New("the worker was told to stop, and the work was not done in time")

// Worker works through a queue.
type Worker struct {
	opts      Options
	guard     *guard
	givenBack atomic.Int64
}

// New returns a worker. Run starts it.
func New(o Options) *Worker {
	return &Worker{opts: o, guard: newGuard(o.Protection, o.Log)}
}

// Run works until ctx ends. Then it receives no more, finishes the work in hand and returns. Shortly before the stop time-out it gives
// unfinished messages back; givenBack is how many. An error means that the command doesn't start.
func (w *Worker) Run(ctx context.Context) (givenBack int64, err error) {
	dir, err := os.MkdirTemp(w.opts.TempDir, "pintle-worker-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // we could do nothing about it

	loops, receiving := errgroup.WithContext(ctx)
	working, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	stop := context.AfterFunc(receiving, func() {
		w.opts.Log.Info("no more messages are received")
		stopping := time.AfterFunc(max(0, w.opts.StopTimeout-stopMargin), func() { abort(errStopping) })
		context.AfterFunc(working, func() { stopping.Stop() })
	})
	defer stop()

	guarding := make(chan struct{})
	go func() {
		defer close(guarding)
		w.guard.run(working)
	}()
	for range w.opts.Parallel {
		loops.Go(func() error { return w.loop(receiving, working, dir) })
	}
	err = loops.Wait()
	abort(nil)
	<-guarding
	return w.givenBack.Load(), err
}

// loop receives and processes one batch after the other until receiving ends.
func (w *Worker) loop(receiving, working context.Context, dir string) error {
	runner := w.opts.Runner()
	defer runner.Close()
	failures := 0
	for {
		if err := runner.Ready(receiving); err != nil || receiving.Err() != nil {
			return err
		}
		messages, err := w.receive(receiving)
		switch {
		case receiving.Err() != nil && len(messages) == 0:
			return nil
		case err != nil:
			w.opts.Log.Warn("cannot receive messages", "error", err)
			sleep(receiving, backoff(time.Second, failures, 30*time.Second))
			failures++
		case len(messages) > 0:
			failures = 0
			w.work(working, runner, messages, dir)
		}
	}
}

// receive takes available messages, or else waits for some. If we cancel a call, messages that SQS was handing out stay invisible until the
// visibility time-out. So we only cancel the waiting call, because SQS had nothing to hand out before it.
func (w *Worker) receive(ctx context.Context) ([]*message, error) {
	messages, err := w.poll(context.WithoutCancel(ctx), 0)
	if err != nil || len(messages) > 0 || w.opts.Wait == 0 || ctx.Err() != nil {
		return messages, err
	}
	return w.poll(ctx, w.opts.Wait)
}

// poll calls ReceiveMessage once, and waits that long for the first message.
func (w *Worker) poll(ctx context.Context, wait time.Duration) ([]*message, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+receiveTime)
	defer cancel()
	began := time.Now()
	out, err := w.opts.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:              &w.opts.Queue,
		MaxNumberOfMessages:   int32(w.opts.Batch),
		VisibilityTimeout:     seconds(w.opts.Visibility),
		WaitTimeSeconds:       seconds(wait),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		return nil, err
	}
	messages := make([]*message, 0, len(out.Messages))
	for _, m := range out.Messages {
		messages = append(messages, newMessage(m, began))
	}
	return messages, nil
}

// delete deletes a finished message. If that fails, the message will come again.
func (w *Worker) delete(ctx context.Context, m *message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err := w.opts.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.opts.Queue, ReceiptHandle: m.ReceiptHandle})
	if err != nil {
		w.opts.Log.Warn("cannot delete a message; it will come again", "message_id", m.id(), "error", err)
	}
}

// show makes a message visible again after a while.
func (w *Worker) show(ctx context.Context, m *message, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMargin)
	defer cancel()
	_, err := w.opts.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl:          &w.opts.Queue,
		ReceiptHandle:     m.ReceiptHandle,
		VisibilityTimeout: seconds(after),
	})
	if err != nil {
		w.opts.Log.Warn("cannot give a message back; it comes again after the visibility time-out", "message_id", m.id(), "error", err)
	}
}

// backoff returns first, doubled for each failure, up to most.
func backoff(first time.Duration, failures int, most time.Duration) time.Duration {
	return min(first<<min(failures, 16), most)
}

// sleep waits for a while, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// seconds converts to SQS's unit of time.
func seconds(d time.Duration) int32 { return int32(d / time.Second) }
