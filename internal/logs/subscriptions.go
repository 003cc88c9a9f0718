package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/filterpattern"
	"github.com/pintle/pintle/internal/logs/streams"
)

// Queues is where subscriptions deliver to: SQS. On AWS, subscriptions go to Kinesis, Firehose and Lambda, and not to queues.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Functions is where else they deliver to: Lambda.
type Functions interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// maxSubscriptions is how many subscription filters a group may have: API_PutSubscriptionFilter.
const maxSubscriptions = 2

// PutSubscriptionFilter creates a subscription filter of a group, or replaces the one with its name. It sends the queue a control message
// first, and refuses the filter if that can't be sent.
func (s *Service) PutSubscriptionFilter(
	ctx context.Context, in *cloudwatchlogs.PutSubscriptionFilterInput,
) (*cloudwatchlogs.PutSubscriptionFilterOutput, error) {
	request := filterRequest{in.FilterPattern, in.ApplyOnTransformedLogs, in.FieldSelectionCriteria, in.EmitSystemFields}
	if _, err := request.check(); err != nil {
		return nil, err
	}
	if err := s.checkDestination(*in.DestinationArn); err != nil {
		return nil, err
	}
	f := types.SubscriptionFilter{
		FilterName:     in.FilterName,
		FilterPattern:  in.FilterPattern,
		LogGroupName:   in.LogGroupName,
		DestinationArn: in.DestinationArn,
		RoleArn:        in.RoleArn,
		Distribution:   in.Distribution,
		CreationTime:   aws.Int64(s.now()),
	}
	if f.Distribution == "" {
		f.Distribution = types.DistributionByLogStream
	}
	put := func(filters *streams.Filters) error {
		if !putFilter(&filters.Subscription, f, maxSubscriptions, subscriptionKey) {
			return limitExceeded()
		}
		return nil
	}
	if err := s.checkClass(*in.LogGroupName); err != nil {
		return nil, err
	}
	if err := s.tryFilters(*in.LogGroupName, put); err != nil {
		return nil, err
	}
	if err := s.sendControlMessage(ctx, *in.DestinationArn); err != nil {
		return nil, err
	}
	if err := s.changeFilters(*in.LogGroupName, put); err != nil {
		return nil, err
	}
	return &cloudwatchlogs.PutSubscriptionFilterOutput{}, nil
}

func subscriptionKey(f *types.SubscriptionFilter) (name *string, created **int64) {
	return f.FilterName, &f.CreationTime
}

// checkDestination refuses destinations that are no standard queue of this account.
func (s *Service) checkDestination(arn string) error {
	if _, is := s.opts.ResourceOf("lambda", "function:", arn); is && s.opts.Functions != nil {
		return nil
	}
	queue, ok := s.opts.ResourceOf("sqs", "", arn)
	switch {
	case !ok || queue == "" || s.opts.Queues == nil:
		return invalidParameter("destinationArn: %s is no SQS queue and no Lambda function of this account and region. "+
			"Kinesis, Firehose and logical destinations are not available here.", arn)
	case strings.HasSuffix(queue, ".fifo"):
		return invalidParameter("destinationArn: %s is a FIFO queue; only standard queues are supported.", arn)
	}
	return nil
}

// sendControlMessage sends what AWS sends to a destination to see whether it takes messages.
func (s *Service) sendControlMessage(ctx context.Context, arn string) error {
	if isFunction(arn) { // which isn't run with one
		_, err := s.opts.Functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &arn, InvocationType: lambdatypes.InvocationTypeDryRun})
		if err != nil {
			return invalidParameter("Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute your "+
				"function: %v", err)
		}
		return nil
	}
	message := subscriptionMessage{
		MessageType:         "CONTROL_MESSAGE",
		Owner:               "CloudwatchLogs",
		SubscriptionFilters: []string{},
		LogEvents:           []subscriptionEvent{{Timestamp: s.now(), Message: "CWL CONTROL MESSAGE: Checking health of destination SQS."}},
	}
	body, err := message.encode()
	if err != nil {
		return err
	}
	url := s.opts.QueueURL(arn)
	if _, err := s.opts.Queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
		return invalidParameter("Could not deliver test message to specified SQS queue. Check if the given SQS queue exists: %v", err)
	}
	return nil
}

// DescribeSubscriptionFilters lists a group's subscription filters by name.
func (s *Service) DescribeSubscriptionFilters(
	_ context.Context, in *cloudwatchlogs.DescribeSubscriptionFiltersInput,
) (*cloudwatchlogs.DescribeSubscriptionFiltersOutput, error) {
	found, err := filtersOf(s, in.LogGroupName, func(f *streams.Filters) []types.SubscriptionFilter { return f.Subscription })
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(slices.Clone(found), func(f types.SubscriptionFilter) bool {
		return !strings.HasPrefix(*f.FilterName, aws.ToString(in.FilterNamePrefix))
	})
	page, next, err := account.Sorted(listing("DescribeSubscriptionFilters", maxListed), found, in.Limit, in.NextToken,
		func(f types.SubscriptionFilter) string { return *f.FilterName })
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DescribeSubscriptionFiltersOutput{SubscriptionFilters: orEmpty(page), NextToken: next}, nil
}

