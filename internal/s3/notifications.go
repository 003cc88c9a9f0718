package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

// configuration is whom a bucket notifies of what: a queue, a topic, a function, or the default bus, which hears of everything. S3's types differ only
// in the name of the ARN, and this one has that of queues, in which settings are stored.
type configuration types.QueueConfiguration

// isBus reports whether the configuration is for the default bus.
func (c configuration) isBus() bool { return strings.Contains(aws.ToString(c.QueueArn), ":event-bus/") }

func (c configuration) id() string { return aws.ToString(c.Id) }

// isTopic reports whether the configuration is for a topic.
func (c configuration) isTopic() bool { return strings.Contains(aws.ToString(c.QueueArn), ":sns:") }

// isFunction reports whether the configuration is for a function.
func (c configuration) isFunction() bool {
	return strings.Contains(aws.ToString(c.QueueArn), ":lambda:")
}

// kind returns the name of the ARN in requests.
func (c configuration) kind() string {
	switch {
	case c.isTopic():
		return "Topic"
	case c.isFunction():
		return "CloudFunction"
	}
	return "Queue"
}

// configurationsOf returns all configurations of a request.
func configurationsOf(c *types.NotificationConfiguration) (all []configuration) {
	for _, q := range c.QueueConfigurations {
		all = append(all, configuration(q))
	}
	for _, t := range c.TopicConfigurations {
		all = append(all, configuration{Events: t.Events, QueueArn: t.TopicArn, Filter: t.Filter, Id: t.Id})
	}
	for _, f := range c.LambdaFunctionConfigurations {
		all = append(all, configuration{Events: f.Events, QueueArn: f.LambdaFunctionArn, Filter: f.Filter, Id: f.Id})
	}
	return all
}

// PutBucketNotificationConfiguration is S3's operation. It sends each queue and topic a test message first, and refuses the
// configuration if one can't be sent.
func (s *Service) PutBucketNotificationConfiguration(
	ctx context.Context, in *s3.PutBucketNotificationConfigurationInput,
) (*s3.PutBucketNotificationConfigurationOutput, error) {
	c := in.NotificationConfiguration
	if c == nil {
		return nil, malformedXML("NotificationConfiguration is missing")
	}
	b, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if err := checkARNs(c); err != nil {
		return nil, err
	}
	all := configurationsOf(c)
	if err := s.refuseForeign(all); err != nil {
		return nil, err
	}
	if err := checkConfigurations(all); err != nil {
		return nil, err
	}
	for i := range all {
		complete(&all[i])
	}
	if !aws.ToBool(in.SkipDestinationValidation) {
		if err := s.sendTestMessages(ctx, b, all); err != nil {
			return nil, err
		}
	}
	if c.EventBridgeConfiguration != nil {
		all = append(all, configuration{QueueArn: aws.String(s.opts.ARN("events", "event-bus/default"))})
	}
	return &s3.PutBucketNotificationConfigurationOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, notifications, all)
}

// complete gives a configuration an id if it has none, and its filter rules the names under which S3 shows them.
func complete(q *configuration) {
	if aws.ToString(q.Id) == "" {
		q.Id = aws.String(uuid.NewString())
	}
	if q.Filter == nil || q.Filter.Key == nil {
		return
	}
	for i := range q.Filter.Key.FilterRules {
		r := &q.Filter.Key.FilterRules[i]
		if strings.EqualFold(string(r.Name), "prefix") {
			r.Name = "Prefix"
		} else {
			r.Name = "Suffix"
		}
	}
}

// GetBucketNotificationConfiguration is S3's operation.
func (s *Service) GetBucketNotificationConfiguration(
	ctx context.Context, in *s3.GetBucketNotificationConfigurationInput,
) (*s3.GetBucketNotificationConfigurationOutput, error) {
	var all []configuration
	if err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, notifications, &all, nil); err != nil {
		return nil, err
	}
	out := &s3.GetBucketNotificationConfigurationOutput{}
	for _, c := range all {
		if c.isBus() {
			out.EventBridgeConfiguration = &types.EventBridgeConfiguration{}
		} else if c.isFunction() {
			one := types.LambdaFunctionConfiguration{Events: c.Events, LambdaFunctionArn: c.QueueArn, Filter: c.Filter, Id: c.Id}
			out.LambdaFunctionConfigurations = append(out.LambdaFunctionConfigurations, one)
		} else if c.isTopic() {
			one := types.TopicConfiguration{Events: c.Events, TopicArn: c.QueueArn, Filter: c.Filter, Id: c.Id}
			out.TopicConfigurations = append(out.TopicConfigurations, one)
		} else {
			out.QueueConfigurations = append(out.QueueConfigurations, types.QueueConfiguration(c))
		}
	}
	return out, nil
}

