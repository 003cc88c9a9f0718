package metering

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// TestQueues: what a queue did in a second is put when the second ends, under its time.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(700 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now().Unix()
		put := map[string]metrics.Sample{}
		err := Queues(ctx, QueueOptions{
			Seconds: func() []queues.Second {
				if now := time.Now(); now.Nanosecond() != 0 {
					t.Errorf("asked at %s, not as a second ends", now)
				}
				return []queues.Second{
					{Queue: "q", At: time.Now().Unix() - 1, Sent: 2, Bytes: 30, Least: 10, Most: 20, Visible: 5, Oldest: 7},
				}
			},
			Put: func(samples []metrics.Sample) error {
				for _, s := range samples {
					if s.At == began {
						put[s.Metric.Name] = s
					}
				}
				return nil
			},
			Log: slog.Default(),
		})
		if !errors.Is(err, context.DeadlineExceeded) || len(put) != 9 {
			t.Fatalf("%d metrics, %v", len(put), err)
		}
		for name, sum := range map[string]float64{
			"NumberOfMessagesSent":               2,
			"SentMessageSize":                    30,
			"ApproximateNumberOfMessagesVisible": 5,
			"ApproximateAgeOfOldestMessage":      7,
		} {
			if s := put[name]; s.Set.Sum != sum || !s.Fine || s.Metric.Dimensions[0].Value != "q" {
				t.Errorf("%s is %+v", name, s)
			}
		}
	})
}
