// Package enrollment gives nodes keys of their own. The account's owner makes a join token. A machine that shows it gets an
// access key, which its first registration binds to one container instance. Tokens are kept as hashes, and keys without their
// secrets, so the rows give nobody access. Package ecs decides what a key may do.
package enrollment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// Options are what an Office needs besides the store.
type Options struct {
	Now func() time.Time
	// Secret returns the secret of a node's access key. It's always the same for a key, and nobody else can work it out.
	Secret func(accessKeyID string) string
}

// Office makes join tokens and nodes' keys.
type Office struct {
	store *state.Store
	opts  Options
}

// New returns an office over the store.
func New(store *state.Store, opts Options) *Office { return &Office{store, opts} }

// The limits of a token.
const (
	MaxLifetime = 365 * 24 * time.Hour
	MaxUses     = 10_000
)

// Key is a node's access key.
type Key struct {
	AccessKeyID     string
	SecretAccessKey string
}

// ErrRefused is Join's error for a token that doesn't exist, has expired, was used up or was revoked.
var ErrRefused = errors.New("the join token is not valid: it may have expired, been used up or been revoked")

// Create makes a token, and returns it with its secret, which isn't kept.
func (o *Office) Create(ctx context.Context, n NewToken) (*state.JoinToken, string, error) {
	if n.Seconds < 1 || n.Seconds > int64(MaxLifetime/time.Second) {
		return nil, "", fmt.Errorf("a join token must expire within %s, not after %d s", MaxLifetime, n.Seconds)
	}
	if n.Uses < 1 || n.Uses > MaxUses {
		return nil, "", fmt.Errorf("a join token must have between 1 and %d uses, not %d", MaxUses, n.Uses)
	}
	secret := base64.RawURLEncoding.EncodeToString(random(24))
	now := o.opts.Now().UTC().Truncate(time.Millisecond)
	t := &state.JoinToken{
		ID:        hex.EncodeToString(random(4)),
		Hash:      hashOf(secret),
		CreatedAt: now,
		ExpiresAt: now.Add(time.Duration(n.Seconds) * time.Second),
		UsesLeft:  n.Uses,
	}
	err := o.store.Update(ctx, func(tx *state.Tx) error {
		if tx.JoinTokens.Get(t.ID) != nil {
			return errors.New("the id of the new join token is taken: try again")
		}
		tx.JoinTokens.Put(t)
		return nil
	})
	return t, secret, err
}

// List returns the tokens that are valid.
func (o *Office) List() []*state.JoinToken {
	out := []*state.JoinToken{}
	for t := range o.store.View().JoinTokens.All() {
		if o.isValid(t) {
			out = append(out, t)
		}
	}
	return out
}

// Revoke ends a token. Keys that were made with it stay.
func (o *Office) Revoke(ctx context.Context, id string) error {
	return o.store.Update(ctx, func(tx *state.Tx) error {
		if tx.JoinTokens.Get(id) == nil {
			return fmt.Errorf("there is no join token %q: pintle token list shows those that there are", id)
		}
		tx.JoinTokens.Delete(id)
		return nil
	})
}

// Join makes a key for a machine that has a token. It's the only call that strangers can make, so a wrong token costs no write.
func (o *Office) Join(ctx context.Context, id, secret string) (Key, error) {
	if t := o.store.View().JoinTokens.Get(id); !o.accepts(t, secret) {
		return Key{}, ErrRefused
	}
	key := &state.NodeKey{
		AccessKeyID: "AKIA" + base32.StdEncoding.EncodeToString(random(10)),
		JoinToken:   id,
		CreatedAt:   o.opts.Now().UTC().Truncate(time.Millisecond),
	}
	err := o.store.Update(ctx, func(tx *state.Tx) error {
		t := tx.JoinTokens.Get(id)
		if !o.accepts(t, secret) {
			return ErrRefused
		}
		if t = t.Used(); t.UsesLeft > 0 {
			tx.JoinTokens.Put(t)
		} else {
			tx.JoinTokens.Delete(id)
		}
		tx.NodeKeys.Put(key)
		return nil
	})
	if err != nil {
		return Key{}, err
	}
	return Key{key.AccessKeyID, o.opts.Secret(key.AccessKeyID)}, nil
}

// Lookup returns a node's key, or false if there is none.
func (o *Office) Lookup(accessKeyID string) (key Key, instanceArn string, ok bool) {
	k := o.store.View().NodeKeys.Get(accessKeyID)
	if k == nil {
		return Key{}, "", false
	}
	return Key{accessKeyID, o.opts.Secret(accessKeyID)}, k.ContainerInstanceArn, true
}

func (o *Office) isValid(t *state.JoinToken) bool {
	return t != nil && t.UsesLeft > 0 && o.opts.Now().Before(t.ExpiresAt)
}

func (o *Office) accepts(t *state.JoinToken, secret string) bool {
	return o.isValid(t) && subtle.ConstantTimeCompare(t.Hash, hashOf(secret)) == 1
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
