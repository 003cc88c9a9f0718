package alarms

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// subject returns the subject of CloudWatch's message to a topic.
func subject(a *state.Alarm, region string) string {
	return fmt.Sprintf("%s: %q in %s", a.State().Value, a.Name(), region)
}

// message returns CloudWatch's message to a topic about an alarm that owes its actions. Its keys are CloudWatch's.
func message(a *state.Alarm, opts Options, now time.Time) map[string]any {
	s := a.State()
	m := map[string]any{
		"AlarmName":       a.Name(),
		"AlarmArn":        a.Arn(),
		"AWSAccountId":    opts.Account,
		"Region":          opts.Region,
		"NewStateValue":   s.Value,
		"NewStateReason":  s.Reason,
		"OldStateValue":   a.Owed.From,
		"StateChangeTime": now.UTC().Format("2006-01-02T15:04:05.000-0700"),
	}
	if metric := a.Metric; metric != nil {
		m["AlarmDescription"] = metric.AlarmDescription
		m["Trigger"] = trigger(a)
		return m
	}
	m["AlarmDescription"] = a.Composite.AlarmDescription
	m["AlarmRule"] = a.Composite.AlarmRule
	return m
}

// trigger describes what a metric alarm watches.
func trigger(a *state.Alarm) map[string]any {
	m := a.Metric
	dimensions := []map[string]any{}
	for _, d := range m.Dimensions {
		dimensions = append(dimensions, map[string]any{"name": d.Name, "value": d.Value})
	}
	return map[string]any{
		"Namespace":          m.Namespace,
		"MetricName":         m.MetricName,
		"Dimensions":         dimensions,
		"Statistic":          strings.ToUpper(string(m.Statistic)),
		"ExtendedStatistic":  m.ExtendedStatistic,
		"Unit":               m.Unit,
		"Period":             m.Period,
		"EvaluationPeriods":  m.EvaluationPeriods,
		"Metrics":            m.Metrics,
		"ComparisonOperator": m.ComparisonOperator,
		"Threshold":          m.Threshold,
		"TreatMissingData":   m.TreatMissingData,
	}
}

func encode(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // can't happen: it holds only numbers and text
	}
	return string(b)
}
