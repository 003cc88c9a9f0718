package sns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// ARNPrefix begins the ARNs of topics and subscriptions, whatever their region.
const ARNPrefix = "arn:aws:sns:"

// Tell delivers a debt to a topic, which publishes it, or to a subscription, which the endpoint is sent.
func (s *Service) Tell(ctx context.Context, d delivery.Debt) error {
	if strings.Count(d.Destination, ":") == 5 {
		return s.tellTopic(ctx, d)
	}
	v := s.store.View()
	arn, overflows := strings.CutSuffix(d.Destination, overflowing)
	sub := v.Subscriptions.Get(arn)
	p := v.Publications.Get(d.Body)
	if sub == nil || p == nil {
		return fmt.Errorf("%w: there is no subscription %s", delivery.ErrGone, d.Destination)
	}
	t := v.Topics.Get(sub.TopicARN)
	if t == nil {
		return fmt.Errorf("%w: there is no topic %s", delivery.ErrGone, sub.TopicARN)
	}
	if overflows {
		return s.outcome(ctx, letter{t, sub, p}, errNoRoom, 0, true)
	}
	if sub.Protocol == "sqs" {
		err := s.send(ctx, t, sub, p, sub.Endpoint)
		over := isLasting(err) || !s.now().Before(d.Until)
		return s.outcome(ctx, letter{t, sub, p}, err, ofQueues(d.Tries), over)
	}
	if sub.Protocol == "lambda" {
		err := s.invoke(ctx, t, sub, p)
		over := isLasting(err) || !s.now().Before(d.Until)
		return s.outcome(ctx, letter{t, sub, p}, err, ofQueues(d.Tries), over)
	}
	if s.now().Sub(p.At) > longestRetry {
		return s.outcome(ctx, letter{t, sub, p}, errTooLate, 0, true)
	}
	err := s.post(ctx, t, sub, p)
	retries := deliveryOf(t, sub).HealthyRetryPolicy
	over := isLasting(err) || d.Tries >= *retries.NumRetries
	after := time.Duration(0)
	if !over {
		after = retries.delay(d.Tries)
	}
	return s.outcome(ctx, letter{t, sub, p}, err, after, over)
}

// longestRetry is how long a message is tried at a URL, however many tries its policy has left: what a listener doesn't take must not pile up.
// AWS lets policies' delays add up to as much.
const longestRetry = time.Hour

var errTooLate = errors.New("the listener didn't take it within an hour")

// tellTopic publishes what a service reports to a topic, such as an alarm.
func (s *Service) tellTopic(ctx context.Context, d delivery.Debt) error {
	in := &sns.PublishInput{TopicArn: &d.Destination, Message: &d.Body}
	if d.Subject != "" {
		in.Subject = new(subjectFrom(d.Subject))
	}
	_, err := s.Publish(ctx, in)
	if _, refused := errors.AsType[smithy.APIError](err); refused && !isThrottled(err) {
		return fmt.Errorf("%w: %w", delivery.ErrGone, err)
	}
	return err
}

// subjectFrom cuts a subject to what messages may have.
func subjectFrom(text string) string {
	all := []rune(strings.Join(strings.Fields(text), " "))
	return string(all[:min(len(all), maxSubject)])
}

// letter is a message to a subscriber.
type letter struct {
	topic        *state.Topic
	subscription *state.Subscription
	publication  *state.Publication
}

// outcome returns what becomes of a delivery that ended with an error: it's tried again, or it's over. Then the message goes into the
// dead-letter queue, if the subscription has one, and isn't lost until that is gone too.
func (s *Service) outcome(ctx context.Context, l letter, err error, after time.Duration, over bool) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !over {
		return &delivery.Retry{After: after, Err: err}
	}
	queue, _ := s.parseRedrive(l.subscription, l.subscription.Attributes["RedrivePolicy"]) // it was checked
	if queue != "" && l.publication.Type == typeNotification {
		if dead := s.send(ctx, l.topic, l.subscription, l.publication, queue); dead != nil && !isLasting(dead) {
			return &delivery.Retry{After: longest, Err: errors.Join(err, dead)}
		} else if dead != nil {
			s.opts.Log.Error("a message is lost: its subscription's dead-letter queue refuses it, too", "subscription", l.subscription.ARN,
				"message", l.publication.ID, "queue", queue, "error", dead)
		}
	}
	return fmt.Errorf("%w: %w", delivery.ErrGone, err)
}

// longest is the longest delay of retries to queues.
const longest = 20 * time.Second