var topicArn = regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+(\.fifo)?$`)

var functionArn = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+(:[A-Za-z0-9$_-]+)?$`)

var queueArn = regexp.MustCompile(`^arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+(\.fifo)?$`)

// maxConfigurations is the most notification configurations that a bucket may have.
const maxConfigurations = 100

// checkARNs refuses what is no queue's ARN where a queue is asked for, and what is no topic's where a topic is.
func checkARNs(c *types.NotificationConfiguration) error {
	for _, q := range c.QueueConfigurations {
		if !queueArn.MatchString(aws.ToString(q.QueueArn)) {
			return invalidArgument("Queue", aws.ToString(q.QueueArn), "The ARN could not be parsed")
		}
	}
	for _, f := range c.LambdaFunctionConfigurations {
		if !functionArn.MatchString(aws.ToString(f.LambdaFunctionArn)) {
			return invalidArgument("CloudFunction", aws.ToString(f.LambdaFunctionArn), "The ARN could not be parsed")
		}
	}
	for _, t := range c.TopicConfigurations {
		if !topicArn.MatchString(aws.ToString(t.TopicArn)) {
			return invalidArgument("Topic", aws.ToString(t.TopicArn), "The ARN could not be parsed")
		}
	}
	return nil
}

// refuseForeign refuses queues, topics and functions of other regions, as S3 does, and of other accounts, which aren't here.
func (s *Service) refuseForeign(all []configuration) error {
	for _, c := range all {
		parsed, _ := arn.Parse(*c.QueueArn) //nolint:errcheck // it was checked
		if parsed.Region != s.opts.Region {
			return invalidArgument(c.kind(), *c.QueueArn, "The notification destination service region is not valid for the bucket location constraint")
		}
		if s.opts.IsForeign(*c.QueueArn) {
			return notValidated(map[string]string{"ArgumentName1": *c.QueueArn, "ArgumentValue1": "The destination is another account's"})
		}
	}
	return nil
}

func checkConfigurations(all []configuration) error {
	if len(all) > maxConfigurations {
		return refuse(400, "InvalidRequest", "The number of notification configurations exceeds the limit of %d", maxConfigurations)
	}
	seen := map[string]bool{}
	for i, q := range all {
		if err := checkConfiguration(q); err != nil {
			return err
		}
		if id := aws.ToString(q.Id); id != "" && seen[id] {
			return invalidArgument("Id", id, "Same ID used for multiple configurations. IDs must be unique")
		}
		seen[aws.ToString(q.Id)] = true
		for _, other := range all[:i] {
			if overlap(q, other) {
				return invalidArgument(
					"NotificationConfiguration", "",
					"Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules if the prefixes are "+
						"overlapping for the same event type.",
				)
			}
		}
	}
	return nil
}

func checkConfiguration(q configuration) error {
	arn := aws.ToString(q.QueueArn)
	if strings.HasSuffix(arn, ".fifo") && q.isTopic() {
		return invalidArgument("Topic", arn, "FIFO SNS topics are not supported")
	}
	if strings.HasSuffix(arn, ".fifo") {
		return invalidArgument("Queue", arn, "FIFO SQS queues are not supported")
	}
	if len(q.Events) == 0 {
		return malformedXML("a " + q.kind() + "Configuration needs an Event")
	}
	for _, e := range q.Events {
		if !slices.Contains(e.Values(), e) {
			return invalidArgument("Event", string(e), "The event '%s' is not supported for notifications", e)
		}
	}
	if q.Filter == nil || q.Filter.Key == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, r := range q.Filter.Key.FilterRules {
		name := strings.ToLower(string(r.Name))
		switch {
		case name == "" || r.Value == nil:
			return malformedXML("a FilterRule needs a Name and a Value")
		case name != "prefix" && name != "suffix":
			return invalidArgument("FilterRule.Name", string(r.Name), "filter rule name must be either prefix or suffix")
		case seen[name]:
			return invalidArgument("FilterRule.Name", string(r.Name), "Cannot specify more than one %s rule in a filter.", name)
		case len(aws.ToString(r.Value)) > maxKey:
			return invalidArgument(
				"FilterRule.Value", aws.ToString(r.Value), "Size of filter rule value cannot exceed 1024 bytes in UTF-8 representation",
			)
		}
		seen[name] = true
	}
	return nil
}

