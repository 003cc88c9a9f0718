package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queueClient returns a Go SDK client that never retries, so that a test decides what an error means.
func (p *Pintle) queueClient() *sqs.Client {
	return sqs.New(sqs.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &p.Endpoint,
		Credentials:      credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
		RetryMaxAttempts: 1,
	})
}

// traffic is what clients know about a queue's messages.
type traffic struct {
	mu      sync.Mutex
	sent    map[string]bool // acknowledged
	deleted map[string]bool // acknowledged
	asked   map[string]bool // deletions asked for, acknowledged or not
	order   map[string]int  // the last number received in each group
}

// TestQueuesSurviveKills kills pintle while clients send, receive and delete. Every acknowledged message is there or was
// deleted, deleted messages don't come back, and the groups of a FIFO queue stay in order.
func TestQueuesSurviveKills(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	for _, name := range []string{"plain", "order.fifo"} {
		attributes := map[string]string{"VisibilityTimeout": "43200"}
		if name == "order.fifo" {
			attributes["FifoQueue"] = "true"
		}
		if _, err := p.queueClient().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	plain := &traffic{sent: map[string]bool{}, deleted: map[string]bool{}, asked: map[string]bool{}, order: map[string]int{}}
	order := &traffic{sent: map[string]bool{}, deleted: map[string]bool{}, asked: map[string]bool{}, order: map[string]int{}}
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Go(func() { plain.send(ctx, p, "plain", fmt.Sprintf("%d-%d", round, i)) })
			clients.Go(func() { order.send(ctx, p, "order.fifo", fmt.Sprintf("%d-%d", round, i)) })
		}
		for range 2 {
			clients.Go(func() { plain.receive(ctx, t, p, "plain") })
			clients.Go(func() { order.receive(ctx, t, p, "order.fifo") })
		}
		time.Sleep(700 * time.Millisecond)
		for _, tr := range []*traffic{plain, order} {
			Eventually(t, "some traffic", func() bool { return tr.hasFlowed(50*(round+1), 5*(round+1)) })
		}
		p.Kill()
		cancel()
		clients.Wait()
		p.Start()
	}
	for name, tr := range map[string]*traffic{"plain": plain, "order.fifo": order} {
		tr.drain(t, p, name)
	}
}

// hasFlowed reports whether at least that many messages were sent and deleted.
func (tr *traffic) hasFlowed(sent, deleted int) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.sent) >= sent && len(tr.deleted) >= deleted
}

func (tr *traffic) send(ctx context.Context, p *Pintle, queue, group string) {
	c, url := p.queueClient(), p.Endpoint+"/000000000000/"+queue
	for i := 1; ctx.Err() == nil; i++ {
		body := fmt.Sprintf("%s/%d", group, i)
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
		if queue == "order.fifo" {
			in.MessageGroupId, in.MessageDeduplicationId = &group, &body
		}
		if _, err := c.SendMessage(ctx, in); err != nil {
			return // killed: the message may or may not be there
		}
		tr.mu.Lock()
		tr.sent[body] = true
		tr.mu.Unlock()
	}
}

func (tr *traffic) receive(ctx context.Context, t *testing.T, p *Pintle, queue string) {
	c, url := p.queueClient(), p.Endpoint+"/000000000000/"+queue
	for ctx.Err() == nil {
		out, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:            &url,
			MaxNumberOfMessages: 5,
			WaitTimeSeconds:     1,
			VisibilityTimeout:   3600,
		})
		if err != nil {
			return
		}
		for _, m := range out.Messages {
			tr.mu.Lock()
			if tr.deleted[*m.Body] {
				t.Errorf("%s was deleted, and came again", *m.Body)
			}
			tr.follow(t, queue, *m.Body)
			tr.asked[*m.Body] = true
			tr.mu.Unlock()
			if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return
			}
			tr.mu.Lock()
			tr.deleted[*m.Body] = true
			tr.mu.Unlock()
		}
	}
}

// follow notes a message of a group, whose numbers must grow. The caller holds mu.
func (tr *traffic) follow(t *testing.T, queue, body string) {
	group, text, _ := strings.Cut(body, "/")
	var n int
	fmt.Sscan(text, &n)
	if last := tr.order[group]; queue == "order.fifo" && n < last {
		t.Errorf("message %d of group %s came after %d", n, group, last)
	}
	tr.order[group] = max(tr.order[group], n)
}

