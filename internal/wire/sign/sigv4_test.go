package sign

import (
	"context"
	"errors"
	"testing"
)

// TestTurns: while large bodies take all turns, small ones don't wait, and whoever waits may give up.
func TestTurns(t *testing.T) {
	v := &Verifier{}
	v.prepare()
	for range cap(v.turns) {
		v.turns <- struct{}{}
	}
	body := make([]byte, large)
	if got, err := v.hash(t.Context(), body[1:]); err != nil || got != hashHex(body[1:]) {
		t.Errorf("a small body: %s, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.hash(ctx, body); !errors.Is(err, context.Canceled) {
		t.Errorf("a large body: %v", err)
	}
	<-v.turns
	if got, err := v.hash(t.Context(), body); err != nil || got != hashHex(body) || len(v.turns) != cap(v.turns)-1 {
		t.Errorf("a large body in its turn: %s, %v; %d turns are taken", got, err, len(v.turns))
	}
}
