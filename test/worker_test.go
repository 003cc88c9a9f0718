package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestWorker: objects put in a bucket become messages, and a worker processes them with a command and is killed halfway. At the
// end every result is in the bucket. Messages that can't be processed are in the dead-letter queue with their reason.
func TestWorker(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large", "--settle", "1s")
	const objects = 20
	dir := t.TempDir()
	for i := range objects {
		text := strings.Repeat("x", i+1)
		if i == 7 {
			text = "bad"
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("image %d", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	queue := func(name, attributes string) (url string) {
		return p.AWS("sqs", "create-queue", "--queue-name", name, "--attributes", attributes, "--query", "QueueUrl", "--output", "text")
	}
	dead := queue("dead", "{}")
	url := queue("images",
		`{"VisibilityTimeout":"2","RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",`+
			`\"maxReceiveCount\":3}"}`)
	for _, bucket := range []string{"incoming", "results"} {
		p.AWS("s3api", "create-bucket", "--bucket", bucket)
	}
	p.AWS("s3api", "put-bucket-notification-configuration", "--bucket", "incoming", "--notification-configuration",
		`{"QueueConfigurations":[{"QueueArn":"arn:aws:sqs:us-east-1:000000000000:images","Events":["s3:ObjectCreated:*"]}]}`)
	p.AWS("s3", "cp", "--recursive", "--quiet", dir, "s3://incoming/a dir/")
	results := func() []string {
		text := p.AWS("s3api", "list-objects-v2", "--bucket", "results", "--query", "Contents[].Key", "--output", "text")
		return slices.DeleteFunc(strings.Split(text, "\t"), func(key string) bool { return key == "None" })
	}
	count := func(url string) string {
		return p.AWS("sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "All",
			"--query", "Attributes.[ApproximateNumberOfMessages,ApproximateNumberOfMessagesNotVisible]", "--output", "text")
	}
	worker := func(what string, done func() bool, end os.Signal) {
		cmd := p.Command(bin(t, "pintle"), "worker", "--queue-url", url, "--result-bucket", "results", "--result-prefix", "done/",
			"--visibility", "2s", "--max-receives", "2", "--", "sh", "-c", `sleep 0.1; ! grep -q bad "$0" && wc -c < "$0"`)
		cmd.Env = append(cmd.Env, "AWS_EC2_METADATA_DISABLED=true")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		Eventually(t, what, done)
		cmd.Process.Signal(end) //nolint:errcheck // Wait reports it
		if err := cmd.Wait(); err != nil && end != syscall.SIGKILL {
			t.Errorf("the worker: %v\n%s", err, &out)
		}
	}
	worker("the first results", func() bool { return len(results()) > 2 }, syscall.SIGKILL)
	p.Kill()
	p.Start()
	worker("the end of all work", func() bool { return count(url) == "0\t0" }, syscall.SIGTERM)
	if got := results(); len(got) != objects-1 {
		t.Errorf("%d results: %q", len(got), got)
	}
	got := p.AWS("sqs", "receive-message", "--queue-url", dead, "--message-attribute-names", "All", "--max-number-of-messages", "10",
		"--query", "Messages[].[Body,MessageAttributes.Reason.StringValue]", "--output", "text")
	if strings.Count(got, "\n") != 0 || !strings.Contains(got, "image+7") || !strings.Contains(got, "exit") {
		t.Errorf("dead letters: %q", got)
	}
}
