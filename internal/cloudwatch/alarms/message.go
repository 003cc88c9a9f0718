package alarms

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

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
		"StateChangeTime": stamp(&now),
	}
	if metric := a.Metric; metric != nil {
		m["AlarmDescription"] = metric.AlarmDescription
		m["AlarmConfigurationUpdatedTimestamp"] = stamp(metric.AlarmConfigurationUpdatedTimestamp)
		m["Trigger"] = trigger(a)
		addActions(m, metric.OKActions, metric.AlarmActions, metric.InsufficientDataActions)
		return m
	}
	m["AlarmDescription"] = a.Composite.AlarmDescription
	m["AlarmConfigurationUpdatedTimestamp"] = stamp(a.Composite.AlarmConfigurationUpdatedTimestamp)
	m["AlarmRule"] = a.Composite.AlarmRule
	addActions(m, a.Composite.OKActions, a.Composite.AlarmActions, a.Composite.InsufficientDataActions)
	return m
}

func addActions(m map[string]any, ok, alarm, insufficient []string) {
	m["OKActions"] = append([]string{}, ok...)
	m["AlarmActions"] = append([]string{}, alarm...)
	m["InsufficientDataActions"] = append([]string{}, insufficient...)
}

// stamp formats a time as CloudWatch's messages have it.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000-0700")
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
		"StatisticType":      statisticType(m),
		"Statistic":          strings.ToUpper(string(m.Statistic)),
		"ExtendedStatistic":  m.ExtendedStatistic,
		"Unit":               m.Unit,
		"Period":             m.Period,
		"EvaluationPeriods":  m.EvaluationPeriods,
		"DatapointsToAlarm":  m.DatapointsToAlarm,
		"Metrics":            m.Metrics,
		"ComparisonOperator": m.ComparisonOperator,
		"Threshold":          m.Threshold,
		"TreatMissingData":   m.TreatMissingData,
	}
}

// statisticType returns which of the two members has the statistic.
func statisticType(m *types.MetricAlarm) string {
	if m.ExtendedStatistic != nil {
		return "ExtendedStatistic"
	}
	return "Statistic"
}

func encode(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // can't happen: it holds only numbers and text
	}
	return string(b)
}
