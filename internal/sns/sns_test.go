package sns

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
)

// world is a service, queues, and the loop that delivers.
type world struct {
	*Service
	dir   string
	key   byte // the vault's
	store *state.Store
	loop  *delivery.Loop

	mu   sync.Mutex
	now  time.Time
	sent map[string][]*sqs.SendMessageInput // by queue
	fail map[string]error                   // what queues answer
}

func newWorld(t *testing.T) *world {
	w := &world{
		dir:  t.TempDir(),
		key:  7,
		now:  time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		sent: map[string][]*sqs.SendMessageInput{},
		fail: map[string]error{},
	}
	w.open(t)
	return w
}

// open opens the world's store, as a start of the control plane does.
func (w *world) open(t *testing.T) {
	w.store = statetest.OpenIn(t, w.dir)
	now := func() time.Time { return w.now }
	w.Service = New(w.store, Options{
		Account:  accounttest.New(now),
		Queues:   w,
		QueueURL: func(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] },
		Client:   &http.Client{Timeout: 10 * time.Second},
		Endpoint: "http://here:4566",
		Vault:    vaulttest.New(t, w.key),
	})
	w.loop = delivery.New(state.Outbox{Store: w.store, Now: now}, delivery.Options{
		Now:    now,
		Routes: []delivery.Route{{Prefix: ARNPrefix, Tell: w.Tell}},
		Log:    slog.New(slog.DiscardHandler),
	})
}

func (w *world) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fail[*in.QueueUrl]; err != nil {
		return nil, err
	}
	w.sent[*in.QueueUrl] = append(w.sent[*in.QueueUrl], in)
	return &sqs.SendMessageOutput{}, nil
}

