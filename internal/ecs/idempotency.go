package ecs

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// A call with a client token that is repeated gets what the first has made: "Ensuring idempotency" in ECS's API
// reference. Tokens are kept for a day.
const tokenLifetime = 24 * time.Hour

// remembered is what a client token that was used before stands for, or nil. The key is the operation, what it
// acted in, and the token.
func (s *Service) remembered(v *state.View, key string) *state.IdempotencyToken {
	t := v.IdempotencyTokens.Get(key)
	if t == nil || !s.opts.Now().Before(t.Expires) {
		return nil
	}
	return t
}

// remember keeps what a call with a client token has made.
func (s *Service) remember(tx *state.Tx, key string, hash []byte, arns []string) {
	tx.IdempotencyTokens.Put(&state.IdempotencyToken{Token: key, Request: hash, Arns: arns, Expires: s.opts.Now().Add(tokenLifetime)})
}

// requestHash tells calls with the same client token apart.
func requestHash(in any) ([]byte, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(b)
	return h[:], nil
}
