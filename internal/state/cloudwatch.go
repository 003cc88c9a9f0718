package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/store"
)

// The namespaces of metrics that the control plane alone puts: of tasks, and of what machines cost, which isn't for all to say.
const (
	NamespaceTasks = "Pintle/ECS"
	NamespaceUsage = "Pintle/Usage"
)

// IsOwnNamespace reports whether a namespace is one of those.
func IsOwnNamespace(name string) bool { return name == NamespaceTasks || name == NamespaceUsage }

// The rows of Amazon CloudWatch. Metrics themselves are in the metric store.

// Alarm is a metric alarm or a composite alarm. Both kinds share one set of names.
type Alarm struct {
	Metric    *types.MetricAlarm    `json:",omitzero"`
	Composite *types.CompositeAlarm `json:",omitzero"`
	Tags      []types.Tag
	// Owed is whom we still have to tell of the last change of state, or nil once that's done.
	Owed *OwedActions `json:",omitzero"`
	// LeftAlarm is when it last left the state ALARM, or zero if it never did.
	LeftAlarm time.Time `json:",omitzero"`
}

// OwedActions are the actions still owed for an alarm's change from a state to its current one.
type OwedActions struct {
	Arns []string
	From types.StateValue
	// Change is what functions are told of the change, if there are any among the actions.
	Change json.RawMessage `json:",omitempty"`
}

// members holds the fields that metric and composite alarms have in common; those that change are pointers.
type members struct {
	name                       *string
	arn                        *string
	actionsEnabled             **bool
	okActions                  []string
	alarmActions               []string
	insufficientDataActions    []string
	stateValue                 *types.StateValue
	stateReason                **string
	stateReasonData            **string
	stateUpdatedTimestamp      **time.Time
	stateTransitionedTimestamp **time.Time
}

func (a *Alarm) members() members {
	if m := a.Metric; m != nil {
		return members{
			m.AlarmName, m.AlarmArn, &m.ActionsEnabled, m.OKActions, m.AlarmActions, m.InsufficientDataActions,
			&m.StateValue, &m.StateReason, &m.StateReasonData, &m.StateUpdatedTimestamp, &m.StateTransitionedTimestamp,
		}
	}
	c := a.Composite
	return members{
		c.AlarmName, c.AlarmArn, &c.ActionsEnabled, c.OKActions, c.AlarmActions, c.InsufficientDataActions,
		&c.StateValue, &c.StateReason, &c.StateReasonData, &c.StateUpdatedTimestamp, &c.StateTransitionedTimestamp,
	}
}

// clone returns a copy of the alarm that can be changed.
func (a *Alarm) clone() *Alarm {
	c := *a
	if a.Metric != nil {
		m := *a.Metric
		c.Metric = &m
		return &c
	}
	m := *a.Composite
	c.Composite = &m
	return &c
}

// Name returns the alarm's name.
func (a *Alarm) Name() string { return aws.ToString(a.members().name) }

// Arn returns the alarm's ARN.
func (a *Alarm) Arn() string { return aws.ToString(a.members().arn) }

// Type returns the alarm's type.
func (a *Alarm) Type() types.AlarmType {
	if a.Metric != nil {
		return types.AlarmTypeMetricAlarm
	}
	return types.AlarmTypeCompositeAlarm
}

// AlarmState is an alarm's state and the reason for it.
type AlarmState struct {
	Value  types.StateValue
	Reason string
	Data   string // JSON, or "" for none
}

// State returns the alarm's state.
func (a *Alarm) State() AlarmState {
	m := a.members()
	return AlarmState{*m.stateValue, aws.ToString(*m.stateReason), aws.ToString(*m.stateReasonData)}
}

// Moved returns when the alarm changed to its current state.
func (a *Alarm) Moved() time.Time { return aws.ToTime(*a.members().stateTransitionedTimestamp) }

// Keep copies the state, tags and owed actions of the alarm that this one replaces.
func (a *Alarm) Keep(before *Alarm) {
	m, b := a.members(), before.members()
	*m.stateValue = *b.stateValue
	*m.stateReason = *b.stateReason
	*m.stateReasonData = *b.stateReasonData
	*m.stateUpdatedTimestamp = *b.stateUpdatedTimestamp
	*m.stateTransitionedTimestamp = *b.stateTransitionedTimestamp
	a.Tags = before.Tags
	a.Owed = before.Owed
	a.LeftAlarm = before.LeftAlarm
	a.suppress(before.SuppressedBy())
}

// PolicyPrefix is the prefix of scaling policies' ARNs.
const PolicyPrefix = "arn:aws:autoscaling:"

// OwePolicies makes a changed alarm owe a notice to the scaling policies among its current state's actions. Policies
// act for as long as the alarm stays in a state, and not just when it changes to it.
func (a *Alarm) OwePolicies() {
	value := a.State().Value
	policies := slices.DeleteFunc(slices.Clone(a.Actions(value)), func(arn string) bool { return !strings.HasPrefix(arn, PolicyPrefix) })
	if a.Owed == nil && len(policies) > 0 {
		a.Owed = &OwedActions{Arns: policies, From: value}
	}
}

