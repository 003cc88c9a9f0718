package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// cloud is a queue, its dead-letter queue and some buckets, in memory and in the test's time. A call fails if the test wants it to.
type cloud struct {
	mu       sync.Mutex
	queue    []*stored
	dead     []*sqs.SendMessageInput
	objects  map[string]string // by bucket/key
	fail     func(call string) error
	truncate bool          // objects end early
	latency  time.Duration // of answers with messages
	deleting func(*stored) // is called for each deleted message
	calls    []string
	handles  int
}

// stored is a message in the queue.
type stored struct {
	id         string
	body       string
	attributes map[string]types.MessageAttributeValue
	visible    time.Time
	received   time.Time
	receives   int
	handle     string
	overlaps   int // how often it was handed out while a worker had it
	working    bool
}

func newCloud() *cloud {
	return &cloud{objects: map[string]string{}, fail: func(string) error { return nil }}
}

func (c *cloud) send(bodies ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range bodies {
		c.queue = append(c.queue, &stored{id: "m" + strconv.Itoa(len(c.queue)+len(c.dead)), body: b})
	}
}

func (c *cloud) call(name string, details ...any) error {
	c.calls = append(c.calls, fmt.Sprint(append([]any{name}, details...)...))
	return c.fail(name)
}

func (c *cloud) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	until := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		c.mu.Lock()
		if err := c.call("ReceiveMessage"); err != nil {
			c.mu.Unlock()
			return nil, err
		}
		out := &sqs.ReceiveMessageOutput{}
		for _, s := range c.queue {
			if len(out.Messages) < int(in.MaxNumberOfMessages) && !s.visible.After(time.Now()) {
				out.Messages = append(out.Messages, c.handOut(s, in.VisibilityTimeout))
			}
		}
		c.mu.Unlock()
		if len(out.Messages) > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(c.latency):
				return out, nil
			}
		}
		if !time.Now().Before(until) {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (c *cloud) handOut(s *stored, visibility int32) types.Message {
	c.handles++
	s.handle = strconv.Itoa(c.handles)
	s.received = time.Now()
	s.visible = time.Now().Add(time.Duration(visibility) * time.Second)
	s.receives++
	if s.working {
		s.overlaps++
	}
	return types.Message{
		MessageId:         &s.id,
		Body:              &s.body,
		ReceiptHandle:     &s.handle,
		MessageAttributes: s.attributes,
		Attributes:        map[string]string{"ApproximateReceiveCount": strconv.Itoa(s.receives), "MessageGroupId": "g"},
	}
}

// find returns the message of a handle. As in a FIFO queue, an expired handle is invalid.
func (c *cloud) find(handle *string) (*stored, error) {
	for _, s := range c.queue {
		if s.handle == aws.ToString(handle) && s.visible.After(time.Now()) {
			return s, nil
		}
	}
	return nil, errors.New("ReceiptHandleIsInvalid")
}

func (c *cloud) change(handle *string, seconds int32) error {
	s, err := c.find(handle)
	if err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	if seconds < 0 || until.Sub(s.received) > 12*time.Hour {
		return errors.New("InvalidParameterValue: beyond the limit of 43200 seconds")
	}
	s.visible = until
	return nil
}

func (c *cloud) ChangeMessageVisibility(
	_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("ChangeMessageVisibility ", in.VisibilityTimeout); err != nil {
		return nil, err
	}
	return &sqs.ChangeMessageVisibilityOutput{}, c.change(in.ReceiptHandle, in.VisibilityTimeout)
}

func (c *cloud) ChangeMessageVisibilityBatch(
	_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("ChangeMessageVisibilityBatch ", len(in.Entries)); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		if err := c.change(e.ReceiptHandle, e.VisibilityTimeout); err != nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Message: aws.String(err.Error())})
		}
	}
	return out, nil
}

func (c *cloud) DeleteMessage(_ context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("DeleteMessage"); err != nil {
		return nil, err
	}
	s, err := c.find(in.ReceiptHandle)
	if err != nil {
		return nil, err
	}
	if c.deleting != nil {
		c.deleting(s)
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *stored) bool { return other == s })
	return &sqs.DeleteMessageOutput{}, nil
}

