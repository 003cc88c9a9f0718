// Package targets sends to the targets of EventBridge's rules and of EventBridge Scheduler's schedules: it calls SQS, SNS, Lambda, ECS, Logs
// and EventBridge as the target's role, and says whether what failed is tried again or goes to the dead-letter queue. It knows
// neither rules nor schedules. events and schedules call it.
package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/wire/call"
)

// The services that send, as roles trust them.
const (
	Events    = "events.amazonaws.com"
	Scheduler = "scheduler.amazonaws.com"
)

// Options are what a Sender needs.
type Options struct {
	account.Account
	Services call.Caller
	QueueURL func(arn string) string         // returns a queue's URL
	Trusts   func(role, service string) bool // whether a service may assume a role
	Count    Count                           // nil counts nothing
	Log      *slog.Logger
}

// Sender sends to targets.
type Sender struct{ opts Options }

// New returns a sender.
func New(opts Options) *Sender {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	return &Sender{opts}
}

// Target is where something is sent to.
type Target struct {
	ARN   string
	Role  string // as which it's sent; empty for the account
	Group string // the message group, of a FIFO queue
	// ECS is the task to run, of a cluster, but for what the input overrides.
	ECS *ecs.RunTaskInput
	// Source and DetailType are those of the event that a schedule puts on a bus.
	Source     string
	DetailType string
}

// Letter is something that is sent to a target.
type Letter struct {
	Target
	Input       string
	Service     string // that sends it
	Source      string // the ARN of the rule or the schedule
	Name        string // that tasks show as who started them
	Token       string // the same whenever it is sent again
	Tries       int    // failed ones
	Most        int    // how many more tries there may be after the first
	Until       time.Time
	DeadLetters string // the ARN of a queue, or ""
	Names       Names
	By          Dimensions
}

// Names are what the attributes of dead letters are called that tell the source and the target.
type Names struct{ Source, Target string }

// kind returns the service in the target's ARN.
func (t Target) kind() string {
	parts := strings.SplitN(t.ARN, ":", 4)
	if len(parts) < 4 {
		return ""
	}
	return parts[2]
}

// Refused returns why nothing can be sent to a target, or "".
func (s *Sender) Refused(t Target) string {
	if why := t.refused(); why != "" {
		return why
	}
	return s.Foreign(t.ARN)
}

// Foreign returns why nothing can be sent to an ARN of another account or region, or "".
func (s *Sender) Foreign(arn string) string {
	if !s.opts.IsForeign(arn) {
		return ""
	}
	return fmt.Sprintf("Pintle sends to resources of account %s in %s alone.", s.opts.ID, s.opts.Region)
}

// refused returns why nothing can be sent to targets of its kind, or "".
func (t Target) refused() string {
	rest := t.ARN[strings.LastIndexByte(t.ARN, ':')+1:]
	switch kind := t.kind(); {
	case kind == "sqs", kind == "sns", kind == "lambda":
	case kind == "ecs" && strings.HasPrefix(rest, "cluster/"):
	case kind == "events" && strings.HasPrefix(rest, "event-bus/"):
	case kind == "events" && strings.HasPrefix(rest, "api-destination/"):
		return "Pintle has no API destinations."
	case kind == "logs" && strings.Contains(t.ARN, ":log-group:"):
	case kind == "scheduler":
		return "Pintle calls no universal targets; it sends to queues, topics, functions, clusters and buses."
	default:
		return "Pintle sends to queues, topics, functions, clusters, log groups and buses only."
	}
	return ""
}

// CheckRole refuses a role that a service may not assume.
func (s *Sender) CheckRole(service, role string) error {
	if role == "" || s.opts.Trusts(role, service) {
		return nil
	}
	return account.Refuse("ValidationException", "Provided role '%s' cannot be assumed by principal '%s'.", role, service)
}

// Send sends a letter. Its error says what the outbox does with it: it's tried again, or it's over and, if that could be, with the dead letters.
func (s *Sender) Send(ctx context.Context, l Letter) error {
	err := s.send(ctx, l)
	if ctx.Err() != nil {
		return err
	}
	s.Tried(l, err)
	switch {
	case err == nil:
		return nil
	case delivery.IsLasting(err):
		return s.GiveUp(ctx, l, codeOf(err), err.Error())
	case l.Tries >= l.Most || !s.opts.Now().Before(l.Until):
		return s.GiveUp(ctx, l, codeOf(err), err.Error())
	}
	return &delivery.Retry{After: delay(l.Tries), Err: err}
}

// delay returns how long to wait after another failed try.
func delay(tries int) time.Duration {
	return min(time.Second<<min(tries, 10), 8*time.Minute)
}

func (s *Sender) send(ctx context.Context, l Letter) error {
	if why := s.Refused(l.Target); why != "" { // older data may have such targets
		return fmt.Errorf("%w: %s", delivery.ErrGone, why)
	}
	if err := s.CheckRole(l.Service, l.Role); err != nil {
		return err
	}
	ctx = s.as(ctx, l)
	switch l.kind() {
	case "sqs":
		in := &sqs.SendMessageInput{QueueUrl: aws.String(s.opts.QueueURL(l.ARN)), MessageBody: &l.Input}
		if l.Group != "" {
			in.MessageGroupId = &l.Group
			in.MessageDeduplicationId = &l.Token
		}
		_, err := s.opts.Services.Call(ctx, in)
		return err
	case "sns":
		_, err := s.opts.Services.Call(ctx, &sns.PublishInput{TopicArn: &l.ARN, Message: &l.Input})
		return err
	case "lambda":
		// What Lambda has taken, it tries as its own configuration says: "Retry policy and using dead-letter queues" of EventBridge's guide.
		_, err := s.opts.Services.Call(ctx, &lambda.InvokeInput{
			FunctionName: &l.ARN, InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(l.Input),
		})
		return err
	case "ecs":
		return s.runTask(ctx, l)
	case "events":
		return s.putEvent(ctx, l)
	case "logs":
		return s.log(ctx, l)
	}
	return fmt.Errorf("%w: %s", delivery.ErrGone, l.ARN)
}

