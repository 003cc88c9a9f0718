package ec2

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
)

// tokenLifetime is how long a client token is remembered: "Ensuring idempotency in Amazon EC2 API requests".
const tokenLifetime = 24 * time.Hour

// putOnce puts a new row, unless an earlier call with the same client token made one that still exists: then it returns that one. check
// looks at what is new; a client token with another call is refused.
func putOnce[R any](s *Service, tx *state.Tx, k kind[R], token *string, in any, row *R, check func() error) (*R, error) {
	id, _ := k.of(row)
	made, err := s.tokenOf(string(k.name), token, in, *id)
	if err != nil {
		return nil, err
	}
	before, err := s.before(tx, made)
	if err != nil {
		return nil, err
	}
	if len(before) > 0 {
		if earlier := k.table(tx.View).Get(before[0]); earlier != nil {
			return earlier, nil
		}
	}
	if err := check(); err != nil {
		return nil, err
	}
	if made != nil {
		tx.IdempotencyTokens.Put(made)
	}
	k.table(tx.View).Put(row)
	return row, nil
}

// tokenOf returns what is kept of a call's client token, with the ids of what the call makes; nil for a call without one.
func (s *Service) tokenOf(what string, token *string, in any, ids ...string) (*state.IdempotencyToken, error) {
	if aws.ToString(token) == "" {
		return nil, nil
	}
	if len(*token) > clientTokens {
		return nil, refuse("InvalidParameterValue", "ClientToken has %d characters, at most %d are allowed", len(*token), clientTokens)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(b)
	return &state.IdempotencyToken{
		Token:   "ec2:" + what + " " + *token,
		Request: hash[:],
		Arns:    ids,
		Expires: s.opts.Now().Add(tokenLifetime),
	}, nil
}

// before returns the ids of what an earlier call with a client token made.
func (s *Service) before(tx *state.Tx, made *state.IdempotencyToken) ([]string, error) {
	if made == nil {
		return nil, nil
	}
	earlier := tx.IdempotencyTokens.Get(made.Token)
	switch {
	case earlier == nil || !s.opts.Now().Before(earlier.Expires):
		return nil, nil
	case !bytes.Equal(earlier.Request, made.Request):
		_, token, _ := strings.Cut(made.Token, " ")
		return nil, refuse("IdempotentParameterMismatch", "The client token %s was used with other parameters.", token)
	}
	return earlier.Arns, nil
}
