package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var (
	functionsMessages = flag.Int("functions.messages", 400, "messages that a function handles while it and all else are killed")
	functionsKills    = flag.Int("functions.kills", 5, "how often all of Pintle is killed then, and as often the function itself")
)

// handlesBatches says of each message in HANDLED that it's handled, and fails those that are poison. It kills itself in the midst of a batch where
// there is the file KILL.
const handlesBatches = `
import os, signal

def handler(event, context):
    failed = []
    for r in event["Records"]:
        if r["body"].startswith("poison"):
            failed.append({"itemIdentifier": r["messageId"]})
            continue
        with open(os.environ["HANDLED"], "a") as f:
            f.write(r["body"] + "\n")
        try:
            os.unlink(os.environ["KILL"])
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    return {"batchItemFailures": failed}
`

// TestFunctionSurvivesKills: a function on a queue handles each good message, and each poison one comes to the dead-letter queue, once and alone,
// while SIGKILL hits the control plane with its node, and the function in the midst of a batch.
func TestFunctionSurvivesKills(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	dir := t.TempDir()
	handled, kill := filepath.Join(dir, "handled"), filepath.Join(dir, "kill")
	p.AWS("lambda", "create-function", "--function-name", "batch", "--runtime", "python3.12", "--handler", "app.handler", "--timeout", "5",
		"--role", "arn:aws:iam::000000000000:role/r", "--zip-file", "fileb://"+zipFile(t, map[string][]byte{"app.py": []byte(handlesBatches)}),
		"--environment", "Variables={HANDLED="+handled+",KILL="+kill+"}")
	queue := func(name, attributes string) (url string) {
		return p.AWS("sqs", "create-queue", "--queue-name", name, "--attributes", attributes, "--query", "QueueUrl", "--output", "text")
	}
	dead := queue("dead", "{}")
	// Each kill may cost a good message a try.
	jobs := queue("jobs", fmt.Sprintf(`{"VisibilityTimeout": "5", "RedrivePolicy": "{\"deadLetterTargetArn\": \"arn:aws:sqs:us-east-1:000000000000:dead\", \"maxReceiveCount\": %d}"}`,
		2**functionsKills+2))
	p.AWS("lambda", "create-event-source-mapping", "--function-name", "batch", "--event-source-arn", "arn:aws:sqs:us-east-1:000000000000:jobs",
		"--function-response-types", "ReportBatchItemFailures", "--scaling-config", "MaximumConcurrency=2")

	good, poison := map[string]bool{}, map[string]bool{}
	send := func(n int) {
		t.Helper()
		var batch []sqstypes.SendMessageBatchRequestEntry
		for range n {
			id := fmt.Sprint(len(good) + len(poison))
			body, kind := "good-"+id, good
			if (len(good)+len(poison))%100 == 50 {
				body, kind = "poison-"+id, poison
			}
			kind[body] = true
			batch = append(batch, sqstypes.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body})
		}
		out, err := p.queueClient().SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &jobs, Entries: batch})
		if err != nil || len(out.Failed) > 0 {
			t.Fatalf("%v, %v", err, out)
		}
	}
	done := func() (bodies []string) {
		text, err := os.ReadFile(handled)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	send(1)
	Eventually(t, "the function handles messages", func() bool { return len(done()) > 0 })
	for i := range *functionsKills {
		for len(good)+len(poison) < *functionsMessages*(i+1) / *functionsKills {
			send(10)
		}
		if err := os.WriteFile(kill, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "the function is killed", func() bool {
			_, err := os.Stat(kill)
			return os.IsNotExist(err)
		})
		time.Sleep(rand.N(time.Second)) // in the midst of anything
		p.Kill()
		p.Start()
	}
	seen := map[string]int{}
	for handledThen, idle := -1, 0; len(seen) < len(poison) || handledThen < len(good); {
		out, err := p.queueClient().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			seen[*m.Body]++
			if _, err := p.queueClient().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		bodies := done()
		slices.Sort(bodies)
		now := len(slices.Compact(bodies))
		if idle++; now > handledThen || len(out.Messages) > 0 {
			idle = 0
		}
		if handledThen = now; idle > int(patience/time.Second) {
			t.Fatalf("no more comes: %d of %d good messages are handled, %d of %d poison ones are dead", now, len(good), len(seen), len(poison))
		}
	}
	for body, n := range seen {
		if n != 1 || !poison[body] {
			t.Errorf("in the dead-letter queue %s is %d times", body, n)
		}
	}
	bodies := done()
	for _, body := range bodies {
		if !good[body] {
			t.Errorf("%s was handled, but not sent", body)
		}
	}
	Eventually(t, "the queue is empty", func() bool {
		return p.AWS("sqs", "get-queue-attributes", "--queue-url", jobs, "--attribute-names", "ApproximateNumberOfMessages",
			"ApproximateNumberOfMessagesNotVisible", "--query", "join(' ', values(Attributes))", "--output", "text") == "0 0"
	})
	t.Logf("%d good messages were handled %d times, %d poison ones are dead letters", len(good), len(bodies), len(seen))
}
