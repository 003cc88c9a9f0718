package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of Amazon CloudWatch. Metrics themselves are in the metric store.

// Alarm is a metric alarm or a composite alarm: their names are one set.
type Alarm struct {
	Metric    *types.MetricAlarm    `json:",omitzero"`
	Composite *types.CompositeAlarm `json:",omitzero"`
	Tags      []types.Tag
	// Owed is whom the last change of state has still to be told to; nil once that is done.
	Owed *OwedActions `json:",omitzero"`
	// LeftAlarm is when it was in ALARM last and went to another state; zero where it never did.
	LeftAlarm time.Time `json:",omitzero"`
}

// OwedActions are actions of an alarm that came from a state to the one that it is in.
type OwedActions struct {
	Arns []string
	From types.StateValue
}

// members are the members that metric and composite alarms have alike, where they are in an alarm.
type members struct {
	name, arn                                         *string
	actionsEnabled                                    **bool
	okActions, alarmActions, insufficientDataActions  []string
	stateValue                                        *types.StateValue
	stateReason, stateReasonData                      **string
	stateUpdatedTimestamp, stateTransitionedTimestamp **time.Time
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

// clone is a copy of the alarm whose members can be changed.
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

// Name is the alarm's name.
func (a *Alarm) Name() string { return aws.ToString(a.members().name) }

// Arn is the alarm's ARN.
func (a *Alarm) Arn() string { return aws.ToString(a.members().arn) }

// Type is the alarm's type.
func (a *Alarm) Type() types.AlarmType {
	if a.Metric != nil {
		return types.AlarmTypeMetricAlarm
	}
	return types.AlarmTypeCompositeAlarm
}

// AlarmState is the state of an alarm and why it is in it.
type AlarmState struct {
	Value  types.StateValue
	Reason string
	Data   string // JSON; "" where there is none
}

// State is the alarm's state.
func (a *Alarm) State() AlarmState {
	m := a.members()
	return AlarmState{*m.stateValue, aws.ToString(*m.stateReason), aws.ToString(*m.stateReasonData)}
}

// Moved is when the alarm came to its state.
func (a *Alarm) Moved() time.Time { return aws.ToTime(*a.members().stateTransitionedTimestamp) }

// Keep gives an alarm that takes another one's place that one's state, tags and debts.
func (a *Alarm) Keep(before *Alarm) {
	m, b := a.members(), before.members()
	*m.stateValue, *m.stateReason, *m.stateReasonData = *b.stateValue, *b.stateReason, *b.stateReasonData
	*m.stateUpdatedTimestamp, *m.stateTransitionedTimestamp = *b.stateUpdatedTimestamp, *b.stateTransitionedTimestamp
	a.Tags, a.Owed, a.LeftAlarm = before.Tags, before.Owed, before.LeftAlarm
	a.suppress(before.SuppressedBy())
}

// PolicyPrefix is what the ARNs of scaling policies begin with.
const PolicyPrefix = "arn:aws:autoscaling:"

// OwePolicies has an alarm that was changed tell the scaling policies that are actions of the state that it is in: they act for as long
// as it stays there, and not just when it comes there.
func (a *Alarm) OwePolicies() {
	value := a.State().Value
	policies := slices.DeleteFunc(slices.Clone(a.Actions(value)), func(arn string) bool { return !strings.HasPrefix(arn, PolicyPrefix) })
	if a.Owed == nil && len(policies) > 0 {
		a.Owed = &OwedActions{policies, value}
	}
}

// WithActions is a copy of the alarm that may act, or may not.
func (a *Alarm) WithActions(enabled bool) *Alarm {
	c := a.clone()
	*c.members().actionsEnabled = &enabled
	return c
}

// Actions are the ARNs that are told when the alarm comes to a state; none where its actions are disabled.
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

// AllActions are the ARNs that the alarm names for any state.
func (a *Alarm) AllActions() []string {
	m := a.members()
	return slices.Concat(m.okActions, m.alarmActions, m.insufficientDataActions)
}

// in is a copy of the alarm in a state.
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
	*m.stateValue, *m.stateReason, *m.stateReasonData, *m.stateUpdatedTimestamp = s.Value, &s.Reason, data, &now
	return c
}

// SuppressedBy is what keeps a composite alarm from doing what it owes; "" where nothing does.
func (a *Alarm) SuppressedBy() types.ActionsSuppressedBy {
	if a.Composite == nil {
		return ""
	}
	return a.Composite.ActionsSuppressedBy
}

// suppress notes on a composite alarm, which may be changed, what keeps it from acting.
func (a *Alarm) suppress(by types.ActionsSuppressedBy) {
	if a.Composite == nil {
		return
	}
	a.Composite.ActionsSuppressedBy, a.Composite.ActionsSuppressedReason = by, nil
	if by != "" {
		a.Composite.ActionsSuppressedReason = aws.String("Actions suppressed by " + string(by))
	}
}

