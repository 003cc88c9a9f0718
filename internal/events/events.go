// Package events is Amazon EventBridge: a Service whose methods are those of the SDK's client, over the store's buses and rules. What happens
// is owed to its bus in the transaction in which it happens. Tell finds out which rules match it, outside transactions, has their targets owed it,
// and delivers that, each time when the outbox asks it to. Schedules of rules are a loop. It decides nothing about who may call it.
package events

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/eventpattern"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
)

// Options are the account of the service, and what it delivers with.
type Options struct {
	account.Account
	Targets *targets.Sender
	Count   targets.Count // nil counts nothing
	Log     *slog.Logger  // told of events that are lost
	Room    int           // how many bytes of events of Pintle's services may wait for a target; 0 means maxOwn
}

// Service is Amazon EventBridge for one account in one region.
type Service struct {
	store    *state.Store
	opts     Options
	patterns sync.Map             // *eventpattern.Pattern by its text
	lost     map[string]time.Time // when it was last logged that a target's events are lost, by their destination
}

// New returns the service over the store, which it has tell it what happens.
func New(store *state.Store, opts Options) *Service {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Room == 0 {
		opts.Room = maxOwn
	}
	s := &Service{store: store, opts: opts, lost: map[string]time.Time{}}
	if store != nil {
		store.Listeners.Now = opts.Now
		store.Listeners.Tell = s.happened
	}
	return s
}

// now returns the time to the millisecond.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// busName returns the name of the bus that a call names by its name or ARN.
func (s *Service) busName(nameOrARN *string) (string, error) {
	text := aws.ToString(nameOrARN)
	switch {
	case text == "":
		return state.DefaultBus, nil
	case strings.HasPrefix(text, "arn:"):
		name, ours := s.opts.ResourceOf("events", "event-bus/", text)
		if !ours {
			return "", noBus(text)
		}
		return name, nil
	}
	return text, nil
}

// bus returns the bus that a call names.
func (s *Service) bus(v *state.View, nameOrARN *string) (*state.EventBus, error) {
	name, err := s.busName(nameOrARN)
	if err != nil {
		return nil, err
	}
	if b := v.EventBuses.Get(name); b != nil {
		return b, nil
	}
	if name == state.DefaultBus {
		return &state.EventBus{Name: name, ARN: s.busARN(name)}, nil
	}
	return nil, noBus(name)
}

func (s *Service) busARN(name string) string { return s.opts.ARN("events", "event-bus/"+name) }

// ruleARN returns a rule's ARN, which has the bus's name unless that is the default one.
func (s *Service) ruleARN(bus, name string) string {
	if bus == state.DefaultBus {
		return s.opts.ARN("events", "rule/"+name)
	}
	return s.opts.ARN("events", "rule/"+bus+"/"+name)
}

// rule returns the rule that a call names.
func (s *Service) rule(v *state.View, name, bus *string) (*state.EventRule, error) {
	b, err := s.bus(v, bus)
	if err != nil {
		return nil, err
	}
	r := v.EventRules.Get(s.ruleARN(b.Name, aws.ToString(name)))
	if r == nil {
		return nil, noRule(aws.ToString(name), b.Name)
	}
	return r, nil
}

// maxPatterns bounds the patterns that are kept parsed, those of rules that are gone included.
const maxPatterns = 2000

// pattern returns a rule's pattern.
func (s *Service) pattern(r *state.EventRule) *eventpattern.Pattern {
	text := aws.ToString(r.EventPattern)
	if p, ok := s.patterns.Load(text); ok {
		return p.(*eventpattern.Pattern)
	}
	p, err := eventpattern.New(text)
	if err != nil {
		return nil // it was checked
	}
	n := 0
	s.patterns.Range(func(any, any) bool { n++; return n < maxPatterns })
	if n == maxPatterns {
		s.patterns.Clear()
	}
	s.patterns.Store(text, p)
	return p
}

func tagParts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
