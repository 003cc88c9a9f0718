// Package cloudwatch is Amazon CloudWatch: a Service whose methods are those of the SDK's client, over
// the metric store for metrics and the state for alarms and dashboards. It checks input and speaks in
// AWS's errors. It never evaluates alarms, which package alarms does, and it knows nothing of
// HTTP, and no other service.
package cloudwatch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Options say whose metrics they are.
type Options struct {
	account.Account
}

// Service is CloudWatch for one account in one region.
type Service struct {
	metrics *metrics.Store
	store   *state.Store
	opts    Options
}

// New returns the service over the stores.
func New(metrics *metrics.Store, store *state.Store, opts Options) *Service {
	return &Service{metrics, store, opts}
}

func (s *Service) alarmArn(name string) string {
	return s.opts.ARN("cloudwatch", "alarm:"+name)
}

func (s *Service) dashboardArn(name string) string {
	return s.opts.GlobalARN("cloudwatch", "dashboard/"+name)
}

// The errors of CloudWatch. Their messages name the parameter as Query does, and as AWS still says it.

func missing(parameter string) error {
	return &types.MissingRequiredParameterException{Message: aws.String("The parameter " + parameter + " is required.")}
}

func invalid(format string, args ...any) error {
	return &types.InvalidParameterValueException{Message: account.Message(format, args...)}
}

func invalidCombination(format string, args ...any) error {
	return &types.InvalidParameterCombinationException{Message: account.Message(format, args...)}
}

// validationError is the error of calls whose model has no better one.
func validationError(format string, args ...any) error {
	return account.Refuse("ValidationError", format, args...)
}

func notFound(kind, name string) error {
	return &types.ResourceNotFoundException{Message: aws.String(kind + " " + name + " does not exist."), ResourceType: aws.String(kind), ResourceId: aws.String(name)}
}

func dashboardNotFound(name string) error {
	return &types.DashboardNotFoundError{Message: aws.String("Dashboard " + name + " does not exist.")}
}

func badToken() error {
	return &types.InvalidNextToken{Message: aws.String("The parameter NextToken is invalid.")}
}

// listing is the pages of an operation that lists; parameter is what it calls their size.
func listing(operation, parameter string, most int) account.List {
	return account.List{
		Kind: "monitoring:" + operation,
		Most: most,
		BadLimit: func(limit int) error {
			return validationError("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value between 1 and %d", limit, parameter, most)
		},
		BadToken: badToken,
	}
}