// WithActions returns a copy of the alarm with its actions enabled or disabled.
func (a *Alarm) WithActions(enabled bool) *Alarm {
	c := a.clone()
	*c.members().actionsEnabled = &enabled
	return c
}

// Actions returns the ARNs to notify when the alarm changes to a state. It returns none if the alarm's actions are
// disabled.
func (a *Alarm) Actions(value types.StateValue) []string {
	m := a.members()
	switch {
	case !aws.ToBool(*m.actionsEnabled):
		return nil
	case value == types.StateValueOk:
		return m.okActions
	case value == types.StateValueAlarm:
		return m.alarmActions
	}
	return m.insufficientDataActions
}

// AllActions returns the ARNs that the alarm names for any state.
func (a *Alarm) AllActions() []string {
	m := a.members()
	return slices.Concat(m.okActions, m.alarmActions, m.insufficientDataActions)
}

// in returns a copy of the alarm in a state.
func (a *Alarm) in(s AlarmState, now time.Time) *Alarm {
	c := a.clone()
	m := c.members()
	var data *string
	if s.Data != "" {
		data = &s.Data
	}
	if before := *m.stateValue; before != s.Value {
		*m.stateTransitionedTimestamp = &now
		if before == types.StateValueAlarm {
			c.LeftAlarm = now
		}
	}
	*m.stateValue = s.Value
	*m.stateReason = &s.Reason
	*m.stateReasonData = data
	*m.stateUpdatedTimestamp = &now
	return c
}

// SuppressedBy returns what keeps a composite alarm from acting on what it owes, or "".
func (a *Alarm) SuppressedBy() types.ActionsSuppressedBy {
	if a.Composite == nil {
		return ""
	}
	return a.Composite.ActionsSuppressedBy
}

// suppress records on a composite alarm what keeps it from acting. It changes the alarm in place.
func (a *Alarm) suppress(by types.ActionsSuppressedBy) {
	if a.Composite == nil {
		return
	}
	a.Composite.ActionsSuppressedBy = by
	a.Composite.ActionsSuppressedReason = nil
	if by != "" {
		a.Composite.ActionsSuppressedReason = aws.String("Actions suppressed by " + string(by))
	}
}

// SuppressAlarm records what keeps a composite alarm from acting.
func (tx *Tx) SuppressAlarm(a *Alarm, by types.ActionsSuppressedBy) {
	a = a.clone()
	a.suppress(by)
	tx.Alarms.Put(a)
}

// SettleAlarm clears what an alarm owes.
func (tx *Tx) SettleAlarm(a *Alarm) {
	a = a.clone()
	a.Owed = nil
	a.suppress("")
	tx.Alarms.Put(a)
}

// SetAlarmState puts an alarm in a state, and returns the alarm as it is now. A change of state goes into the alarm's
// history, and the new state's actions are owed. They aren't owed if the alarm returns to the state that it last acted
// upon: suppressed changes count as if they had never happened.
func (tx *Tx) SetAlarmState(a *Alarm, s AlarmState, now time.Time) *Alarm {
	before, since := a.State(), a.Moved()
	a = a.in(s, now)
	if before.Value == s.Value {
		tx.Alarms.Put(a)
		return a
	}
	from := before.Value
	if a.Owed != nil && a.SuppressedBy() != "" {
		from = a.Owed.From
	}
	a.Owed = nil
	a.suppress("")
	if arns := a.Actions(s.Value); len(arns) > 0 && from != s.Value {
		a.Owed = &OwedActions{Arns: arns, From: from}
		if slices.ContainsFunc(arns, IsFunction) {
			a.Owed.Change = raw(a.change(before, since, now))
		}
	}
	tx.Alarms.Put(a)
	data := map[string]any{"version": "1.0", "oldState": historyState(before), "newState": historyState(s)}
	tx.emitAlarm(a, before, since, now)
	tx.AddAlarmHistory(a, types.HistoryItemTypeStateUpdate, fmt.Sprintf("Alarm updated from %s to %s", before.Value, s.Value), data, now)
	return a
}

// mustEncode panics on an error. Only a type that JSON doesn't support can cause one.
func mustEncode(err error) {
	if err != nil {
		panic(err)
	}
}

func historyState(s AlarmState) map[string]any {
	m := map[string]any{"stateValue": s.Value, "stateReason": s.Reason}
	if json.Valid([]byte(s.Data)) {
		m["stateReasonData"] = json.RawMessage(s.Data)
	}
	return m
}

