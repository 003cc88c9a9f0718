// Package ecr is Amazon ECR: private repositories of container images, with their policies. A Service has the methods of the SDK's client, over
// the store: which repository has which images and layers are rows, and the bytes are blobs. Package registry is how images are pushed and
// pulled. Nothing here scans images or replicates them: a control plane is one region, and settings of scans are kept and no more.
package ecr

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options are the account and region of the service, and what it uses.
type Options struct {
	account.Account
	MAC      func(text string) []byte // seals tokens and the URLs of layers
	Blobs    *blobs.Store
	Endpoint string // the control plane's URL
	// Standing returns what must stay as it is for the tokens of a caller to stay good, such as its role's unique id, and whether the caller
	// may have a token at all. nil means that nothing must.
	Standing func(call.Call) (string, bool)
	// Upstreams are the hosts of registries from which images may come besides those that AWS lets in.
	Upstreams []string
	Secrets   Secrets
	// TryUpstream asks a rule's registry whether it takes its password.
	TryUpstream func(context.Context, *state.PullThroughRule) error
}

// Service is Amazon ECR for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// Since returns how long ago something was.
func (s *Service) Since(t time.Time) time.Duration { return s.opts.Now().Sub(t) }

// Host is the account's Registry.
func (s *Service) Host() string { return s.opts.Registry() }

// The errors of ECR. Clients know them by their codes.

// badParameter is ECR's error for an input, in the form that all of its refusals have.
func badParameter(place, format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(inForm(place, *account.Message(format, args...)))}
}

func (s *Service) notFound(name string) error { return s.notFoundIn(s.opts.ID, name) }

func (s *Service) notFoundIn(registry, name string) error {
	return &types.RepositoryNotFoundException{Message: account.Message(
		"The repository with name '%s' does not exist in the registry with id '%s'", name, registry)}
}

// listing describes the pages of an operation.
func listing(operation string, most int) account.List {
	return account.List{
		Kind:    "ecr:" + operation,
		Default: 100,
		Most:    most,
		BadLimit: func(int) error {
			return badParameter("maxResults", "Member must have value less than or equal to %d", most)
		},
		BadToken: func() error { return badParameter("nextToken", "Invalid token") },
	}
}

// find returns the repository with a name, in a registry that is nil or the account's own.
func (s *Service) find(v *state.View, registry, name *string) (*state.Repository, error) {
	if registry != nil && *registry != s.opts.ID {
		return nil, s.notFoundIn(*registry, *name)
	}
	if r := v.Repositories.Get(*name); r != nil {
		return r, nil
	}
	return nil, s.notFound(*name)
}

// View returns what there is.
func (s *Service) View() *state.View { return s.store.View() }

// Check returns ECR's error for a repository that isn't there.
func (s *Service) Check(repository string) error {
	_, err := s.find(s.store.View(), nil, &repository)
	return err
}
