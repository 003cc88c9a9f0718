// Package logs is CloudWatch Logs: a Service whose methods are those of the SDK's client, over the log
// store. It checks input and speaks in AWS's errors; where events lie is the store's business. It
// knows nothing of HTTP, and no other service.
package logs

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/pattern"
)

// Options say whose logs they are.
type Options struct {
	Region  string
	Account string
	Now     func() time.Time
	// Outbox gets the metrics that events carry in the embedded metric format; nil leaves them there.
	Outbox Outbox
}

// Service is CloudWatch Logs for one account in one region.
type Service struct {
	store *streams.Store
	opts  Options
}

// New returns the service over the store.
func New(store *streams.Store, opts Options) *Service { return &Service{store, opts} }

func (s *Service) now() int64 { return s.opts.Now().UnixMilli() }

func (s *Service) groupArn(name string) string {
	return "arn:aws:logs:" + s.opts.Region + ":" + s.opts.Account + ":log-group:" + name
}

// The names that AWS takes: API_CreateLogGroup, API_CreateLogStream.
var (
	groupName  = pattern.New(`^[.\-_/#A-Za-z0-9]+$`, 512)
	streamName = pattern.New(`^[^:*]+$`, 512)
)

func checkGroupName(name *string) error {
	if groupName.MatchString(aws.ToString(name)) {
		return nil
	}
	return invalid("logGroupName", aws.ToString(name), `Member must satisfy regular expression pattern: [\.\-_/#A-Za-z0-9]+ and have length between 1 and 512`)
}

func checkStreamName(name *string) error {
	if streamName.MatchString(aws.ToString(name)) {
		return nil
	}
	return invalid("logStreamName", aws.ToString(name), `Member must satisfy regular expression pattern: [^:*]* and have length between 1 and 512`)
}

// invalid is a refusal as AWS words those of its validation.
func invalid(field, value, constraint string) error {
	return invalidParameter("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, field, constraint)
}

func invalidParameter(format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(fmt.Sprintf(format, args...))}
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

// group is the log group that a call names, by name or, where it may, by identifier or ARN.
func group(name, identifier *string) (string, error) {
	if name != nil && identifier != nil {
		return "", invalidParameter("Only one of logGroupName and logGroupIdentifier can be given.")
	}
	if identifier != nil {
		name = aws.String(nameInArn(*identifier))
	}
	return aws.ToString(name), checkGroupName(name)
}

var arnPrefix = regexp.MustCompile(`^arn:[^:]+:logs:[^:]*:[^:]*:log-group:`)

// nameInArn is the name in a log group's ARN; anything else is a name already.
func nameInArn(s string) string {
	if p := arnPrefix.FindString(s); p != "" {
		s = s[len(p):]
		if n := len(s); n > 2 && s[n-2:] == ":*" {
			s = s[:n-2]
		}
	}
	return s
}
