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

// Queue returns the route to queues. url returns the URL of the queue with an ARN.
func Queue(queues Queues, url func(arn string) string) Route {
	return Route{"arn:aws:sqs:", func(ctx context.Context, d Debt) error {
		to := url(d.Destination)
		_, err := queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &to, MessageBody: &d.Body})
		if IsNoQueue(err) {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
		return err
	}}
}

// IsNoQueue reports whether SQS's error means that the queue doesn't exist. S3 drops notifications to such a queue, too.
func IsNoQueue(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode() == "QueueDoesNotExist" || api.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue"
}
