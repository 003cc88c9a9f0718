package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// envelope is a message of SNS as its subscribers get it.
type envelope struct{ Type, TopicArn, Subject, Message, SubscribeURL, UnsubscribeURL string }

// TestTopics publishes to queues with filters through boto3.
func TestTopics(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	if out, err := p.Command(python, "sns.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestTopicConfirmation: a listener on this machine, which the operator allows, confirms its subscription, is told, and ends it. Another
// that isn't allowed is told nothing.
func TestTopicConfirmation(t *testing.T) {
	t.Parallel()
	heard := make(chan envelope, 10)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e envelope
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Header.Get("x-amz-sns-message-type") != e.Type {
			t.Errorf("the listener got %+v, %v", e, err)
		}
		heard <- e
	}))
	defer listener.Close()
	p := Up(t, "g4dn.xlarge=1", "--webhook-to", "127.0.0.1")
	topic := p.AWS("sns", "create-topic", "--name", "news", "--query", "TopicArn", "--output", "text")
	// as an argument of its own the CLI would fetch the URL
	subscribe := func(url string) {
		p.AWS("sns", "subscribe", "--cli-input-json", `{"TopicArn":"`+topic+`","Protocol":"http","Endpoint":"`+url+`"}`)
	}
	hear := func(kind string) envelope {
		t.Helper()
		select {
		case e := <-heard:
			if e.Type != kind {
				t.Fatalf("heard %+v, not a %s", e, kind)
			}
			return e
		case <-time.After(patience):
			t.Fatalf("no %s was heard", kind)
		}
		return envelope{}
	}
	subscribe(listener.URL)
	subscribe("http://169.254.169.254/")
	visit := func(link string) {
		t.Helper()
		answer, err := http.Get(link) //nolint:gosec // it's Pintle's
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", link, answer, err)
		}
		answer.Body.Close() //nolint:errcheck // its status is enough
	}
	visit(hear("SubscriptionConfirmation").SubscribeURL)
	p.AWS("sns", "publish", "--topic-arn", topic, "--message", "hello", "--subject", "s")
	e := hear("Notification")
	if e.Message != "hello" || e.Subject != "s" || e.TopicArn != topic {
		t.Errorf("heard %+v", e)
	}
	visit(e.UnsubscribeURL)
	if got := p.AWS("sns", "list-subscriptions", "--query", "Subscriptions[].SubscriptionArn", "--output", "text"); got != "PendingConfirmation" {
		t.Errorf("the subscriptions are %s", got)
	}
}

// TestTopicsAreTold: what happens to a stack, to an alarm and in a bucket arrives in a queue.
func TestTopicsAreTold(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	topic := p.AWS("sns", "create-topic", "--name", "news", "--query", "TopicArn", "--output", "text")
	queue := p.AWS("sqs", "create-queue", "--queue-name", "news", "--query", "QueueUrl", "--output", "text")
	p.AWS("sns", "subscribe", "--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", "arn:aws:sqs:us-east-1:000000000000:news")
	p.AWS("cloudformation", "create-stack", "--stack-name", "told", "--notification-arns", topic,
		"--template-body", `{"Resources": {"Cluster": {"Type": "AWS::ECS::Cluster"}}}`)
	p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", "fast", "--namespace", "Seed", "--metric-name", "load", "--statistic", "Maximum",
		"--period", "10", "--evaluation-periods", "1", "--threshold", "75", "--comparison-operator", "GreaterThanThreshold", "--alarm-actions", topic)
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "Seed", "--metric-name", "load", "--value", "90", "--storage-resolution", "1")
	p.AWS("s3api", "create-bucket", "--bucket", "papers")
	p.AWS("s3api", "put-bucket-notification-configuration", "--bucket", "papers", "--notification-configuration",
		`{"TopicConfigurations": [{"TopicArn": "`+topic+`", "Events": ["s3:ObjectCreated:*"]}]}`)
	p.AWS("s3api", "put-object", "--bucket", "papers", "--key", "a/b")
	wanted := map[string]string{ // by a subject, a part of the message
		"AWS CloudFormation Notification": "LogicalResourceId='told'\nNamespace='000000000000'\nPhysicalResourceId='arn:aws:cloudformation:",
		`ALARM: "fast" in us-east-1`:      `"AlarmName":"fast"`,
		"Amazon S3 Notification":          `"key":"a/b"`,
	}
	complete := false
	Eventually(t, "all were told", func() bool {
		out, err := p.queueClient().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			var e envelope
			if err := json.Unmarshal([]byte(*m.Body), &e); err != nil {
				t.Fatal(err)
			}
			if part := wanted[e.Subject]; part != "" && strings.Contains(e.Message, part) {
				delete(wanted, e.Subject)
			}
			complete = complete || strings.Contains(e.Message, "ResourceStatus='CREATE_COMPLETE'\n") && strings.Contains(e.Message, "StackName='told'\n")
		}
		return len(wanted) == 0 && complete
	})
	Eventually(t, "the action in the history", func() bool {
		return strings.Contains(p.AWS("cloudwatch", "describe-alarm-history", "--alarm-name", "fast", "--history-item-type", "Action"),
			"Successfully executed action "+topic)
	})
}

