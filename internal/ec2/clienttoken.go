package ec2

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
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
	if aws.ToString(token) != "" {
		if len(*token) > clientTokens {
			return nil, refuse("InvalidParameterValue", "ClientToken has %d characters, at most %d are allowed", len(*token), clientTokens)
		}
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		hash := sha256.Sum256(b)
		key := "ec2:" + string(k.name) + " " + *token
		if t := tx.IdempotencyTokens.Get(key); t != nil && s.opts.Now().Before(t.Expires) {
			if !bytes.Equal(t.Request, hash[:]) {
				return nil, refuse("IdempotentParameterMismatch", "The client token %s was used with other parameters.", *token)
			}
			if earlier := k.table(tx.View).Get(t.Arns[0]); earlier != nil {
				return earlier, nil
			}
		}
		tx.IdempotencyTokens.Put(&state.IdempotencyToken{
			Token:   key,
			Request: hash[:],
			Arns:    []string{*id},
			Expires: s.opts.Now().Add(tokenLifetime),
		})
	}
	if err := check(); err != nil {
		return nil, err
	}
	k.table(tx.View).Put(row)
	return row, nil
}
