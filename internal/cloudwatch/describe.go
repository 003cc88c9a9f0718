package cloudwatch

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// DescribeAlarms lists alarms by name: only metric alarms, unless the call asks for composite ones.
func (s *Service) DescribeAlarms(_ context.Context, in *cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
	if err := checkDescribe(in); err != nil {
		return nil, err
	}
	view := s.store.View()
	wants, err := alarmFilter(view, in)
	if err != nil {
		return nil, err
	}
	candidates := func(after string) iter.Seq[*state.Alarm] { return candidates(view, in.AlarmNames, after) }
	page, next, err := account.Behind(
		listing("DescribeAlarms", "maxRecords", maxAlarms), in.MaxRecords, in.NextToken, candidates, (*state.Alarm).Name, wants,
	)
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.DescribeAlarmsOutput{MetricAlarms: []types.MetricAlarm{}, CompositeAlarms: []types.CompositeAlarm{}, NextToken: next}
	for _, a := range page {
		if a.Metric != nil {
			out.MetricAlarms = append(out.MetricAlarms, *a.Metric)
			continue
		}
		out.CompositeAlarms = append(out.CompositeAlarms, *a.Composite)
	}
	return out, nil
}

// candidates returns the named alarms, or without names all alarms after the name after, in order of their names.
func candidates(view *state.View, names []string, after string) iter.Seq[*state.Alarm] {
	if len(names) == 0 {
		return view.Alarms.Behind(after)
	}
	return func(yield func(*state.Alarm) bool) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			if a := view.Alarms.Get(name); a != nil && !yield(a) {
				return
			}
		}
	}
}

func checkDescribe(in *cloudwatch.DescribeAlarmsInput) error {
	if len(in.AlarmNames) > 0 && in.AlarmNamePrefix != nil {
		return validationError("AlarmNames and AlarmNamePrefix cannot both be specified.")
	}
	return nil
}

// alarmFilter returns a function that reports whether the call asks for an alarm.
func alarmFilter(view *state.View, in *cloudwatch.DescribeAlarmsInput) (func(*state.Alarm) bool, error) {
	if in.ChildrenOfAlarmName != nil || in.ParentsOfAlarmName != nil {
		return familyFilter(view, in)
	}
	kinds := in.AlarmTypes
	if len(kinds) == 0 {
		kinds = []types.AlarmType{types.AlarmTypeMetricAlarm}
	}
	return func(a *state.Alarm) bool {
		return slices.Contains(kinds, a.Type()) &&
			strings.HasPrefix(a.Name(), aws.ToString(in.AlarmNamePrefix)) &&
			(in.StateValue == "" || a.State().Value == in.StateValue) &&
			(in.ActionPrefix == nil || slices.ContainsFunc(a.AllActions(), func(arn string) bool {
				return strings.HasPrefix(arn, *in.ActionPrefix)
			}))
	}, nil
}

// familyFilter selects the alarms that a composite alarm's rule names, or the composite alarms whose rules name an alarm.
func familyFilter(view *state.View, in *cloudwatch.DescribeAlarmsInput) (func(*state.Alarm) bool, error) {
	if in.ChildrenOfAlarmName != nil && in.ParentsOfAlarmName != nil {
		return nil, validationError("ChildrenOfAlarmName and ParentsOfAlarmName cannot both be specified.")
	}
	if len(in.AlarmNames) > 0 || in.AlarmNamePrefix != nil || in.StateValue != "" || in.ActionPrefix != nil {
		return nil, validationError(
			"ChildrenOfAlarmName and ParentsOfAlarmName cannot be combined with AlarmNames, AlarmNamePrefix, StateValue or ActionPrefix.",
		)
	}
	if in.ParentsOfAlarmName != nil {
		return func(a *state.Alarm) bool { return slices.Contains(childrenOf(a), *in.ParentsOfAlarmName) }, nil
	}
	children := childrenOf(view.Alarms.Get(*in.ChildrenOfAlarmName))
	return func(a *state.Alarm) bool { return slices.Contains(children, a.Name()) }, nil
}

