package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// box is an outbox in memory.
type box struct {
	mu      sync.Mutex
	debts   []Debt
	due     map[string]time.Time
	changed chan struct{}
	settled map[string]error
}

func newBox() *box {
	return &box{due: map[string]time.Time{}, changed: make(chan struct{}, 1), settled: map[string]error{}}
}

func (b *box) owe(debts ...Debt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range debts {
		d.Since = time.Now()
		b.due[d.ID] = d.Since
		b.debts = append(b.debts, d)
	}
	b.wake()
}

func (b *box) wake() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *box) Owed(_ context.Context, limit int, take func(Debt) bool) (due []Debt, next time.Time, changed func(context.Context) <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.debts {
		if at := b.due[d.ID]; !at.After(time.Now()) {
			if len(due) < limit && take(d) {
				due = append(due, d)
			}
		} else if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return due, next, func(context.Context) <-chan struct{} { return b.changed }, nil
}

func (b *box) Settle(_ context.Context, d Debt, outcome error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.debts = slices.DeleteFunc(b.debts, func(other Debt) bool { return other.ID == d.ID })
	b.settled[d.ID] = outcome
	return nil
}

func (b *box) Postpone(_ context.Context, d Debt, until time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.debts {
		if b.debts[i].ID == d.ID {
			b.debts[i].Tries++
		}
	}
	b.due[d.ID] = until
	return nil
}

// deliveries records what was delivered, and when, by id.
type deliveries struct {
	mu    sync.Mutex
	start time.Time
	when  map[string][]time.Duration
	order []string
}

func (n *deliveries) record(d Debt) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.when[d.ID] = append(n.when[d.ID], time.Since(n.start))
	n.order = append(n.order, d.ID)
	return len(n.when[d.ID])
}

// run runs a loop over a box in fake time while fn runs.
func run(t *testing.T, tell func(ctx context.Context, d Debt, nth int) error, fn func(t *testing.T, b *box, n *deliveries)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox()
		n := &deliveries{start: time.Now(), when: map[string][]time.Duration{}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		routes := []Route{{"to:", func(ctx context.Context, d Debt) error { return tell(ctx, d, n.record(d)) }}}
		go func() {
			ended <- New(b, Options{Now: time.Now, Routes: routes, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		}()
		fn(t, b, n)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the loop ended with %v", err)
		}
	})
}

// TestTold: each debt is delivered once. After failures it's retried at growing intervals, until its time is up or its
// destination is gone.
func TestTold(t *testing.T) {
	tell := func(_ context.Context, d Debt, nth int) error {
		switch d.ID {
		case "gone":
			return fmt.Errorf("%w: no such queue", ErrGone)
		case "thrice":
			if nth < 3 {
				return errors.New("not now")
			}
		case "never", "once":
			return errors.New("not now")
		}
		return nil
	}
	run(t, tell, func(t *testing.T, b *box, n *deliveries) {
		for i := range 1000 {
			b.owe(Debt{ID: fmt.Sprint(i), Destination: "to:many"})
		}
		now := time.Now()
		until := map[string]time.Time{"gone": now.Add(time.Hour), "thrice": now.Add(time.Hour), "never": now.Add(time.Minute)}
		for _, id := range []string{"gone", "thrice", "never", "once"} {
			b.owe(Debt{ID: id, Destination: "to:" + id, Until: until[id]})
		}
		b.owe(Debt{ID: "nobody", Destination: "elsewhere", Until: now.Add(time.Hour)})
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range 1000 {
			if id := fmt.Sprint(i); len(n.when[id]) != 1 {
				t.Fatalf("%s was told %d times", id, len(n.when[id]))
			}
		}
		seconds := func(s ...int) (out []time.Duration) {
			for _, s := range s {
				out = append(out, time.Duration(s)*time.Second)
			}
			return out
		}
		for id, want := range map[string][]time.Duration{
			"gone": seconds(0), "once": seconds(0), "thrice": seconds(0, 1, 3), "never": seconds(0, 1, 3, 7, 15, 31, 63), "nobody": nil,
		} {
			if !slices.Equal(n.when[id], want) {
				t.Errorf("%s was told at %v, want %v", id, n.when[id], want)
			}
			if outcome, settled := b.settled[id]; !settled || (outcome == nil) != (id == "thrice") {
				t.Errorf("%s ended %v with %v", id, settled, outcome)
			}
		}
		if len(b.debts) != 0 || len(b.settled) != 1005 {
			t.Errorf("%d are left, %d are over", len(b.debts), len(b.settled))
		}
	})
}

