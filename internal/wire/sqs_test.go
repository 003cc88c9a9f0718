package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"
)

// queueService records the calls it gets.
type queueService struct {
	received *sqs.ReceiveMessageInput
	sent     *sqs.SendMessageInput
	onSend   func(context.Context)
}

func (s *queueService) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
	s.received = in
	return &sqs.ReceiveMessageOutput{Messages: []types.Message{{
		Body:       aws.String("b"),
		Attributes: map[string]string{"SenderId": "me"},
	}}}, nil
}

func (s *queueService) SendMessage(ctx context.Context, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
	s.sent = in
	if s.onSend != nil {
		s.onSend(ctx)
	}
	return nil, &smithy.GenericAPIError{Code: "QueueDoesNotExist", Message: "No."}
}

func (s *queueService) Operations() []call.Operation {
	return []call.Operation{
		call.Op("ReceiveMessage", s.ReceiveMessage),
		call.Op("SendMessage", s.SendMessage),
	}
}

// TestSQS checks that a 0 that was sent differs from none, that the request's URL can name the queue, and that each protocol has its
// own names.
func TestSQS(t *testing.T) {
	service := &queueService{}
	h, err := New(Options{}, SQS(service))
	if err != nil {
		t.Fatal(err)
	}
	do := func(path, target, contentType, body string) (*http.Response, string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "http://queues.test"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		if target != "" {
			r.Header.Set(sign.TargetHeader, target)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		b, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Result(), string(b)
	}
	for _, c := range []struct{ path, target, contentType, body, answer string }{
		{
			"/", "AmazonSQS.ReceiveMessage", "application/x-amz-json-1.0",
			`{"QueueUrl":"http://queues.test/1/q","VisibilityTimeout":0,"MaxNumberOfMessages":3}`, `"Attributes":{"SenderId":"me"}`,
		},
		{
			"/1/q", "", "application/x-www-form-urlencoded",
			"Action=ReceiveMessage&Version=2012-11-05&VisibilityTimeout=0&MaxNumberOfMessages=3",
			"<Message><Attribute><Name>SenderId</Name><Value>me</Value></Attribute><Body>b</Body></Message>",
		},
	} {
		_, answer := do(c.path, c.target, c.contentType, c.body)
		if !strings.Contains(answer, c.answer) {
			t.Errorf("the answer is %s", answer)
		}
		in := service.received
		if aws.ToString(in.QueueUrl) != "http://queues.test/1/q" || in.VisibilityTimeout != call.Zero || in.WaitTimeSeconds != 0 ||
			in.MaxNumberOfMessages != 3 {
			t.Errorf("%s is read as %+v", c.body, in)
		}
	}
	resp, answer := do(
		"/", "AmazonSQS.SendMessage", "application/x-amz-json-1.0",
		`{"QueueUrl":"u","MessageAttributes":{"a":{"DataType":"String","StringValue":"v"}}}`,
	)
	if answer != `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"No."}` ||
		resp.Header.Get(queryHeader) != "AWS.SimpleQueueService.NonExistentQueue;Sender" {
		t.Errorf("a refusal in JSON is %s, %s", answer, resp.Header.Get(queryHeader))
	}
	_, answer = do(
		"/1/q", "", "application/x-www-form-urlencoded",
		"Action=SendMessage&Version=2012-11-05&MessageAttribute.1.Name=a&MessageAttribute.1.Value.DataType=String"+
			"&MessageAttribute.1.Value.StringValue=v",
	)
	if !strings.Contains(answer, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"+
		"<Message>The specified queue does not exist for this wsdl version.</Message><Detail></Detail>") ||
		aws.ToString(service.sent.MessageAttributes["a"].StringValue) != "v" {
		t.Errorf("a refusal in Query is %s, to %+v", answer, service.sent)
	}
}

// TestOldForms: parameters that an old client sends under other names are ignored, as AWS ignores them; the trace header arrives.
func TestOldForms(t *testing.T) {
	traced := ""
	service := &queueService{}
	api := SQS(service)
	h, err := New(Options{}, api)
	if err != nil {
		t.Fatal(err)
	}
	service.onSend = func(ctx context.Context) { traced = call.From(ctx).Trace }
	for body, want := range map[string]int{
		"Action=ReceiveMessage&Version=2012-11-05&MessageAttributeNames=&Colour=red": http.StatusOK,
		"Action=ReceiveMessage&Version=2012-11-05&MaxNumberOfMessages=many":          http.StatusBadRequest,
		"Action=SendMessage&Version=2012-11-05&MessageBody=a":                        http.StatusBadRequest,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://queues.test/1/q", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Amzn-Trace-Id", "Root=1-a")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if traced != "Root=1-a" {
		t.Errorf("the call's trace is %q", traced)
	}
}
