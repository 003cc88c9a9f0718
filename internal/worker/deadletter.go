package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// DeadLetters says what happens to messages that keep failing. SQS moves a message to a dead-letter queue unchanged, so the reason can only
// come along if the worker sends the message there itself.
type DeadLetters struct {
	// DeadLetterQueue is the queue's URL; "" leaves dead letters to SQS.
	DeadLetterQueue string
	// MaxReceives is the number of receives after which a failing message goes there; 0 means never.
	MaxReceives int
}

// maxRetryDelay is the longest that a failed message stays invisible.
const maxRetryDelay = 15 * time.Minute

// fail sends a message to the dead-letter queue if no retries are left. Otherwise it shows the message again after a while.
func (w *Worker) fail(ctx context.Context, m *message) {
	last := errors.As(m.failed, new(permanent)) || w.opts.MaxReceives > 0 && m.receives >= w.opts.MaxReceives
	log := w.opts.Log.With("message_id", m.id(), "receive_count", m.receives, "reason", m.failed)
	if last && w.opts.DeadLetterQueue != "" {
		err := w.sendToDeadLetters(ctx, m)
		if err == nil {
			log.Error("a message failed, and is in the dead-letter queue")
			w.delete(ctx, m)
			return
		}
		log = log.With("dead_letter_error", err)
	}
	delay := backoff(w.opts.RetryDelay, m.receives-1, maxRetryDelay)
	log.Error("a message failed, and comes again", "after", delay)
	w.show(ctx, m, delay)
}

// maxAttributes is how many attributes a message may already have, and maxReason the most bytes of the worker's reason: "Amazon SQS message
// quotas" in SQS's developer guide limits the whole message.
const (
	maxAttributes = 10
	maxReason     = 1000
)

// sendToDeadLetters sends a message to the dead-letter queue, with the reason added to its attributes.
func (w *Worker) sendToDeadLetters(ctx context.Context, m *message) error {
	in := &sqs.SendMessageInput{
		QueueUrl:          &w.opts.DeadLetterQueue,
		MessageBody:       m.Message.Body,
		MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	maps.Copy(in.MessageAttributes, m.MessageAttributes)
	for _, own := range [][2]string{
		{"Reason", attributeText(m.failed.Error())},
		{"SourceMessageId", m.id()},
		{"SourceQueueUrl", w.opts.Queue},
		{"ReceiveCount", strconv.Itoa(m.receives)},
	} {
		if _, has := in.MessageAttributes[own[0]]; has || len(in.MessageAttributes) < maxAttributes {
			in.MessageAttributes[own[0]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &own[1]}
		}
	}
	if _, has := in.MessageAttributes["Reason"]; !has {
		return fmt.Errorf("the message has %d attributes, so that there is no room for the reason", maxAttributes)
	}
	if strings.HasSuffix(w.opts.DeadLetterQueue, ".fifo") {
		in.MessageGroupId = aws.String(m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)])
		in.MessageDeduplicationId = m.MessageId
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err := w.opts.SQS.SendMessage(ctx, in)
	return err
}

// attributeText returns a reason with only the characters that an attribute may have (API_SendMessage), and cuts it to maxReason.
func attributeText(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, reason)
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason-3], "") + "..."
}
