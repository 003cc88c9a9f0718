// Package ec2 is the part of Amazon EC2 that clients of ECS need: instances, both those that the fleet starts and the machines of
// other container instances; launch templates; the types and images that Pintle knows; and the region with its zones. A Service
// has methods as the SDK's client has them, over the store. It writes down which instances are wanted; the loop in ec2/machines
// starts and ends them. It knows nothing of HTTP, and no other service.
package ec2

import (
	"net/http"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Options say whose EC2 this is.
type Options struct {
	account.Account
	// NoFleet says that there is nowhere to start instances.
	NoFleet bool
}

// Service is Amazon EC2 for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now is the time to the second, which is what EC2 shows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Second) }

// root is the account's own principal, who made everything here.
func (s *Service) root() *string { return new(s.opts.Root()) }

// refuse returns an error of EC2's. Its model has none: clients know them by their codes alone, of which
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html lists them all.
func refuse(code, format string, args ...any) *account.Refusal {
	return account.Refuse(code, format, args...)
}

// checkDryRun answers a call that only asks whether it would be let through. Everyone's is.
func checkDryRun(dryRun *bool) error {
	if dryRun == nil || !*dryRun {
		return nil
	}
	return account.RefuseWith(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}

// quoted is ids as EC2's messages have them.
func quoted(ids []string) string { return "'" + strings.Join(ids, ", ") + "'" }