// deliver delivers what is due.
func (w *world) deliver(t *testing.T) {
	t.Helper()
	if err := w.loop.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// bodies returns what a queue got since the last time.
func (w *world) bodies(queue string) (all []string) {
	for _, in := range w.sent[queue] {
		all = append(all, *in.MessageBody)
	}
	w.sent[queue] = nil
	return all
}

func (w *world) topic(t *testing.T, name string, attributes map[string]string) *string {
	t.Helper()
	out, err := w.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return out.TopicArn
}

// subscribe subscribes an endpoint, which is the name of a queue or a URL.
func (w *world) subscribe(t *testing.T, topic *string, endpoint string, attributes map[string]string) string {
	t.Helper()
	in := &sns.SubscribeInput{TopicArn: topic, Protocol: aws.String("sqs"), Endpoint: queueARN(endpoint), Attributes: attributes}
	if strings.Contains(endpoint, "://") {
		in.Protocol = aws.String("http")
		in.Endpoint = &endpoint
		in.ReturnSubscriptionArn = true
	}
	out, err := w.Subscribe(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.SubscriptionArn
}

func queueARN(name string) *string { return aws.String("arn:aws:sqs:us-east-1:000000000000:" + name) }

func (w *world) publish(t *testing.T, in *sns.PublishInput) *sns.PublishOutput {
	t.Helper()
	out, err := w.Publish(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refusal formats an error as a client sees it.
func refusal(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Sprint(err)
	}
	return api.ErrorCode() + ": " + api.ErrorMessage()
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// TestRefusedPublishes: the words are those that SNS was recorded to say. None leaves anything behind.
func TestRefusedPublishes(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", nil)
	fifo := w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true"})
	w.subscribe(t, topic, "q", nil)
	attribute := func(name, dataType string, value *string, binary []byte) *sns.PublishInput {
		return &sns.PublishInput{TopicArn: topic, Message: aws.String("m"), MessageAttributes: map[string]types.MessageAttributeValue{
			name: {DataType: &dataType, StringValue: value, BinaryValue: binary},
		}}
	}
	str := aws.String
	for _, c := range []struct {
		in   *sns.PublishInput
		want string
	}{
		{&sns.PublishInput{Message: str("m")}, "InvalidParameter: Invalid parameter: TopicArn or TargetArn Reason: no value for required parameter"},
		{&sns.PublishInput{TopicArn: str("x"), Message: str("m")}, "InvalidParameter: Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{&sns.PublishInput{TopicArn: str(*topic + "x"), Message: str("m")}, "NotFound: Topic does not exist"},
		{&sns.PublishInput{TopicArn: str("arn:aws:sns:us-east-2:000000000000:t"), Message: str("m")}, "InvalidParameter: Invalid parameter: TopicArn"},
		{&sns.PublishInput{PhoneNumber: str("+15551234567"), Message: str("m")}, "InvalidParameter: Invalid parameter: PhoneNumber Reason: Pintle sends no SMS"},
		{&sns.PublishInput{TopicArn: topic, Message: str("")}, "InvalidParameter: Invalid parameter: Empty message"},
		{&sns.PublishInput{TopicArn: topic, Message: str("m"), Subject: str("")}, "InvalidParameter: Invalid parameter: Subject"},
		{&sns.PublishInput{TopicArn: topic, Message: str("m"), Subject: str("a\nb")}, "InvalidParameter: Invalid parameter: Subject"},
		{&sns.PublishInput{TopicArn: topic, Message: str(strings.Repeat("m", 256<<10+1))}, "InvalidParameter: Invalid parameter: Message too long"},
		{&sns.PublishInput{TopicArn: topic, Message: str("{"), MessageStructure: str("json")}, "InvalidParameter: Invalid parameter: Message Structure - JSON message body failed to parse"},
		{&sns.PublishInput{TopicArn: topic, Message: str(`{"sqs":"m"}`), MessageStructure: str("json")}, "InvalidParameter: Invalid parameter: Message Structure - No default entry in JSON message body"},
		{&sns.PublishInput{TopicArn: topic, Message: str("m"), MessageDeduplicationId: str("d")}, "InvalidParameter: Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type"},
		{&sns.PublishInput{TopicArn: fifo, Message: str("m")}, "InvalidParameter: Invalid parameter: The MessageGroupId parameter is required for FIFO topics"},
		{&sns.PublishInput{TopicArn: fifo, Message: str("m"), MessageGroupId: str("g")}, "InvalidParameter: Invalid parameter: The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"},
		{attribute("a", "String", nil, []byte("b")), "ParameterValueInvalid: The message attribute 'a' with type 'String' must use field 'String'."},
		{attribute("a", "Binary", str("b"), nil), "ParameterValueInvalid: The message attribute 'a' with type 'Binary' must use field 'Binary'."},
		{attribute("a", "String", nil, nil), "ParameterValueInvalid: The message attribute 'a' must contain non-empty message attribute value for message attribute type 'String'."},
		{attribute("a", "Text", str("b"), nil), "ParameterValueInvalid: The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
		{attribute("a^", "String", str("b"), nil), "ParameterValueInvalid: Invalid non-alphanumeric character '#x5E' was found in the message attribute name. Can only include alphanumeric characters, hyphens, underscores, or dots."},
		{attribute(".a", "String", str("b"), nil), "ParameterValueInvalid: Invalid message attribute name starting with character '.' was found."},
		{attribute("a.", "String", str("b"), nil), "ParameterValueInvalid: Invalid message attribute name ending with character '.' was found."},
		{attribute("a..b", "String", str("b"), nil), "ParameterValueInvalid: Message attribute name can not have successive '.' character."},
		{attribute("a", "Number", str("b"), nil), "ParameterValueInvalid: Could not cast message attribute 'a' value to number."},
	} {
		if _, err := w.Publish(t.Context(), c.in); refusal(err) != c.want {
			t.Errorf("%s\nwant %s", refusal(err), c.want)
		}
	}
	if v := w.store.View(); v.Deliveries.Len()+v.Publications.Len()+v.Published.Len() != 0 {
		t.Error("a refused message is owed")
	}
}

// TestRefusedTopicsAndSubscriptions: nothing that is refused changes anything.
func TestRefusedTopicsAndSubscriptions(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", map[string]string{"DisplayName": "one"})
	fifo := w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true"})
	create := func(name string, attributes map[string]string) error {
		_, err := w.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: attributes})
		return err
	}
	subscribe := func(topic *string, protocol, endpoint string, attributes ...string) error {
		in := &sns.SubscribeInput{TopicArn: topic, Protocol: &protocol, Endpoint: &endpoint, Attributes: map[string]string{}}
		for i := 0; i < len(attributes); i += 2 {
			in.Attributes[attributes[i]] = attributes[i+1]
		}
		_, err := w.Subscribe(t.Context(), in)
		return err
	}
	set := func(name, value string) error {
		_, err := w.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: topic, AttributeName: &name, AttributeValue: &value})
		return err
	}
	q, qf := *queueARN("q"), *queueARN("q.fifo")
	for want, err := range map[string]error{
		"Topic Name": create("a b", nil),
		"Invalid parameter: Attributes Reason: Topic already exists with different attributes": create("t", map[string]string{"DisplayName": "two"}),
		"Attributes Reason: KmsMasterKeyId Reason: Pintle has no AWS KMS":                      create("k", map[string]string{"KmsMasterKeyId": "alias/aws/sns"}),
		"Attributes Reason: AttributeName":                                                     create("k", map[string]string{"Color": "red"}),
		"does not support this protocol string: pigeon":                                        subscribe(topic, "pigeon", "x"),
		"Protocol Reason: Pintle delivers to sqs, lambda, http and https, not by sms":          subscribe(topic, "sms", "+15550100"),
		"Protocol Reason: Pintle delivers to sqs, lambda, http and https, not by email":        subscribe(topic, "email", "a@b.example"),
		"Invalid parameter: SQS endpoint ARN":                                                  subscribe(topic, "sqs", "http://localhost/q"),
		"Pintle delivers to queues of account 000000000000 in us-east-1 alone":                 subscribe(topic, "sqs", "arn:aws:sqs:us-east-2:000000000000:q"),
		"Endpoint must match the specified protocol":                                           subscribe(topic, "http", "https://x"),
		"FIFO SQS Queues can not be subscribed to standard SNS topics":                         subscribe(topic, "sqs", qf),
		"RawMessageDelivery: Invalid value [maybe]. Must be true or false.":                    subscribe(topic, "sqs", q, "RawMessageDelivery", "maybe"),
		"Attributes Reason: FilterPolicy: Empty arrays are not allowed":                        subscribe(topic, "sqs", q, "FilterPolicy", `{"a":[]}`),
		"does not support nested filter policy":                                                subscribe(topic, "sqs", q, "FilterPolicy", `{"a":{"b":[1]}}`),
		"RedrivePolicy: deadLetterTargetArn is an invalid arn":                                 subscribe(topic, "sqs", q, "RedrivePolicy", `{"deadLetterTargetArn":"fake"}`),
		"must use a FIFO queue as DLQ":                                                         subscribe(fifo, "sqs", qf, "RedrivePolicy", `{"deadLetterTargetArn":"`+q+`"}`),
		"Topic does not exist":                                                                 subscribe(aws.String(*topic+"x"), "sqs", q),
		"http.defaultHealthyRetryPolicy.numRetries must be between 0 and 100":                  set("DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"numRetries":101}}}`),
		"all delays together are 7200 seconds":                                                 set("DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1800,"maxDelayTarget":1800,"numRetries":4}}}`),
		"Pintle doesn't throttle deliveries":                                                   set("DeliveryPolicy", `{"http":{"defaultThrottlePolicy":{"maxReceivesPerSecond":1}}}`),
		"ContentBasedDeduplication: it is for FIFO topics alone":                               set("ContentBasedDeduplication", "true"),
		"Pintle doesn't log the status of deliveries":                                          set("HTTPSuccessFeedbackRoleArn", "arn:aws:iam::000000000000:role/r"),
		"<nil>": set("HTTPSuccessFeedbackSampleRate", "0"),
		"SQSSuccessFeedbackSampleRate Reason: Pintle doesn't log the status of deliveries": set("SQSSuccessFeedbackSampleRate", "5"),
		"SignatureVersion: Invalid value [3]. Must be 1 or 2.":                             set("SignatureVersion", "3"),
		"action out of service scope":                                                      set("Policy", `{"Statement":{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}}`),
	} {
		if !strings.Contains(refusal(err), want) {
			t.Errorf("%v\nwant %s", refusal(err), want)
		}
	}
	v := w.store.View()
	if got := v.Topics.Get(*topic).Attributes; !maps.Equal(got, map[string]string{"DisplayName": "one"}) || v.Topics.Len() != 2 || v.Subscriptions.Len() != 0 {
		t.Errorf("refused calls left %v, %d topics, %d subscriptions", got, v.Topics.Len(), v.Subscriptions.Len())
	}
}

// TestTakenAsRecorded: calls that SNS was seen to take: a topic asked for again with some of its tags, a boolean in any case, and a standard
// queue for what a FIFO topic can't deliver to a standard queue.
func TestTakenAsRecorded(t *testing.T) {
	w := newWorld(t)
	tags := []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")}}
	again := func(tags ...types.Tag) error {
		_, err := w.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t"), Tags: tags})
		return err
	}
	for _, tags := range [][]types.Tag{tags, tags[1:], nil} {
		if err := again(tags...); err != nil {
			t.Errorf("with the tags %v it's %v", tags, err)
		}
	}
	for _, other := range []types.Tag{{Key: aws.String("a"), Value: aws.String("2")}, {Key: aws.String("c"), Value: aws.String("1")}} {
		if got := refusal(again(other)); !strings.Contains(got, "Topic already exists with different tags") {
			t.Errorf("with another tag it's %q", got)
		}
	}
	sub := w.subscribe(t, w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true"}), "q", map[string]string{
		"RawMessageDelivery": "True", "RedrivePolicy": `{"deadLetterTargetArn":"` + *queueARN("dead") + `"}`,
	})
	if got := w.store.View().Subscriptions.Get(sub).Attributes["RawMessageDelivery"]; got != "true" {
		t.Errorf("raw delivery is %q", got)
	}
}

// TestFanOut: each subscriber gets what its filter lets through, in an envelope with a good signature or raw.
func TestFanOut(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		w := newWorld(t)
		topic := w.topic(t, "t", map[string]string{"SignatureVersion": version})
		sub := w.subscribe(t, topic, "all", nil)
		w.subscribe(t, topic, "raw", map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"kind":["big"]}`})
		w.subscribe(t, topic, "body", map[string]string{"FilterPolicy": `{"n":{"m":[1]}}`, "FilterPolicyScope": "MessageBody"})
		kinds := func(kind string) map[string]types.MessageAttributeValue {
			return map[string]types.MessageAttributeValue{"kind": text(kind), "b": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}}}
		}
		one := w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String(`{"n":{"m":1}}`), Subject: aws.String("<s>"), MessageAttributes: kinds("small")})
		w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String(`{"default":"d","sqs":"for queues"}`), MessageStructure: aws.String("json"), MessageAttributes: kinds("big")})
		w.deliver(t)
		raw := w.sent["raw"]
		if len(raw) != 1 || *raw[0].MessageBody != "for queues" || *raw[0].MessageAttributes["kind"].StringValue != "big" || len(raw[0].MessageAttributes["b"].BinaryValue) != 2 {
			t.Errorf("raw: %+v", raw)
		}
		if got := w.bodies("body"); len(got) != 1 || !strings.Contains(got[0], `"Message":"{\"n\":{\"m\":1}}"`) {
			t.Errorf("by its body: %q", got)
		}
		all := w.bodies("all")
		if len(all) != 2 {
			t.Fatalf("without a filter: %q", all)
		}
		var e envelope
		if err := json.Unmarshal([]byte(all[0]), &e); err != nil {
			t.Fatal(err)
		}
		want := map[string]envelopeAttribute{"kind": {"String", "small"}, "b": {"Binary", "AQI="}}
		if e.Type != "Notification" || e.MessageID != *one.MessageId || e.TopicArn != *topic || e.Subject != "<s>" || e.Timestamp != "2026-01-01T12:00:00.000Z" ||
			!maps.Equal(e.MessageAttributes, want) || !strings.HasSuffix(e.UnsubscribeURL, "SubscriptionArn="+sub) || e.SignatureVersion != version {
			t.Errorf("the envelope is %s", all[0])
		}
		verify(t, w, &e)
		if v := w.store.View(); v.Deliveries.Len()+v.Publications.Len() != 0 {
			t.Errorf("%d debts and %d messages are left", v.Deliveries.Len(), v.Publications.Len())
		}
	}
}

// verify checks a message's signature as a validator of an SDK does: with the certificate that it names.
func verify(t *testing.T, w *world, e *envelope) {
	t.Helper()
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, strings.TrimPrefix(e.SigningCertURL, "http://here:4566"), nil))
	block, _ := pem.Decode(answer.Body.Bytes())
	if block == nil {
		t.Fatalf("%s: %d %s", e.SigningCertURL, answer.Code, answer.Body)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signed := "Message\n" + e.Message + "\nMessageId\n" + e.MessageID + "\n"
	switch {
	case e.Type != "Notification":
		signed += "SubscribeURL\n" + e.SubscribeURL + "\nTimestamp\n" + e.Timestamp + "\nToken\n" + e.Token + "\n"
	case e.Subject != "":
		signed += "Subject\n" + e.Subject + "\nTimestamp\n" + e.Timestamp + "\n"
	default:
		signed += "Timestamp\n" + e.Timestamp + "\n"
	}
	signed += "TopicArn\n" + e.TopicArn + "\nType\n" + e.Type + "\n"
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum([]byte(signed))
	hash, digest := crypto.SHA1, sum[:]
	if e.SignatureVersion == "2" {
		long := sha256.Sum256([]byte(signed))
		hash, digest = crypto.SHA256, long[:]
	}
	if err := rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), hash, digest, signature); err != nil {
		t.Errorf("the signature of %+v: %v", e, err)
	}
}

// TestAcknowledgedIsDelivered: what was published before the control plane ended is delivered after it has started again, and signed by the
// same key. If that can't be read any more, there is another.
func TestAcknowledgedIsDelivered(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", nil)
	w.subscribe(t, topic, "q", nil)
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("one")})
	w.deliver(t)
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("two")})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	w.deliver(t)
	w.store.Close()
	w.key = 8 // the vault's key was lost
	w.open(t)
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("three")})
	w.deliver(t)
	got := w.bodies("q")
	if len(got) != 3 || !strings.Contains(got[1], `"Message":"two"`) {
		t.Fatalf("the queue got %q", got)
	}
	all := make([]envelope, len(got))
	for i, text := range got {
		if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if all[0].SigningCertURL != all[1].SigningCertURL || all[1].SigningCertURL == all[2].SigningCertURL {
		t.Errorf("the certificates are %s, %s and %s", all[0].SigningCertURL, all[1].SigningCertURL, all[2].SigningCertURL)
	}
	verify(t, w, &all[2])
}

// TestContentOfStructures: of messages that have a text for each protocol the whole counts as their content, and not what some protocols get.
func TestContentOfStructures(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true", "ContentBasedDeduplication": "true"})
	w.subscribe(t, topic, "q.fifo", map[string]string{"RawMessageDelivery": "true"})
	ids := map[string]bool{}
	for _, text := range []string{"a", "b", "b"} {
		out := w.publish(t, &sns.PublishInput{
			TopicArn: topic, Message: aws.String(`{"default":"x","sqs":"` + text + `"}`), MessageGroupId: aws.String("g"), MessageStructure: aws.String("json"),
		})
		ids[*out.MessageId] = true
	}
	w.deliver(t)
	if len(ids) != 2 || len(w.sent["q.fifo"]) != 2 {
		t.Errorf("%d messages were taken, and the queue got %d", len(ids), len(w.sent["q.fifo"]))
	}
}

// TestFIFO: messages have growing numbers, a duplicate within five minutes is told what the first was, and a group's messages wait for
// each other where a queue can't take one.
func TestFIFO(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true", "ContentBasedDeduplication": "true"})
	w.subscribe(t, topic, "q.fifo", map[string]string{"RawMessageDelivery": "true"})
	w.subscribe(t, topic, "plain", nil)
	publish := func(message, group string) *sns.PublishOutput {
		return w.publish(t, &sns.PublishInput{TopicArn: topic, Message: &message, MessageGroupId: &group})
	}
	w.fail["q.fifo"] = errors.New("not now")
	one := publish("a1", "a")
	again := publish("a1", "b")
	two := publish("a2", "a")
	publish("b1", "b")
	if *again.MessageId != *one.MessageId || *again.SequenceNumber != *one.SequenceNumber || *one.SequenceNumber >= *two.SequenceNumber ||
		len(*one.SequenceNumber) != 20 {
		t.Errorf("told %v, %v, %v", *one.SequenceNumber, *again.SequenceNumber, *two.SequenceNumber)
	}
	w.deliver(t) // three tries at once
	w.now = w.now.Add(500 * time.Millisecond)
	w.deliver(t)
	w.fail["q.fifo"] = nil
	w.now = w.now.Add(time.Second)
	w.deliver(t)
	got := w.sent["q.fifo"]
	var inA []string
	for _, in := range got {
		if *in.MessageGroupId == "a" {
			inA = append(inA, *in.MessageBody)
		}
	}
	if len(got) != 3 || !slices.Equal(inA, []string{"a1", "a2"}) || len(*got[0].MessageDeduplicationId) != 64 {
		t.Errorf("the queue got %d, of group a %q", len(got), inA)
	}
	if got := w.sent["plain"]; len(got) != 3 || got[0].MessageDeduplicationId != nil || !strings.Contains(*got[0].MessageBody, `"SequenceNumber":"1`) ||
		strings.Contains(*got[0].MessageBody, "Signature") {
		t.Errorf("the standard queue got %+v", got)
	}
	if _, err := w.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: topic}); err != nil {
		t.Fatal(err)
	}
	w.topic(t, "f.fifo", map[string]string{"FifoTopic": "true", "ContentBasedDeduplication": "true"})
	if other := publish("a2", "a"); *other.MessageId == *two.MessageId {
		t.Error("another topic of the name has the first one's messages")
	}
	one = publish("a1", "a")
	w.now = w.now.Add(5 * time.Minute)
	if later := publish("a1", "a"); *later.MessageId == *one.MessageId {
		t.Error("after five minutes it's still a duplicate")
	}
}

// listener is an HTTP endpoint.
type listener struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
	status int
}

