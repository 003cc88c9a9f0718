package metering

import (
	"context"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/sqs/queues"
)

const namespaceSQS = "AWS/SQS"

// QueueOptions holds what the loop over queues needs.
type QueueOptions struct {
	// Seconds returns what queues did since its last call.
	Seconds func() []queues.Second
	// Put stores samples. It returns once they're durable.
	Put func([]metrics.Sample) error
	Log *slog.Logger
}

// Queues is the loop that turns what queues did into SQS's metrics. It puts each second as soon as it ends, under its own
// time, since scaling by a queue looks at the last second.
func Queues(ctx context.Context, opts QueueOptions) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(putEvery - time.Duration(time.Now().Nanosecond())):
		}
		var samples []metrics.Sample
		for _, second := range opts.Seconds() {
			samples = append(samples, queueSamples(&second)...)
		}
		if len(samples) == 0 {
			continue
		}
		if err := opts.Put(samples); err != nil {
			opts.Log.Error("cannot keep the queues' metrics", "error", err)
		}
	}
}

// queueSamples returns a second's metrics: "Available CloudWatch metrics for Amazon SQS" in its developer guide. A metric
// that counts something has one value, whose sum is the count.
func queueSamples(s *queues.Second) []metrics.Sample {
	by := metrics.Dimension{Name: "QueueName", Value: s.Queue}
	var out []metrics.Sample
	add := func(name, unit string, set metrics.Set) {
		out = append(out, metrics.Sample{Metric: metrics.NewMetric(namespaceSQS, name, by), Unit: unit, At: s.At, Fine: true, Set: set})
	}
	count := func(name string, n int) { add(name, "Count", metrics.One(float64(n))) }
	count("ApproximateNumberOfMessagesVisible", s.Visible)
	count("ApproximateNumberOfMessagesNotVisible", s.NotVisible)
	count("ApproximateNumberOfMessagesDelayed", s.Delayed)
	add("ApproximateAgeOfOldestMessage", "Seconds", metrics.One(float64(s.Oldest)))
	count("NumberOfMessagesSent", s.Sent)
	count("NumberOfMessagesReceived", s.Received)
	count("NumberOfMessagesDeleted", s.Deleted)
	count("NumberOfEmptyReceives", s.Empty)
	if s.Sent > 0 {
		add("SentMessageSize", "Bytes", metrics.Set{Count: float64(s.Sent), Sum: s.Bytes, Min: s.Least, Max: s.Most})
	}
	return out
}