// as returns a context in which calls are made as the target's role, or as the account that let the service send.
func (s *Sender) as(ctx context.Context, l Letter) context.Context {
	service, _, _ := strings.Cut(l.Service, ".")
	who := call.Identity{Principal: s.opts.Root()}
	if l.Role != "" {
		who = call.Identity{Principal: l.Role, Role: l.Role}
	}
	return call.With(ctx, call.Call{Service: service, Identity: who})
}

// runTask runs tasks. Their client token has a task that is running already stay the only one, however often the letter is sent.
func (s *Sender) runTask(ctx context.Context, l Letter) error {
	in := *l.ECS
	in.StartedBy = aws.String(l.Name[:min(len(l.Name), 36)])
	in.ClientToken = &l.Token
	var overrides ecstypes.TaskOverride
	if json.Unmarshal([]byte(l.Input), &overrides) == nil {
		in.Overrides = &overrides
	}
	out, err := call.Do[ecs.RunTaskOutput](ctx, s.opts.Services, &in)
	if err != nil {
		return err
	}
	if len(out.Tasks) == 0 && len(out.Failures) > 0 {
		return fmt.Errorf("RunTask placed no task: %s", aws.ToString(out.Failures[0].Reason))
	}
	return nil
}

// putEvent puts a schedule's event on a bus.
func (s *Sender) putEvent(ctx context.Context, l Letter) error {
	out, err := call.Do[eventbridge.PutEventsOutput](ctx, s.opts.Services, &eventbridge.PutEventsInput{
		Entries: []ebtypes.PutEventsRequestEntry{{
			EventBusName: &l.ARN,
			Source:       &l.Target.Source,
			DetailType:   &l.DetailType,
			Detail:       &l.Input,
		}},
	})
	if err != nil {
		return err
	}
	if code := out.Entries[0].ErrorCode; code != nil {
		return account.Refuse(*code, "%s", aws.ToString(out.Entries[0].ErrorMessage))
	}
	return nil
}

// log writes a letter into a stream of its own in a log group, as EventBridge does.
func (s *Sender) log(ctx context.Context, l Letter) error {
	_, group, _ := strings.Cut(strings.TrimSuffix(l.ARN, ":*"), ":log-group:")
	_, err := s.opts.Services.Call(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &l.Token})
	if refused, ok := errors.AsType[smithy.APIError](err); err != nil && (!ok || refused.ErrorCode() != "ResourceAlreadyExistsException") {
		return err
	}
	_, err = s.opts.Services.Call(ctx, &cloudwatchlogs.PutLogEventsInput{
		LogGroupName:  &group,
		LogStreamName: &l.Token,
		LogEvents:     []logstypes.InputLogEvent{{Message: &l.Input, Timestamp: aws.Int64(s.opts.Now().UnixMilli())}},
	})
	return err
}

// GiveUp ends a letter, which goes to its dead-letter queue if it has one. Until that takes it, or is gone too, it isn't lost.
func (s *Sender) GiveUp(ctx context.Context, l Letter, code, why string) error {
	cause := errors.New(why)
	if l.DeadLetters == "" {
		s.Lost(l)
		s.opts.Log.Warn("an event is lost: its target doesn't take it, and has no dead-letter queue", "source", l.Source, "target", l.ARN, "error", why)
		return fmt.Errorf("%w: %w", delivery.ErrGone, cause)
	}
	attributes := map[string]sqstypes.MessageAttributeValue{
		l.Names.Source:              text(l.Source),
		l.Names.Target:              text(l.ARN),
		"ERROR_CODE":                text(code),
		"ERROR_MESSAGE":             text(why),
		"RETRY_ATTEMPTS":            text(strconv.Itoa(l.Tries)),
		"EXHAUSTED_RETRY_CONDITION": text(l.exhausted(s.opts.Now())),
	}
	l.Role = ""
	_, err := s.opts.Services.Call(s.as(ctx, l), &sqs.SendMessageInput{
		QueueUrl:          aws.String(s.opts.QueueURL(l.DeadLetters)),
		MessageBody:       &l.Input,
		MessageAttributes: attributes,
	})
	if err == nil || delivery.IsLasting(err) {
		s.Lost(l)
		if err == nil {
			s.count(l, buried)
		} else {
			s.count(l, unburied)
		}
		return fmt.Errorf("%w: %w", delivery.ErrGone, errors.Join(cause, err))
	}
	return &delivery.Retry{After: delay(l.Tries), Err: errors.Join(cause, err)}
}

// exhausted says what ended the tries.
func (l Letter) exhausted(now time.Time) string {
	switch {
	case !now.Before(l.Until):
		return "MaximumEventAgeInSeconds"
	case l.Tries >= l.Most:
		return "MaximumRetryAttempts"
	}
	return "None"
}

func text(s string) sqstypes.MessageAttributeValue {
	if s == "" {
		s = "-" // SQS has no empty ones
	}
	return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

func codeOf(err error) string {
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		return refused.ErrorCode()
	}
	return "SDK_CLIENT_ERROR"
}
