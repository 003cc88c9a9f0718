package cloudwatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Limits on alarms: API_PutMetricAlarm.
const (
	maxDescription = 1024
	maxActions     = 5
	maxAlarms      = 100 // that one call may name or return
)

// PutMetricAlarm creates a metric alarm, or replaces the one with its name and keeps that one's state.
func (s *Service) PutMetricAlarm(ctx context.Context, in *cloudwatch.PutMetricAlarmInput) (*cloudwatch.PutMetricAlarmOutput, error) {
	err := cmp.Or(
		checkAlarm(in.AlarmName, in.AlarmDescription, in.OKActions, in.AlarmActions, in.InsufficientDataActions),
		checkTags(in.Tags),
		checkMetricAlarm(in),
		s.checkAccounts("Metrics", in.Metrics),
	)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		now := s.opts.Now()
		m := &types.MetricAlarm{
			AlarmName:                          in.AlarmName,
			AlarmArn:                           aws.String(s.alarmArn(*in.AlarmName)),
			AlarmDescription:                   in.AlarmDescription,
			AlarmConfigurationUpdatedTimestamp: &now,
			ActionsEnabled:                     orTrue(in.ActionsEnabled),
			OKActions:                          filled(in.OKActions),
			AlarmActions:                       filled(in.AlarmActions),
			InsufficientDataActions:            filled(in.InsufficientDataActions),
			Namespace:                          in.Namespace,
			MetricName:                         in.MetricName,
			Dimensions:                         filled(in.Dimensions),
			Statistic:                          in.Statistic,
			ExtendedStatistic:                  in.ExtendedStatistic,
			Period:                             in.Period,
			Unit:                               in.Unit,
			Metrics:                            in.Metrics,
			EvaluationPeriods:                  in.EvaluationPeriods,
			DatapointsToAlarm:                  in.DatapointsToAlarm,
			Threshold:                          in.Threshold,
			ThresholdMetricId:                  in.ThresholdMetricId,
			ComparisonOperator:                 in.ComparisonOperator,
			TreatMissingData:                   in.TreatMissingData,
			EvaluateLowSampleCountPercentile:   in.EvaluateLowSampleCountPercentile,
			StateValue:                         types.StateValueInsufficientData,
			StateReason:                        aws.String(alarm.Initial),
			StateUpdatedTimestamp:              &now,
			StateTransitionedTimestamp:         &now,
		}
		before := tx.Alarms.Get(*in.AlarmName)
		if before != nil && before.Metric == nil {
			return validationError("The alarm %s is a composite alarm; delete it first.", *in.AlarmName)
		}
		putAlarm(tx, before, &state.Alarm{Metric: m, Tags: in.Tags}, now)
		return nil
	})
	return &cloudwatch.PutMetricAlarmOutput{}, err
}

// PutCompositeAlarm creates a composite alarm, or replaces the one with its name.
func (s *Service) PutCompositeAlarm(
	ctx context.Context, in *cloudwatch.PutCompositeAlarmInput,
) (*cloudwatch.PutCompositeAlarmOutput, error) {
	err := cmp.Or(
		checkAlarm(in.AlarmName, in.AlarmDescription, in.OKActions, in.AlarmActions, in.InsufficientDataActions),
		checkTags(in.Tags),
		checkSuppressor(in),
	)
	if err != nil {
		return nil, err
	}
	rule, err := alarm.ParseRule(aws.ToString(in.AlarmRule))
	if err != nil {
		return nil, validationError("Error in AlarmRule: %v", err)
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if err := checkRule(tx.View, *in.AlarmName, rule); err != nil {
			return err
		}
		if in.ActionsSuppressor != nil && tx.Alarms.Get(nameInArn(*in.ActionsSuppressor)) == nil {
			return validationError("ActionsSuppressor: the alarm %s does not exist", *in.ActionsSuppressor)
		}
		now := s.opts.Now()
		c := &types.CompositeAlarm{
			AlarmName:                          in.AlarmName,
			AlarmArn:                           aws.String(s.alarmArn(*in.AlarmName)),
			AlarmDescription:                   in.AlarmDescription,
			AlarmConfigurationUpdatedTimestamp: &now,
			ActionsEnabled:                     orTrue(in.ActionsEnabled),
			OKActions:                          filled(in.OKActions),
			AlarmActions:                       filled(in.AlarmActions),
			InsufficientDataActions:            filled(in.InsufficientDataActions),
			AlarmRule:                          in.AlarmRule,
			ActionsSuppressor:                  in.ActionsSuppressor,
			ActionsSuppressorWaitPeriod:        in.ActionsSuppressorWaitPeriod,
			ActionsSuppressorExtensionPeriod:   in.ActionsSuppressorExtensionPeriod,
			StateValue:                         types.StateValueInsufficientData,
			StateReason:                        aws.String(alarm.Initial),
			StateUpdatedTimestamp:              &now,
			StateTransitionedTimestamp:         &now,
		}
		before := tx.Alarms.Get(*in.AlarmName)
		if before != nil && before.Composite == nil {
			return validationError("The alarm %s is a metric alarm; delete it first.", *in.AlarmName)
		}
		putAlarm(tx, before, &state.Alarm{Composite: c, Tags: in.Tags}, now)
		return nil
	})
	return &cloudwatch.PutCompositeAlarmOutput{}, err
}

