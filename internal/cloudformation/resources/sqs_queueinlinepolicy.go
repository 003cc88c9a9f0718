package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// queueInlinePolicy has the properties of AWS::SQS::QueueInlinePolicy: the policy of one queue. Its physical ID is the queue's URL.
type queueInlinePolicy struct {
	PolicyDocument any     `cfn:"required"`
	Queue          *string `cfn:"required,create"` // the URL
}

var _ = add(&kind[*queueInlinePolicy]{
	name:       "AWS::SQS::QueueInlinePolicy",
	live:       liveQueueInlinePolicy,
	identifier: []string{"Queue"},
	id:         func(_ Step, p *queueInlinePolicy) string { return aws.ToString(p.Queue) },
	create: func(ctx context.Context, s Step, p *queueInlinePolicy) (string, error) {
		return *p.Queue, setQueuePolicy(ctx, s, []string{*p.Queue}, *document(p.PolicyDocument))
	},
	update: func(ctx context.Context, s Step, url string, _, after *queueInlinePolicy) error {
		return setQueuePolicy(ctx, s, []string{url}, *document(after.PolicyDocument))
	},
	delete: func(ctx context.Context, s Step, url string, _ *queueInlinePolicy) error {
		return setQueuePolicy(ctx, s, []string{url}, "")
	},
	read: func(ctx context.Context, s Step, url string, p *queueInlinePolicy) (Made, error) {
		_, err := liveQueueInlinePolicy(ctx, s, url, p)
		return Made{}, err
	},
})

func liveQueueInlinePolicy(ctx context.Context, s Step, url string, p *queueInlinePolicy) (*queueInlinePolicy, error) {
	live, err := liveQueuePolicy(ctx, s, "", &queuePolicy{PolicyDocument: p.PolicyDocument, Queues: []string{url}})
	if err != nil {
		return nil, err
	}
	return &queueInlinePolicy{PolicyDocument: live.PolicyDocument, Queue: &url}, nil
}