// DeleteSubscriptionFilter deletes a subscription filter.
func (s *Service) DeleteSubscriptionFilter(
	_ context.Context, in *cloudwatchlogs.DeleteSubscriptionFilterInput,
) (*cloudwatchlogs.DeleteSubscriptionFilterOutput, error) {
	err := s.changeFilters(*in.LogGroupName, func(filters *streams.Filters) error {
		return deleteFilter(&filters.Subscription, "subscription", *in.FilterName, subscriptionKey)
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DeleteSubscriptionFilterOutput{}, nil
}

// subscription is a subscription filter, ready to be applied to events.
type subscription struct {
	pattern     *filterpattern.Pattern
	name        string
	destination string
}

func compileSubscription(f *types.SubscriptionFilter) (*subscription, error) {
	pattern, err := filterpattern.Parse(aws.ToString(f.FilterPattern))
	if err != nil {
		return nil, invalidParameter("Invalid filter pattern: %v", err)
	}
	return &subscription{pattern, *f.FilterName, *f.DestinationArn}, nil
}

// subscriptionMessage is what a subscription delivers. Its form is documented under "Real-time processing of log data with subscriptions".
type subscriptionMessage struct {
	MessageType         string              `json:"messageType"`
	Owner               string              `json:"owner"`
	LogGroup            string              `json:"logGroup"`
	LogStream           string              `json:"logStream"`
	SubscriptionFilters []string            `json:"subscriptionFilters"`
	LogEvents           []subscriptionEvent `json:"logEvents"`
}

type subscriptionEvent struct {
	ID        string `json:"id"`
	Timestamp int64  `json:"timestamp"`
	Message   string `json:"message"`
}

// encode returns the message as it is sent: JSON, compressed, in Base64.
func (m *subscriptionMessage) encode() (string, error) {
	var b bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &b)
	z := gzip.NewWriter(encoder)
	if err := json.NewEncoder(z).Encode(m); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// split encodes the message, in parts if it is longer than most bytes. It leaves out events that don't fit alone, and counts them.
func (m *subscriptionMessage) split(most int) (bodies []string, lost int, err error) {
	body, err := m.encode()
	if err != nil || len(body) <= most {
		return []string{body}, 0, err
	}
	if len(m.LogEvents) == 1 {
		return nil, 1, nil
	}
	half := len(m.LogEvents) / 2
	for _, events := range [][]subscriptionEvent{m.LogEvents[:half], m.LogEvents[half:]} {
		part := *m
		part.LogEvents = events
		more, l, err := part.split(most)
		if err != nil {
			return nil, 0, err
		}
		bodies = append(bodies, more...)
		lost += l
	}
	return bodies, lost, nil
}

// debts returns the messages that a subscription owes its queue for events. ids are those of the events.
func (s *Service) subscriptionDebts(ctx context.Context, sub *subscription, b *batch, ids eventIDs) ([]delivery.Debt, error) {
	message := subscriptionMessage{
		MessageType:         "DATA_MESSAGE",
		Owner:               s.opts.ID,
		LogGroup:            b.group.Name,
		LogStream:           b.stream,
		SubscriptionFilters: []string{sub.name},
	}
	for i, e := range b.events {
		if sub.pattern.Match(e.Message) {
			message.LogEvents = append(message.LogEvents, subscriptionEvent{ids.of(e.Timestamp, i), e.Timestamp, e.Message})
		}
	}
	if len(message.LogEvents) == 0 {
		return nil, nil
	}
	most, err := s.largestMessage(ctx, sub.destination)
	if err != nil || most == 0 {
		return nil, err
	}
	bodies, lost, err := message.split(most)
	if err != nil {
		return nil, err
	}
	if lost > 0 {
		s.opts.Log.Warn("events are too large for the queue of a subscription", "group", b.group.Name, "filter", sub.name, "events", lost)
	}
	var debts []delivery.Debt
	for _, body := range bodies {
		if isFunction(sub.destination) { // Base64 needs no escapes: "Using CloudWatch Logs subscription filters"
			body = `{"awslogs":{"data":"` + body + `"}}`
		}
		debts = append(debts, delivery.Debt{Destination: sub.destination, Body: body, Until: s.opts.Now().Add(patience)})
	}
	return debts, nil
}

// maxFunctionMessage is the most bytes of a message to a function, in whose event it lies.
const maxFunctionMessage = 1<<20 - 100

func isFunction(arn string) bool { return strings.HasPrefix(arn, "arn:aws:lambda:") }

// largestMessage returns how many bytes a queue takes in a message, or 0 if the queue is gone: then there's nobody to tell.
func (s *Service) largestMessage(ctx context.Context, arn string) (int, error) {
	if isFunction(arn) {
		return maxFunctionMessage, nil
	}
	url := s.opts.QueueURL(arn)
	out, err := s.opts.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &url,
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameMaximumMessageSize},
	})
	if delivery.IsNoQueue(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameMaximumMessageSize)])
}

// eventIDs names the events of one call. An event's place in the log isn't known before it is stored, so these ids are others than those
// that FilterLogEvents shows. They have as many digits as AWS's, and begin with the time as well.
type eventIDs struct{ number string }

func newEventIDs() eventIDs {
	random := uuid.New()
	return eventIDs{fmt.Sprintf("%039d", new(big.Int).SetBytes(random[:]))}
}

func (ids eventIDs) of(timestamp int64, index int) string {
	return fmt.Sprintf("%013d%s%04d", timestamp, ids.number, index)
}