// putAlarm stores an alarm and records the change in its history. The call's tags apply only to a new alarm.
func putAlarm(tx *state.Tx, before, a *state.Alarm, now time.Time) {
	if before == nil {
		tx.Alarms.Put(a)
		tx.AddAlarmHistory(a, types.HistoryItemTypeConfigurationUpdate, fmt.Sprintf("Alarm %q created", a.Name()),
			map[string]any{"version": "1.0", "type": "Create", "createdAlarm": configuration(a)}, now)
		return
	}
	a.Keep(before)
	a.OwePolicies()
	tx.Alarms.Put(a)
	tx.AddAlarmHistory(a, types.HistoryItemTypeConfigurationUpdate, fmt.Sprintf("Alarm %q updated", a.Name()),
		map[string]any{"version": "1.0", "type": "Update", "updatedAlarm": configuration(a)}, now)
}

// configuration returns an alarm as its history shows it: the fields that are set, with names in lower camel case.
func configuration(a *state.Alarm) map[string]any {
	var source any = a.Composite
	if a.Metric != nil {
		source = a.Metric
	}
	b, err := json.Marshal(source)
	var all map[string]any
	if err != nil || json.Unmarshal(b, &all) != nil {
		return nil // can't happen: everything in an alarm fits JSON
	}
	out := map[string]any{}
	for name, value := range all {
		if value != nil && value != "" {
			out[strings.ToLower(name[:1])+name[1:]] = value
		}
	}
	return out
}

func orTrue(b *bool) *bool {
	if b == nil {
		return aws.Bool(true)
	}
	return b
}

// filled returns an empty list for nil, since AWS's answers include all of an alarm's lists.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func checkAlarm(name, description *string, actions ...[]string) error {
	switch {
	case aws.ToString(name) == "":
		return missing("AlarmName")
	case len(*name) > maxName || !printable(*name):
		return validationError(
			"1 validation error detected: Value '%s' at 'alarmName' failed to satisfy constraint: "+
				"Member must have 1 to %d printable ASCII characters",
			*name, maxName,
		)
	case len(aws.ToString(description)) > maxDescription:
		return validationError(
			"1 validation error detected: Value at 'alarmDescription' failed to satisfy constraint: "+
				"Member must have length less than or equal to %d",
			maxDescription,
		)
	}
	for i, list := range actions {
		parameter := [...]string{"OKActions", "AlarmActions", "InsufficientDataActions"}[i]
		if len(list) > maxActions {
			return validationError(
				"1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d",
				parameter, maxActions,
			)
		}
		for _, arn := range list {
			if !isAction(arn) {
				return validationError("Invalid %s: %q is neither an ARN nor the URL of a webhook", parameter, arn)
			}
		}
	}
	return nil
}

