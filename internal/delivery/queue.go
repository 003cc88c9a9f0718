package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// Queues is where messages to queues go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Queue tells queues; url is the URL of the queue with an ARN.
func Queue(queues Queues, url func(arn string) string) Route {
	return Route{"arn:aws:sqs:", func(ctx context.Context, d Debt) error {
		to := url(d.Destination)
		_, err := queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &to, MessageBody: &d.Body})
		if noQueue(err) {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
		return err
	}}
}

// noQueue reports whether the queue is not there. S3 drops what is for such a queue, too.
func noQueue(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode() == "QueueDoesNotExist" || api.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue"
}
