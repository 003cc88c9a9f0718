package sqs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/wire/call"
)

// newService returns a service whose clock stands still. A visibility timeout may end at most twelve hours after the receive, so on
// a running clock a timeout of twelve hours would already be too long.
func newService(t *testing.T) *Service {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }
	store, err := queues.Open(t.TempDir(), queues.Options{Now: now, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return New(store, Options{Account: accounttest.New(now), Endpoint: "http://localhost:4566"})
}

func queue(t *testing.T, s *Service, name string, attributes ...string) *string {
	t.Helper()
	values := map[string]string{}
	for i := 0; i < len(attributes); i += 2 {
		values[attributes[i]] = attributes[i+1]
	}
	out, err := s.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: values})
	if err != nil {
		t.Fatal(err)
	}
	return out.QueueUrl
}

// refusal formats an error as a client sees it.
func refusal(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Sprint(err)
	}
	return api.ErrorCode() + ": " + api.ErrorMessage()
}

// TestAttributes checks which attributes a queue may have, and that a refused call changes none.
func TestAttributes(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	fifo := queue(t, s, "q.fifo", "FifoQueue", "true")
	queue(t, s, "closed", "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`)
	redrive := func(target, count string) string {
		return fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:%s","maxReceiveCount":%s}`, target, count)
	}
	queue(t, s, "dead")
	for _, c := range []struct {
		name   string
		queue  *string
		values []string
		want   string // of the refusal; "" for none
	}{
		{"a delay", q, []string{"DelaySeconds", "900"}, ""},
		{
			"too long a delay", q, []string{"DelaySeconds", "901", "VisibilityTimeout", "1"},
			"InvalidAttributeValue: Invalid value for the parameter DelaySeconds.",
		},
		{"no number", q, []string{"DelaySeconds", "ten"}, "InvalidAttributeValue"},
		{"a size of 1 MiB", q, []string{"MaximumMessageSize", "1048576"}, ""},
		{"too large", q, []string{"MaximumMessageSize", "1048577"}, "InvalidAttributeValue"},
		{"too short a retention", q, []string{"MessageRetentionPeriod", "59"}, "InvalidAttributeValue"},
		{"too long a wait", q, []string{"ReceiveMessageWaitTimeSeconds", "21"}, "InvalidAttributeValue"},
		{"a wrong name", q, []string{"Colour", "red"}, "InvalidAttributeName: Unknown Attribute Colour."},
		{"what can only be read", q, []string{"QueueArn", "a"}, "InvalidAttributeName"},
		{
			"FIFO's, of a standard queue", q, []string{"ContentBasedDeduplication", "true"},
			"InvalidAttributeName: Unknown Attribute ContentBasedDeduplication.",
		},
		{
			"FIFO's scope, of a standard queue", q, []string{"DeduplicationScope", "queue"},
			"InvalidAttributeName: You can specify the DeduplicationScope only when FifoQueue is set to true.",
		},
		{"throughput by group without its scope", fifo, []string{"FifoThroughputLimit", "perMessageGroupId"}, "InvalidAttributeValue"},
		{"throughput by group", fifo, []string{"FifoThroughputLimit", "perMessageGroupId", "DeduplicationScope", "messageGroup"}, ""},
		{"no FIFO any more", fifo, []string{"FifoQueue", "false"}, "InvalidAttributeValue"},
		{"a policy", q, []string{"Policy", `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage"}]}`}, ""},
		{"no JSON", q, []string{"Policy", `{"Statement"`}, "InvalidAttributeValue: Invalid value for the parameter Policy."},
		{"no effect", q, []string{"Policy", `{"Statement":[{"Action":"*"}]}`}, "InvalidAttributeValue"},
		{
			"too long a policy", q, []string{"Policy", `{"Statement":[{"Effect":"Allow","Sid":"` + strings.Repeat("x", 8192) + `"}]}`},
			"InvalidAttributeValue",
		},
		{"a dead-letter queue", q, []string{"RedrivePolicy", redrive("dead", "3")}, ""},
		{"with its count as text", q, []string{"RedrivePolicy", redrive("dead", `"3"`)}, ""},
		{"one that there is not", q, []string{"RedrivePolicy", redrive("none", "3")}, "InvalidParameterValueException"},
		{"itself", q, []string{"RedrivePolicy", redrive("q", "3")}, ""},
		{"one of the other type", q, []string{"RedrivePolicy", redrive("q.fifo", "3")}, "InvalidParameterValueException"},
		{"one that takes none", q, []string{"RedrivePolicy", redrive("closed", "3")}, "InvalidParameterValueException"},
		{"never", q, []string{"RedrivePolicy", redrive("dead", "0")}, "InvalidParameterValueException"},
		{
			"no count", q, []string{"RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead"}`},
			"InvalidParameterValueException",
		},
		{"none any more", q, []string{"RedrivePolicy", ""}, ""},
	} {
		before, err := s.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl:       c.queue,
			AttributeNames: []types.QueueAttributeName{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]string{}
		for i := 0; i < len(c.values); i += 2 {
			values[c.values[i]] = c.values[i+1]
		}
		_, err = s.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: c.queue, Attributes: values})
		after, _ := s.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl:       c.queue,
			AttributeNames: []types.QueueAttributeName{"All"},
		})
		if (c.want == "") != (err == nil) || !strings.HasPrefix(refusal(err), c.want) {
			t.Errorf("%s: %s, not %q", c.name, refusal(err), c.want)
		}
		if err != nil && fmt.Sprint(before.Attributes) != fmt.Sprint(after.Attributes) {
			t.Errorf("%s was refused and changed the queue to %v", c.name, after.Attributes)
		}
		for name, value := range values {
			if err == nil && after.Attributes[name] != value {
				t.Errorf("%s: %s is %q", c.name, name, after.Attributes[name])
			}
		}
	}
}

// TestSend checks which messages are accepted.
func TestSend(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	fifo := queue(t, s, "q.fifo", "FifoQueue", "true")
	small := queue(t, s, "small", "MaximumMessageSize", "1024")
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	eleven := map[string]types.MessageAttributeValue{}
	for i := range 11 {
		eleven[fmt.Sprint(i)] = text("v")
	}
	one := func(name, dataType, value string) map[string]types.MessageAttributeValue {
		return map[string]types.MessageAttributeValue{name: {DataType: &dataType, StringValue: &value}}
	}
	for _, c := range []struct {
		name string
		in   sqs.SendMessageInput
		want string
	}{
		{"1 MiB", sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String(strings.Repeat("x", 1<<20))}, ""},
		{"a byte more", sqs.SendMessageInput{
			QueueUrl:    q,
			MessageBody: aws.String(strings.Repeat("x", 1<<20+1)),
		}, "InvalidParameterValueException: One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."},
		{"with attributes too large for the queue", sqs.SendMessageInput{
			QueueUrl:          small,
			MessageBody:       aws.String(strings.Repeat("x", 1000)),
			MessageAttributes: one("name", "String", strings.Repeat("v", 20)),
		}, "InvalidParameterValueException"},
		{"nothing", sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("")}, "MissingRequiredParameterException"},
		{"a character that XML lacks", sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("a\x00")}, "InvalidMessageContents"},
		{"no UTF-8", sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("a\xff")}, "InvalidMessageContents"},
		{"the character for what cannot be read", sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("\uFFFD")}, ""},
		{"eleven attributes", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: eleven,
		}, "InvalidParameterValueException"},
		{"an attribute of AWS's", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("AWS.x", "String", "v"),
		}, "InvalidParameterValueException"},
		{"an attribute of any alphabet", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("attr.1øßä", "String", "v"),
		}, ""},
		{"an attribute with a character that XML lacks", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "String", "a\x08"),
		}, "InvalidParameterValueException"},
		{"an attribute with two dots", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a..b", "String", "v"),
		}, "InvalidParameterValueException"},
		{"a type of one's own", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "Number.int", "1"),
		}, ""},
		{"no type", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "", "1"),
		}, "InvalidParameterValueException"},
		{"another type", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "Text", "1"),
		}, "InvalidParameterValueException"},
		{"no number", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "Number", "one"),
		}, "InvalidParameterValueException"},
		{"an empty value", sqs.SendMessageInput{
			QueueUrl:          q,
			MessageBody:       aws.String("a"),
			MessageAttributes: one("a", "String", ""),
		}, "InvalidParameterValueException"},
		{"a delay", sqs.SendMessageInput{
			QueueUrl:     q,
			MessageBody:  aws.String("a"),
			DelaySeconds: 901,
		}, "InvalidParameterValueException: Value 901 for parameter DelaySeconds is invalid."},
		{"a negative delay", sqs.SendMessageInput{
			QueueUrl:     q,
			MessageBody:  aws.String("a"),
			DelaySeconds: -1,
		}, "InvalidParameterValueException"},
		{"a group of a standard queue", sqs.SendMessageInput{
			QueueUrl:       q,
			MessageBody:    aws.String("a"),
			MessageGroupId: aws.String("tenant"),
		}, ""},
		{"no duplicates of a standard queue", sqs.SendMessageInput{
			QueueUrl:               q,
			MessageBody:            aws.String("a"),
			MessageDeduplicationId: aws.String("d"),
		}, "InvalidParameterValueException"},
		{"no group", sqs.SendMessageInput{
			QueueUrl:               fifo,
			MessageBody:            aws.String("a"),
			MessageDeduplicationId: aws.String("d"),
		}, "MissingRequiredParameterException: The request must contain the parameter MessageGroupId."},
		{"a group with a space", sqs.SendMessageInput{
			QueueUrl:               fifo,
			MessageBody:            aws.String("a"),
			MessageGroupId:         aws.String("a b"),
			MessageDeduplicationId: aws.String("d"),
		}, "InvalidParameterValueException"},
		{"no id against duplicates", sqs.SendMessageInput{
			QueueUrl:       fifo,
			MessageBody:    aws.String("a"),
			MessageGroupId: aws.String("g"),
		}, "InvalidParameterValueException"},
		{"a delay of 0 in FIFO", sqs.SendMessageInput{
			QueueUrl:               fifo,
			MessageBody:            aws.String("a"),
			MessageGroupId:         aws.String("g"),
			MessageDeduplicationId: aws.String("d"),
			DelaySeconds:           call.Zero,
		}, ""},
		{"a queue that there is not", sqs.SendMessageInput{
			QueueUrl:    aws.String(*q + "x"),
			MessageBody: aws.String("a"),
		}, "QueueDoesNotExist"},
		{"a bare name", sqs.SendMessageInput{QueueUrl: aws.String("q"), MessageBody: aws.String("a")}, ""},
		{"a bare name that there is not", sqs.SendMessageInput{
			QueueUrl:    aws.String("none"),
			MessageBody: aws.String("a"),
		}, "QueueDoesNotExist"},
		{"no queue's URL", sqs.SendMessageInput{
			QueueUrl:    aws.String("http://localhost:4566/q"),
			MessageBody: aws.String("a"),
		}, "QueueDoesNotExist"},
		{"no URL", sqs.SendMessageInput{QueueUrl: aws.String("http://%zz/q"), MessageBody: aws.String("a")}, "QueueDoesNotExist"},
	} {
		_, err := s.SendMessage(t.Context(), &c.in)
		if (c.want == "") != (err == nil) || !strings.HasPrefix(refusal(err), c.want) {
			t.Errorf("%s: %.300s, not %q", c.name, refusal(err), c.want)
		}
	}
}

// TestBatches checks which batches are accepted, and that a bad entry doesn't hold back the others.
func TestBatches(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	entries := func(bodies ...string) (out []types.SendMessageBatchRequestEntry) {
		for i, b := range bodies {
			out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint("e", i)), MessageBody: &b})
		}
		return out
	}
	half := strings.Repeat("x", 1<<19)
	twice := entries("a", "b")
	twice[1].Id = twice[0].Id
	named := entries("a")
	named[0].Id = aws.String("not so")
	for _, c := range []struct {
		name    string
		entries []types.SendMessageBatchRequestEntry
		want    string
	}{
		{"none", nil, "EmptyBatchRequest"},
		{"ten", entries(strings.Split("a b c d e f g h i j", " ")...), ""},
		{
			"eleven", entries(strings.Split("a b c d e f g h i j k", " ")...),
			"TooManyEntriesInBatchRequest: Maximum number of entries per request are 10. You have sent 11.",
		},
		{"1 MiB", entries(half, half), ""},
		{
			"more", entries(half, half, "x"),
			"BatchRequestTooLong: Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
		},
		{"an id twice", twice, "BatchEntryIdsNotDistinct"},
		{"a bad id", named, "InvalidBatchEntryId"},
	} {
		_, err := s.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: q, Entries: c.entries})
		if (c.want == "") != (err == nil) || !strings.HasPrefix(refusal(err), c.want) {
			t.Errorf("%s: %s, not %q", c.name, refusal(err), c.want)
		}
	}
	out, err := s.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: q, Entries: entries("good", "", "good")})
	if err != nil || len(out.Successful) != 2 || *out.Successful[1].Id != "e2" || len(out.Failed) != 1 ||
		*out.Failed[0].Code != "MissingParameter" || !out.Failed[0].SenderFault {
		t.Errorf("%+v %v", out, err)
	}
}

// TestFIFOBatch: of a FIFO queue, one entry without what orders messages refuses the whole batch.
func TestFIFOBatch(t *testing.T) {
	s := newService(t)
	fifo := queue(t, s, "q.fifo", "FifoQueue", "True")
	byContent := queue(t, s, "c.fifo", "FifoQueue", "True", "ContentBasedDeduplication", "True")
	entry := func(id string, group, dedup *string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{
			Id:                     &id,
			MessageBody:            &id,
			MessageGroupId:         group,
			MessageDeduplicationId: dedup,
		}
	}
	g, d := aws.String("g"), aws.String("d")
	for _, c := range []struct {
		name  string
		queue *string
		bad   types.SendMessageBatchRequestEntry
		want  string
	}{
		{
			"no deduplication id", fifo, entry("b", g, nil),
			"InvalidParameterValueException: The queue should either have ContentBasedDeduplication enabled or " +
				"MessageDeduplicationId provided explicitly",
		},
		{"no group", fifo, entry("b", nil, d), "InvalidParameterValueException: The request must contain the parameter MessageGroupId."},
		{"no group, by content", byContent, entry("b", nil, nil), "InvalidParameterValueException: The request must contain"},
		{"no deduplication id, by content", byContent, entry("b", g, nil), "<nil>"},
	} {
		_, err := s.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
			QueueUrl: c.queue,
			Entries:  []types.SendMessageBatchRequestEntry{entry("a", g, aws.String("first")), c.bad},
		})
		if !strings.HasPrefix(refusal(err), c.want) {
			t.Errorf("%s: %s, not %q", c.name, refusal(err), c.want)
		}
	}
	if n, _ := s.store.Counts("q.fifo"); n.Visible != 0 {
		t.Errorf("refused batches sent %d messages", n.Visible)
	}
}

// TestTrace: the header of a call becomes its messages' AWSTraceHeader, unless they bring their own.
func TestTrace(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	for _, c := range []struct{ name, header, own, want string }{
		{"none", "", "", ""},
		{"the call's", "Root=1-a", "", "Root=1-a"},
		{"its own", "Root=1-a", "Root=1-b", "Root=1-b"},
		{"one that no message can have", "Root\x01", "", ""},
	} {
		in := &sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("a")}
		if c.own != "" {
			in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &c.own},
			}
		}
		ctx := call.With(t.Context(), call.Call{Trace: c.header})
		sent, err := s.SendMessage(ctx, in)
		if err != nil || (sent.MD5OfMessageSystemAttributes != nil) != (c.own != "") {
			t.Fatal(c.name, err)
		}
		got, err := s.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl:                    q,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"AWSTraceHeader"},
		})
		if err != nil || len(got.Messages) != 1 || got.Messages[0].Attributes["AWSTraceHeader"] != c.want {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
	}
}

// TestNamesOfAttributes checks which of a message's attributes a receive returns.
func TestNamesOfAttributes(t *testing.T) {
	values := map[string]value{"General": {}, "Hello": {}, "Help.Me": {}}
	for names, want := range map[string]int{"All": 3, "*": 3, ".*": 3, "Hel.*": 2, "Hello": 1, "Hello,Other": 1, "Hel*": 0, "": 0} {
		if got := wantedValues(values, strings.Split(names, ",")); len(got) != want {
			t.Errorf("%q: %v", names, got)
		}
	}
}

// TestDeletedRecently: AWS gives a deleted queue's name away again after 60 seconds.
func TestDeletedRecently(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	if _, err := s.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: q}); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	want := "QueueDeletedRecently: You must wait 60 seconds after deleting a queue before you can create another with the same name."
	if refusal(err) != want {
		t.Error(refusal(err))
	}
	queue(t, s, "other")
}

// TestReceive checks the parameters of a receive and of the calls on a received message.
func TestReceive(t *testing.T) {
	s := newService(t)
	q, other := queue(t, s, "q"), queue(t, s, "other")
	for _, c := range []struct {
		name string
		in   sqs.ReceiveMessageInput
		want string
	}{
		{
			"eleven", sqs.ReceiveMessageInput{MaxNumberOfMessages: 11},
			"InvalidParameterValueException: Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and " +
				"10, if provided.",
		},
		{
			"none", sqs.ReceiveMessageInput{MaxNumberOfMessages: call.Zero},
			"InvalidParameterValueException: Value 0 for parameter MaxNumberOfMessages",
		},
		{"too long a wait", sqs.ReceiveMessageInput{WaitTimeSeconds: 21}, "InvalidParameterValueException"},
		{"a negative one", sqs.ReceiveMessageInput{WaitTimeSeconds: math.MinInt32 + 1}, "InvalidParameterValueException"},
		{"too long in flight", sqs.ReceiveMessageInput{VisibilityTimeout: 43201}, "InvalidParameterValueException"},
		{
			"an attribute that there is not",
			sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Color"}}, "InvalidAttributeName",
		},
		{
			"an attempt of a standard queue", sqs.ReceiveMessageInput{ReceiveRequestAttemptId: aws.String("a")},
			"InvalidParameterValueException",
		},
		{"nothing special", sqs.ReceiveMessageInput{}, ""},
	} {
		c.in.QueueUrl = q
		if _, err := s.ReceiveMessage(t.Context(), &c.in); (c.want == "") != (err == nil) || !strings.HasPrefix(refusal(err), c.want) {
			t.Errorf("%s: %s, not %q", c.name, refusal(err), c.want)
		}
	}
	if _, err := s.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("a")}); err != nil {
		t.Fatal(err)
	}
	got, err := s.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	receipt := got.Messages[0].ReceiptHandle
	visibility := func(queue, receipt *string, timeout int32) error {
		_, err := s.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{
			QueueUrl:          queue,
			ReceiptHandle:     receipt,
			VisibilityTimeout: timeout,
		})
		return err
	}
	remove := func(queue, receipt *string) error {
		_, err := s.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: receipt})
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"another queue's receipt", remove(other, receipt), "ReceiptHandleIsInvalid"},
		{"no receipt", remove(q, nil), "MissingRequiredParameterException"},
		{"no timeout", visibility(q, receipt, 0), "MissingRequiredParameterException"},
		{"too long", visibility(q, receipt, 43201), "InvalidParameterValueException"},
		{"twelve hours", visibility(q, receipt, 43200), "<nil>"},
		{"at once", visibility(q, receipt, call.Zero), "<nil>"},
		{"at once, again", visibility(q, receipt, call.Zero), "<nil>"},
		{"deleted", remove(q, receipt), "<nil>"},
		{"deleted again", remove(q, receipt), "<nil>"},
		{"visibility of what is deleted", visibility(q, receipt, 1), "InvalidParameterValueException"},
	} {
		if !strings.HasPrefix(refusal(c.err), c.want) {
			t.Errorf("%s: %s, not %q", c.name, refusal(c.err), c.want)
		}
	}
}

// TestLateVisibilityChange: once a message's time is over its receiver can still change it, even if somebody else has it by now, as was
// recorded on AWS.
func TestLateVisibilityChange(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	if _, err := s.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q, MessageBody: aws.String("a")}); err != nil {
		t.Fatal(err)
	}
	receive := func() []types.Message {
		got, err := s.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q})
		if err != nil {
			t.Fatal(err)
		}
		return got.Messages
	}
	change := func(receipt *string, timeout int32) {
		_, err := s.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{
			QueueUrl:          q,
			ReceiptHandle:     receipt,
			VisibilityTimeout: timeout,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := receive()[0].ReceiptHandle
	change(first, call.Zero)
	change(first, 60)
	if got := receive(); len(got) > 0 {
		t.Error("a message that its receiver has extended was received")
	}
	change(first, call.Zero)
	receive()
	change(first, call.Zero)
	if got := receive(); len(got) != 1 {
		t.Error("an earlier receipt didn't make the message visible that somebody else has")
	}
}

// TestOwnDeadLetterQueue: a queue may be its own dead-letter queue, as on AWS. What was received too often goes behind the others, and its
// receives count anew.
func TestOwnDeadLetterQueue(t *testing.T) {
	s := newService(t)
	q := queue(t, s, "q")
	_, err := s.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: q, Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:q","maxReceiveCount":2}`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"bad", "good"} {
		if _, err := s.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 8 {
		out, err := s.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q, VisibilityTimeout: call.Zero})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			got = append(got, *m.Body)
		}
	}
	if n := strings.Count(strings.Join(got, " "), "bad"); len(got) != 8 || n != 4 {
		t.Errorf("received %v", got)
	}
}

// TestQueueURLs: who calls AWS's name gets URLs with it, as SDKs call them; all others get the control plane's own.
func TestQueueURLs(t *testing.T) {
	s := newService(t)
	queue(t, s, "q")
	own, err := s.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	account := strings.Split(*own.QueueUrl, "/")[3]
	for endpoint, want := range map[string]string{
		"https://sqs.us-east-1.amazonaws.com":     "https://sqs.us-east-1.amazonaws.com/" + account + "/q",
		"https://queue.amazonaws.com":             "https://queue.amazonaws.com/" + account + "/q",
		"http://sqs.us-east-1.amazonaws.com:4566": *own.QueueUrl,
		"https://pintle.example.com":              *own.QueueUrl,
	} {
		ctx := call.With(t.Context(), call.Call{Endpoint: endpoint})
		got, err := s.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
		list, failed := s.ListQueues(ctx, &sqs.ListQueuesInput{})
		if err != nil || failed != nil || *got.QueueUrl != want || list.QueueUrls[0] != want {
			t.Errorf("%s: %v and %v, want %s; %v, %v", endpoint, *got.QueueUrl, list.QueueUrls, want, err, failed)
		}
		if _, err := s.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &want}); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
}