// isAction reports whether s is an ARN, as on AWS, or Pintle's own kind of action: a URL to POST to.
func isAction(s string) bool {
	if len(s) > 1024 {
		return false
	}
	return strings.HasPrefix(s, "arn:") && strings.Count(s, ":") >= 5 || strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

func checkMetricAlarm(in *cloudwatch.PutMetricAlarmInput) error {
	switch {
	case in.EvaluationCriteria != nil || in.EvaluationInterval != nil || in.EvaluationWindow != nil:
		return validationError("Pintle has no alarms on PromQL: EvaluationCriteria, EvaluationInterval and EvaluationWindow cannot be set.")
	case in.ActionConfiguration != nil || in.WarmUpConfiguration != nil:
		return validationError("Pintle has no ActionConfiguration and WarmUpConfiguration of alarms.")
	case in.Threshold == nil && in.ThresholdMetricId == nil:
		return missing("Threshold")
	case in.Threshold != nil && in.ThresholdMetricId != nil:
		return invalidCombination("The parameters Threshold and ThresholdMetricId are mutually exclusive and you have specified both.")
	case in.EvaluationPeriods == nil:
		return missing("EvaluationPeriods")
	case in.ComparisonOperator == "":
		return missing("ComparisonOperator")
	}
	if err := checkValue(aws.ToFloat64(in.Threshold), "Threshold"); err != nil {
		return err
	}
	period, err := alarmSource(in)
	if err != nil {
		return err
	}
	if in.DatapointsToAlarm != nil && *in.DatapointsToAlarm < 1 {
		return validationError("DatapointsToAlarm must be between 1 and EvaluationPeriods, not %d", *in.DatapointsToAlarm)
	}
	m := alarm.Metric{
		ComparisonOperator:               string(in.ComparisonOperator),
		Threshold:                        aws.ToFloat64(in.Threshold),
		EvaluationPeriods:                int(*in.EvaluationPeriods),
		DatapointsToAlarm:                int(aws.ToInt32(in.DatapointsToAlarm)),
		Period:                           period,
		TreatMissingData:                 aws.ToString(in.TreatMissingData),
		EvaluateLowSampleCountPercentile: aws.ToString(in.EvaluateLowSampleCountPercentile),
	}
	if err := m.Check(); err != nil {
		return validationError("%v", err)
	}
	actions := slices.Concat(in.OKActions, in.AlarmActions, in.InsufficientDataActions)
	scales := slices.ContainsFunc(actions, func(arn string) bool { return strings.HasPrefix(arn, "arn:aws:autoscaling:") })
	if scales && in.ThresholdMetricId != nil {
		return validationError("An alarm with a ThresholdMetricId cannot have Auto Scaling actions.")
	}
	if m.Banded() && in.ThresholdMetricId == nil {
		return validationError("The ComparisonOperator %s goes with a ThresholdMetricId.", in.ComparisonOperator)
	}
	if !m.Banded() && in.ThresholdMetricId != nil {
		return validationError("The ComparisonOperator %s goes with a Threshold.", in.ComparisonOperator)
	}
	return nil
}

// alarmSource checks what an alarm watches, a metric or metric math, and returns its period.
func alarmSource(in *cloudwatch.PutMetricAlarmInput) (time.Duration, error) {
	single := in.MetricName != nil || in.Namespace != nil || len(in.Dimensions) > 0 || in.Unit != "" ||
		in.Statistic != "" || in.ExtendedStatistic != nil || in.Period != nil
	if len(in.Metrics) > 0 && single {
		return 0, invalidCombination(
			"Metrics and the parameters of a single metric (MetricName, Namespace, Dimensions, " +
				"Period, Unit, Statistic, ExtendedStatistic) are mutually exclusive and you have specified both.",
		)
	}
	if len(in.Metrics) > 0 {
		return alarmMath(in.Metrics, aws.ToString(in.ThresholdMetricId))
	}
	if in.ThresholdMetricId != nil {
		return 0, validationError("ThresholdMetricId needs Metrics, one of them with its Id.")
	}
	if err := cmp.Or(
		checkMetricName(in.MetricName, "MetricName"),
		checkNamespace(in.Namespace),
		checkDimensions(in.Dimensions, "Dimensions"),
		checkUnit(in.Unit, "Unit"),
	); err != nil {
		return 0, err
	}
	switch {
	case in.Period == nil:
		return 0, missing("Period")
	case (in.Statistic == "") == (in.ExtendedStatistic == nil):
		return 0, invalidCombination("Exactly one of the parameters Statistic and ExtendedStatistic must be specified.")
	case in.Statistic != "" && !slices.Contains(in.Statistic.Values(), in.Statistic):
		return 0, invalid("The value %s for parameter Statistic is invalid.", in.Statistic)
	}
	if st, err := metrics.ParseStatistic(aws.ToString(in.ExtendedStatistic)); in.ExtendedStatistic != nil && (err != nil || st.Plain()) {
		return 0, invalid("The value %s for parameter ExtendedStatistic is invalid.", *in.ExtendedStatistic)
	}
	return time.Duration(*in.Period) * time.Second, nil
}

// maxAlarmQueries limits an alarm's queries.
const maxAlarmQueries = 20

// alarmMath checks metric math and returns its period. band is the id of the expression that returns the anomaly
// detection band, or "".
func alarmMath(queries []types.MetricDataQuery, band string) (time.Duration, error) {
	if len(queries) > maxAlarmQueries {
		return 0, validationError("The collection Metrics must not have a size greater than %d.", maxAlarmQueries)
	}
	q, err := metricquery.New(queries)
	if err != nil {
		return 0, validationError("%v", err)
	}
	if q.Searches() {
		return 0, validationError("SEARCH is not supported on Metric Alarms.")
	}
	returned, banded := 0, band == ""
	for _, in := range queries {
		switch {
		case *in.Id == band:
			banded = strings.HasPrefix(strings.TrimSpace(aws.ToString(in.Expression)), "ANOMALY_DETECTION_BAND")
		case in.ReturnData == nil || *in.ReturnData:
			returned++
		}
	}
	if !banded {
		return 0, validationError("ThresholdMetricId must be the Id of an expression with ANOMALY_DETECTION_BAND in Metrics, not %s.", band)
	}
	if returned != 1 {
		return 0, validationError("Exactly one element of the metrics list should return data.")
	}
	return q.Period(), checkQueries(queries)
}

func checkSuppressor(in *cloudwatch.PutCompositeAlarmInput) error {
	switch {
	case in.ActionConfiguration != nil:
		return validationError("Pintle has no ActionConfiguration of alarms.")
	case in.ActionsSuppressor == nil && (in.ActionsSuppressorWaitPeriod != nil || in.ActionsSuppressorExtensionPeriod != nil):
		return validationError("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod need an ActionsSuppressor.")
	case in.ActionsSuppressor != nil && (in.ActionsSuppressorWaitPeriod == nil || in.ActionsSuppressorExtensionPeriod == nil):
		return validationError("An ActionsSuppressor needs ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod.")
	case aws.ToInt32(in.ActionsSuppressorWaitPeriod) < 0 || aws.ToInt32(in.ActionsSuppressorExtensionPeriod) < 0:
		return validationError("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod must be at least 0.")
	}
	return nil
}

// checkRule refuses a rule that names an unknown alarm or leads back to its own alarm.
func checkRule(view *state.View, name string, rule *alarm.Rule) error {
	for _, child := range rule.Children() {
		if view.Alarms.Get(nameInArn(child)) == nil && nameInArn(child) != name {
			return validationError("Error in AlarmRule: the alarm %s does not exist", child)
		}
	}
	cycle := rule.Cycle(name, func(of string) []string { return childrenOf(view.Alarms.Get(nameInArn(of))) })
	if cycle != nil {
		return validationError("Error in AlarmRule: the alarm refers to itself: %s", strings.Join(cycle, " -> "))
	}
	return nil
}

// childrenOf returns the names of the alarms in a composite alarm's rule.
func childrenOf(a *state.Alarm) []string {
	if a == nil || a.Composite == nil {
		return nil
	}
	rule, err := alarm.ParseRule(aws.ToString(a.Composite.AlarmRule))
	if err != nil {
		return nil // can't happen: PutCompositeAlarm checked the rule
	}
	names := make([]string, 0, len(rule.Children()))
	for _, child := range rule.Children() {
		names = append(names, nameInArn(child))
	}
	return names
}

// nameInArn returns the name in an alarm's ARN. Anything else is a name already.
func nameInArn(s string) string {
	if _, name, ok := strings.Cut(s, ":alarm:"); ok && strings.HasPrefix(s, "arn:") {
		return name
	}
	return s
}

func checkNames(names []string) error {
	if len(names) == 0 {
		return missing("AlarmNames")
	}
	if len(names) > maxAlarms {
		return validationError(
			"1 validation error detected: Value at 'alarmNames' failed to satisfy constraint: "+
				"Member must have length less than or equal to %d",
			maxAlarms,
		)
	}
	return nil
}

// DeleteAlarms deletes alarms, or none if a composite alarm needs one of them. It skips names without an alarm: API_DeleteAlarms.
func (s *Service) DeleteAlarms(ctx context.Context, in *cloudwatch.DeleteAlarmsInput) (*cloudwatch.DeleteAlarmsOutput, error) {
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		now := s.opts.Now()
		for _, name := range in.AlarmNames {
			a := tx.Alarms.Get(name)
			if a == nil {
				continue
			}
			tx.Alarms.Delete(name)
			tx.AddAlarmHistory(a, types.HistoryItemTypeConfigurationUpdate, fmt.Sprintf("Alarm %q deleted", name),
				map[string]any{"version": "1.0", "type": "Delete", "deletedAlarm": configuration(a)}, now)
		}
		return checkOrphans(tx.View, in.AlarmNames)
	})
	return &cloudwatch.DeleteAlarmsOutput{}, err
}

