package resources

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/wire/call"
)

// topicPolicy has the properties of AWS::SNS::TopicPolicy. Its physical ID is a name that only the stack knows.
type topicPolicy struct {
	PolicyDocument any      `cfn:"required"`
	Topics         []string `cfn:"required"` // ARNs
}

var _ = add(&kind[*topicPolicy]{
	name:       "AWS::SNS::TopicPolicy",
	live:       liveTopicPolicy,
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, p *topicPolicy) (string, error) {
		return s.generated(128), setTopicPolicy(ctx, s, p.Topics, *document(p.PolicyDocument))
	},
	update: func(ctx context.Context, s Step, _ string, before, after *topicPolicy) error {
		if err := setTopicPolicy(ctx, s, others(before.Topics, after.Topics), ""); err != nil && !isMissing(err) {
			return err
		}
		return setTopicPolicy(ctx, s, after.Topics, *document(after.PolicyDocument))
	},
	delete: func(ctx context.Context, s Step, _ string, p *topicPolicy) error {
		return setTopicPolicy(ctx, s, p.Topics, "")
	},
	read: func(_ context.Context, _ Step, id string, _ *topicPolicy) (Made, error) {
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

// topicInlinePolicy has the properties of AWS::SNS::TopicInlinePolicy: the policy of one topic. Its physical ID is the topic's ARN.
type topicInlinePolicy struct {
	PolicyDocument any     `cfn:"required"`
	TopicArn       *string `cfn:"required,create"`
}

var _ = add(&kind[*topicInlinePolicy]{
	name:       "AWS::SNS::TopicInlinePolicy",
	live:       liveTopicInlinePolicy,
	identifier: []string{"TopicArn"},
	id:         func(_ Step, p *topicInlinePolicy) string { return aws.ToString(p.TopicArn) },
	create: func(ctx context.Context, s Step, p *topicInlinePolicy) (string, error) {
		return *p.TopicArn, setTopicPolicy(ctx, s, []string{*p.TopicArn}, *document(p.PolicyDocument))
	},
	update: func(ctx context.Context, s Step, arn string, _, after *topicInlinePolicy) error {
		return setTopicPolicy(ctx, s, []string{arn}, *document(after.PolicyDocument))
	},
	delete: func(ctx context.Context, s Step, arn string, _ *topicInlinePolicy) error {
		return setTopicPolicy(ctx, s, []string{arn}, "")
	},
	read: func(ctx context.Context, s Step, arn string, p *topicInlinePolicy) (Made, error) {
		_, err := liveTopicInlinePolicy(ctx, s, arn, p)
		return Made{}, err
	},
})

// setTopicPolicy gives topics a policy. An empty one gives them the default one back.
func setTopicPolicy(ctx context.Context, s Step, arns []string, policy string) error {
	for _, arn := range arns {
		in := &sns.SetTopicAttributesInput{TopicArn: &arn, AttributeName: aws.String("Policy"), AttributeValue: &policy}
		if err := did[sns.SetTopicAttributesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}

// isDefaultPolicy reports whether a topic's policy is the one that it has if nobody gave it any.
func isDefaultPolicy(policy string) bool {
	return strings.Contains(policy, `"Id":"__default_policy_ID"`)
}

// liveTopicPolicy reads the policy where it was put. The document is the one that isn't as it's to be, if there's one.
func liveTopicPolicy(ctx context.Context, s Step, _ string, p *topicPolicy) (*topicPolicy, error) {
	live := &topicPolicy{}
	for _, arn := range p.Topics {
		out, err := call.Do[sns.GetTopicAttributesOutput](ctx, s.Services, &sns.GetTopicAttributesInput{TopicArn: &arn})
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if err != nil || isDefaultPolicy(out.Attributes["Policy"]) {
			continue
		}
		live.Topics = append(live.Topics, arn)
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

func liveTopicInlinePolicy(ctx context.Context, s Step, arn string, p *topicInlinePolicy) (*topicInlinePolicy, error) {
	live, err := liveTopicPolicy(ctx, s, "", &topicPolicy{PolicyDocument: p.PolicyDocument, Topics: []string{arn}})
	if err != nil {
		return nil, err
	}
	return &topicInlinePolicy{PolicyDocument: live.PolicyDocument, TopicArn: &arn}, nil
}
