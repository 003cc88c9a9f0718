package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// queuePolicy has the properties of AWS::SQS::QueuePolicy. Its physical ID is a name that only the stack knows.
type queuePolicy struct {
	PolicyDocument any      `cfn:"required"`
	Queues         []string `cfn:"required"` // URLs
}

var _ = add(&kind[*queuePolicy]{
	name:       "AWS::SQS::QueuePolicy",
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, p *queuePolicy) (string, error) {
		return s.generated(128), setQueuePolicy(ctx, s, p.Queues, *document(p.PolicyDocument))
	},
	update: func(ctx context.Context, s Step, _ string, before, after *queuePolicy) error {
		if err := setQueuePolicy(ctx, s, others(before.Queues, after.Queues), ""); err != nil && !isMissing(err) {
			return err
		}
		return setQueuePolicy(ctx, s, after.Queues, *document(after.PolicyDocument))
	},
	delete: func(ctx context.Context, s Step, _ string, p *queuePolicy) error {
		return setQueuePolicy(ctx, s, p.Queues, "")
	},
	read: func(_ context.Context, _ Step, id string, _ *queuePolicy) (Made, error) {
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

// setQueuePolicy gives queues a policy. An empty one takes theirs away.
func setQueuePolicy(ctx context.Context, s Step, urls []string, policy string) error {
	for _, url := range urls {
		in := &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": policy}}
		if err := did[sqs.SetQueueAttributesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}
