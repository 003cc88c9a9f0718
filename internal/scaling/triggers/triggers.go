// Package triggers is what scaling loops have in common: which scheduled actions are due, which alarms there are, by the actions that
// they take in their state, when a policy is to heed them, and what their metrics were. It asks CloudWatch as an SDK client would, and
// decides nothing.
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
)

// CloudWatch is where alarms and metrics are read.
type CloudWatch interface {
	DescribeAlarms(context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error)
	GetMetricData(context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error)
}

// Triggers are alarms that policies act on. Only Tell may be called from several goroutines.
type Triggers struct {
	cloudWatch CloudWatch
	metrics    *metrics.Store // nil reads no further than the last full period
	wake       chan struct{}  // has a value when an alarm was told

	mu   sync.Mutex
	told map[string]bool // names of alarms that have come to a state whose actions are policies

	// acting are the alarms that took actions in their state when they were looked at last, and heeded is when each was acted upon.
	// nil is a start: a restart looks at all alarms and acts once more, which the cool-downs bear.
	acting map[string]types.MetricAlarm
	heeded map[string]heeded
}

// heeded is when an alarm was acted upon, and when it is again if it stays in its state.
type heeded struct{ at, again time.Time }

// New returns the alarms of CloudWatch. With metrics, those of less than a minute are read up to now.
func New(cloudWatch CloudWatch, metrics *metrics.Store) *Triggers {
	return &Triggers{cloudWatch: cloudWatch, metrics: metrics, wake: make(chan struct{}, 1), told: map[string]bool{}}
}

// Tell says that an alarm has come to a state that has policies as actions.
func (t *Triggers) Tell(alarm string) {
	t.mu.Lock()
	t.told[alarm] = true
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it is awake
	}
}

// Told has a value when an alarm was told.
func (t *Triggers) Told() <-chan struct{} { return t.wake }

// actionPrefix is what the ARNs of policies begin with.
const actionPrefix = "arn:aws:autoscaling:"

// Due are the actions that are to be taken now: when an alarm gets to a state, and then every period that it stays there, as CloudWatch
// does for scaling actions. It remembers that they are. alarms are all those that act, by action; where nothing is due, and they
// need not be fresh, they are as they were.
func (t *Triggers) Due(ctx context.Context, now time.Time, fresh bool) (due map[string]bool, alarms map[string][]types.MetricAlarm, err error) {
	names := t.names(now, fresh)
	if t.acting == nil || len(names) > 0 {
		if err := t.look(ctx, names); err != nil {
			t.restore(names)
			return nil, nil, err
		}
		due = t.heed(now)
	}
	alarms = map[string][]types.MetricAlarm{}
	for _, name := range slices.Sorted(maps.Keys(t.acting)) {
		for _, action := range actions(t.acting[name]) {
			alarms[action] = append(alarms[action], t.acting[name])
		}
	}
	return due, alarms, nil
}

// names are the alarms to look at: none, or those that were told and all that acted, some of which are due.
func (t *Triggers) names(now time.Time, fresh bool) map[string]bool {
	t.mu.Lock()
	names := t.told
	t.told = map[string]bool{}
	t.mu.Unlock()
	looks := fresh || len(names) > 0
	for _, h := range t.heeded {
		looks = looks || !h.again.After(now)
	}
	if !looks {
		return nil
	}
	for name := range t.acting {
		names[name] = true
	}
	return names
}

// restore has alarms told again that could not be read.
func (t *Triggers) restore(names map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.told, names)
}

// maxNames is how many alarms one call of DescribeAlarms tells of.
const maxNames = 100

// look reads the alarms of some names, or all of them at a start, and keeps those that act.
func (t *Triggers) look(ctx context.Context, names map[string]bool) error {
	in := cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}, MaxRecords: aws.Int32(maxNames)}
	acting := map[string]types.MetricAlarm{}
	if t.acting == nil {
		in.ActionPrefix = aws.String(actionPrefix)
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

// read reads alarms, page by page, into those that act.
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

// actions are what an alarm does in the state that it is in.
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

// heed says which actions are to be taken now, and remembers that they are.
func (t *Triggers) heed(now time.Time) map[string]bool {
	due, still := map[string]bool{}, map[string]heeded{}
	for name, a := range t.acting {
		last, known := t.heeded[name]
		if !known || !last.again.After(now) || aws.ToTime(a.StateUpdatedTimestamp).After(last.at) {
			for _, action := range actions(a) {
				due[action] = true
			}
			last = heeded{now, now.Add(metricquery.PeriodOfAlarm(&a))}
		}
		still[name] = last
	}
	t.heeded = still
	return due
}

// Point is a data point.
type Point struct {
	At    time.Time
	Value float64
}

// Points are the data points of an alarm's evaluation periods, the newest first.
func (t *Triggers) Points(ctx context.Context, a types.MetricAlarm, now time.Time) (points []Point, err error) {
	length := metricquery.PeriodOfAlarm(&a)
	if t.metrics != nil && length < time.Minute {
		return t.latest(a, length, now)
	}
	end := now.Truncate(length)
	start := end.Add(-time.Duration(max(1, aws.ToInt32(a.EvaluationPeriods))) * length)
	out, err := t.cloudWatch.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: &start, EndTime: &end, ScanBy: types.ScanByTimestampDescending, MetricDataQueries: metricquery.OfAlarm(&a),
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

// latest are the data points of an alarm's evaluation periods, if the last one ended now.
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
