package alarms

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/state"
)

// change is an alarm's new state.
type change struct {
	alarm *state.Alarm // the row that was evaluated
	to    state.AlarmState
}

// Round evaluates the metric alarms that are due at a time and commits all changes together.
func Round(ctx context.Context, store *state.Store, opts Options, due time.Time) error {
	fast := func(m *types.MetricAlarm) bool { return opts.Arrivals != nil && metricquery.PeriodOfAlarm(m) < long }
	err := round(ctx, store, opts, due, func(m *types.MetricAlarm) bool { return !fast(m) && isDue(m, due) }, false)
	if err != nil || opts.Arrivals == nil {
		return err
	}
	return round(ctx, store, opts, opts.latest(), fast, true) // data for some may have stopped arriving
}

// round evaluates the selected metric alarms at now and commits all changes together. With sliding, their periods
// end at now.
func round(
	ctx context.Context, store *state.Store, opts Options, now time.Time, selected func(*types.MetricAlarm) bool, sliding bool,
) error {
	var changes []change
	view := store.View()
	for a := range view.Alarms.All() {
		if a.Metric == nil || !selected(a.Metric) {
			continue
		}
		to, err := judge(opts, view, a, now, sliding)
		if err != nil { // goes into the reason, as in CloudWatch
			to = state.AlarmState{Value: types.StateValueInsufficientData, Reason: "The alarm cannot be evaluated: " + err.Error()}
		}
		if to.Value != a.Metric.StateValue || err != nil && to.Reason != aws.ToString(a.Metric.StateReason) {
			changes = append(changes, change{a, to})
		}
	}
	if len(changes) == 0 {
		return ctx.Err()
	}
	return store.Update(ctx, func(tx *state.Tx) error {
		for _, c := range changes {
			if tx.Alarms.Get(c.alarm.Name()) == c.alarm { // otherwise somebody changed it meanwhile, and the next round evaluates it
				tx.SetAlarmState(c.alarm, c.to, opts.Now())
			}
		}
		return nil
	})
}

func isDue(m *types.MetricAlarm, due time.Time) bool {
	p := metricquery.PeriodOfAlarm(m)
	return due.Equal(due.Truncate(min(p, long))) || p == 20*time.Second && due.Equal(due.Truncate(short))
}

// judge returns the state that follows from an alarm's data points.
func judge(opts Options, view *state.View, a *state.Alarm, now time.Time, sliding bool) (state.AlarmState, error) {
	m := metricOf(a.Metric)
	from, until := m.Range(now)
	if sliding {
		from, until = from.Add(now.Sub(until)), now
	}
	points, err := datapoints(opts, view, a.Metric, from, until, sliding)
	if err != nil {
		return state.AlarmState{}, err
	}
	e := m.Evaluate(alarm.State(a.Metric.StateValue), points, now)
	to := state.AlarmState{Value: types.StateValue(e.State), Reason: e.Reason}
	if to.Value != a.Metric.StateValue {
		to.Data = e.Data.JSON()
	}
	return to, nil
}

// metricOf converts an alarm for package alarm.
func metricOf(m *types.MetricAlarm) alarm.Metric {
	return alarm.Metric{
		ComparisonOperator:               string(m.ComparisonOperator),
		Threshold:                        aws.ToFloat64(m.Threshold),
		EvaluationPeriods:                int(aws.ToInt32(m.EvaluationPeriods)),
		DatapointsToAlarm:                int(aws.ToInt32(m.DatapointsToAlarm)),
		Period:                           metricquery.PeriodOfAlarm(m),
		Statistic:                        cmp.Or(aws.ToString(m.ExtendedStatistic), string(m.Statistic)),
		Unit:                             string(m.Unit),
		TreatMissingData:                 aws.ToString(m.TreatMissingData),
		EvaluateLowSampleCountPercentile: aws.ToString(m.EvaluateLowSampleCountPercentile),
	}
}

// datapoints reads the data points that an alarm watches.
func datapoints(opts Options, view *state.View, m *types.MetricAlarm, from, to time.Time, sliding bool) ([]alarm.Datapoint, error) {
	query, err := metricquery.New(metricquery.OfAlarm(m))
	if err != nil {
		return nil, err
	}
	if sliding {
		query = query.Ending(to)
	}
	view.Detect(query.Detect, m.Metrics, query.Banded())
	result, err := query.Run(opts.Metrics, from, to)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(result.Answers, func(a metricquery.Answer) bool { return a.ID != aws.ToString(m.ThresholdMetricId) })
	if i < 0 {
		return nil, errors.New("no query returns data")
	}
	points := make([]alarm.Datapoint, len(result.Answers[i].Points))
	for i, p := range result.Answers[i].Points {
		points[i] = alarm.Datapoint{Timestamp: p.At, Value: p.Value, SampleCount: p.SampleCount}
	}
	if m.ThresholdMetricId != nil {
		return banded(points, result.Answers, *m.ThresholdMetricId), nil
	}
	return points, nil
}

// banded adds to the data points the band that an expression returns as two time series: the upper limit, then the
// lower. A data point without both limits is dropped; expressions that compute with a band may lack one.
func banded(points []alarm.Datapoint, answers []metricquery.Answer, id string) []alarm.Datapoint {
	i := slices.IndexFunc(answers, func(a metricquery.Answer) bool { return a.ID == id })
	if i < 0 || i+1 == len(answers) || answers[i+1].ID != id {
		return nil
	}
	upper, lower := bySecond(answers[i]), bySecond(answers[i+1])
	var out []alarm.Datapoint
	for _, p := range points {
		u, above := upper[p.Timestamp.Unix()]
		l, below := lower[p.Timestamp.Unix()]
		if above && below {
			p.Lower, p.Upper = l, u
			out = append(out, p)
		}
	}
	return out
}

func bySecond(a metricquery.Answer) map[int64]float64 {
	out := map[int64]float64{}
	for _, p := range a.Points {
		out[p.At.Unix()] = p.Value
	}
	return out
}
