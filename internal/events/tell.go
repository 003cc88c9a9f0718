package events

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// ARNPrefix begins the ARNs of rules, whatever their region.
const ARNPrefix = "arn:aws:events:"

// Tell delivers an event to a target of a rule, or to a bus: S3's events come so.
func (s *Service) Tell(ctx context.Context, d delivery.Debt) error {
	if bus, isBus := s.opts.ResourceOf("events", "event-bus/", d.Destination); isBus {
		return s.receive(ctx, bus, d.Body)
	}
	arn, id, _ := strings.Cut(d.Destination, mark)
	r := s.store.View().EventRules.Get(arn)
	if r == nil || r.Target(id) == nil {
		return fmt.Errorf("%w: there is no target %s", delivery.ErrGone, d.Destination)
	}
	t := r.Target(id)
	letter := targets.Letter{
		Target:  s.target(t),
		Service: targets.Events,
		Source:  *r.Arn,
		Name:    "events-rule/" + *r.Name,
		Token:   d.ID,
		Tries:   d.Tries,
		Most:    maxTries,
		Until:   d.Until,
		Names:   targets.Names{Source: "RULE_ARN", Target: "TARGET_ARN"},
	}
	if p := t.RetryPolicy; p != nil && p.MaximumRetryAttempts != nil {
		letter.Most = int(*p.MaximumRetryAttempts)
	}
	if t.DeadLetterConfig != nil {
		letter.DeadLetters = aws.ToString(t.DeadLetterConfig.Arn)
	}
	input, ok := inputOf(r, t, d.Body, d.Since.UTC().Format(seconds))
	letter.Input = input
	if !ok {
		return s.opts.Targets.GiveUp(ctx, letter, "INVALID_JSON", "the target's input isn't JSON once its template is filled in, or has more than 1 MiB")
	}
	if name, isBus := s.opts.ResourceOf("events", "event-bus/", letter.Target.ARN); isBus {
		return s.forward(ctx, letter, name, d)
	}
	return s.opts.Targets.Send(ctx, letter)
}

// receive puts an event of a service's on a bus.
func (s *Service) receive(ctx context.Context, bus, text string) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if s.store.Undelivered.IsFull() {
			return errFull
		}
		s.putOn(tx, bus, event{text: text})
		return nil
	})
}

// forward puts an event on another bus, as it is.
func (s *Service) forward(ctx context.Context, l targets.Letter, bus string, d delivery.Debt) error {
	if d.Subject == forwarded {
		return nil
	}
	var gone error
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if bus != state.DefaultBus && tx.EventBuses.Get(bus) == nil {
			gone = noBus(bus)
			return nil
		}
		s.putOn(tx, bus, event{text: d.Body, subject: forwarded})
		return nil
	})
	if gone != nil {
		return s.opts.Targets.GiveUp(ctx, l, "NO_RESOURCE", gone.Error())
	}
	return err
}
