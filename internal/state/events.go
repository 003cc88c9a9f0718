package state

import (
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/store"
)

// EventBus is a bus of EventBridge. The account's default one has no row until something of it is set.
type EventBus struct {
	Name        string
	ARN         string
	Description string      `json:",omitempty"`
	Policy      string      `json:",omitempty"`
	Tags        []types.Tag `json:",omitempty"`
	Created     *time.Time  `json:",omitzero"` // nil for the default bus
	Changed     *time.Time  `json:",omitzero"`
}

// DefaultBus is the name of the bus on which AWS's services tell what happens.
const DefaultBus = "default"

// EventText is the text of an event that targets are still owed. It lives as long as the last debt of it.
type EventText struct{ ID, Text string }

// EventRule is a rule of a bus, with its targets.
type EventRule struct {
	types.Rule
	Tags    []types.Tag    `json:",omitempty"`
	Targets []types.Target `json:",omitempty"`
	// Sources and DetailTypes are those of the events that its pattern may match. None means any.
	Sources     []string `json:",omitempty"`
	DetailTypes []string `json:",omitempty"`
	CreatedBy   string   // the account
	Since       time.Time
	// Next is when its schedule is next due, while it is enabled.
	Next *time.Time `json:",omitzero"`
}

// IsEnabled reports whether the rule acts.
func (r *EventRule) IsEnabled() bool { return r.State != types.RuleStateDisabled }

// Target returns the target with an id, or nil.
func (r *EventRule) Target(id string) *types.Target {
	for i := range r.Targets {
		if aws.ToString(r.Targets[i].Id) == id {
			return &r.Targets[i]
		}
	}
	return nil
}

func (r *EventRule) dueAt() string { return dueAt(r.Next) }

// dueAt orders rows by when their schedules are due. Those without a next time have no place in that order.
func dueAt(next *time.Time) string {
	if next == nil {
		return ""
	}
	return next.UTC().Format("2006-01-02T15:04:05.000000000")
}

var (
	eventRulesByBus = store.Index[*EventRule]{Name: "bus", Value: func(r *EventRule) string { return aws.ToString(r.EventBusName) }}
	eventRulesByDue = store.Index[*EventRule]{Name: "due", Value: (*EventRule).dueAt}

	eventTexts = &store.Definition[*EventText]{Name: "event_texts", Key: func(e *EventText) string { return e.ID }}
	eventBuses = &store.Definition[*EventBus]{Name: "event_buses", Key: func(b *EventBus) string { return b.Name }}
	eventRules = &store.Definition[*EventRule]{
		Name:    "event_rules",
		Key:     func(r *EventRule) string { return aws.ToString(r.Arn) },
		Indexes: []store.Index[*EventRule]{eventRulesByBus, eventRulesByDue},
	}
)

// eventTables are the tables of EventBridge and of its Scheduler in a view.
type eventTables struct {
	EventTexts     Table[*EventText]
	EventBuses     Table[*EventBus]
	EventRules     Table[*EventRule]
	ScheduleGroups Table[*ScheduleGroup]
	Schedules      Table[*Schedule]
}

func newEventTables(v *store.View) eventTables {
	return eventTables{
		EventTexts:     eventTexts.In(v),
		EventBuses:     eventBuses.In(v),
		EventRules:     eventRules.In(v),
		ScheduleGroups: scheduleGroups.In(v),
		Schedules:      schedules.In(v),
	}
}

// EventRulesOf returns a bus's rules, sorted by their ARNs.
func (v *View) EventRulesOf(bus string) iter.Seq[*EventRule] {
	return v.EventRules.By(eventRulesByBus, bus)
}

// NextRule returns the rule whose schedule is due first, or nil.
func (v *View) NextRule() *EventRule {
	for r := range v.EventRules.InOrder(eventRulesByDue) {
		return r
	}
	return nil
}

// Event is what a service tells the default bus.
type Event struct {
	Source     string
	DetailType string
	Resources  []string
	Detail     any // what JSON is made of, once it's known that somebody listens
	Time       time.Time
	// Order is what the event is about. A rule's target hears of events about the same in their order.
	Order string
}

// Listeners knows which events rules of the default bus may match, so that others cost nothing. It follows the rows, also inside a running
// transaction.
type Listeners struct {
	Now func() time.Time
	// Tell owes an event to the targets of the rules that match it.
	Tell func(tx *Tx, e *Event)
	// Describe returns a container instance with what ECS derives of it.
	Describe func(v *View, c *ContainerInstance) ecs.ContainerInstance
	kinds    map[kindOfEvent]int
}

// kindOfEvent is a source and a detail type. An empty one means any.
type kindOfEvent struct{ source, detailType string }

// Change implements store.Observer.
func (l *Listeners) Change(before, after any) {
	l.count(before, -1)
	l.count(after, 1)
}

func (l *Listeners) count(row any, sign int) {
	r, isRule := row.(*EventRule)
	if !isRule || r == nil || !r.IsEnabled() || r.EventPattern == nil || aws.ToString(r.EventBusName) != DefaultBus {
		return
	}
	for _, source := range orAny(r.Sources) {
		for _, detailType := range orAny(r.DetailTypes) {
			k := kindOfEvent{source, detailType}
			if l.kinds[k] += sign; l.kinds[k] == 0 {
				delete(l.kinds, k)
			}
		}
	}
}

func orAny(texts []string) []string {
	if len(texts) == 0 {
		return []string{""}
	}
	return texts
}

// listens reports whether a rule may match events of a source and a detail type.
func (l *Listeners) listens(source, detailType string) bool {
	if l == nil || len(l.kinds) == 0 || l.Tell == nil {
		return false
	}
	return l.kinds[kindOfEvent{source, detailType}] > 0 || l.kinds[kindOfEvent{source, ""}] > 0 ||
		l.kinds[kindOfEvent{"", detailType}] > 0 || l.kinds[kindOfEvent{"", ""}] > 0
}

// Emit tells the default bus an event, in the transaction of what has happened. make is called only if somebody may listen. It may return nil for
// none.
func (tx *Tx) Emit(source, detailType string, make func() *Event) {
	if !tx.listeners.listens(source, detailType) {
		return
	}
	e := make()
	if e == nil {
		return
	}
	e.Source, e.DetailType = source, detailType
	if e.Time.IsZero() {
		e.Time = tx.listeners.Now()
	}
	tx.listeners.Tell(tx, e)
}
