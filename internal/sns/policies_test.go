package sns

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/sns/filterpolicy"
	"github.com/pintle/pintle/internal/state"
)

func filtered(policy string) *state.Subscription {
	return &state.Subscription{Attributes: map[string]string{"FilterPolicy": policy}}
}

// TestPolicies: policies are kept as they were read, for each scope, and up to a limit.
func TestPolicies(t *testing.T) {
	var c policies
	one := c.of(filtered(`{"a":["1"]}`))
	if one == nil || c.of(filtered(`{"a":["1"]}`)) != one || c.of(filtered(`{"a":["2"]}`)) == one {
		t.Error("a policy isn't kept by its text")
	}
	body := filtered(`{"a":["1"]}`)
	body.Attributes["FilterPolicyScope"] = string(filterpolicy.Body)
	if p := c.of(body); p == one || !p.MatchBody(`{"a":"1"}`) {
		t.Error("a policy for bodies is read as one for attributes")
	}
	if c.of(&state.Subscription{PendingSince: new(time.Time)}) != nil {
		t.Error("an unconfirmed subscription gets messages")
	}
	long := strings.Repeat("x", 100<<10)
	for i := range 30 {
		if c.of(filtered(fmt.Sprintf(`{"a":["%d%s"]}`, i, long))) == nil {
			t.Fatal("no policy")
		}
		if c.bytes > maxRead {
			t.Fatalf("%d bytes of %d policies are kept", c.bytes, len(c.read))
		}
	}
}

// BenchmarkPolicies reads the policies of a topic with a thousand subscriptions, as each message needs them.
func BenchmarkPolicies(b *testing.B) {
	var all []*state.Subscription
	for i := range 1000 {
		all = append(all, filtered(fmt.Sprintf(`{"kind":["a","b",{"prefix":"c%d"}],"size":[{"numeric":[">",%d]}]}`, i, i)))
	}
	var c policies
	for b.Loop() {
		for _, sub := range all {
			if c.of(sub) == nil {
				b.Fatal("no policy")
			}
		}
	}
}