// filterOf returns the prefix and suffix of the keys that a configuration covers.
func filterOf(q configuration) (prefix, suffix string) {
	if q.Filter == nil || q.Filter.Key == nil {
		return "", ""
	}
	for _, r := range q.Filter.Key.FilterRules {
		if strings.EqualFold(string(r.Name), "prefix") {
			prefix = aws.ToString(r.Value)
		} else {
			suffix = aws.ToString(r.Value)
		}
	}
	return prefix, suffix
}

// overlap reports whether one event on one key could match both configurations.
func overlap(a, b configuration) bool {
	p1, s1 := filterOf(a)
	p2, s2 := filterOf(b)
	if !strings.HasPrefix(p1, p2) && !strings.HasPrefix(p2, p1) || !strings.HasSuffix(s1, s2) && !strings.HasSuffix(s2, s1) {
		return false
	}
	for _, e := range a.Events {
		for _, f := range b.Events {
			if covers(e, strings.TrimPrefix(string(f), "s3:")) || covers(f, strings.TrimPrefix(string(e), "s3:")) {
				return true
			}
		}
	}
	return false
}

// covers reports whether an event matches the one asked for. s3:ObjectCreated:* matches every ObjectCreated event.
func covers(asked types.Event, event string) bool {
	want := strings.TrimPrefix(string(asked), "s3:")
	if family, all := strings.CutSuffix(want, "*"); all {
		return strings.HasPrefix(event, family)
	}
	return want == event
}

// testMessage is the message that checks whether a queue or a topic can be reached.
type testMessage struct {
	Service   string
	Event     string
	Time      string
	Bucket    string
	RequestID string `json:"RequestId"`
	HostID    string `json:"HostId"`
}

// sendTestMessages sends each queue and topic S3's test message. The error names all of them that didn't take it.
func (s *Service) sendTestMessages(ctx context.Context, b *objects.Bucket, queues []configuration) error {
	message, err := json.Marshal(testMessage{
		Service:   "Amazon S3",
		Event:     "s3:TestEvent",
		Time:      s.opts.Now().UTC().Format(eventTime),
		Bucket:    b.Name,
		RequestID: call.From(ctx).RequestID,
		HostID:    call.From(ctx).RequestID,
	})
	if err != nil {
		return err
	}
	tested := map[string]bool{}
	failed := map[string]string{}
	for _, q := range queues {
		if tested[*q.QueueArn] {
			continue
		}
		tested[*q.QueueArn] = true
		if err := s.sendTest(ctx, q, string(message)); err != nil {
			n := strconv.Itoa(len(failed)/2 + 1)
			failed["ArgumentName"+n] = *q.QueueArn
			failed["ArgumentValue"+n] = whyNotReached(err)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return notValidated(failed)
}

// notValidated is S3's error for destinations that don't take messages.
func notValidated(failed map[string]string) error {
	return &apiError{
		code:    "InvalidArgument",
		message: "Unable to validate the following destination configurations",
		status:  400,
		detail:  failed,
	}
}

// sendTest sends a test message to one destination.
func (s *Service) sendTest(ctx context.Context, c configuration, message string) (err error) {
	switch {
	case c.isFunction() && s.opts.Functions == nil:
		return fmt.Errorf("there is no Lambda")
	case c.isFunction(): // a function isn't run with a test message
		_, err = s.opts.Functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: c.QueueArn, InvocationType: lambdatypes.InvocationTypeDryRun})
	case c.isTopic() && s.opts.Topics == nil:
		return fmt.Errorf("there is no SNS")
	case c.isTopic():
		_, err = s.opts.Topics.Publish(ctx, &sns.PublishInput{TopicArn: c.QueueArn, Subject: aws.String(objects.Subject), Message: &message})
	case s.opts.Queues == nil:
		return fmt.Errorf("there is no SQS")
	default:
		_, err = s.opts.Queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: new(s.opts.QueueURL(*c.QueueArn)), MessageBody: &message})
	}
	return err
}

