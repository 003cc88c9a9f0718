// Package alarm decides the states of CloudWatch alarms. Evaluate decides a metric alarm's state from its
// data points and gives the reason; ParseRule and Rule.Eval decide a composite alarm's. It is pure: the caller
// fetches the data points and keeps the state. It follows the CloudWatch User Guide's pages "Alarm evaluation"
// and "Configuring how CloudWatch alarms treat missing data".
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

// The values of PutMetricAlarm's TreatMissingData.
const (
	Breaching    = "breaching"
	NotBreaching = "notBreaching"
	Ignore       = "ignore"
	AsMissing    = "missing"
)

// Metric is what Evaluate needs to know about a metric alarm. The names are PutMetricAlarm's.
type Metric struct {
	ComparisonOperator string
	Threshold          float64
	EvaluationPeriods  int
	DatapointsToAlarm  int // 0 means EvaluationPeriods
	Period             time.Duration
	Statistic          string // or the extended statistic, such as "p99"; empty for metric math
	Unit               string
	TreatMissingData   string // empty means "missing"
	// EvaluateLowSampleCountPercentile is "evaluate" or "ignore". Empty means "evaluate".
	EvaluateLowSampleCountPercentile string
}

// Datapoint is the metric's value for one period.
type Datapoint struct {
	Timestamp   time.Time // the period's start
	Value       float64
	SampleCount float64
	// Lower and Upper limit the band, if the alarm compares with a band instead of a threshold.
	Lower, Upper float64
}

// Evaluation is the result of evaluating an alarm.
type Evaluation struct {
	State  State
	Reason string     // DescribeAlarms' StateReason; empty if the state doesn't change
	Data   ReasonData // DescribeAlarms' StateReasonData
}

// comparison implements a comparison operator.
type comparison struct {
	breaches func(p Datapoint, threshold float64) bool
	words    string // for the reason
}

var comparisons = map[string]comparison{
	"GreaterThanOrEqualToThreshold": {func(p Datapoint, t float64) bool { return p.Value >= t }, "greater than or equal to the threshold"},
	"GreaterThanThreshold":          {func(p Datapoint, t float64) bool { return p.Value > t }, "greater than the threshold"},
	"LessThanThreshold":             {func(p Datapoint, t float64) bool { return p.Value < t }, "less than the threshold"},
	"LessThanOrEqualToThreshold":    {func(p Datapoint, t float64) bool { return p.Value <= t }, "less than or equal to the threshold"},
}

// bandComparisons holds the operators that compare with a band.
var bandComparisons = map[string]comparison{
	"LessThanLowerOrGreaterThanUpperThreshold": {
		func(p Datapoint, _ float64) bool { return p.Value < p.Lower || p.Value > p.Upper },
		"outside the band",
	},
	"LessThanLowerThreshold": {
		func(p Datapoint, _ float64) bool { return p.Value < p.Lower },
		"less than the lower thresholds",
	},
	"GreaterThanUpperThreshold": {
		func(p Datapoint, _ float64) bool { return p.Value > p.Upper },
		"greater than the upper thresholds",
	},
}

// Banded reports whether the alarm compares with a band.
func (m Metric) Banded() bool { return bandComparisons[m.ComparisonOperator].breaches != nil }

func (m Metric) comparison() comparison {
	if m.Banded() {
		return bandComparisons[m.ComparisonOperator]
	}
	return comparisons[m.ComparisonOperator]
}

