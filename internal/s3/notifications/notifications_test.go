package notifications

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/s3/objects"
)

// queues is an SQS that fails as it is told to.
type queues struct {
	mu   sync.Mutex
	got  map[string]int
	fail func(body string, nth int) error
	done chan struct{} // closed once want messages have come
	want int
}

func (q *queues) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.got[*in.MessageBody]++
	if err := q.fail(*in.MessageBody, q.got[*in.MessageBody]); err != nil {
		return nil, err
	}
	if q.want--; q.want == 0 {
		close(q.done)
	}
	return &sqs.SendMessageOutput{}, nil
}

// TestRun sends each message once, goes on after failures, and gives up on queues that are gone.
func TestRun(t *testing.T) {
	store, err := objects.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.CreateBucket(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	q := &queues{got: map[string]int{}, done: make(chan struct{}), want: 299, fail: func(body string, nth int) error {
		switch {
		case body == "gone":
			return &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue"}
		case body == "7" && nth == 1:
			return errors.New("not now")
		}
		return nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, store, Options{Now: time.Now, Queues: q, QueueURL: func(arn string) string { return arn }, Log: slog.New(slog.DiscardHandler)})
	}()
	for i := range 300 {
		key := fmt.Sprint(i)
		if i == 13 {
			key = "gone"
		}
		owe := func(*objects.Bucket, *objects.Object) []objects.Message {
			return []objects.Message{{Destination: "q", Body: []byte(key)}}
		}
		if err := store.Put(t.Context(), &objects.Object{Bucket: "b", Key: key}, []*objects.File{{}}, objects.Conditions{Owe: owe}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-q.done:
	case <-time.After(2 * time.Minute):
		t.Error("not every message was sent")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the loop ended with %v", err)
	}
	for body, n := range q.got {
		if n != 1 && body != "7" || body == "7" && n != 2 {
			t.Errorf("%s was sent %d times", body, n)
		}
	}
}

func TestDelay(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: time.Second, 3: 8 * time.Second, 10: latest, 1000: latest} {
		if got := delay(tries); got != want {
			t.Errorf("after %d: %s, want %s", tries, got, want)
		}
	}
}
