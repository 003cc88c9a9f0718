// Package ec2 is the part of Amazon EC2 that clients of ECS need: instances (those that the fleet starts, and the
// machines of other container instances), launch templates, the types and images that Pintle knows, and the region with
// its zones. A Service has the methods of the SDK's client, over the store. It records which instances are wanted. The
// loop in ec2/machines starts and ends them. The package knows nothing of HTTP or of other services.
package ec2

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Options configures a Service.
type Options struct {
	account.Account
	// NoFleet means that there is nowhere to start instances.
	NoFleet bool
	// Parameters has the parameters that image ids are named by (resolve:ssm:NAME); nil means that any name will do.
	Parameters Parameters
}

// Parameters is Systems Manager's Parameter Store.
type Parameters interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// Service is Amazon EC2 for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the second, which is what EC2 shows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Second) }

// root returns the account's own principal, who created everything here.
func (s *Service) root() *string { return new(s.opts.Root()) }

// refuse returns one of EC2's errors. EC2's model has no error types; clients know errors only by their codes. They are
// listed at https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func refuse(code, format string, args ...any) *account.Refusal {
	return account.Refuse(code, format, args...)
}

// checkDryRun answers a call that only asks whether it would be allowed. It always would.
func checkDryRun(dryRun *bool) error {
	if dryRun == nil || !*dryRun {
		return nil
	}
	return account.RefuseWith(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}

// quoted formats ids as EC2's messages do.
func quoted(ids []string) string { return "'" + strings.Join(ids, ", ") + "'" }
