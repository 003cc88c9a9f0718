// Package alarm is the evaluation of CloudWatch alarms: Evaluate says in which state a metric alarm's
// data points put it and why, ParseRule and Rule.Eval do so for composite alarms. It is pure: who
// evaluates alarms fetches the data points and keeps the state. It follows the CloudWatch User Guide's
// pages "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data".
package alarm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is an alarm's state.
type State string

// The states of an alarm.
const (
	OK               State = "OK"
	Alarming         State = "ALARM"
	InsufficientData State = "INSUFFICIENT_DATA"
)

// The treatments of missing data, as PutMetricAlarm's TreatMissingData names them.
const (
	Breaching    = "breaching"
	NotBreaching = "notBreaching"
	Ignore       = "ignore"
	AsMissing    = "missing"
)

// Metric is what Evaluate needs to know of a metric alarm. The names are PutMetricAlarm's.
type Metric struct {
	ComparisonOperator string
	Threshold          float64
	EvaluationPeriods  int
	DatapointsToAlarm  int // 0: as many as EvaluationPeriods
	Period             time.Duration
	Statistic          string // or the extended one: "p99"; empty for metric math
	Unit               string
	TreatMissingData   string // empty: missing
	// EvaluateLowSampleCountPercentile is "evaluate" or "ignore"; empty: evaluate.
	EvaluateLowSampleCountPercentile string
}

// Datapoint is the metric's value for one period.
type Datapoint struct {
	Timestamp   time.Time // of the period's start
	Value       float64
	SampleCount float64
	// Lower and Upper are the band that the value is compared with, where the alarm has one instead of a threshold.
	Lower, Upper float64
}

// Evaluation is what an alarm's data points come to.
type Evaluation struct {
	State State
	// Reason is DescribeAlarms' StateReason; empty where the state stays.
	Reason string
	// Data is StateReasonData.
	Data ReasonData
}

// comparison is how a comparison operator compares, and how a reason says so.
type comparison struct {
	breaches func(p Datapoint, threshold float64) bool
	says     string
}

var comparisons = map[string]comparison{
	"GreaterThanOrEqualToThreshold": {func(p Datapoint, t float64) bool { return p.Value >= t }, "greater than or equal to the threshold"},
	"GreaterThanThreshold":          {func(p Datapoint, t float64) bool { return p.Value > t }, "greater than the threshold"},
	"LessThanThreshold":             {func(p Datapoint, t float64) bool { return p.Value < t }, "less than the threshold"},
	"LessThanOrEqualToThreshold":    {func(p Datapoint, t float64) bool { return p.Value <= t }, "less than or equal to the threshold"},
}

// bandComparisons are the operators that compare with a band.
var bandComparisons = map[string]comparison{
	"LessThanLowerOrGreaterThanUpperThreshold": {func(p Datapoint, _ float64) bool { return p.Value < p.Lower || p.Value > p.Upper }, "outside the band"},
	"LessThanLowerThreshold":                   {func(p Datapoint, _ float64) bool { return p.Value < p.Lower }, "less than the lower thresholds"},
	"GreaterThanUpperThreshold":                {func(p Datapoint, _ float64) bool { return p.Value > p.Upper }, "greater than the upper thresholds"},
}

// Banded reports whether the alarm compares with a band.
func (m Metric) Banded() bool { return bandComparisons[m.ComparisonOperator].breaches != nil }

func (m Metric) comparison() comparison {
	if m.Banded() {
		return bandComparisons[m.ComparisonOperator]
	}
	return comparisons[m.ComparisonOperator]
}

// Check refuses what CloudWatch would refuse, naming the field.
func (m Metric) Check() error {
	switch {
	case m.comparison().breaches == nil:
		return fmt.Errorf("ComparisonOperator must be one of %s, not %q", strings.Join(slices.Sorted(maps.Keys(comparisons)), ", "), m.ComparisonOperator)
	case m.EvaluationPeriods < 1:
		return fmt.Errorf("EvaluationPeriods must be at least 1, not %d", m.EvaluationPeriods)
	case m.DatapointsToAlarm < 0 || m.DatapointsToAlarm > m.EvaluationPeriods:
		return fmt.Errorf("DatapointsToAlarm must be between 1 and EvaluationPeriods, which is %d, not %d", m.EvaluationPeriods, m.DatapointsToAlarm)
	case !slices.Contains([]string{"", Breaching, NotBreaching, Ignore, AsMissing}, m.TreatMissingData):
		return fmt.Errorf("TreatMissingData must be breaching, notBreaching, ignore or missing, not %q", m.TreatMissingData)
	case !slices.Contains([]string{"", "evaluate", "ignore"}, m.EvaluateLowSampleCountPercentile):
		return fmt.Errorf("EvaluateLowSampleCountPercentile must be evaluate or ignore, not %q", m.EvaluateLowSampleCountPercentile)
	}
	return m.checkPeriod()
}

