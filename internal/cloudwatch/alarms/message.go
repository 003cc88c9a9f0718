package alarms

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
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
	m["TriggeringChildren"] = children(a)
	addActions(m, a.Composite.OKActions, a.Composite.AlarmActions, a.Composite.InsufficientDataActions)
	return m
}

// toFunction returns what CloudWatch invokes a function with, whose action it is:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
func toFunction(a *state.Alarm, opts Options, now time.Time) map[string]any {
	return map[string]any{
		"source":    "aws.cloudwatch",
		"alarmArn":  a.Arn(),
		"accountId": opts.Account,
		"region":    opts.Region,
		"time":      stamp(&now),
		"alarmData": a.Owed.Change,
	}
}

func addActions(m map[string]any, ok, alarm, insufficient []string) {
	m["OKActions"] = append([]string{}, ok...)
	m["AlarmActions"] = append([]string{}, alarm...)
	m["InsufficientDataActions"] = append([]string{}, insufficient...)
}

// children returns the alarms whose changes changed a composite alarm: none if its state was set by hand.
func children(a *state.Alarm) []map[string]any {
	list := []map[string]any{}
	var data alarm.CompositeData
	if json.Unmarshal([]byte(a.State().Data), &data) != nil {
		return list
	}
	for _, t := range data.TriggeringAlarms {
		state := map[string]any{"Value": t.State.Value, "Timestamp": t.State.Timestamp}
		list = append(list, map[string]any{"Arn": t.ARN, "State": state})
	}
	return list
}

// stamp formats a time as CloudWatch's messages have it.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000-0700")
}

// trigger describes what a metric alarm watches. It has what the alarm has: consumers look for members, and take null for one.
func trigger(a *state.Alarm) map[string]any {
	m := a.Metric
	t := map[string]any{
		"EvaluationPeriods":  m.EvaluationPeriods,
		"ComparisonOperator": m.ComparisonOperator,
		"Threshold":          m.Threshold,
		"TreatMissingData":   aws.ToString(m.TreatMissingData),

		"EvaluateLowSampleCountPercentile": aws.ToString(m.EvaluateLowSampleCountPercentile),
	}
	if m.DatapointsToAlarm != nil {
		t["DatapointsToAlarm"] = m.DatapointsToAlarm
	}
	if len(m.Metrics) > 0 {
		t["Metrics"] = queries(m.Metrics)
		return t
	}
	t["Period"] = m.Period
	t["Namespace"] = m.Namespace
	t["MetricName"] = m.MetricName
	t["Dimensions"] = dimensions(m.Dimensions)
	t["Unit"] = unit(m.Unit)
	if m.ExtendedStatistic != nil {
		t["StatisticType"] = "ExtendedStatistic"
		t["ExtendedStatistic"] = m.ExtendedStatistic
	} else {
		t["StatisticType"] = "Statistic"
		t["Statistic"] = strings.ToUpper(string(m.Statistic))
	}
	return t
}

func dimensions(of []types.Dimension) []map[string]any {
	list := []map[string]any{}
	for _, d := range of {
		list = append(list, map[string]any{"name": d.Name, "value": d.Value})
	}
	return list
}

// unit returns a unit, or null for none, the one member that is null.
func unit(u types.StandardUnit) any {
	if u == "" {
		return nil
	}
	return u
}

// queries describes the metrics and expressions of an alarm on an expression.
func queries(of []types.MetricDataQuery) (list []map[string]any) {
	for _, q := range of {
		m := map[string]any{"Id": q.Id, "ReturnData": q.ReturnData == nil || *q.ReturnData}
		if q.Label != nil {
			m["Label"] = q.Label
		}
		if q.Expression != nil {
			m["Expression"] = q.Expression
		}
		if s := q.MetricStat; s != nil {
			metric := map[string]any{"Namespace": s.Metric.Namespace, "MetricName": s.Metric.MetricName, "Dimensions": dimensions(s.Metric.Dimensions)}
			stat := map[string]any{"Metric": metric, "Period": s.Period, "Stat": s.Stat}
			if s.Unit != "" {
				stat["Unit"] = s.Unit
			}
			m["MetricStat"] = stat
		}
		list = append(list, m)
	}
	return list
}

func encode(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // can't happen: it holds only numbers and text
	}
	return string(b)
}
