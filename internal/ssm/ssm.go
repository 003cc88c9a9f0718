// Package ssm is of AWS Systems Manager the Parameter Store, and what Session Manager's clients ask of it for execute-command. A Service has the methods of the SDK's client, over
// the store. The values of SecureStrings are encrypted before they become rows. It knows nothing of HTTP, and asks EC2 as any client would
// for the images behind AWS's public parameters, and Secrets Manager for the secrets that parameters stand for.
package ssm

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/wire/call"
)

// Images describes the images of AWS's public parameters. It's EC2.
type Images interface {
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
}

// Secrets has the secrets that parameters can stand for. It's Secrets Manager.
type Secrets interface {
	GetSecretValue(
		context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options),
	) (*secretsmanager.GetSecretValueOutput, error)
}

// Sessions are those that clients of execute-command are in.
type Sessions interface {
	// Resume returns a new token for a session whose client lost its connection, or an error if it is over.
	Resume(id string) (token string, err error)
	// Terminate ends a session. One that is over is no error.
	Terminate(id string)
}

// Options are the account and region of the service, and what it uses.
type Options struct {
	account.Account
	Vault   *vault.Vault // encrypts SecureStrings
	Images  Images       // nil if there are no public parameters
	Secrets Secrets      // nil if no parameters stand for secrets
	// Sessions are those of execute-command.
	Sessions Sessions
}

// Service is Parameter Store for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// caller returns the ARN of whoever called.
func (s *Service) caller(ctx context.Context) string {
	if principal := call.From(ctx).Principal; principal != "" {
		return principal
	}
	return s.opts.Root()
}

// arn returns a parameter's ARN, in which a name's leading slash isn't doubled.
func (s *Service) arn(name string) string {
	if name[0] == '/' {
		name = name[1:]
	}
	return s.opts.ARN("ssm", "parameter/"+name)
}

// The errors of Parameter Store. Clients know them by their codes. None of them repeats a parameter's value.

func invalid(format string, args ...any) error {
	return &types.ValidationException{Message: account.Message(format, args...)}
}

func notFound(name string) error {
	return &types.ParameterNotFound{Message: account.Message("Parameter %s not found.", name)}
}

func versionNotFound(name, selector string) error {
	return &types.ParameterVersionNotFound{Message: account.Message(
		"Systems Manager could not find version %s of %s. Verify the version and try again.", selector, name)}
}

// listing describes the pages of an operation.
func listing(operation string, usual, most int) account.List {
	return account.List{
		Kind:    "ssm:" + operation,
		Default: usual,
		Most:    most,
		BadLimit: func(limit int) error {
			return invalid("1 validation error detected: Value '%d' at 'maxResults' failed to satisfy constraint: Member must have value "+
				"from 1 to %d", limit, most)
		},
		BadToken: func() error {
			return &types.InvalidNextToken{Message: account.Message("The specified token isn't valid.")}
		},
	}
}