func newListener(t *testing.T) *listener {
	l := &listener{status: http.StatusOK}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		l.got = append(l.got, r)
		l.bodies = append(l.bodies, string(body))
		w.WriteHeader(l.status)
	}))
	t.Cleanup(l.Close)
	return l
}

// visit opens a link of a message.
func (w *world) visit(link string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, strings.TrimPrefix(link, "http://here:4566"), nil))
	return answer
}

// TestHTTP: an endpoint gets nothing before its owner has confirmed, and ends its subscription by a link.
func TestHTTP(t *testing.T) {
	w := newWorld(t)
	l := newListener(t)
	topic := w.topic(t, "t", nil)
	sub := w.subscribe(t, topic, l.URL, nil)
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("too early")})
	w.deliver(t)
	var e envelope
	if len(l.bodies) != 1 || json.Unmarshal([]byte(l.bodies[0]), &e) != nil || e.Type != "SubscriptionConfirmation" ||
		l.got[0].Header.Get("x-amz-sns-message-type") != e.Type {
		t.Fatalf("the endpoint got %q", l.bodies)
	}
	verify(t, w, &e)
	if a := w.visit(strings.Replace(e.SubscribeURL, e.Token, strings.Repeat("0", len(e.Token)), 1)); a.Code != 400 || !strings.Contains(a.Body.String(), "Invalid parameter: Token") {
		t.Errorf("another token: %d %s", a.Code, a.Body)
	}
	for range 2 { // a token can be used again
		if a := w.visit(e.SubscribeURL); a.Code != 200 || !strings.Contains(a.Body.String(), "<SubscriptionArn>"+sub+"</SubscriptionArn>") {
			t.Fatalf("confirmed: %d %s", a.Code, a.Body)
		}
	}
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("hello")})
	w.deliver(t)
	if len(l.bodies) != 2 || json.Unmarshal([]byte(l.bodies[1]), &e) != nil || e.Message != "hello" || l.got[1].Header.Get("x-amz-sns-subscription-arn") != sub {
		t.Fatalf("the endpoint got %q", l.bodies)
	}
	if a := w.visit(e.UnsubscribeURL); a.Code != 200 || w.store.View().Subscriptions.Len() != 0 {
		t.Errorf("ended: %d %s", a.Code, a.Body)
	}
	guarded := w.subscribe(t, topic, l.URL, nil)
	token := w.store.View().Subscriptions.Get(guarded).Token
	_, err := w.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: topic, Token: &token, AuthenticateOnUnsubscribe: aws.String("true")})
	if a := w.visit(w.link("Unsubscribe", "SubscriptionArn", guarded)); err != nil || a.Code != 403 || w.store.View().Subscriptions.Len() != 1 {
		t.Errorf("a guarded one is ended by a link: %v, %d %s", err, a.Code, a.Body)
	}
}

