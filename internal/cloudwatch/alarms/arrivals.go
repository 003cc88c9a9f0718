package alarms

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Arrivals notes which metrics have data that alarms haven't seen.
type Arrivals struct {
	mu   sync.Mutex
	keys map[string]bool
	wake chan struct{} // holds a value while there are keys
}

// NewArrivals returns empty arrivals.
func NewArrivals() *Arrivals {
	return &Arrivals{keys: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// Note records the metrics of samples. Call it once the samples can be read. It holds at most as many metrics as the store.
func (a *Arrivals) Note(samples []metrics.Sample) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range samples {
		a.keys[samples[i].Metric.Key()] = true
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Arrivals) take() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := a.keys
	a.keys = map[string]bool{}
	return keys
}

// arrivalPause is the least time between two rounds on arrivals, since nodes report within a second of each other.
const arrivalPause = 250 * time.Millisecond

// evaluate evaluates alarms as data arrives until ctx ends.
func (a *Arrivals) evaluate(ctx context.Context, store *state.Store, opts Options) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.wake:
		}
		if err := Arrived(ctx, store, opts); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(arrivalPause):
		}
	}
}

// Arrived evaluates the alarms with periods of less than a minute whose metrics have data that they haven't seen.
func Arrived(ctx context.Context, store *state.Store, opts Options) error {
	keys := opts.Arrivals.take()
	if len(keys) == 0 {
		return nil
	}
	return round(ctx, store, opts, opts.latest(), func(m *types.MetricAlarm) bool {
		return metricquery.PeriodOfAlarm(m) < long && slices.ContainsFunc(metricquery.OfAlarm(m), func(q types.MetricDataQuery) bool {
			if q.MetricStat == nil {
				return false
			}
			metric := metricquery.Metric(q.MetricStat.Metric)
			return keys[metric.Key()]
		})
	}, true)
}

// latest returns the end of the current second, so that data which arrives in this second counts.
func (o Options) latest() time.Time { return o.Now().Truncate(time.Second).Add(time.Second) }