// TestHanging: a hanging destination doesn't delay others. Messages from one source to one destination are delivered one at a
// time.
func TestHanging(t *testing.T) {
	tell := func(ctx context.Context, d Debt, _ int) error {
		if d.Destination != "to:slow" {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return ctx.Err()
	}
	run(t, tell, func(t *testing.T, b *box, n *deliveries) {
		for i := range 100 {
			b.owe(Debt{ID: fmt.Sprintf("slow %02d", i), Destination: "to:slow"})
		}
		for _, id := range []string{"a1", "a2", "a3"} {
			b.owe(Debt{ID: id, Source: "a", Destination: "to:quick"})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		n.mu.Lock()
		quick := slices.DeleteFunc(slices.Clone(n.order), func(id string) bool { return id[0] != 'a' })
		if len(n.order) != maxPerDestination+3 || !slices.Equal(quick, []string{"a1", "a2", "a3"}) {
			t.Errorf("after a second %q were told", n.order)
		}
		n.mu.Unlock()
		time.Sleep(99 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.settled) != 103 {
			t.Errorf("in the end %d are over", len(b.settled))
		}
	})
}

// TestHangingListeners: however much is owed to others' machines that hang, what is owed here is told at once.
func TestHangingListeners(t *testing.T) {
	tell := func(ctx context.Context, d Debt, _ int) error {
		if !d.Remote {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return ctx.Err()
	}
	run(t, tell, func(t *testing.T, b *box, n *deliveries) {
		for i := range 2000 {
			b.owe(Debt{ID: fmt.Sprintf("slow %04d", i), Destination: fmt.Sprintf("to:%d", i%20), Remote: true})
		}
		for i := range 100 {
			b.owe(Debt{ID: fmt.Sprintf("quick %02d", i), Destination: "to:queue"})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.settled) != 100 {
			t.Errorf("after a second %d are over", len(b.settled))
		}
	})
}

// TestOneHostHangs: a machine that hangs, at however many destinations, leaves room for others.
func TestOneHostHangs(t *testing.T) {
	tell := func(ctx context.Context, d Debt, _ int) error {
		if d.host() == "quick" {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return ctx.Err()
	}
	run(t, tell, func(t *testing.T, b *box, n *deliveries) {
		for i := range 200 {
			b.owe(Debt{ID: fmt.Sprintf("slow %04d", i), Destination: fmt.Sprintf("to:%d", i), Remote: true, Host: "slow"})
		}
		b.owe(Debt{ID: "quick", Destination: "to:quick", Remote: true, Host: "quick"})
		time.Sleep(time.Second)
		synctest.Wait()
		b.mu.Lock()
		if _, told := b.settled["quick"]; !told || len(b.settled) != 1 {
			t.Errorf("after a second %v are over", b.settled)
		}
		b.mu.Unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.settled) != 1+maxPerHost {
			t.Errorf("after another try %d are over", len(b.settled))
		}
	})
}

// TestHost: a URL says whose machine it is.
func TestHost(t *testing.T) {
	for want, d := range map[string]Debt{
		"example.com": {Destination: "https://example.com:8443/x"},
		"other":       {Destination: "arn:aws:sns:x", Remote: true, Host: "other"},
		"":            {Destination: "arn:aws:sqs:x"},
	} {
		if got := d.host(); got != want {
			t.Errorf("%s is at %q, want %q", d.Destination, got, want)
		}
	}
}

// TestStep: Step delivers everything that is due, in order, and leaves the rest.
func TestStep(t *testing.T) {
	b := newBox()
	for i := range 600 {
		b.owe(Debt{ID: fmt.Sprint(i), Destination: "to:x"})
	}
	b.due["7"] = time.Now().Add(time.Hour)
	var got []string
	l := New(b, Options{
		Now:    time.Now,
		Log:    slog.New(slog.DiscardHandler),
		Routes: []Route{{"", func(_ context.Context, d Debt) error { got = append(got, d.ID); return nil }}},
	})
	if err := l.Step(t.Context()); err != nil || len(got) != 599 || got[0] != "0" || got[7] != "8" || got[598] != "599" {
		t.Errorf("%d were told, %v", len(got), err)
	}
}

// queues is an SQS with one queue.
type queues struct{ got []string }

func (q *queues) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if *in.QueueUrl != "url of arn:aws:sqs:r:a:q" {
		return nil, &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue"}
	}
	q.got = append(q.got, *in.MessageBody)
	return &sqs.SendMessageOutput{}, nil
}

func TestQueue(t *testing.T) {
	q := &queues{}
	route := Queue(q, func(arn string) string { return "url of " + arn })
	err := route.Tell(t.Context(), Debt{Destination: "arn:aws:sqs:r:a:q", Body: "b"})
	if err != nil || !slices.Equal(q.got, []string{"b"}) {
		t.Errorf("the queue got %q, %v", q.got, err)
	}
	if err := route.Tell(t.Context(), Debt{Destination: "arn:aws:sqs:r:a:other"}); !errors.Is(err, ErrGone) {
		t.Errorf("a queue that is not there is %v", err)
	}
}

func TestWebhooks(t *testing.T) {
	var got []notification
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var n notification
		if err := cmp.Or(err, json.Unmarshal(body, &n)); err != nil || r.Header.Get("x-amz-sns-message-type") != n.Type {
			t.Errorf("%s: %v", body, err)
		}
		got = append(got, n)
		w.WriteHeader(status)
	}))
	defer server.Close()
	tell := Webhooks(server.Client())[0].Tell
	d := Debt{Destination: server.URL, Source: "arn:alarm", Subject: "ALARM", Body: `{"a":1}`}
	if err := tell(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	n := got[0]
	if n.Type != "Notification" || n.TopicArn != "arn:alarm" || n.Subject != "ALARM" || n.Message != `{"a":1}` || n.MessageID == "" ||
		n.Timestamp == "" {
		t.Errorf("it was told %+v", n)
	}
	status = http.StatusInternalServerError
	if err := tell(t.Context(), d); err == nil {
		t.Error("a failure counts as told")
	}
}