// Check refuses what CloudWatch would refuse and names the field.
func (m Metric) Check() error {
	switch {
	case m.comparison().breaches == nil:
		return fmt.Errorf(
			"ComparisonOperator must be one of %s, not %q",
			strings.Join(slices.Concat(slices.Sorted(maps.Keys(comparisons)), slices.Sorted(maps.Keys(bandComparisons))), ", "),
			m.ComparisonOperator,
		)
	case m.EvaluationPeriods < 1:
		return fmt.Errorf("EvaluationPeriods must be at least 1, not %d", m.EvaluationPeriods)
	case m.DatapointsToAlarm < 0 || m.DatapointsToAlarm > m.EvaluationPeriods:
		return fmt.Errorf(
			"DatapointsToAlarm must be between 1 and EvaluationPeriods, which is %d, not %d",
			m.EvaluationPeriods, m.DatapointsToAlarm,
		)
	case !slices.Contains([]string{"", Breaching, NotBreaching, Ignore, AsMissing}, m.TreatMissingData):
		return fmt.Errorf("TreatMissingData must be breaching, notBreaching, ignore or missing, not %q", m.TreatMissingData)
	case !slices.Contains([]string{"", "evaluate", "ignore"}, m.EvaluateLowSampleCountPercentile):
		return fmt.Errorf("EvaluateLowSampleCountPercentile must be evaluate or ignore, not %q", m.EvaluateLowSampleCountPercentile)
	}
	return m.checkPeriod()
}

// The longest time that an alarm may look back: a week with periods of an hour or more, otherwise a day.
const (
	day  = 24 * time.Hour
	week = 7 * day
)

// checkPeriod checks PutMetricAlarm's rule for periods: 10, 20, 30 or a multiple of 60 seconds, and all periods together
// no longer than a day, or than a week if a period has an hour or more.
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

// toAlarm returns M of "M out of N".
func (m Metric) toAlarm() int {
	if m.DatapointsToAlarm == 0 {
		return m.EvaluationPeriods
	}
	return m.DatapointsToAlarm
}

// extraPeriods is how many periods longer than EvaluationPeriods the evaluation range is. CloudWatch documents
// only one example: 5 for 3.
const extraPeriods = 2

// Range returns the evaluation range at a time: data points that start in [from, to). It excludes the current period.
func (m Metric) Range(now time.Time) (from, to time.Time) {
	to = now.Truncate(m.Period)
	return to.Add(-time.Duration(m.EvaluationPeriods+extraPeriods) * m.Period), to
}

// Evaluate decides the state of an alarm that is in state before. The data points are those of the evaluation
// range at now, oldest first, without entries for missing data.
func (m Metric) Evaluate(before State, points []Datapoint, now time.Time) Evaluation {
	v := m.verdict(points, now)
	state := m.state(v)
	if state == "" || state == before {
		return Evaluation{State: before}
	}
	return Evaluation{State: state, Reason: m.reason(state, v), Data: m.data(v, now)}
}

// state returns the state that follows from a verdict, or "" if the alarm keeps its state.
func (m Metric) state(v verdict) State {
	switch {
	case m.hasFewSamples(v.real):
		return ""
	case v.breaching+v.asBreaching >= m.toAlarm():
		return Alarming
	case v.missing == 0, v.breaching < len(v.real), m.TreatMissingData == NotBreaching:
		return OK
	case m.TreatMissingData == Ignore:
		return ""
	case v.oldest >= m.toAlarm():
		return Alarming // all existing data breaches, for long enough not to be "premature"
	}
	return InsufficientData
}

// verdict counts the data points that decide the state.
type verdict struct {
	real        []Datapoint // the newest, at most EvaluationPeriods
	breaching   int         // how many of real breach
	missing     int         // EvaluationPeriods minus the number of real
	asBreaching int         // how many missing ones are treated as breaching
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

// hasFewSamples reports whether the alarm must ignore a percentile because it has too few samples.
func (m Metric) hasFewSamples(points []Datapoint) bool {
	percent, ok := strings.CutPrefix(m.Statistic, "p")
	p, err := strconv.ParseFloat(percent, 64)
	if !ok || err != nil || m.EvaluateLowSampleCountPercentile != "ignore" || len(points) == 0 {
		return false
	}
	samples := 0.0
	for _, d := range points {
		samples += d.SampleCount
	}
	tail := min(p, 100-p) / 100 // the share of samples on the percentile's smaller side
	return samples*tail < 10
}
