package sqs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// TestRecover: the messages of a queue whose own record was damaged can be received and deleted after the repair, each once.
func TestRecover(t *testing.T) {
	for _, name := range []string{"work", "work.fifo"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sendTo(t, dir, name)
			damageFirst(t, dir, name)
			if damaged, err := queues.Check(dir, true); err != nil || len(damaged) == 0 {
				t.Fatal(damaged, err)
			}
			s := openAt(t, dir)
			listed, err := s.ListQueues(t.Context(), &sqs.ListQueuesInput{})
			if err != nil || len(listed.QueueUrls) != 1 || !strings.Contains(listed.QueueUrls[0], "recovered-") {
				t.Fatal(listed, err)
			}
			url := &listed.QueueUrls[0]
			all, err := s.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
				QueueUrl: url, AttributeNames: []types.QueueAttributeName{"All"},
			})
			if err != nil || all.Attributes["VisibilityTimeout"] != "30" || all.Attributes["MessageRetentionPeriod"] != "1209600" {
				t.Error(all, err)
			}
			for i := range 3 {
				got, err := s.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 1})
				if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != fmt.Sprint("message ", i) {
					t.Fatal(i, got, err)
				}
				if _, err := s.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{
					QueueUrl: url, ReceiptHandle: got.Messages[0].ReceiptHandle,
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func openAt(t *testing.T, dir string) *Service {
	t.Helper()
	store, err := queues.Open(dir, queues.Options{Recover: Recover})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return New(store, Options{Account: accounttest.New(nil), Endpoint: "http://localhost:4566"})
}

// sendTo makes a queue and sends three messages to it.
func sendTo(t *testing.T, dir, name string) {
	t.Helper()
	s := openAt(t, dir)
	attributes := map[string]string{}
	var group *string
	if strings.HasSuffix(name, ".fifo") {
		attributes["FifoQueue"], attributes["ContentBasedDeduplication"] = "true", "true"
		group = aws.String("g")
	}
	q, err := s.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		in := &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: aws.String(fmt.Sprint("message ", i)), MessageGroupId: group}
		if _, err := s.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// damageFirst flips a bit of a queue's name where the log has it first: in the queue's own record.
func damageFirst(t *testing.T, dir, name string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte(name))
	if at < 0 {
		t.Fatal("the log doesn't have the name")
	}
	b[at] ^= 1
	if err := os.WriteFile(logs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}