// isLasting reports whether an error is the receiver's refusal of the message, so that another try would end alike.
func isLasting(err error) bool {
	if errors.Is(err, delivery.ErrForbidden) {
		return true
	}
	if answer, ok := errors.AsType[statusError](err); ok {
		return answer.code >= 400 && answer.code < 500 && answer.code != http.StatusTooManyRequests && answer.code != http.StatusRequestTimeout
	}
	var refused interface {
		smithy.APIError
		HTTPStatusCode() int
	}
	if errors.As(err, &refused) {
		return refused.HTTPStatusCode() < 500
	}
	other, isAPI := errors.AsType[smithy.APIError](err)
	return isAPI && other.ErrorFault() == smithy.FaultClient
}

// send sends a message to a queue.
func (s *Service) send(ctx context.Context, t *state.Topic, sub *state.Subscription, p *state.Publication, queue string) error {
	in := &sqs.SendMessageInput{QueueUrl: new(s.opts.QueueURL(queue)), MessageGroupId: optional(p.Group)}
	if isFIFO(queue) {
		in.MessageDeduplicationId = optional(p.Duplicate)
	}
	if sub.Attributes["RawMessageDelivery"] == "true" {
		in.MessageBody = new(p.For(sub.Protocol))
		in.MessageAttributes = map[string]sqstypes.MessageAttributeValue{}
		for name, a := range p.Attributes {
			in.MessageAttributes[name] = sqstypes.MessageAttributeValue{
				DataType:    a.DataType,
				StringValue: a.StringValue,
				BinaryValue: a.BinaryValue,
			}
		}
	} else {
		body, err := s.envelope(ctx, t, sub, p)
		if err != nil {
			return err
		}
		in.MessageBody = &body
	}
	_, err := s.opts.Queues.SendMessage(ctx, in)
	return err
}

// invoke has a function run with a message, which lies in it as Lambda has it: two names are spelled otherwise than in the envelope.
// https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html
func (s *Service) invoke(ctx context.Context, t *state.Topic, sub *state.Subscription, p *state.Publication) error {
	body, err := s.envelope(ctx, t, sub, p)
	if err != nil {
		return err
	}
	message := map[string]any{"Subject": nil, "MessageAttributes": map[string]any{}}
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		return err
	}
	for was, is := range map[string]string{"SigningCertURL": "SigningCertUrl", "UnsubscribeURL": "UnsubscribeUrl"} {
		message[is] = message[was]
		delete(message, was)
	}
	event := encode(map[string]any{"Records": []any{map[string]any{
		"EventSource": "aws:sns", "EventVersion": "1.0", "EventSubscriptionArn": sub.ARN, "Sns": message,
	}}})
	_, err = s.opts.Functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &sub.Endpoint, InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(event),
	})
	return err
}

// statusError is an answer of an endpoint that means that it didn't take the message.
type statusError struct {
	code     int
	endpoint string
}

func (e statusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.endpoint, e.code, http.StatusText(e.code))
}

// maxAnswer is how many bytes of an endpoint's answer are read, so that the connection can be used again.
const maxAnswer = 64 << 10

// post posts a message to a URL: https://docs.aws.amazon.com/sns/latest/dg/http-header.html
func (s *Service) post(ctx context.Context, t *state.Topic, sub *state.Subscription, p *state.Publication) (err error) {
	raw := sub.Attributes["RawMessageDelivery"] == "true" && p.Type == typeNotification
	body := p.For(sub.Protocol)
	if !raw {
		if body, err = s.envelope(ctx, t, sub, p); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", defaultType)
	r.Header.Set("User-Agent", "Amazon Simple Notification Service Agent") // listeners tell SNS by it
	r.Header.Set("x-amz-sns-message-type", p.Type)
	r.Header.Set("x-amz-sns-message-id", p.ID)
	r.Header.Set("x-amz-sns-topic-arn", p.TopicARN)
	if p.Type == typeNotification {
		r.Header.Set("x-amz-sns-subscription-arn", sub.ARN)
		r.Header.Set("Content-Type", deliveryOf(t, sub).RequestPolicy.HeaderContentType)
	}
	if raw {
		r.Header.Set("x-amz-sns-rawdelivery", "true")
	}
	answer, err := s.opts.Client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()                                   //nolint:errcheck // it was only read
	io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) //nolint:errcheck // reading only keeps the connection reusable
	if answer.StatusCode >= 300 {
		return statusError{answer.StatusCode, sub.Endpoint}
	}
	return nil
}
