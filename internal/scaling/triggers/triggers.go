// Package triggers is what scaling loops have in common: which scheduled actions are due, which alarms there are, by the actions that
// they take in their state, when a policy is to heed them, and what their metrics were. It asks CloudWatch as an SDK client would, and
// decides nothing.
package triggers

import (
	"context"
	"slices"
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

// Triggers are alarms that policies act on. Its methods are to be called from one goroutine.
type Triggers struct {
	cloudWatch CloudWatch
	metrics    *metrics.Store // nil reads no further than the last full period
	// heeded is when each alarm that takes actions in its state was acted upon last. A restart acts once more, which
	// the cool-downs bear.
	heeded map[string]time.Time
}

// New returns the alarms of CloudWatch. With metrics, those of less than a minute are read up to now.
func New(cloudWatch CloudWatch, metrics *metrics.Store) *Triggers {
	return &Triggers{cloudWatch: cloudWatch, metrics: metrics, heeded: map[string]time.Time{}}
}

// actionPrefix is what the ARNs of policies begin with.
const actionPrefix = "arn:aws:autoscaling:"

// Acting are the alarms, by each action that they take in the state that they are in.
func (t *Triggers) Acting(ctx context.Context) (map[string][]types.MetricAlarm, error) {
	out := map[string][]types.MetricAlarm{}
	in := &cloudwatch.DescribeAlarmsInput{ActionPrefix: aws.String(actionPrefix), AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}, MaxRecords: aws.Int32(100)}
	for {
		page, err := t.cloudWatch.DescribeAlarms(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, a := range page.MetricAlarms {
			if !aws.ToBool(a.ActionsEnabled) {
				continue
			}
			actions := map[types.StateValue][]string{
				types.StateValueAlarm: a.AlarmActions, types.StateValueOk: a.OKActions, types.StateValueInsufficientData: a.InsufficientDataActions,
			}
			for _, action := range actions[a.StateValue] {
				out[action] = append(out[action], a)
			}
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			return out, nil
		}
	}
}

// Heed says which actions are to be taken now, and remembers that they are: when an alarm gets to a state, and then every
// period that it stays there, as CloudWatch does for scaling actions.
func (t *Triggers) Heed(alarms map[string][]types.MetricAlarm, now time.Time) map[string]bool {
	due, still := map[string]bool{}, map[string]time.Time{}
	for action, list := range alarms {
		for _, a := range list {
			last, known := t.heeded[*a.AlarmName]
			if !known || now.Sub(last) >= metricquery.PeriodOfAlarm(&a) || aws.ToTime(a.StateUpdatedTimestamp).After(last) {
				due[action], last = true, now
			}
			still[*a.AlarmName] = last
		}
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
