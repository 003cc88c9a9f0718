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
		return s.receive(ctx, bus, d)
	}
	destination, isOver := strings.CutSuffix(d.Destination, overflow)
	arn, id, _ := strings.Cut(destination, mark)
	v := s.store.View()
	r := v.EventRules.Get(arn)
	if r == nil || r.Target(id) == nil {
		return fmt.Errorf("%w: there is no target %s", delivery.ErrGone, d.Destination)
	}
	if !strings.HasPrefix(d.Body, "{") { // older data has the event itself
		e := v.EventTexts.Get(d.Body)
		if e == nil {
			return fmt.Errorf("%w: the event was settled meanwhile", delivery.ErrGone)
		}
		d.Body = e.Text
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
		By:      dimensions(r),
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
	if isOver {
		return s.opts.Targets.GiveUp(ctx, letter, "THROTTLING", errNoRoom.Error())
	}
	if name, isBus := s.opts.ResourceOf("events", "event-bus/", letter.Target.ARN); isBus {
		return s.forward(ctx, letter, name, d)
	}
	return s.opts.Targets.Send(ctx, letter)
}

// forward puts an event on another bus, as it is.
func (s *Service) forward(ctx context.Context, l targets.Letter, bus string, d delivery.Debt) error {
	if d.Subject == forwarded {
		return nil
	}
	v := s.store.View()
	if bus != state.DefaultBus && v.EventBuses.Get(bus) == nil {
		return s.opts.Targets.GiveUp(ctx, l, "NO_RESOURCE", noBus(bus).Error())
	}
	err := s.route(ctx, s.matches(v, bus, &event{text: d.Body, subject: forwarded}), s.isFull, nil)
	s.opts.Targets.Tried(l, err)
	return err
}
