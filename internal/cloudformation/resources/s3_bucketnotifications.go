package resources

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// bucketNotifications is whom a bucket notifies. S3 has several events in one configuration, CloudFormation one.
type bucketNotifications struct {
	EventBridgeConfiguration *bucketEventBridge
	LambdaConfigurations     []bucketFunction
	QueueConfigurations      []bucketQueue
	TopicConfigurations      []bucketTopic
}

type bucketEventBridge struct {
	EventBridgeEnabled *bool `cfn:"required"`
}

type bucketFunction struct {
	Event    types.Event `cfn:"required"`
	Function *string     `cfn:"required"`
	Filter   *bucketFilter
}

type bucketTopic struct {
	Event  types.Event `cfn:"required"`
	Topic  *string     `cfn:"required"`
	Filter *bucketFilter
}

type bucketQueue struct {
	Event  types.Event `cfn:"required"`
	Queue  *string     `cfn:"required"`
	Filter *bucketFilter
}

type bucketFilter struct {
	S3Key *bucketKeyFilter `cfn:"required"`
}

type bucketKeyFilter struct {
	Rules []types.FilterRule `cfn:"required"`
}

// asS3 returns a filter as S3 has it.
func (f *bucketFilter) asS3() *types.NotificationConfigurationFilter {
	if f == nil {
		return nil
	}
	return &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{FilterRules: f.S3Key.Rules}}
}

// bucketFilterOf is asS3 the other way round. S3 shows the names of rules as Prefix and Suffix, CloudFormation writes them small.
func bucketFilterOf(f *types.NotificationConfigurationFilter) *bucketFilter {
	if f == nil || f.Key == nil {
		return nil
	}
	key := &bucketKeyFilter{}
	for _, r := range f.Key.FilterRules {
		key.Rules = append(key.Rules, types.FilterRule{Name: types.FilterRuleName(strings.ToLower(string(r.Name))), Value: r.Value})
	}
	return &bucketFilter{key}
}

// asS3 returns notifications as S3 has them.
func (n *bucketNotifications) asS3() *types.NotificationConfiguration {
	c := &types.NotificationConfiguration{}
	if n == nil {
		return c
	}
	if b := n.EventBridgeConfiguration; b != nil && *b.EventBridgeEnabled {
		c.EventBridgeConfiguration = &types.EventBridgeConfiguration{}
	}
	for _, f := range n.LambdaConfigurations {
		one := types.LambdaFunctionConfiguration{Events: []types.Event{f.Event}, LambdaFunctionArn: f.Function, Filter: f.Filter.asS3()}
		c.LambdaFunctionConfigurations = append(c.LambdaFunctionConfigurations, one)
	}
	for _, q := range n.QueueConfigurations {
		one := types.QueueConfiguration{Events: []types.Event{q.Event}, QueueArn: q.Queue, Filter: q.Filter.asS3()}
		c.QueueConfigurations = append(c.QueueConfigurations, one)
	}
	for _, t := range n.TopicConfigurations {
		one := types.TopicConfiguration{Events: []types.Event{t.Event}, TopicArn: t.Topic, Filter: t.Filter.asS3()}
		c.TopicConfigurations = append(c.TopicConfigurations, one)
	}
	return c
}

// setNotifications sets whom a bucket notifies, if that changes: S3 tells each queue and topic of it by a message.
func setNotifications(ctx context.Context, s Step, name string, before, after *bucket) error {
	if reflect.DeepEqual(before.NotificationConfiguration, after.NotificationConfiguration) {
		return nil
	}
	in := &s3.PutBucketNotificationConfigurationInput{Bucket: &name, NotificationConfiguration: after.NotificationConfiguration.asS3()}
	return did[s3.PutBucketNotificationConfigurationOutput](ctx, s, in)
}

func readNotifications(ctx context.Context, s Step, name string, live *bucket) error {
	in := &s3.GetBucketNotificationConfigurationInput{Bucket: &name}
	out, err := call.Do[s3.GetBucketNotificationConfigurationOutput](ctx, s.Services, in)
	if err != nil {
		return err
	}
	n := &bucketNotifications{}
	if out.EventBridgeConfiguration != nil {
		n.EventBridgeConfiguration = &bucketEventBridge{new(true)}
	}
	for _, f := range out.LambdaFunctionConfigurations {
		for _, event := range f.Events {
			n.LambdaConfigurations = append(n.LambdaConfigurations, bucketFunction{event, f.LambdaFunctionArn, bucketFilterOf(f.Filter)})
		}
	}
	for _, q := range out.QueueConfigurations {
		for _, event := range q.Events {
			n.QueueConfigurations = append(n.QueueConfigurations, bucketQueue{event, q.QueueArn, bucketFilterOf(q.Filter)})
		}
	}
	for _, t := range out.TopicConfigurations {
		for _, event := range t.Events {
			n.TopicConfigurations = append(n.TopicConfigurations, bucketTopic{event, t.TopicArn, bucketFilterOf(t.Filter)})
		}
	}
	if !reflect.DeepEqual(n, &bucketNotifications{}) {
		live.NotificationConfiguration = n
	}
	return nil
}
