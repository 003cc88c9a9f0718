package events

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// event is an event on its way from a bus.
type event struct {
	text string
	// order is what the event is about, or "". Events about the same reach a target one after the other.
	order string
	// subject is forwarded for an event that came from another bus, which goes to no third one, as on AWS.
	subject string
	own     bool // told by one of Pintle's services, and not by a caller that could be refused
}

const forwarded = "forwarded"

// match is an event that a rule's target is to get.
type match struct {
	*event
	rule   *state.EventRule
	target *types.Target
}

// Limits of how long and how often an event is tried at a target: API_RetryPolicy.
const (
	maxAge   = 24 * time.Hour
	maxTries = 185
)

// mark stands between a rule's ARN and a target's id in a destination. overflow follows those whose event goes to the dead letters at once.
const (
	mark     = "#"
	overflow = mark + "overflow"
)

// happened owes an event of a service's to the default bus, in the transaction in which it happens. Which rules match it is found out later, so that
// this takes as long as it takes without rules.
func (s *Service) happened(tx *state.Tx, e *state.Event) {
	what := s.envelope(e.Source, e.DetailType, e.Resources, e.Time, render(e.Detail))
	now := s.opts.Now()
	d := state.Delivery{Debt: delivery.Debt{Destination: s.busARN(state.DefaultBus), Body: string(encoded(what)), Until: now.Add(maxAge)}}
	d.Size = len(d.Body)
	if e.Order != "" {
		d.Line = d.Destination + " " + e.Order
	}
	tx.Owe(d, now)
}

// receive has the targets of a bus's rules owed an event that the bus is owed: by a service of these rows, or by another store, such as S3's, which keeps
// what there is no room for.
func (s *Service) receive(ctx context.Context, bus string, d delivery.Debt) error {
	v := s.store.View()
	e, check := &event{text: d.Body}, s.isFull
	if row := v.Deliveries.Get(d.ID); row != nil && row.Destination == d.Destination {
		e.own, check = true, nil
		_, e.order, _ = strings.Cut(row.Line, " ")
	}
	return s.route(ctx, s.matches(v, bus, e), check, func(tx *state.Tx) { tx.SettleDelivery(d.ID, nil, s.opts.Now()) })
}

// matches returns which targets of a bus's rules get an event.
func (s *Service) matches(v *state.View, bus string, e *event) (all []match) {
	var value map[string]any
	for r := range v.EventRulesOf(bus) {
		if !r.IsEnabled() || r.EventPattern == nil || len(r.Targets) == 0 {
			continue
		}
		if value == nil {
			value, _ = decoded(e.text).(map[string]any)
		}
		if p := s.pattern(r); p == nil || !p.Match(value) {
			continue
		}
		for i := range r.Targets {
			all = append(all, match{e, r, &r.Targets[i]})
		}
	}
	return all
}

// maxPiece is how many targets a transaction owes events: others have their turn in between.
const maxPiece = 256

// route owes events to targets, in pieces. check may refuse them in the first transaction, and done is called in the last one.
func (s *Service) route(ctx context.Context, all []match, check func(*state.Tx) error, done func(*state.Tx)) error {
	pieces := slices.Collect(slices.Chunk(all, maxPiece))
	if len(pieces) == 0 && done != nil {
		pieces = [][]match{nil}
	}
	for i, piece := range pieces {
		err := s.store.Update(ctx, func(tx *state.Tx) error {
			if i == 0 && check != nil {
				if err := check(tx); err != nil {
					return err
				}
			}
			s.owe(tx, piece)
			if i == len(pieces)-1 && done != nil {
				done(tx)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.countMatches(all)
	return nil
}

// countMatches counts events that matched, and the rules that they did. Those of one event follow each other, and of a rule in it.
func (s *Service) countMatches(all []match) {
	count := s.opts.Count
	if count == nil {
		return
	}
	for i, m := range all {
		of := dimensions(m.rule)
		if i == 0 || all[i-1].event != m.event {
			count("AWS/Events", "MatchedEvents", of[1:]...)
		}
		if i == 0 || all[i-1].event != m.event || all[i-1].rule != m.rule {
			count("AWS/Events", "TriggeredRules", of...)
		}
	}
}

// dimensions returns those by which what a rule does is counted: "Metrics that specify only the RuleName dimension refer to the default event bus".
func dimensions(r *state.EventRule) targets.Dimensions {
	bus, name := cmp.Or(aws.ToString(r.EventBusName), state.DefaultBus), []string{"RuleName", *r.Name}
	if bus != state.DefaultBus {
		name = []string{"EventBusName", bus, "RuleName", *r.Name}
	}
	return targets.Dimensions{name, nil, {"EventBusName", bus}}
}

// owe owes events to targets. Those of one event, which follow each other, share its text.
func (s *Service) owe(tx *state.Tx, all []match) {
	now := s.opts.Now()
	var of *event
	var id string
	for _, m := range all {
		if m.event != of {
			of, id = m.event, state.NewUUID()
			tx.EventTexts.Put(&state.EventText{ID: id, Text: m.text})
		}
		age := maxAge
		if p := m.target.RetryPolicy; p != nil && p.MaximumEventAgeInSeconds != nil {
			age = time.Duration(*p.MaximumEventAgeInSeconds) * time.Second
		}
		d := state.Delivery{
			Debt:  delivery.Debt{Destination: *m.rule.Arn + mark + *m.target.Id, Subject: m.subject, Body: id, Until: now.Add(age)},
			Event: id,
			Own:   m.own,
			Size:  len(m.text),
		}
		if m.order != "" {
			d.Line = d.Destination + " " + m.order
		}
		if m.own {
			s.makeRoom(tx, m, &d)
		}
		tx.Owe(d, now)
	}
}

// maxOwn is how many bytes of events of Pintle's services may wait for a target: a fourth of what may wait for all.
const maxOwn = state.Room / 4

var errNoRoom = errors.New("too many bytes of events wait for the target already")

// makeRoom has the oldest events that wait for a target give way to another one: they go to its dead letters, or are lost.
func (s *Service) makeRoom(tx *state.Tx, m match, d *state.Delivery) {
	u := s.store.Undelivered
	for u.Own[d.Destination]+d.Size > s.opts.Room || u.IsFull() {
		oldest := tx.OldestOwn(d.Destination)
		if oldest == nil {
			return // one may always wait
		}
		now := s.opts.Now()
		if m.target.DeadLetterConfig != nil {
			dead := state.Delivery{Debt: oldest.Debt, Event: oldest.Event, Size: oldest.Size}
			dead.ID, dead.Destination, dead.Until = "", oldest.Destination+overflow, now.Add(maxAge)
			tx.Owe(dead, now)
		} else {
			s.noteLost(m)
			s.opts.Targets.Lost(targets.Letter{Service: targets.Events, By: dimensions(m.rule)})
		}
		tx.SettleDelivery(oldest.ID, errNoRoom, now)
	}
}

// noteLost counts an event that is lost, and logs so once a minute for each target. It's for transactions, which run one after the other.
func (s *Service) noteLost(m match) {
	at, now := *m.rule.Arn+mark+*m.target.Id, s.opts.Now()
	if now.Sub(s.lost[at]) < time.Minute {
		return
	}
	s.lost[at] = now
	s.opts.Log.Error("events are lost: too many bytes wait for the target already, and it has no dead-letter queue", "rule", *m.rule.Arn,
		"target", *m.target.Arn)
}
