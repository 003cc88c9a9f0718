package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	metrictypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/emf"
	"github.com/pintle/pintle/internal/logs/streams"
)

// Metrics receives the metrics in log events. It is CloudWatch.
type Metrics interface {
	PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error)
}

// Outbox keeps messages until they are delivered.
type Outbox interface {
	// Owe keeps the debts that a function returns, all or none, and returns them as kept. The function may be called more than once, with
	// the time that counts for debts that aren't due at once.
	Owe(ctx context.Context, debts func(now time.Time) []delivery.Debt) ([]delivery.Debt, error)
	Settle(ctx context.Context, d delivery.Debt, outcome error) error
}

const (
	// maxData limits the metrics in one PutMetricData call.
	maxData = 1000
	// metricsArn is the destination of metrics in the outbox.
	metricsArn = "arn:aws:cloudwatch:::metrics"
	// patience is how long we retry metrics that CloudWatch doesn't accept.
	patience = 24 * time.Hour
)

// batch is what one call appends to a stream.
type batch struct {
	group  streams.Group
	stream string
	events []streams.Event
}

// owe puts into the outbox what events owe others: CloudWatch the metrics in them, in the embedded metric format or found by metric
// filters, and queues what subscription filters select. It runs before the events are stored, so that an acknowledged call loses nothing.
func (s *Service) owe(ctx context.Context, b *batch) ([]delivery.Debt, error) {
	if s.opts.Outbox == nil || len(b.events) == 0 {
		return nil, nil
	}
	found := map[string][]metrictypes.MetricDatum{} // by namespace
	for _, e := range b.events {
		for _, m := range emf.Parse(e.Message) {
			found[m.Namespace] = append(found[m.Namespace], datum(m))
		}
	}
	filters, err := s.filters.get(&b.group)
	if err != nil {
		return nil, err
	}
	if filters == nil && len(found) == 0 {
		return nil, nil // most calls
	}
	return s.oweFound(ctx, b, filters, found)
}

// oweFound owes the metrics that were found in events, and what a group's filters make of the events. filters may be nil.
func (s *Service) oweFound(
	ctx context.Context, b *batch, filters *compiled, found map[string][]metrictypes.MetricDatum,
) ([]delivery.Debt, error) {
	if filters == nil {
		return s.oweAll(ctx, found, nil, nil)
	}
	minutes := map[*metricFilter]bool{} // whether something matched the filters that have a default value
	for _, f := range filters.metrics {
		data, matched := f.apply(b.events)
		if len(data) > 0 {
			found[*f.to.MetricNamespace] = append(found[*f.to.MetricNamespace], data...)
		}
		if f.needsSaying(s.opts.Now(), matched) {
			minutes[f] = matched
		}
	}
	var messages []delivery.Debt
	ids := newEventIDs()
	for _, sub := range filters.subscriptions {
		debts, err := s.subscriptionDebts(ctx, sub, b, ids)
		if err != nil {
			return nil, err
		}
		messages = append(messages, debts...)
	}
	return s.oweAll(ctx, found, messages, minutes)
}

// oweAll puts metrics, messages, and what is to be said of the minute into the outbox.
func (s *Service) oweAll(
	ctx context.Context, metrics map[string][]metrictypes.MetricDatum, messages []delivery.Debt, minutes map[*metricFilter]bool,
) ([]delivery.Debt, error) {
	debts, err := s.metricDebts(metrics)
	if err != nil {
		return nil, err
	}
	debts = append(debts, messages...)
	if len(debts) == 0 && len(minutes) == 0 {
		return nil, nil
	}
	var said time.Time
	owed, err := s.opts.Outbox.Owe(ctx, func(now time.Time) []delivery.Debt {
		said = now
		all := slices.Clip(debts)
		for f, matched := range minutes {
			all = append(all, f.quiet(now, matched))
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	for f, matched := range minutes {
		f.say(minuteCode(said, matched))
	}
	return owed[:len(debts)], nil
}

// metricDebts returns the debts of metrics by namespace.
func (s *Service) metricDebts(found map[string][]metrictypes.MetricDatum) (debts []delivery.Debt, err error) {
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		for data := range slices.Chunk(found[namespace], maxData) {
			body, err := json.Marshal(cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data})
			if err != nil {
				return nil, err
			}
			debts = append(debts, delivery.Debt{Destination: metricsArn, Body: string(body), Until: s.opts.Now().Add(patience)})
		}
	}
	return debts, nil
}

// cancelDebts removes the debts of events that weren't stored. What was said of the minute stays: another call may have said it, too.
func (s *Service) cancelDebts(ctx context.Context, debts []delivery.Debt) (err error) {
	for _, d := range debts {
		err = errors.Join(err, s.opts.Outbox.Settle(context.WithoutCancel(ctx), d, nil))
	}
	return err
}

// ToMetrics returns the route that delivers metrics of events to CloudWatch. It drops metrics that CloudWatch refuses; they remain
// in the log.
func ToMetrics(metrics Metrics) delivery.Route {
	return delivery.Route{Prefix: metricsArn, Tell: func(ctx context.Context, d delivery.Debt) error {
		var in cloudwatch.PutMetricDataInput
		if err := json.Unmarshal([]byte(d.Body), &in); err != nil {
			return fmt.Errorf("%w: %w", delivery.ErrGone, err)
		}
		return put(ctx, metrics, *in.Namespace, in.MetricData)
	}}
}

// put puts metrics, one by one if CloudWatch refuses them together.
func put(ctx context.Context, metrics Metrics, namespace string, data []metrictypes.MetricDatum) error {
	_, err := metrics.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data})
	var refused smithy.APIError
	if err == nil || !errors.As(err, &refused) {
		return err
	}
	if len(data) == 1 {
		return nil
	}
	for _, d := range data {
		if err := put(ctx, metrics, namespace, []metrictypes.MetricDatum{d}); err != nil {
			return err
		}
	}
	return nil
}

func datum(m emf.Metric) metrictypes.MetricDatum {
	d := metrictypes.MetricDatum{MetricName: &m.Name, Timestamp: &m.At, Values: m.Values, Unit: metrictypes.StandardUnit(m.Unit)}
	if m.Resolution != 0 {
		d.StorageResolution = aws.Int32(int32(m.Resolution))
	}
	for _, dimension := range m.Dimensions {
		d.Dimensions = append(d.Dimensions, metrictypes.Dimension{Name: &dimension.Name, Value: &dimension.Value})
	}
	return d
}
