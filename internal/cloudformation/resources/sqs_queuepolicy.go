package resources

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// queuePolicy has the properties of AWS::SQS::QueuePolicy. Its physical ID is a name that only the stack knows.
type queuePolicy struct {
	PolicyDocument any      `cfn:"required"`
	Queues         []string `cfn:"required"` // URLs
}

var _ = add(&kind[*queuePolicy]{
	name:       "AWS::SQS::QueuePolicy",
	live:       liveQueuePolicy,
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

// liveQueuePolicy reads the policy where it was put. The document is the one that isn't as it's to be, if there's one.
func liveQueuePolicy(ctx context.Context, s Step, _ string, p *queuePolicy) (*queuePolicy, error) {
	live := &queuePolicy{}
	for _, url := range p.Queues {
		in := &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNamePolicy}}
		out, err := call.Do[sqs.GetQueueAttributesOutput](ctx, s.Services, in)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if err != nil || out.Attributes["Policy"] == "" {
			continue
		}
		live.Queues = append(live.Queues, url)
		found := parsed(new(out.Attributes["Policy"]))
		if live.PolicyDocument == nil || !reflect.DeepEqual(canonical(found), canonical(p.PolicyDocument)) {
			live.PolicyDocument = found
		}
	}
	if live.PolicyDocument == nil {
		return nil, errMissing
	}
	return live, nil
}