// SuppressAlarm notes what keeps a composite alarm from acting.
func (tx *Tx) SuppressAlarm(a *Alarm, by types.ActionsSuppressedBy) {
	a = a.clone()
	a.suppress(by)
	tx.Alarms.Put(a)
}

// SettleAlarm strikes out what an alarm owes.
func (tx *Tx) SettleAlarm(a *Alarm) {
	a = a.clone()
	a.Owed = nil
	a.suppress("")
	tx.Alarms.Put(a)
}

// SetAlarmState puts an alarm in a state. Where that is another one its history tells it, and the state's actions are
// owed, unless it comes back to the state that it acted upon last: what was suppressed since is then as if it had not
// been. It returns the alarm as it is now.
func (tx *Tx) SetAlarmState(a *Alarm, s AlarmState, now time.Time) *Alarm {
	before := a.State()
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
		a.Owed = &OwedActions{arns, from}
	}
	tx.Alarms.Put(a)
	data := map[string]any{"version": "1.0", "oldState": historyState(before), "newState": historyState(s)}
	tx.AddAlarmHistory(a, types.HistoryItemTypeStateUpdate, fmt.Sprintf("Alarm updated from %s to %s", before.Value, s.Value), data, now)
	return a
}

// mustEncode stops on an error that only a type that JSON does not have can cause.
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

// AddAlarmHistory keeps an item of an alarm's history. What data holds becomes JSON.
func (tx *Tx) AddAlarmHistory(a *Alarm, kind types.HistoryItemType, summary string, data any, now time.Time) {
	b, err := json.Marshal(data)
	mustEncode(err)
	name := a.Name()
	for n := 0; ; n++ {
		row := &AlarmHistory{Number: now.UnixMicro() + int64(n), Item: types.AlarmHistoryItem{
			AlarmName: &name, AlarmType: a.Type(), Timestamp: &now, HistoryItemType: kind, HistorySummary: &summary, HistoryData: aws.String(string(b)),
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
	// Number orders the items of an alarm: microseconds since 1970, and on from there.
	Number int64
}

// Key is the number and the alarm's name, so that rows are in the order of time.
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

// AnomalyDetector is one anomaly detector, of a metric and a statistic or of metric math. Its state is not kept.
type AnomalyDetector struct{ types.AnomalyDetector }

// Key is what the detector is for, as one text.
func (d *AnomalyDetector) Key() string {
	var source any = d.MetricMathAnomalyDetector
	if s := d.SingleMetricAnomalyDetector; s != nil {
		sorted := *s
		sorted.Dimensions = slices.SortedFunc(slices.Values(s.Dimensions), func(a, b types.Dimension) int { return strings.Compare(*a.Name, *b.Name) })
		source = sorted
	}
	b, err := json.Marshal(source)
	mustEncode(err)
	return string(b)
}

// Detect gives, for some of a request's queries by their ids, what anomaly detectors say of their models.
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

// isFor says whether the detector is for a query's metric and statistic, or for its expression on the same metrics.
func (d *AnomalyDetector) isFor(queries []types.MetricDataQuery, q types.MetricDataQuery) bool {
	if m := q.MetricStat; m != nil {
		of := AnomalyDetector{types.AnomalyDetector{SingleMetricAnomalyDetector: &types.SingleMetricAnomalyDetector{
			Namespace: m.Metric.Namespace, MetricName: m.Metric.MetricName, Dimensions: m.Metric.Dimensions, Stat: m.Stat,
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
			return *q.Id == *own.Id && aws.ToString(q.Expression) == aws.ToString(own.Expression) && reflect.DeepEqual(q.MetricStat, own.MetricStat)
		})
	})
}

// keepHistory is how long CloudWatch keeps an alarm's history: API_DescribeAlarmHistory.
const keepHistory = 30 * 24 * time.Hour

// AlarmHistoryByAlarm finds the history of an alarm by its name.
var AlarmHistoryByAlarm = Index[AlarmHistory]{Name: "alarm", Value: func(h *AlarmHistory) string { return aws.ToString(h.Item.AlarmName) }}

var (
	alarmHistory = &store.Definition[AlarmHistory]{
		Name:     "alarm_history",
		Key:      (*AlarmHistory).Key,
		Indexes:  []Index[AlarmHistory]{AlarmHistoryByAlarm},
		Lifetime: store.KeepLatest(keepHistory, func(h *AlarmHistory) *time.Time { return h.Item.Timestamp }),
	}

	alarms = &store.Definition[Alarm]{Name: "alarms", Key: (*Alarm).Name}

	anomalyDetectors = &store.Definition[AnomalyDetector]{Name: "anomaly_detectors", Key: (*AnomalyDetector).Key}

	dashboards = &store.Definition[Dashboard]{Name: "dashboards", Key: func(d *Dashboard) string { return d.Name }}
)