// The longest time that an alarm may look back on, by its period.
const (
	day  = 24 * time.Hour
	week = 7 * day
)

// checkPeriod is PutMetricAlarm's rule of periods: 10, 20, 30 seconds or a multiple of 60, and no more in all than a
// day, or a week where periods are of an hour or more.
func (m Metric) checkPeriod() error {
	short := m.Period == 10*time.Second || m.Period == 20*time.Second || m.Period == 30*time.Second
	if !short && (m.Period < time.Minute || m.Period%time.Minute != 0) {
		return fmt.Errorf("the Period must be 10, 20, 30 or a multiple of 60 seconds, not %v", m.Period.Seconds())
	}
	longest := day
	if m.Period >= time.Hour {
		longest = week
	}
	if m.Period > longest || time.Duration(m.EvaluationPeriods) > longest/m.Period {
		return fmt.Errorf("EvaluationPeriods times Period must be at most %v seconds", longest.Seconds())
	}
	return nil
}

// toAlarm is M of "M out of N".
func (m Metric) toAlarm() int {
	if m.DatapointsToAlarm == 0 {
		return m.EvaluationPeriods
	}
	return m.DatapointsToAlarm
}

// extra is by how many periods the evaluation range is longer than EvaluationPeriods. CloudWatch tells
// only the one of its examples: 5 for 3.
const extra = 2

// Range is the evaluation range at a time: data points that start in [from, to). The period that is
// still going on is not in it.
func (m Metric) Range(now time.Time) (from, to time.Time) {
	to = now.Truncate(m.Period)
	return to.Add(-time.Duration(m.EvaluationPeriods+extra) * m.Period), to
}

// Evaluate says which state the data points put the alarm in, which is in state before. The data
// points are those of the evaluation range at the time, oldest first, none where data is missing.
func (m Metric) Evaluate(before State, points []Datapoint, now time.Time) Evaluation {
	v := m.verdict(points, now)
	state := m.state(v)
	if state == "" || state == before {
		return Evaluation{State: before}
	}
	return Evaluation{State: state, Reason: m.reason(state, v), Data: m.data(v, now)}
}

// state is the state that follows from a verdict, "" where the alarm keeps the one that it has.
func (m Metric) state(v verdict) State {
	switch {
	case m.fewSamples(v.real):
		return ""
	case v.breaching+v.asBreaching >= m.toAlarm():
		return Alarming
	case v.missing == 0, v.breaching < len(v.real), m.TreatMissingData == NotBreaching:
		return OK
	case m.TreatMissingData == Ignore:
		return ""
	case v.oldest >= m.toAlarm():
		return Alarming // all that is there breaches, for long enough: no longer "premature"
	}
	return InsufficientData
}

// verdict counts what counts.
type verdict struct {
	real        []Datapoint // the newest, at most EvaluationPeriods
	breaching   int         // of them
	missing     int         // how many more it would take
	asBreaching int         // missing ones that are treated as breaching
	oldest      int         // how many periods ago the oldest of real was; 1 is the last period
}

func (m Metric) verdict(points []Datapoint, now time.Time) verdict {
	v := verdict{real: points[max(0, len(points)-m.EvaluationPeriods):]}
	v.missing = m.EvaluationPeriods - len(v.real)
	for _, p := range v.real {
		if m.breaches(p) {
			v.breaching++
		}
	}
	if m.TreatMissingData == Breaching {
		v.asBreaching = v.missing
	}
	if len(v.real) > 0 {
		_, to := m.Range(now)
		v.oldest = int(to.Sub(v.real[0].Timestamp) / m.Period)
	}
	return v
}

func (m Metric) breaches(p Datapoint) bool {
	return m.comparison().breaches(p, m.Threshold)
}

// fewSamples reports whether a percentile is to be ignored because it stands on too few samples.
func (m Metric) fewSamples(points []Datapoint) bool {
	percent, ok := strings.CutPrefix(m.Statistic, "p")
	p, err := strconv.ParseFloat(percent, 64)
	if !ok || err != nil || m.EvaluateLowSampleCountPercentile != "ignore" || len(points) == 0 {
		return false
	}
	samples := 0.0
	for _, d := range points {
		samples += d.SampleCount
	}
	tail := min(p, 100-p) / 100 // the part of samples on the percentile's thinner side
	return samples*tail < 10
}
