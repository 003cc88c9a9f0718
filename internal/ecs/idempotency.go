package ecs

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// tokenLifetime is how long we keep client tokens. Until then a repeated call with the same token returns what the first
// one created: "Ensuring idempotency" in ECS's API reference.
const tokenLifetime = 24 * time.Hour

// findToken finds a client token that was used before, or returns nil. The key is the operation, the cluster or service it
// acted in, and the token.
func (s *Service) findToken(v *state.View, key string) *state.IdempotencyToken {
	t := v.IdempotencyTokens.Get(key)
	if t == nil || !s.opts.Now().Before(t.Expires) {
		return nil
	}
	return t
}

// putToken records what a call with a client token created.
func (s *Service) putToken(tx *state.Tx, key string, hash []byte, arns []string) {
	tx.IdempotencyTokens.Put(&state.IdempotencyToken{
		Token:   key,
		Request: hash,
		Arns:    arns,
		Expires: s.opts.Now().Add(tokenLifetime),
	})
}

// requestHash hashes a call's input, to tell calls with the same client token apart.
func requestHash(in any) ([]byte, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(b)
	return h[:], nil
}
