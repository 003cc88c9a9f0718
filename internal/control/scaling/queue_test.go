package scaling

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/decide/scaling"
	"github.com/pintle/pintle/internal/metricstore"
	"github.com/pintle/pintle/internal/state"
)

// TestReadQueue: what waits and what is worked on stand still until they are reported again, whether a look is at one
// second or at several.
func TestReadQueue(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store, err := metricstore.Open(t.TempDir(), metricstore.Options{Now: func() time.Time { return begin.Add(time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	put := func(second int, name string, value float64) {
		err := store.Put([]metricstore.Sample{{
			Metric: metricstore.NewMetric("AWS/SQS", name, metricstore.Dimension{Name: "QueueName", Value: "q"}), Unit: "Count",
			At: begin.Add(time.Duration(second) * time.Second).Unix(), Fine: true, Set: metricstore.One(value),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(0, "ApproximateNumberOfMessagesVisible", 10)
	put(0, "ApproximateNumberOfMessagesNotVisible", 4)
	put(1, "NumberOfMessagesSent", 3)
	put(2, "ApproximateNumberOfMessagesVisible", 12)
	put(3, "NumberOfMessagesDeleted", 2)
	want := []scaling.Flow{
		{Waiting: 10, Working: 4}, {Waiting: 10, Working: 4, Arrived: 3}, {Waiting: 12, Working: 4}, {Waiting: 12, Working: 4, Finished: 2}, {Waiting: 12, Working: 4},
	}
	for _, step := range []time.Duration{time.Second, 5 * time.Second} {
		w := &watch{name: "q", until: begin}
		for now := begin.Add(step); !now.After(begin.Add(5 * time.Second)); now = now.Add(step) {
			if fresh, err := w.read(store, now); err != nil || !fresh {
				t.Fatalf("%s by %s: fresh is %v, error %v", now, step, fresh, err)
			}
		}
		if !slices.Equal(w.flows, want) {
			t.Errorf("by %s:\n got %v\nwant %v", step, w.flows, want)
		}
	}
}

// TestForgetsQueues: what was seen for a policy goes with it.
func TestForgetsQueues(t *testing.T) {
	w := newWorld(t, 1)
	w.update(func(tx *state.Tx) { tx.ScalingPolicies.Put(w.policy("stays")) })
	l := New(w.store, Options{Now: time.Now, ECS: w, CloudWatch: w, Log: slog.New(slog.DiscardHandler)})
	l.watched["arn:stays"], l.watched["arn:gone"] = &watch{}, &watch{}
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.watched["arn:stays"] == nil || l.watched["arn:gone"] != nil {
		t.Errorf("it holds %v", l.watched)
	}
}
