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

// Arrivals notes which metrics have data that alarms have not seen.
type Arrivals struct {
	mu   sync.Mutex
	keys map[string]bool
	wake chan struct{} // holds one when there are some
}

// NewArrivals returns arrivals of which there are none yet.
func NewArrivals() *Arrivals {
	return &Arrivals{keys: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// Note is called with the metrics of samples once they can be read. There are at most as many as the store has.
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

// breath is the least time between two looks at what has arrived: nodes report within a second of each other.
const breath = 250 * time.Millisecond

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
		case <-time.After(breath):
		}
	}
}

// Arrived evaluates the alarms with short periods whose metrics have data that they have not seen.
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

// latest is the end of the second that is running: what arrives in it counts.
func (o Options) latest() time.Time { return o.Now().Truncate(time.Second).Add(time.Second) }
