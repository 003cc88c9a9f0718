// Package logs is CloudWatch Logs: a Service with the methods of the SDK's client, on top of the log store. wire checks inputs against
// the model; Service checks the rest. How events are stored is the store's job. It knows nothing about HTTP or other services.
package logs

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/exports"
	"github.com/pintle/pintle/internal/logs/searches"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
)

// Options names the account and the outbox.
type Options struct {
	account.Account
	// Outbox receives what events owe others: the metrics in them, and the messages of subscriptions. With nil, they're ignored.
	Outbox Outbox
	// State keeps query definitions, policies and export tasks.
	State *state.Store
	// Buckets is where exports go.
	Buckets exports.S3
	// Queues is where subscriptions go. With nil, there can be none.
	Queues Queues
	// Functions is where else they go. With nil, there can be none to functions.
	Functions Functions
	// QueueURL returns the URL of the queue with an ARN.
	QueueURL func(arn string) string
	Log      *slog.Logger
}

// Service is CloudWatch Logs for one account in one region.
type Service struct {
	store    *streams.Store
	opts     Options
	filters  compiler
	searches *searches.Loop
}

// New returns a service on top of a store.
func New(store *streams.Store, opts Options) *Service {
	s := &Service{store: store, opts: opts}
	s.searches = searches.New(store, searches.Options{Now: opts.Now, Log: opts.Log, Event: s.insightsEvent})
	return s
}

func (s *Service) now() int64 { return s.opts.Now().UnixMilli() }

func (s *Service) groupArn(name string) string {
	return s.opts.ARN("logs", "log-group:"+name)
}

func invalidParameter(format string, args ...any) error {
	return &types.InvalidParameterException{Message: account.Message(format, args...)}
}

// failure turns the store's errors into AWS's.
func failure(err error) error {
	switch {
	case errors.Is(err, streams.ErrNoGroup):
		return &types.ResourceNotFoundException{Message: aws.String("The specified log group does not exist.")}
	case errors.Is(err, streams.ErrNoStream):
		return &types.ResourceNotFoundException{Message: aws.String("The specified log stream does not exist.")}
	}
	return err
}

// deletionFailure is failure for what deletes, which a group can be protected from.
func deletionFailure(err error) error {
	if errors.Is(err, streams.ErrProtected) {
		return &types.ValidationException{Message: aws.String("The log group is protected from deletion. Disable deletion protection first.")}
	}
	return failure(err)
}

// group returns the log group that a call names, by name or, where allowed, by identifier or ARN.
func group(name, identifier *string) (string, error) {
	if name != nil && identifier != nil {
		return "", &types.ValidationException{Message: aws.String("LogGroup name and LogGroup ARN are mutually exclusive parameters.")}
	}
	if identifier != nil {
		name = aws.String(nameInArn(*identifier))
	}
	if aws.ToString(name) == "" {
		return "", invalidParameter("Either logGroupName or logGroupIdentifier must be given.")
	}
	return *name, nil
}

// nameInArn returns the name in a log group's ARN. Anything else is already a name.
func nameInArn(s string) string {
	parsed, err := arn.Parse(s)
	name, ok := strings.CutPrefix(parsed.Resource, "log-group:")
	if err != nil || parsed.Service != "logs" || !ok {
		return s
	}
	return strings.TrimSuffix(name, ":*")
}
