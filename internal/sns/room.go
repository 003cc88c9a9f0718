package sns

import (
	"errors"
	"time"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// Room is how many bytes of messages may be on their way, since all of them are in memory, besides the time for which they are tried.
type Room struct {
	All, Topic   int // beyond them, publishing is refused
	Subscription int // beyond it, a URL's messages go to its dead letters
}

// defaultRoom lets one listener that hangs take a quarter of what all topics share.
var defaultRoom = Room{All: 256 << 20, Topic: 128 << 20, Subscription: 64 << 20}

// checkRoom refuses messages when too much is on its way already. It's for transactions.
func (s *Service) checkRoom(t *state.Topic, all []*state.Publication) error {
	n := 0
	for _, p := range all {
		n += p.Size()
	}
	u := s.store.Undelivered
	switch {
	case u.ByTopic[t.ARN]+n > s.opts.Room.Topic:
		return account.RefuseWith(429, "Throttled", "The topic has %d MB of messages that its subscribers haven't taken yet; it can have %d MB.",
			u.ByTopic[t.ARN]>>20, s.opts.Room.Topic>>20)
	case u.All+n > s.opts.Room.All:
		return account.RefuseWith(429, "Throttled", "The topics have %d MB of messages that their subscribers haven't taken yet; they can have %d MB.",
			u.All>>20, s.opts.Room.All>>20)
	}
	return nil
}

// isThrottled reports whether a message was refused for now only.
func isThrottled(err error) bool {
	refused, ok := errors.AsType[*account.Refusal](err)
	return ok && refused.Code == "Throttled"
}

// overflowing ends the destinations of debts that go straight to the dead letters of the subscription before it.
const overflowing = "/overflow"

var errNoRoom = errors.New("too many bytes of messages wait for the listener already")

// oweWithin owes a message to a subscription. If too much waits for the listener, that is owed to its dead-letter queue. It reports false if the
// message is lost, because there is none.
func (s *Service) oweWithin(tx *state.Tx, p *state.Publication, sub *state.Subscription) bool {
	waiting := s.store.Undelivered.BySubscription[sub.ARN]
	if isOurs(sub.Protocol) || waiting+p.Size() <= s.opts.Room.Subscription {
		s.owe(tx, p, sub)
		return true
	}
	if sub.Attributes["RedrivePolicy"] == "" {
		s.noteLost(sub)
		return false
	}
	now := s.opts.Now()
	tx.Owe(state.Delivery{
		Debt:        delivery.Debt{Destination: sub.ARN + overflowing, Body: p.ID, Until: now.Add(patience)},
		Publication: p.ID,
		Size:        p.Size(),
	}, now)
	return true
}

// noteLost logs once a minute that a subscription's messages are lost. It's for transactions, which run one after the other.
func (s *Service) noteLost(sub *state.Subscription) {
	now := s.now()
	if now.Sub(s.lost[sub.ARN]) < time.Minute {
		return
	}
	s.lost[sub.ARN] = now
	s.opts.Log.Error("messages are lost: too many bytes wait for the listener already, and the subscription has no dead-letter queue",
		"subscription", sub.ARN, "endpoint", sub.Endpoint)
}
