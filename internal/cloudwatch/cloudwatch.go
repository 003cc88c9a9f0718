// Package cloudwatch is Amazon CloudWatch: a Service whose methods are those of the SDK's client, over
// the metric store for metrics and the state for alarms and dashboards. It checks input and speaks in
// AWS's errors. It never evaluates alarms, which package alarms does, and it knows nothing of
// HTTP, and no other service.
package cloudwatch

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Options say whose metrics they are.
type Options struct {
	Region  string
	Account string
	Now     func() time.Time
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
	return "arn:aws:cloudwatch:" + s.opts.Region + ":" + s.opts.Account + ":alarm:" + name
}

func (s *Service) dashboardArn(name string) string {
	return "arn:aws:cloudwatch::" + s.opts.Account + ":dashboard/" + name
}

// The errors of CloudWatch. Their messages name the parameter as Query does, and as AWS still says it.

func missing(parameter string) error {
	return &types.MissingRequiredParameterException{Message: aws.String("The parameter " + parameter + " is required.")}
}

func invalid(format string, args ...any) error {
	return &types.InvalidParameterValueException{Message: aws.String(fmt.Sprintf(format, args...))}
}

func invalidCombination(format string, args ...any) error {
	return &types.InvalidParameterCombinationException{Message: aws.String(fmt.Sprintf(format, args...))}
}

// validation is the error of calls whose model has no better one.
func validation(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationError", Message: fmt.Sprintf(format, args...)}
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

func formatToken(s string) *string {
	return aws.String(base64.RawURLEncoding.EncodeToString([]byte(s)))
}

func parseToken(token *string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(aws.ToString(token))
	if err != nil {
		return "", badToken()
	}
	return string(b), nil
}

// limitOf is the size of a page: what the caller says, within bounds.
func limitOf(parameter string, limit *int32, most int) (int, error) {
	if limit == nil {
		return most, nil
	}
	if *limit < 1 || int(*limit) > most {
		return 0, validation("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value between 1 and %d", *limit, parameter, most)
	}
	return int(*limit), nil
}
