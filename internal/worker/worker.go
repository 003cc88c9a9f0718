// Package worker is the harness around a command that works off an SQS queue: it receives messages, fetches
// the S3 objects that they tell of, has the command work on them, uploads what comes out, and deletes a
// message only then. While the command works it keeps the messages invisible and the task protected from
// scale-in. It uses AWS's public APIs alone, and runs on AWS as it does on Pintle. pintle worker runs it.
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

// SQS is the part of its client that the worker uses.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// S3 is the part of its client that the worker uses.
type S3 interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Runner has the command work. Each of the worker's loops has one of its own.
type Runner interface {
	// Ready returns when the command can take work. An error ends the worker.
	Ready(context.Context) error
	// Batches says whether Run takes several inputs at a time.
	Batches() bool
	// Run has the command work on inputs and returns an error, or nil, for each. What is not done when
	// ctx ends has failed.
	Run(ctx context.Context, inputs []*Input) []error
	Close()
}

// Options are what the worker does.
type Options struct {
	SQS SQS
	S3  S3
	// Runner makes a loop's runner.
	Runner func() Runner
	// Protection protects the task while there is work; nil where there is no task.
	Protection Protection
	Log        *slog.Logger

	Queue string // its URL
	DeadLetters
	// Bodies says that messages are inputs themselves, and no S3 events.
	Bodies bool
	Results

	Batch      int           // messages that are received at once
	Parallel   int           // loops
	Wait       time.Duration // of a receive
	Visibility time.Duration
	// Timeout is how long a run of the command may take; 0 is as long as SQS allows.
	Timeout time.Duration
	// RetryDelay is how long a message that failed stays invisible, doubled for each time that it was received.
	RetryDelay time.Duration
	// StopTimeout is how long after the end of Run's context the process will be killed.
	StopTimeout time.Duration

	TempDir   string
	MaxInput  int64 // bytes of the objects that a run of the command works on
	MaxOutput int64 // bytes of the results of a run
}

// What AWS's calls may take, besides the waiting that they are asked for.
const (
	callTime = 30 * time.Second
	// receiveTime is less, as a stop waits for it.
	receiveTime = 10 * time.Second
	// stopMargin is what remains of the stop time-out to give messages back, and to clear protection.
	stopMargin = 5 * time.Second
)

// errStopping is why work is broken off when the process is about to be killed.
var errStopping = errors.New("the worker was told to stop, and the work was not done in time")

// Worker works off a queue.
type Worker struct {
	opts      Options
	guard     *guard
	givenBack atomic.Int64
}

// New returns a worker that Run starts.
func New(o Options) *Worker {
	return &Worker{opts: o, guard: newGuard(o.Protection, o.Log)}
}

// Run works until ctx ends. Then it receives no more, and returns when the work that there is has been done or,
// shortly before the stop time-out, given back: it says how many messages were. An error is the command's, which
// does not start.
func (w *Worker) Run(ctx context.Context) (givenBack int64, err error) {
	dir, err := os.MkdirTemp(w.opts.TempDir, "pintle-worker-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing is left to be done about it

	loops, receiving := errgroup.WithContext(ctx)
	working, breakOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer breakOff(nil)
	stop := context.AfterFunc(receiving, func() {
		w.opts.Log.Info("no more messages are received")
		stopping := time.AfterFunc(max(0, w.opts.StopTimeout-stopMargin), func() { breakOff(errStopping) })
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
	breakOff(nil)
	<-guarding
	return w.givenBack.Load(), err
}

// loop receives and works, one batch after the other, until receiving ends.
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

// receive takes messages that there are, and else waits for some. What SQS hands out to a call that is broken off is invisible to
// everybody until the visibility time-out: so only the waiting is, when nothing is there.
func (w *Worker) receive(ctx context.Context) ([]*message, error) {
	messages, err := w.ask(context.WithoutCancel(ctx), 0)
	if err != nil || len(messages) > 0 || w.opts.Wait == 0 || ctx.Err() != nil {
		return messages, err
	}
	return w.ask(ctx, w.opts.Wait)
}

// ask asks for messages, and waits so long for the first.
func (w *Worker) ask(ctx context.Context, wait time.Duration) ([]*message, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+receiveTime)
	defer cancel()
	began := time.Now()
	out, err := w.opts.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &w.opts.Queue, MaxNumberOfMessages: int32(w.opts.Batch),
		VisibilityTimeout: seconds(w.opts.Visibility), WaitTimeSeconds: seconds(wait),
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

// delete deletes a message that is done with. Where it cannot, the message comes again.
func (w *Worker) delete(ctx context.Context, m *message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if _, err := w.opts.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.opts.Queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
		w.opts.Log.Warn("cannot delete a message; it will come again", "message_id", m.id(), "error", err)
	}
}

// show makes a message visible again after a while.
func (w *Worker) show(ctx context.Context, m *message, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMargin)
	defer cancel()
	_, err := w.opts.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &w.opts.Queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds(after)})
	if err != nil {
		w.opts.Log.Warn("cannot give a message back; it comes again after the visibility time-out", "message_id", m.id(), "error", err)
	}
}

// backoff is first, doubled for each failure, at most the most.
func backoff(first time.Duration, failures int, most time.Duration) time.Duration {
	return min(first<<min(failures, 16), most)
}

// sleep waits for a while, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// seconds is how SQS counts time.
func seconds(d time.Duration) int32 { return int32(d / time.Second) }