// checkOrphans refuses to delete an alarm that a remaining composite alarm's rule names.
func checkOrphans(view *state.View, deleted []string) error {
	for a := range view.Alarms.All() {
		for _, child := range childrenOf(a) {
			if slices.Contains(deleted, child) {
				return validationError("Cannot delete %s as there are composite alarms depending on it: %s", child, a.Name())
			}
		}
	}
	return nil
}

// EnableAlarmActions lets alarms act. It skips names without an alarm, as AWS does.
func (s *Service) EnableAlarmActions(
	ctx context.Context, in *cloudwatch.EnableAlarmActionsInput,
) (*cloudwatch.EnableAlarmActionsOutput, error) {
	return &cloudwatch.EnableAlarmActionsOutput{}, s.setActions(ctx, in.AlarmNames, true)
}

// DisableAlarmActions keeps alarms from acting.
func (s *Service) DisableAlarmActions(
	ctx context.Context, in *cloudwatch.DisableAlarmActionsInput,
) (*cloudwatch.DisableAlarmActionsOutput, error) {
	return &cloudwatch.DisableAlarmActionsOutput{}, s.setActions(ctx, in.AlarmNames, false)
}

func (s *Service) setActions(ctx context.Context, names []string, enabled bool) error {
	if err := checkNames(names); err != nil {
		return err
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, name := range names {
			if a := tx.Alarms.Get(name); a != nil {
				putAlarm(tx, a, a.WithActions(enabled), s.opts.Now())
			}
		}
		return nil
	})
}

// SetAlarmState sets an alarm's state until its next evaluation.
func (s *Service) SetAlarmState(ctx context.Context, in *cloudwatch.SetAlarmStateInput) (*cloudwatch.SetAlarmStateOutput, error) {
	if aws.ToString(in.StateReasonData) != "" && !json.Valid([]byte(*in.StateReasonData)) {
		return nil, &types.InvalidFormatFault{Message: aws.String("The parameter StateReasonData must be JSON.")}
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		a := tx.Alarms.Get(*in.AlarmName)
		if a == nil {
			return &types.ResourceNotFound{Message: aws.String("The alarm " + *in.AlarmName + " does not exist.")}
		}
		tx.SetAlarmState(
			a,
			state.AlarmState{Value: in.StateValue, Reason: *in.StateReason, Data: aws.ToString(in.StateReasonData)},
			s.opts.Now(),
		)
		return nil
	})
	return &cloudwatch.SetAlarmStateOutput{}, err
}