// TestTopicsSurviveKills kills pintle while clients publish. Each acknowledged message is in the queue in the end, and the groups of a FIFO
// topic are in order there.
func TestTopicsSurviveKills(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	topics := sns.New(sns.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &p.Endpoint,
		Credentials:      credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
		RetryMaxAttempts: 1,
	})
	arns := map[string]*string{}
	for name, attributes := range map[string]string{"plain": "", "order.fifo": "FifoTopic=true"} {
		args := []string{"sns", "create-topic", "--name", name, "--query", "TopicArn", "--output", "text"}
		queue := []string{"sqs", "create-queue", "--queue-name", name}
		if attributes != "" {
			args = append(args, "--attributes", attributes)
			queue = append(queue, "--attributes", "FifoQueue=true")
		}
		arns[name] = aws.String(p.AWS(args...))
		p.AWS(queue...)
		p.AWS("sns", "subscribe", "--topic-arn", *arns[name], "--protocol", "sqs", "--notification-endpoint",
			"arn:aws:sqs:us-east-1:000000000000:"+name, "--attributes", "RawMessageDelivery=true")
	}
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	publish := func(ctx context.Context, round, client int) {
		group := fmt.Sprintf("%d-%d", round, client)
		for n := 0; ctx.Err() == nil; n++ {
			body := group + " " + strconv.Itoa(n)
			in := &sns.PublishInput{TopicArn: arns["plain"], Message: aws.String("p" + body)}
			if client%2 == 1 {
				in = &sns.PublishInput{TopicArn: arns["order.fifo"], Message: aws.String("o" + body), MessageGroupId: &group, MessageDeduplicationId: aws.String(strings.ReplaceAll(body, " ", "-"))}
			}
			if _, err := topics.Publish(ctx, in); err != nil {
				return // it may be there or not
			}
			mu.Lock()
			acknowledged[*in.Message] = true
			mu.Unlock()
		}
	}
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() { publish(ctx, round, client) })
		}
		Eventually(t, "some traffic", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acknowledged) > 150*(round+1)
		})
		p.Kill()
		cancel()
		clients.Wait()
		p.Start()
	}
	last := map[string]int{}
	Eventually(t, "all that was acknowledged", func() bool {
		for _, name := range []string{"plain", "order.fifo"} {
			p.empty(t, name, func(body string) {
				delete(acknowledged, body)
				if group, n, _ := strings.Cut(body, " "); name == "order.fifo" {
					number, _ := strconv.Atoi(n)
					if before, known := last[group]; known && number <= before {
						t.Errorf("%s came after %d", body, before)
					}
					last[group] = number
				}
			})
		}
		return len(acknowledged) == 0
	})
	if len(last) < 3 {
		t.Errorf("only %d groups were seen", len(last))
	}
}

// empty receives and deletes the messages of a queue, and calls visit with each body in order.
func (p *Pintle) empty(t *testing.T, queue string, visit func(body string)) {
	t.Helper()
	url := p.Endpoint + "/000000000000/" + queue
	for {
		out, err := p.queueClient().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return
		}
		for _, m := range out.Messages {
			visit(*m.Body)
			if _, err := p.queueClient().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
