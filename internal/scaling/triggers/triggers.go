// Package triggers tells the scaling loops what to act on: scheduled actions that are due, and alarms whose actions are policies,
// with the time to act and their metrics. It asks CloudWatch as an SDK client would, and decides no capacity. The loops of
// Application Auto Scaling and of Auto Scaling groups call it.
package triggers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// CloudWatch is where alarms and metrics are read.
type CloudWatch interface {
	DescribeAlarms(context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error)
	GetMetricData(context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error)
}

// Triggers are alarms that policies act on. Only Tell may be called from several goroutines.
type Triggers struct {
	cloudWatch CloudWatch
	metrics    *metrics.Store // if nil, points end with the last full period
	wake       chan struct{}  // has a value after Tell

	mu   sync.Mutex
	told map[string]bool // names of alarms that changed to a state with policies as actions

	// acting are the alarms that had actions in their state when we last read them. It's nil at a start: then we read all alarms and
	// act on them once more, which the cool-downs absorb.
	acting map[string]types.MetricAlarm
	acted  map[string]acted
}

// acted is when we acted on an alarm.
type acted struct {
	at   time.Time
	next time.Time // when to act again if the alarm stays in its state
}

// New returns the triggers of CloudWatch's alarms. With metrics, alarms with periods below a minute are read up to now.
func New(cloudWatch CloudWatch, metrics *metrics.Store) *Triggers {
	return &Triggers{cloudWatch: cloudWatch, metrics: metrics, wake: make(chan struct{}, 1), told: map[string]bool{}}
}

// Tell queues an alarm that has changed to a state with policies as actions.
func (t *Triggers) Tell(alarm string) {
	t.mu.Lock()
	t.told[alarm] = true
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // already woken
	}
}

// Told returns a channel that has a value after Tell.
func (t *Triggers) Told() <-chan struct{} { return t.wake }

// Due returns the actions to take now, and marks them as taken. An action is due when its alarm changes to a state, and then once a
// period while the alarm stays there, as CloudWatch does for scaling actions. alarms are all those that act, by action. Unless fresh
// is set or something is due, they're as last read.
func (t *Triggers) Due(
	ctx context.Context, now time.Time, fresh bool,
) (due map[string]bool, alarms map[string][]types.MetricAlarm, err error) {
	names := t.names(now, fresh)
	if t.acting == nil || len(names) > 0 {
		if err := t.refresh(ctx, names); err != nil {
			t.restore(names)
			return nil, nil, err
		}
		due = t.takeDue(now)
	}
	alarms = map[string][]types.MetricAlarm{}
	for _, name := range slices.Sorted(maps.Keys(t.acting)) {
		for _, action := range actions(t.acting[name]) {
			alarms[action] = append(alarms[action], t.acting[name])
		}
	}
	return due, alarms, nil
}

// names returns the alarms to read: none if nothing is due, else those that were told and all that acted.
func (t *Triggers) names(now time.Time, fresh bool) map[string]bool {
	t.mu.Lock()
	names := t.told
	t.told = map[string]bool{}
	t.mu.Unlock()
	needed := fresh || len(names) > 0
	for _, a := range t.acted {
		needed = needed || !a.next.After(now)
	}
	if !needed {
		return nil
	}
	for name := range t.acting {
		names[name] = true
	}
	return names
}

// restore queues alarms again that couldn't be read.
func (t *Triggers) restore(names map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.told, names)
}

// maxNames is the most alarms that DescribeAlarms returns in one call.
const maxNames = 100

// refresh reads the named alarms, or all of them at a start, and keeps those that act.
func (t *Triggers) refresh(ctx context.Context, names map[string]bool) error {
	in := cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}, MaxRecords: aws.Int32(maxNames)}
	acting := map[string]types.MetricAlarm{}
	if t.acting == nil {
		in.ActionPrefix = aws.String(state.PolicyPrefix)
		if err := t.read(ctx, in, acting); err != nil {
			return err
		}
		t.acting = acting
		return nil
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(names)), maxNames) {
		in.AlarmNames = chunk
		if err := t.read(ctx, in, acting); err != nil {
			return err
		}
	}
	t.acting = acting
	return nil
}

// read adds the alarms that act to acting, page by page.
func (t *Triggers) read(ctx context.Context, in cloudwatch.DescribeAlarmsInput, acting map[string]types.MetricAlarm) error {
	for {
		page, err := t.cloudWatch.DescribeAlarms(ctx, &in)
		if err != nil {
			return err
		}
		for _, a := range page.MetricAlarms {
			if len(actions(a)) > 0 {
				acting[*a.AlarmName] = a
			}
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			return nil
		}
	}
}

// actions returns the alarm's actions for its current state.
func actions(a types.MetricAlarm) []string {
	if !aws.ToBool(a.ActionsEnabled) {
		return nil
	}
	switch a.StateValue {
	case types.StateValueAlarm:
		return a.AlarmActions
	case types.StateValueOk:
		return a.OKActions
	}
	return a.InsufficientDataActions
}

// takeDue returns the actions to take now, and marks them as taken.
func (t *Triggers) takeDue(now time.Time) map[string]bool {
	due := map[string]bool{}
	still := map[string]acted{}
	for name, a := range t.acting {
		last, known := t.acted[name]
		if !known || !last.next.After(now) || aws.ToTime(a.StateUpdatedTimestamp).After(last.at) {
			for _, action := range actions(a) {
				due[action] = true
			}
			last = acted{now, now.Add(metricquery.PeriodOfAlarm(&a))}
		}
		still[name] = last
	}
	t.acted = still
	return due
}

// Point is a data point.
type Point struct {
	At    time.Time
	Value float64
}

// Points returns the data points of an alarm's evaluation periods, newest first.
func (t *Triggers) Points(ctx context.Context, a types.MetricAlarm, now time.Time) (points []Point, err error) {
	length := metricquery.PeriodOfAlarm(&a)
	if t.metrics != nil && length < time.Minute {
		return t.latest(a, length, now)
	}
	end := now.Truncate(length)
	start := end.Add(-time.Duration(max(1, aws.ToInt32(a.EvaluationPeriods))) * length)
	out, err := t.cloudWatch.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime:         &start,
		EndTime:           &end,
		ScanBy:            types.ScanByTimestampDescending,
		MetricDataQueries: metricquery.OfAlarm(&a),
	})
	if err != nil || len(out.MetricDataResults) == 0 {
		return nil, err
	}
	r := out.MetricDataResults[0]
	for i, at := range r.Timestamps[:min(len(r.Timestamps), len(r.Values))] {
		points = append(points, Point{at, r.Values[i]})
	}
	return points, nil
}

// latest returns the data points of an alarm's evaluation periods, as if the last period ended now.
func (t *Triggers) latest(a types.MetricAlarm, length time.Duration, now time.Time) (points []Point, err error) {
	query, err := metricquery.New(metricquery.OfAlarm(&a))
	if err != nil {
		return nil, err
	}
	end := now.Truncate(time.Second).Add(time.Second) // as the alarm saw it
	result, err := query.Ending(end).Run(t.metrics, end.Add(-time.Duration(max(1, aws.ToInt32(a.EvaluationPeriods)))*length), end)
	if err != nil || len(result.Answers) == 0 {
		return nil, err
	}
	for _, p := range slices.Backward(result.Answers[0].Points) {
		points = append(points, Point{p.At, p.Value})
	}
	return points, nil
}
