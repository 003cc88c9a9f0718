package sns

import (
	"cmp"
	"sync"

	"github.com/pintle/pintle/internal/sns/filterpolicy"
	"github.com/pintle/pintle/internal/state"
)

// policies keeps filter policies as they were read: each message is matched against those of all its topic's subscriptions.
type policies struct {
	mu    sync.Mutex
	read  map[string]*filterpolicy.Policy // by scope and text
	bytes int                             // of these
}

// maxRead is how many bytes of policies are kept.
const maxRead = 1 << 20

// of returns a subscription's filter policy, or nil if it's to get nothing. Without a policy of its own, it gets any message.
func (c *policies) of(sub *state.Subscription) *filterpolicy.Policy {
	if !sub.IsConfirmed() {
		return nil
	}
	scope, text := scopeOf(sub), cmp.Or(sub.Attributes["FilterPolicy"], "{}")
	key := string(scope) + " " + text
	c.mu.Lock()
	p, known := c.read[key]
	c.mu.Unlock()
	if known {
		return p
	}
	p, err := filterpolicy.Parse(scope, text)
	if err != nil {
		return nil // it was checked
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(key); c.bytes > maxRead || c.read == nil {
		c.read, c.bytes = map[string]*filterpolicy.Policy{}, len(key)
	}
	c.read[key] = p
	return p
}