// drain checks that each acknowledged message is there, in flight, or deleted.
func (tr *traffic) drain(t *testing.T, p *Pintle, queue string) {
	c, url := p.queueClient(), p.Endpoint+"/000000000000/"+queue
	left := map[string]bool{}
	attributes, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl:       &url,
		AttributeNames: []types.QueueAttributeName{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	inFlight := 0
	fmt.Sscan(attributes.Attributes["ApproximateNumberOfMessagesNotVisible"], &inFlight)
	for {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl:            &url,
			MaxNumberOfMessages: 10,
			VisibilityTimeout:   3600,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			if left[*m.Body] || tr.asked[*m.Body] {
				t.Errorf("%s came again within its visibility timeout", *m.Body)
			}
			left[*m.Body] = true
			if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
	lost := 0
	for body := range tr.sent {
		if !left[body] && !tr.asked[body] {
			lost++ // the kill cut off the answer it was in, or that of one before it in its group: then it's in flight
		}
	}
	if queue == "plain" && lost > inFlight {
		t.Errorf("%s: %d of %d messages are lost; %d are in flight", queue, lost, len(tr.sent), inFlight)
	}
	after, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl:       &url,
		AttributeNames: []types.QueueAttributeName{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	visible := 0
	fmt.Sscan(after.Attributes["ApproximateNumberOfMessages"], &visible)
	if queue == "order.fifo" && lost > inFlight+visible {
		t.Errorf("%s: %d of %d messages are lost; %d are in flight and %d wait behind them", queue, lost, len(tr.sent), inFlight, visible)
	}
	t.Logf("%s: %d sent, %d deleted, %d left, %d in answers that were cut off, %d in flight", queue, len(tr.sent), len(tr.deleted),
		len(left), lost, inFlight)
}

// TestQueuesInQuery calls SQS as old clients do: forms to the queue's URL, answers in XML, and errors with Query's names.
func TestQueuesInQuery(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	post := func(path, form string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, p.Endpoint+path, strings.NewReader("Version=2012-11-05&"+form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b), resp.Header
	}
	post("/", "Action=CreateQueue&QueueName=q&Attribute.1.Name=VisibilityTimeout&Attribute.1.Value=40&Tag.1.Key=a&Tag.1.Value=b")
	post("/", "Action=CreateQueue&QueueName=q.fifo&Attribute.1.Name=FifoQueue&Attribute.1.Value=true")
	big := url.QueryEscape(strings.Repeat("x", 1<<20+1))
	for _, c := range []struct {
		name   string
		path   string
		form   string
		status int
		want   string // part of the answer
	}{
		{"a message with attributes, to the queue's URL", "/000000000000/q",
			"Action=SendMessage&MessageBody=hello&MessageAttribute.1.Name=n" +
				"&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=v",
			200, "<MD5OfMessageBody>5d41402abc4b2a76b9719d911017c592</MD5OfMessageBody>"},
		{"what was received", "/000000000000/q",
			"Action=ReceiveMessage&AttributeName.1=All&MessageAttributeName.1=All&VisibilityTimeout=0",
			200, "<MessageAttribute><Name>n</Name>" +
				"<Value><DataType>String</DataType><StringValue>v</StringValue></Value></MessageAttribute>"},
		{"an explicit visibility of 0", "/000000000000/q", "Action=GetQueueAttributes&AttributeName.1=ApproximateNumberOfMessages",
			200, "<Attribute><Name>ApproximateNumberOfMessages</Name><Value>1</Value></Attribute>"},
		{"a batch", "/", "Action=SendMessageBatch&QueueUrl=" + url.QueryEscape(p.Endpoint+"/000000000000/q") +
			"&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=b",
			200, "<SendMessageBatchResultEntry><Id>a</Id>"},
		{"tags", "/000000000000/q", "Action=ListQueueTags", 200, "<Tag><Key>a</Key><Value>b</Value></Tag>"},
		{"the list", "/", "Action=ListQueues", 200, "<QueueUrl>" + p.Endpoint + "/000000000000/q</QueueUrl>"},
		{"no such queue", "/000000000000/none", "Action=ReceiveMessage", 400, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"},
		{"another account's queue", "/123456789012/q", "Action=ReceiveMessage",
			400, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"},
		{"the name of no queue", "/", "Action=ReceiveMessage&QueueUrl=nosuch", 400, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"},
		{"no queue", "/", "Action=ReceiveMessage", 400, "<Code>MissingParameter</Code>"},
		{"no body", "/000000000000/q", "Action=SendMessage", 400, "<Code>MissingParameter</Code>"},
		{"too long", "/000000000000/q", "Action=SendMessage&MessageBody=" + big, 400, "Message must be shorter than 1048576 bytes."},
		{"characters that XML lacks", "/000000000000/q", "Action=SendMessage&MessageBody=%01", 400, "<Code>InvalidMessageContents</Code>"},
		{"no group", "/000000000000/q.fifo", "Action=SendMessage&MessageBody=a&MessageDeduplicationId=d",
			400, "<Code>MissingParameter</Code>"},
		{"nothing against duplicates", "/000000000000/q.fifo", "Action=SendMessage&MessageBody=a&MessageGroupId=g",
			400, "<Code>InvalidParameterValue</Code>"},
		{"a delay in FIFO", "/000000000000/q.fifo",
			"Action=SendMessage&MessageBody=a&MessageGroupId=g&MessageDeduplicationId=d&DelaySeconds=2",
			400, "<Code>InvalidParameterValue</Code>"},
		{"an empty batch", "/000000000000/q", "Action=DeleteMessageBatch", 400, "<Code>AWS.SimpleQueueService.EmptyBatchRequest</Code>"},
		{"a bad policy", "/000000000000/q", "Action=SetQueueAttributes&Attribute.1.Name=Policy&Attribute.1.Value=%7B",
			400, "<Code>InvalidAttributeValue</Code>"},
		{"a bad receipt", "/000000000000/q", "Action=DeleteMessage&ReceiptHandle=junk", 404, "<Code>ReceiptHandleIsInvalid</Code>"},
		{"no such action", "/", "Action=Sing", 400, "<Code>InvalidAction</Code>"},
	} {
		status, answer, header := post(c.path, c.form)
		if status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %.600s\nwant %d %s", c.name, status, answer, c.status, c.want)
		}
		if header.Get("Content-Type") != "text/xml" {
			t.Errorf("%s is answered in %s", c.name, header.Get("Content-Type"))
		}
	}
}

// TestQueueWorker runs a worker's loop as users write it, with boto3's resources, and reads the metrics of its queue.
func TestQueueWorker(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	url := p.AWS("sqs", "create-queue", "--queue-name", "example-gpu-queue", "--query", "QueueUrl", "--output", "text")
	c := p.queueClient()
	for i := range 25 {
		body := fmt.Sprintf(`{"Records":[{"s3":{"object":{"key":"image%d.jpg"}}}]}`, i)
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.Command(python, "-c", `
import boto3, json
queue = boto3.resource('sqs').get_queue_by_name(QueueName='example-gpu-queue')
done = []
while len(done) < 25:
  for message in queue.receive_messages(VisibilityTimeout=8000, MaxNumberOfMessages=10):
    done.append(json.loads(message.body)['Records'][0]['s3']['object']['key'])
    message.delete()
print(' '.join(done))
`).CombinedOutput()
	if err != nil || len(strings.Fields(string(out))) != 25 {
		t.Fatalf("%v\n%s", err, out)
	}
	for metric, want := range map[string]string{"NumberOfMessagesSent": "25.0", "NumberOfMessagesReceived": "25.0",
		"NumberOfMessagesDeleted": "25.0"} {
		Eventually(t, metric, func() bool {
			start, end := time.Now().Add(-10*time.Minute).UTC().Format(time.RFC3339), time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
			return want == p.AWS("cloudwatch", "get-metric-statistics", "--namespace", "AWS/SQS", "--metric-name", metric,
				"--dimensions", "Name=QueueName,Value=example-gpu-queue",
				"--start-time", start, "--end-time", end, "--period", "3600", "--statistics", "Sum", "--query", "sum(Datapoints[].Sum)",
				"--output", "text")
		})
	}
	if _, err := c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(url)}); err != nil {
		t.Fatal(err)
	}
}
