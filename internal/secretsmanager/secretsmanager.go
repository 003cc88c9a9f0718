// Package secretsmanager is AWS Secrets Manager. A Service has the methods of the SDK's client, over the store. Values are encrypted before
// they become rows, and no error repeats one. It knows nothing of HTTP. It doesn't rotate secrets, which takes functions, and doesn't
// replicate them, since a control plane is one region; resource policies are kept here, and evaluated before a call gets here.
package secretsmanager

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// Options are the account and region of the service, and what it uses.
type Options struct {
	account.Account
	Vault *vault.Vault // encrypts values
}

// Service is Secrets Manager for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// The errors of Secrets Manager. Clients know them by their codes.

func invalid(format string, args ...any) error {
	return &types.InvalidParameterException{Message: account.Message(format, args...)}
}

// impossible refuses what the secret's state doesn't allow.
func impossible(format string, args ...any) error {
	return &types.InvalidRequestException{Message: account.Message(format, args...)}
}

func exists(format string, args ...any) error {
	return &types.ResourceExistsException{Message: account.Message(format, args...)}
}

func tooMany(format string, args ...any) error {
	return &types.LimitExceededException{Message: account.Message(format, args...)}
}

func notFound() error {
	return &types.ResourceNotFoundException{Message: account.Message("Secrets Manager can't find the specified secret.")}
}

// valueNotFound says that a secret has no version of an id or with a staging label.
func valueNotFound(by, value string) error {
	return &types.ResourceNotFoundException{Message: account.Message(
		"Secrets Manager can't find the specified secret value for %s: %s", by, value)}
}

// listing describes the pages of an operation.
func listing(operation string, most int) account.List {
	return account.List{
		Kind: "secretsmanager:" + operation,
		Most: most,
		BadLimit: func(limit int) error {
			return invalid("MaxResults is %d, which isn't from 1 to %d.", limit, most)
		},
		BadToken: func() error {
			return &types.InvalidNextTokenException{Message: account.Message("Invalid pagination token provided.")}
		},
	}
}

// optional returns nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