// whyNotReached says why a queue or a topic didn't take a message, in S3's words if it has some.
func whyNotReached(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "NotFound" {
		return "The destination topic does not exist"
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "QueueDoesNotExist" {
		return "The destination queue does not exist"
	}
	return err.Error()
}

// eventTime is the layout of times in events.
const eventTime = "2006-01-02T15:04:05.000Z"

// The message of a notification. See "Event message structure" in S3's guide.
type (
	event struct {
		Records []record
	}
	record struct {
		EventVersion      string            `json:"eventVersion"`
		EventSource       string            `json:"eventSource"`
		AwsRegion         string            `json:"awsRegion"`
		EventTime         string            `json:"eventTime"`
		EventName         string            `json:"eventName"`
		UserIdentity      principal         `json:"userIdentity"`
		RequestParameters map[string]string `json:"requestParameters"`
		ResponseElements  map[string]string `json:"responseElements"`
		S3                eventS3           `json:"s3"`
	}
	principal struct {
		PrincipalID string `json:"principalId"`
	}
	eventS3 struct {
		SchemaVersion   string      `json:"s3SchemaVersion"`
		ConfigurationID string      `json:"configurationId"`
		Bucket          eventBucket `json:"bucket"`
		Object          eventObject `json:"object"`
	}
	eventBucket struct {
		Name          string    `json:"name"`
		OwnerIdentity principal `json:"ownerIdentity"`
		Arn           string    `json:"arn"`
	}
	eventObject struct {
		Key       string `json:"key"`
		Size      *int64 `json:"size,omitempty"`
		ETag      string `json:"eTag,omitempty"`
		VersionID string `json:"versionId,omitempty"`
		Sequencer string `json:"sequencer,omitempty"`
	}
)

// owe returns a function that makes the messages for those whom the bucket notifies. The object store calls it inside the change.
func (s *Service) owe(ctx context.Context, name string) func(*objects.Bucket, *objects.Object) []objects.Message {
	c := call.From(ctx)
	now := s.opts.Now()
	return func(b *objects.Bucket, o *objects.Object) []objects.Message {
		var queues []configuration
		if text := b.Settings[notifications]; text == nil || json.Unmarshal(text, &queues) != nil {
			return nil
		}
		var out []objects.Message
		for _, q := range queues {
			if !isSubscribed(q, name, o.Key) {
				continue
			}
			body, err := s.message(c, now, name, q, o)
			if err == nil { // strings and numbers always marshal
				out = append(out, objects.Message{Destination: *q.QueueArn, Body: body})
			}
		}
		return out
	}
}

// isSubscribed reports whether somebody gets a message for an event on a key.
func isSubscribed(q configuration, name, key string) bool {
	if q.isBus() {
		return true
	}
	prefix, suffix := filterOf(q)
	return strings.HasPrefix(key, prefix) && strings.HasSuffix(key, suffix) &&
		slices.ContainsFunc(q.Events, func(e types.Event) bool { return covers(e, name) })
}

func (s *Service) record(c call.Call, now time.Time, name, configuration string, o *objects.Object) record {
	ip, _, err := net.SplitHostPort(c.Peer)
	if err != nil {
		ip = c.Peer
	}
	r := record{
		EventVersion:      "2.1",
		EventSource:       "aws:s3",
		AwsRegion:         s.opts.Region,
		EventTime:         now.UTC().Format(eventTime),
		EventName:         name,
		UserIdentity:      identity(c),
		RequestParameters: map[string]string{"sourceIPAddress": ip},
		ResponseElements:  map[string]string{"x-amz-request-id": c.RequestID, "x-amz-id-2": c.RequestID},
		S3: eventS3{
			"1.0", configuration, eventBucket{o.Bucket, principal{s.opts.ID}, "arn:aws:s3:::" + o.Bucket},
			eventObject{Key: encodeKey(o.Key), Sequencer: fmt.Sprintf("%018X", o.Sequence)},
		},
	}
	if o.Version != objects.Null {
		r.S3.Object.VersionID = o.Version
	}
	switch {
	case strings.HasSuffix(name, ":DeleteMarkerCreated"):
		r.S3.Object.ETag = emptyETag
	case strings.HasPrefix(name, "ObjectRemoved:"), strings.HasPrefix(name, "LifecycleExpiration:"): // a removed object has neither
	case strings.HasPrefix(name, "ObjectTagging:"): // the content is as it was
		r.EventVersion = "2.3"
		r.S3.Object.Sequencer = ""
		r.S3.Object.ETag = o.ETag
	default:
		r.S3.Object.Size = &o.Size
		r.S3.Object.ETag = o.ETag
	}
	return r
}

// emptyETag is the ETag of no bytes, which S3 gives delete markers in events.
const emptyETag = "d41d8cd98f00b204e9800998ecf8427e"

func identity(c call.Call) principal {
	if c.Principal == call.S3 {
		return principal{call.S3}
	}
	return principal{"AWS:" + c.AccessKeyID}
}

// encodeKey encodes a key for events: as in a form, but slashes stay.
func encodeKey(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/") }
