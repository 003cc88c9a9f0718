package events

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// Run tells the targets of rules with schedules when they are due, until ctx ends. An occurrence is moved on in the transaction that owes it, so
// that it's told once, whatever is killed. Of those that came while nothing ran, the first is told, late, and the others are left out.
func (s *Service) Run(ctx context.Context) error {
	next := func(v *state.View) *time.Time {
		if r := v.NextRule(); r != nil {
			return r.Next
		}
		return nil
	}
	return s.store.RunDue(ctx, s.opts.Now, next, s.fire)
}

// fire tells the targets of the rule that is due first.
func (s *Service) fire(tx *state.Tx, now time.Time) {
	r := tx.NextRule()
	if r == nil || r.Next.After(now) {
		return
	}
	e := s.envelope("aws.events", "Scheduled Event", []string{*r.Arn}, *r.Next, json.RawMessage("{}"))
	due := &event{text: string(encoded(e))}
	var all []match
	for i := range r.Targets {
		all = append(all, match{due, r, &r.Targets[i]})
	}
	s.owe(tx, all)
	s.countMatches(all)
	row := *r
	row.Next = nextOf(r, now)
	tx.EventRules.Put(&row)
}
