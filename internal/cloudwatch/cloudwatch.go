// Package cloudwatch is Amazon CloudWatch: a Service with the methods of the SDK's client. It keeps metrics
// in the metric store, and alarms and dashboards in the state. It checks input and returns AWS's errors.
// It never evaluates alarms, which package alarms does. It knows nothing about HTTP or other services.
package cloudwatch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Options names the account.
type Options struct {
	account.Account
}

// Service is CloudWatch for one account in one region.
type Service struct {
	metrics *metrics.Store
	store   *state.Store
	opts    Options
}

// New returns a service on the given stores.
func New(metrics *metrics.Store, store *state.Store, opts Options) *Service {
	return &Service{metrics, store, opts}
}

func (s *Service) alarmArn(name string) string {
	return s.opts.ARN("cloudwatch", "alarm:"+name)
}

func (s *Service) dashboardArn(name string) string {
	return s.opts.GlobalARN("cloudwatch", "dashboard/"+name)
}

// CloudWatch's errors. Their messages name parameters in the style of the Query protocol, as AWS still does.

func missing(parameter string) error {
	return &types.MissingRequiredParameterException{Message: aws.String("The parameter " + parameter + " is required.")}
}

func invalid(format string, args ...any) error {
	return &types.InvalidParameterValueException{Message: account.Message(format, args...)}
}

func invalidCombination(format string, args ...any) error {
	return &types.InvalidParameterCombinationException{Message: account.Message(format, args...)}
}

// validationCode is the code of an error for calls whose model has no more specific one. Its code in Query is ValidationError.
const validationCode = "ValidationException"

func validationError(format string, args ...any) error {
	return account.Refuse(validationCode, format, args...)
}

func notFound(kind, name string) error {
	return &types.ResourceNotFoundException{
		Message:      aws.String(kind + " " + name + " does not exist."),
		ResourceType: aws.String(kind),
		ResourceId:   aws.String(name),
	}
}

func dashboardNotFound(name string) error {
	return &types.DashboardNotFoundError{Message: aws.String("Dashboard " + name + " does not exist.")}
}

func badToken() error {
	return &types.InvalidNextToken{Message: aws.String("The parameter NextToken is invalid.")}
}

// listing pages a list operation. parameter is the operation's name for the page size.
func listing(operation, parameter string, most int) account.List {
	return account.List{
		Kind: "monitoring:" + operation,
		Most: most,
		BadLimit: func(limit int) error {
			return validationError(
				"1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value between 1 and %d",
				limit, parameter, most,
			)
		},
		BadToken: badToken,
	}
}