// DescribeAlarmsForMetric lists the alarms on one metric. Alarms on metric math are not included.
func (s *Service) DescribeAlarmsForMetric(
	_ context.Context, in *cloudwatch.DescribeAlarmsForMetricInput,
) (*cloudwatch.DescribeAlarmsForMetricOutput, error) {
	if err := cmp.Or(
		checkMetricName(in.MetricName, "MetricName"),
		checkNamespace(in.Namespace),
		checkDimensions(in.Dimensions, "Dimensions"),
		checkUnit(in.Unit, "Unit"),
	); err != nil {
		return nil, err
	}
	if in.Statistic != "" && !slices.Contains(in.Statistic.Values(), in.Statistic) {
		return nil, invalid("The value %s for parameter Statistic is invalid.", in.Statistic)
	}
	wanted := metricquery.NewMetric(in.Namespace, in.MetricName, in.Dimensions)
	out := &cloudwatch.DescribeAlarmsForMetricOutput{MetricAlarms: []types.MetricAlarm{}}
	for a := range s.store.View().Alarms.All() {
		if a.Metric != nil && a.Metric.MetricName != nil && forMetric(in, a.Metric, &wanted) {
			out.MetricAlarms = append(out.MetricAlarms, *a.Metric)
		}
	}
	return out, nil
}

func forMetric(in *cloudwatch.DescribeAlarmsForMetricInput, m *types.MetricAlarm, wanted *metrics.Metric) bool {
	watched := metricquery.NewMetric(m.Namespace, m.MetricName, m.Dimensions)
	return watched.Key() == wanted.Key() &&
		(in.Statistic == "" || in.Statistic == m.Statistic) &&
		(in.ExtendedStatistic == nil || *in.ExtendedStatistic == aws.ToString(m.ExtendedStatistic)) &&
		(in.Period == nil || *in.Period == aws.ToInt32(m.Period)) &&
		(in.Unit == "" || in.Unit == m.Unit)
}

// DescribeAlarmHistory lists what happened to alarms, including deleted ones.
func (s *Service) DescribeAlarmHistory(
	_ context.Context, in *cloudwatch.DescribeAlarmHistoryInput,
) (*cloudwatch.DescribeAlarmHistoryOutput, error) {
	l := listing("DescribeAlarmHistory", "maxRecords", maxAlarms)
	limit, after, err := l.Start(in.MaxRecords, in.NextToken)
	if err != nil {
		return nil, err
	}
	if in.AlarmContributorId != nil {
		return nil, validationError("AlarmContributorId: Pintle's alarms are of one time series each, and have no contributors.")
	}
	items := s.history(in, after)
	out := &cloudwatch.DescribeAlarmHistoryOutput{AlarmHistoryItems: []types.AlarmHistoryItem{}}
	for i, h := range items {
		if i == limit {
			out.NextToken = l.Token(items[i-1].Key())
			break
		}
		out.AlarmHistoryItems = append(out.AlarmHistoryItems, h.Item)
	}
	return out, nil
}

// history returns the items that a call asks for, newest first unless it says otherwise. With a key, only items after it.
func (s *Service) history(in *cloudwatch.DescribeAlarmHistoryInput, after string) []*state.AlarmHistory {
	view := s.store.View()
	all := view.AlarmHistory.All()
	if in.AlarmName != nil {
		all = view.AlarmHistory.By(state.AlarmHistoryByAlarm, *in.AlarmName)
	}
	kinds := in.AlarmTypes
	if len(kinds) == 0 {
		kinds = []types.AlarmType{types.AlarmTypeMetricAlarm}
	}
	oldest := in.ScanBy == types.ScanByTimestampAscending
	var items []*state.AlarmHistory
	for h := range all {
		at := *h.Item.Timestamp
		if (after == "" || h.Key() != after && (h.Key() > after) == oldest) &&
			slices.Contains(kinds, h.Item.AlarmType) &&
			(in.HistoryItemType == "" || h.Item.HistoryItemType == in.HistoryItemType) &&
			(in.StartDate == nil || !at.Before(*in.StartDate)) && (in.EndDate == nil || !at.After(*in.EndDate)) {
			items = append(items, h)
		}
	}
	if !oldest {
		slices.Reverse(items)
	}
	return items
}