// TestRetries: an endpoint that fails is tried as the delivery policy says, and then the message is in the dead-letter queue. One that
// refuses a message isn't tried again.
func TestRetries(t *testing.T) {
	w := newWorld(t)
	l := newListener(t)
	topic := w.topic(t, "t", nil)
	sub := w.subscribe(t, topic, l.URL, map[string]string{
		"DeliveryPolicy":     `{"healthyRetryPolicy":{"minDelayTarget":2,"maxDelayTarget":8,"numRetries":5,"numNoDelayRetries":1,"numMinDelayRetries":1,"numMaxDelayRetries":1}}`,
		"RedrivePolicy":      `{"deadLetterTargetArn":"` + *queueARN("dead") + `"}`,
		"RawMessageDelivery": "true",
	})
	w.deliver(t)
	if _, err := w.confirm(t.Context(), *topic, w.store.View().Subscriptions.Get(sub).Token, true, false); err != nil {
		t.Fatal(err)
	}
	tries := func(status int) (at []time.Duration) {
		l.status = status
		w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("m")})
		start := w.now
		seen := len(l.got)
		for w.store.View().Deliveries.Len() > 0 {
			w.deliver(t)
			for range len(l.got) - seen {
				at = append(at, w.now.Sub(start))
			}
			seen = len(l.got)
			w.now = w.now.Add(time.Second)
		}
		return at
	}
	s := time.Second
	if got := tries(500); !slices.Equal(got, []time.Duration{0, 0, 2 * s, 7 * s, 15 * s, 23 * s}) {
		t.Errorf("tried at %v", got)
	}
	if got := w.bodies("dead"); !slices.Equal(got, []string{"m"}) || l.got[len(l.got)-1].Header.Get("x-amz-sns-rawdelivery") != "true" {
		t.Errorf("the dead letters are %q", got)
	}
	if got := tries(404); len(got) != 1 || len(w.bodies("dead")) != 1 {
		t.Errorf("a message that is refused is tried at %v", got)
	}
	w.fail["dead"] = errors.New("not now")
	l.status = 404
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("kept")})
	w.deliver(t)
	w.fail["dead"] = nil
	w.now = w.now.Add(time.Minute)
	w.deliver(t)
	if got := w.bodies("dead"); !slices.Equal(got, []string{"kept"}) || w.store.View().Publications.Len() != 0 {
		t.Errorf("after the queue failed the dead letters are %q", got)
	}
}