func (c *cloud) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("SendMessage"); err != nil {
		return nil, err
	}
	c.dead = append(c.dead, in)
	return &sqs.SendMessageOutput{}, nil
}

func (c *cloud) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("GetObject"); err != nil {
		return nil, err
	}
	text, ok := c.objects[*in.Bucket+"/"+*in.Key]
	if !ok {
		return nil, &s3types.NoSuchKey{}
	}
	size := int64(len(text))
	if c.truncate {
		text = text[:len(text)/2]
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewBufferString(text)), ContentLength: &size}, nil
}

func (c *cloud) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	b, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("PutObject"); err != nil {
		return nil, err
	}
	c.objects[*in.Bucket+"/"+*in.Key] = string(b)
	return &s3.PutObjectOutput{}, nil
}

// count returns how often a call was made.
func (c *cloud) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.calls {
		if call == name {
			n++
		}
	}
	return n
}

func (c *cloud) keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.objects))
}

// fakeCommand is a runner in the test's time. After a while, it answers each input with its text.
type fakeCommand struct {
	batches bool
	takes   time.Duration
	do      func(ctx context.Context, in *Input, text string) error
	ran     *[]string // the inputs' keys, with a bar between runs
}

func (f *fakeCommand) Ready(context.Context) error { return nil }
func (f *fakeCommand) Batches() bool               { return f.batches }
func (f *fakeCommand) Close()                      {}

func (f *fakeCommand) Run(ctx context.Context, inputs []*Input) []error {
	errs := make([]error, len(inputs))
	if f.ran != nil {
		*f.ran = append(*f.ran, "|")
	}
	sleep(ctx, f.takes)
	for i, in := range inputs {
		if f.ran != nil {
			*f.ran = append(*f.ran, in.Key)
		}
		errs[i] = f.one(ctx, in)
	}
	return errs
}

func (f *fakeCommand) one(ctx context.Context, in *Input) error {
	if ctx.Err() != nil {
		return errors.New("signal: killed")
	}
	text, err := os.ReadFile(in.Path)
	if err != nil {
		return err
	}
	if f.do != nil {
		if err := f.do(ctx, in, string(text)); err != nil {
			return err
		}
	}
	if in.Output == "" {
		return nil
	}
	return os.WriteFile(in.Output, append([]byte("seen "), text...), 0o600)
}

// options returns a worker's options for a cloud and a command.
func options(t testing.TB, c *cloud, runner Runner) Options {
	return Options{
		SQS:         c,
		S3:          c,
		Runner:      func() Runner { return runner },
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
		Queue:       "q",
		DeadLetters: DeadLetters{DeadLetterQueue: "dead", MaxReceives: 3},
		Results:     Results{Bucket: "results", Prefix: "r/", Suffix: ".out"},
		Batch:       1,
		Parallel:    1,
		Wait:        20 * time.Second,
		Visibility:  2 * time.Minute,
		RetryDelay:  5 * time.Second,
		StopTimeout: 30 * time.Second,
		TempDir:     t.TempDir(),
		MaxInput:    1000,
		MaxOutput:   1000,
	}
}

// work runs a worker for a time, then stops it, and returns when it has ended. It checks that no files are left.
func work(t testing.TB, o Options, d time.Duration) (givenBack int64, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if givenBack, err = New(o).Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(d)
	cancel()
	stopped := time.Now()
	<-done
	if left, err := filepath.Glob(filepath.Join(o.TempDir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	return givenBack, time.Since(stopped)
}

// put returns the event that S3 sends when objects are created. The keys must be encoded as in such an event.
func put(keys ...string) string {
	records := ""
	for i, k := range keys {
		if i > 0 {
			records += ","
		}
		records += fmt.Sprintf(`{"eventSource":"aws:s3","eventName":"ObjectCreated:Put",`+
			`"s3":{"bucket":{"name":"b"},"object":{"key":%q,"size":1,"eTag":"e","sequencer":"0"}}}`, k)
	}
	return `{"Records":[` + records + `]}`
}
