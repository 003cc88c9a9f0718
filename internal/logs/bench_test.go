package logs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/streams"
)

// BenchmarkOwe is what PutLogEvents does with 100 events besides storing them, in groups with no filters and more, of which none matches.
func BenchmarkOwe(b *testing.B) {
	store, err := streams.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	s := New(store, Options{Account: accounttest.New(time.Now), Outbox: discard{}})
	for _, n := range []int{0, 1, 100} {
		name := fmt.Sprint("g", n)
		if err := store.CreateGroup(streams.Group{Name: name}); err != nil {
			b.Fatal(err)
		}
		for i := range n {
			_, err := s.PutMetricFilter(b.Context(), &cloudwatchlogs.PutMetricFilterInput{
				LogGroupName: &name, FilterName: aws.String(fmt.Sprint(i)), FilterPattern: aws.String("ERROR"),
				MetricTransformations: []types.MetricTransformation{{
					MetricName: aws.String("m"), MetricNamespace: aws.String("n"), MetricValue: aws.String("1"),
				}},
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		g, err := store.Group(name)
		if err != nil {
			b.Fatal(err)
		}
		events := make([]streams.Event, 100)
		for i := range events {
			events[i] = streams.Event{Timestamp: int64(i), Message: "2026-01-02 INFO step 17 of 3000: loss 0.123, 17 ms, 4096 tokens"}
		}
		b.Run(fmt.Sprint("filters=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.owe(b.Context(), &batch{g, "s", events}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard is an outbox that keeps nothing.
type discard struct{}

func (discard) Owe(_ context.Context, debts func(time.Time) []delivery.Debt) ([]delivery.Debt, error) {
	return debts(time.Now()), nil
}

func (discard) Settle(context.Context, delivery.Debt, error) error { return nil }