// TestRoom: a listener that doesn't take its messages costs a bounded room. What doesn't fit goes to its dead letters or is lost, which is logged,
// and others get theirs. Beyond what a topic, or all of them, may have, publishing is refused, and what a service tells a topic waits.
func TestRoom(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	topic := w.topic(t, "t", nil)
	for _, attributes := range []map[string]string{
		{"RedrivePolicy": `{"deadLetterTargetArn":"` + *queueARN("dead") + `"}`, "RawMessageDelivery": "true"},
		{"RawMessageDelivery": "true"},
	} {
		sub := w.subscribe(t, topic, fmt.Sprint("http://192.0.2.1/", len(attributes)), attributes) // nothing is delivered unless a test does it
		if _, err := w.confirm(t.Context(), *topic, w.store.View().Subscriptions.Get(sub).Token, true, false); err != nil {
			t.Fatal(err)
		}
		err := w.store.Update(t.Context(), func(tx *state.Tx) error { // what they were to confirm
			for d := range tx.Deliveries.All() {
				tx.SettleDelivery(d.ID, nil, w.now)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.subscribe(t, topic, "readers", map[string]string{"RawMessageDelivery": "true"})
	w.opts.Room = Room{All: 40 << 10, Topic: 32 << 10, Subscription: 12 << 10}
	hello := &sns.PublishInput{TopicArn: topic, Message: aws.String(strings.Repeat("m", 4<<10))}
	for range 5 {
		w.publish(t, hello)
	}
	overflowing := 0
	for d := range w.store.View().Deliveries.All() {
		switch {
		case strings.HasSuffix(d.Destination, "/overflow"):
			overflowing++
			if err := w.Tell(t.Context(), d.Debt); !errors.Is(err, delivery.ErrGone) {
				t.Errorf("what overflows ends with %v", err)
			}
		case !d.Remote:
			if err := w.Tell(t.Context(), d.Debt); err != nil {
				t.Error(err)
			}
		}
	}
	if dead, readers := len(w.bodies("dead")), len(w.bodies("readers")); overflowing != 3 || dead != 3 || readers != 5 {
		t.Errorf("%d overflow, %d are dead letters, %d were read", overflowing, dead, readers)
	}
	if strings.Count(log.String(), "messages are lost") != 1 {
		t.Errorf("it logs %s", &log)
	}
	w.publish(t, hello) // the sixth
	_, err := w.Publish(t.Context(), hello)
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "Throttled" || !strings.Contains(err.Error(), "The topic has") {
		t.Errorf("beyond a topic's room a message ends with %v", err)
	}
	if err := w.Tell(t.Context(), delivery.Debt{Destination: *topic, Body: "alarm"}); err != nil {
		t.Errorf("a short message still fits: %v", err)
	}
	if err := w.Tell(t.Context(), delivery.Debt{Destination: *topic, Body: *hello.Message}); err == nil || errors.Is(err, delivery.ErrGone) {
		t.Errorf("what a service tells ends with %v", err)
	}
	w.store.Close()
	w.open(t) // the next process counts as this one did
	w.opts.Room = Room{All: 33 << 10, Topic: 100 << 10, Subscription: 100 << 10}
	if _, err := w.Publish(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "The topics have") {
		t.Errorf("beyond the account's room a message ends with %v", err)
	}
	err = w.store.Update(t.Context(), func(tx *state.Tx) error {
		for d := range tx.Deliveries.All() {
			tx.SettleDelivery(d.ID, nil, w.now)
		}
		u := w.store.Undelivered
		if u.All != 0 || len(u.ByTopic) != 0 || len(u.BySubscription) != 0 {
			t.Errorf("when all is delivered, it counts %+v", *u)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.publish(t, hello)
}

// TestTooOldForAQueue: a message that a queue didn't take for as long as it's tried goes to the dead-letter queue, whenever that takes it. One
// that the dead-letter queue refuses is lost, which is logged.
func TestTooOldForAQueue(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	topic := w.topic(t, "t", nil)
	w.subscribe(t, topic, "q", map[string]string{
		"RedrivePolicy":      `{"deadLetterTargetArn":"` + *queueARN("dead") + `"}`,
		"RawMessageDelivery": "true",
	})
	w.fail["q"], w.fail["dead"] = errors.New("not now"), errors.New("not now")
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("old")})
	w.deliver(t)
	w.now = w.now.Add(patience)
	w.deliver(t)
	w.now = w.now.Add(time.Hour)
	w.deliver(t)
	w.fail["dead"] = nil
	w.now = w.now.Add(time.Minute)
	w.deliver(t)
	if got := w.bodies("dead"); !slices.Equal(got, []string{"old"}) || w.store.View().Publications.Len() != 0 {
		t.Errorf("the dead letters are %q, %d messages are left", got, w.store.View().Publications.Len())
	}
	w.fail["dead"] = &sqstypes.QueueDoesNotExist{}
	w.publish(t, &sns.PublishInput{TopicArn: topic, Message: aws.String("lost")})
	w.now = w.now.Add(patience)
	w.deliver(t)
	if w.store.View().Publications.Len() != 0 || !strings.Contains(log.String(), "a message is lost") {
		t.Errorf("%d messages are left, and logged is %q", w.store.View().Publications.Len(), &log)
	}
}

// TestPermissions: AddPermission keeps what the policy had, and the last statement can't be removed, which would bring the default one back.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", nil)
	statements := func() (all []string) {
		out, err := w.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: topic})
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Statement []struct{ Sid string } }
		if err := json.Unmarshal([]byte(out.Attributes["Policy"]), &p); err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Statement {
			all = append(all, s.Sid)
		}
		return all
	}
	add := &sns.AddPermissionInput{TopicArn: topic, Label: aws.String("l"), AWSAccountId: []string{"000000000001"}, ActionName: []string{"Publish", "Subscribe"}}
	if _, err := w.AddPermission(t.Context(), add); err != nil || !slices.Equal(statements(), []string{"__default_statement_ID", "l"}) {
		t.Errorf("%v, the policy has %q", err, statements())
	}
	if _, err := w.AddPermission(t.Context(), add); refusal(err) != "InvalidParameter: Invalid parameter: Statement already exists" {
		t.Error(err)
	}
	add.Label, add.ActionName = aws.String("m"), []string{"Fly"}
	if _, err := w.AddPermission(t.Context(), add); refusal(err) != "InvalidParameter: Invalid parameter: Policy statement action out of service scope!" {
		t.Error(err)
	}
	for sid, want := range map[string]string{"l": "<nil>", "other": "<nil>"} {
		if _, err := w.RemovePermission(t.Context(), &sns.RemovePermissionInput{TopicArn: topic, Label: &sid}); refusal(err) != want {
			t.Errorf("removing %s: %v", sid, err)
		}
	}
	_, err := w.RemovePermission(t.Context(), &sns.RemovePermissionInput{TopicArn: topic, Label: aws.String("__default_statement_ID")})
	if got := statements(); !strings.Contains(refusal(err), "last statement") || !slices.Equal(got, []string{"__default_statement_ID"}) {
		t.Errorf("%v, the policy has %q", err, got)
	}
}

// TestServicesPublish: what another service owes a topic is published there.
func TestServicesPublish(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", nil)
	w.subscribe(t, topic, "q", nil)
	for _, destination := range []string{*topic, *topic + "-gone"} {
		statetest.Update(t, w.store, func(tx *state.Tx) {
			tx.Owe(state.Delivery{Debt: delivery.Debt{Destination: destination, Source: "arn:alarm", Subject: strings.Repeat("long ", 30), Body: "ALARM"}}, w.now)
		})
	}
	w.deliver(t)
	if got := w.bodies("q"); len(got) != 1 || !strings.Contains(got[0], `"Message":"ALARM"`) || w.store.View().Deliveries.Len() != 0 {
		t.Errorf("the queue got %q", got)
	}
}

// TestBatch: a batch is committed whole or not at all.
func TestBatch(t *testing.T) {
	w := newWorld(t)
	topic := w.topic(t, "t", nil)
	w.subscribe(t, topic, "q", map[string]string{"RawMessageDelivery": "true"})
	entry := func(id, message string) types.PublishBatchRequestEntry {
		return types.PublishBatchRequestEntry{Id: &id, Message: &message}
	}
	for want, entries := range map[string][]types.PublishBatchRequestEntry{
		"EmptyBatchRequest":            {},
		"TooManyEntriesInBatchRequest": slices.Repeat([]types.PublishBatchRequestEntry{entry("a", "m")}, 11),
		"BatchEntryIdsNotDistinct":     {entry("a", "m"), entry("a", "m")},
		"InvalidBatchEntryId":          {entry("a.b", "m")},
		"BatchRequestTooLong":          {entry("a", strings.Repeat("m", 200<<10)), entry("b", strings.Repeat("m", 100<<10))},
		"InvalidParameter":             {entry("a", "m"), entry("b", "")},
	} {
		_, err := w.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: topic, PublishBatchRequestEntries: entries})
		if !strings.HasPrefix(refusal(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	out, err := w.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{
		entry("a", "one"), entry("b", "two"),
	}})
	w.deliver(t)
	if got := slices.Sorted(slices.Values(w.bodies("q"))); err != nil || len(out.Successful) != 2 || *out.Successful[1].Id != "b" || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%v, the queue got %q", err, got)
	}
}