// AddAlarmHistory adds an item to an alarm's history. data is stored as JSON.
func (tx *Tx) AddAlarmHistory(a *Alarm, kind types.HistoryItemType, summary string, data any, now time.Time) {
	b, err := json.Marshal(data)
	mustEncode(err)
	name := a.Name()
	for n := 0; ; n++ {
		row := &AlarmHistory{Number: now.UnixMicro() + int64(n), Item: types.AlarmHistoryItem{
			AlarmName:       &name,
			AlarmType:       a.Type(),
			Timestamp:       &now,
			HistoryItemType: kind,
			HistorySummary:  &summary,
			HistoryData:     aws.String(string(b)),
		}}
		if tx.AlarmHistory.Get(row.Key()) == nil {
			tx.AlarmHistory.Put(row)
			return
		}
	}
}

// AlarmHistory is an item of an alarm's history. It outlives the alarm.
type AlarmHistory struct {
	Item types.AlarmHistoryItem
	// Number orders the items of an alarm. It's the time in microseconds since 1970, or the next free number.
	Number int64
}

// Key returns the number and the alarm's name, so that rows sort by time.
func (h *AlarmHistory) Key() string {
	return fmt.Sprintf("%019d %s", h.Number, aws.ToString(h.Item.AlarmName))
}

// Dashboard is one dashboard.
type Dashboard struct {
	Name         string
	Body         string
	LastModified time.Time
	Tags         []types.Tag
}

// AnomalyDetector is one anomaly detector, of a metric and a statistic or of metric math. Its state isn't stored.
type AnomalyDetector struct{ types.AnomalyDetector }

// Key encodes what the detector is for.
func (d *AnomalyDetector) Key() string {
	var source any = d.MetricMathAnomalyDetector
	if s := d.SingleMetricAnomalyDetector; s != nil {
		sorted := *s
		sorted.Dimensions = append([]types.Dimension(nil), s.Dimensions...) // none are nil, as they always were: keys are kept
		sort.Slice(sorted.Dimensions, func(i, j int) bool { return *sorted.Dimensions[i].Name < *sorted.Dimensions[j].Name })
		source = sorted
	}
	b, err := json.Marshal(source)
	mustEncode(err)
	return string(b)
}

// Detect calls set with the anomaly detectors' configurations for those of a request's queries whose ids are listed.
func (v *View) Detect(set func(id string, c *types.AnomalyDetectorConfiguration), queries []types.MetricDataQuery, ids []string) {
	for _, q := range queries {
		if !slices.Contains(ids, aws.ToString(q.Id)) {
			continue
		}
		for d := range v.AnomalyDetectors.All() {
			if d.isFor(queries, q) {
				set(*q.Id, d.Configuration)
			}
		}
	}
}

// isFor reports whether the detector is for a query's metric and statistic, or for its expression on the same metrics.
func (d *AnomalyDetector) isFor(queries []types.MetricDataQuery, q types.MetricDataQuery) bool {
	if m := q.MetricStat; m != nil {
		of := AnomalyDetector{types.AnomalyDetector{SingleMetricAnomalyDetector: &types.SingleMetricAnomalyDetector{
			Namespace:  m.Metric.Namespace,
			MetricName: m.Metric.MetricName,
			Dimensions: m.Metric.Dimensions,
			Stat:       m.Stat,
		}}}
		return d.SingleMetricAnomalyDetector != nil && d.Key() == of.Key()
	}
	if d.MetricMathAnomalyDetector == nil {
		return false
	}
	return !slices.ContainsFunc(d.MetricMathAnomalyDetector.MetricDataQueries, func(own types.MetricDataQuery) bool {
		if own.ReturnData == nil || *own.ReturnData {
			return aws.ToString(own.Expression) != aws.ToString(q.Expression)
		}
		return !slices.ContainsFunc(queries, func(q types.MetricDataQuery) bool {
			return *q.Id == *own.Id && aws.ToString(q.Expression) == aws.ToString(own.Expression) &&
				reflect.DeepEqual(q.MetricStat, own.MetricStat)
		})
	})
}

// keepHistory is how long CloudWatch keeps an alarm's history: API_DescribeAlarmHistory.
const keepHistory = 30 * 24 * time.Hour

// AlarmHistoryByAlarm finds the history of an alarm by its name.
var AlarmHistoryByAlarm = Index[*AlarmHistory]{
	Name:  "alarm",
	Value: func(h *AlarmHistory) string { return aws.ToString(h.Item.AlarmName) },
}

var (
	alarmHistory = &store.Definition[*AlarmHistory]{
		Name:     "alarm_history",
		Key:      (*AlarmHistory).Key,
		Indexes:  []Index[*AlarmHistory]{AlarmHistoryByAlarm},
		Lifetime: store.KeepLatest(keepHistory, func(h *AlarmHistory) *time.Time { return h.Item.Timestamp }),
	}

	alarms = &store.Definition[*Alarm]{Name: "alarms", Key: (*Alarm).Name}

	anomalyDetectors = &store.Definition[*AnomalyDetector]{Name: "anomaly_detectors", Key: (*AnomalyDetector).Key}

	dashboards = &store.Definition[*Dashboard]{Name: "dashboards", Key: func(d *Dashboard) string { return d.Name }}
)
