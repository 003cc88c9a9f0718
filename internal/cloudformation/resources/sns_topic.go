package resources

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// topic has the properties of AWS::SNS::Topic. Its physical ID is the topic's ARN.
type topic struct {
	TopicName                 *string `cfn:"create"`
	FifoTopic                 *bool   `cfn:"create"`
	ArchivePolicy             any
	ContentBasedDeduplication *bool
	DataProtectionPolicy      any
	DeliveryStatusLogging     []any
	DisplayName               *string
	FifoThroughputScope       *string
	KmsMasterKeyId            *string
	SignatureVersion          *string
	Subscription              []topicSubscription
	Tags                      []Tag
	TracingConfig             *string
}

// topicSubscription is a subscription in a topic's properties.
type topicSubscription struct {
	Endpoint string `cfn:"required"`
	Protocol string `cfn:"required"`
}

func (t *topic) isFIFO() bool { return t.FifoTopic != nil && *t.FifoTopic }

// attributes returns what the template says as attributes.
func (t *topic) attributes() map[string]string {
	out := map[string]string{}
	for name, v := range map[string]*string{
		"ArchivePolicy":       document(t.ArchivePolicy),
		"DisplayName":         t.DisplayName,
		"FifoThroughputScope": t.FifoThroughputScope,
		"KmsMasterKeyId":      t.KmsMasterKeyId,
		"SignatureVersion":    t.SignatureVersion,
		"TracingConfig":       t.TracingConfig,
	} {
		if v != nil {
			out[name] = *v
		}
	}
	if v := t.ContentBasedDeduplication; v != nil && (*v || t.isFIFO()) {
		out["ContentBasedDeduplication"] = strconv.FormatBool(*v)
	}
	return out
}

var _ = add(&kind[*topic]{
	name:       "AWS::SNS::Topic",
	live:       liveTopic,
	list:       listTopics,
	identifier: []string{"TopicArn"},
	attributes: []string{"TopicArn", "TopicName", "DisplayName"},
	check: func(t *topic) (faults []string) {
		if t.DataProtectionPolicy != nil {
			faults = append(faults, "#/DataProtectionPolicy: Pintle has no data protection policies")
		}
		if len(t.DeliveryStatusLogging) > 0 {
			faults = append(faults, "#/DeliveryStatusLogging: Pintle doesn't log the status of deliveries")
		}
		return faults
	},
	id: func(s Step, t *topic) string { return s.Account.ARN("sns", topicName(s, t)) },
	create: func(ctx context.Context, s Step, t *topic) (string, error) {
		attributes := t.attributes()
		if t.isFIFO() {
			attributes["FifoTopic"] = "true"
		}
		in := &sns.CreateTopicInput{Name: aws.String(topicName(s, t)), Attributes: attributes, Tags: snsTags(t.Tags)}
		out, err := call.Do[sns.CreateTopicOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		if err := resubscribe(ctx, s, *out.TopicArn, nil, t.Subscription); err != nil {
			return "", undo(ctx, s, *out.TopicArn, t, deleteTopic, err)
		}
		return *out.TopicArn, nil
	},
	update: updateTopic,
	delete: deleteTopic,
	read: func(ctx context.Context, s Step, arn string, _ *topic) (Made, error) {
		is, err := call.Do[sns.GetTopicAttributesOutput](ctx, s.Services, &sns.GetTopicAttributesInput{TopicArn: &arn})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{
			"TopicArn": arn, "TopicName": nameOfTopic(arn), "DisplayName": is.Attributes["DisplayName"],
		}}, nil
	},
})

func topicName(s Step, t *topic) string {
	if t.TopicName != nil || !t.isFIFO() {
		return s.named(t.TopicName, 256)
	}
	return s.generated(251) + ".fifo"
}

func nameOfTopic(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

func deleteTopic(ctx context.Context, s Step, arn string, _ *topic) error {
	return did[sns.DeleteTopicOutput](ctx, s, &sns.DeleteTopicInput{TopicArn: &arn})
}

func updateTopic(ctx context.Context, s Step, arn string, before, after *topic) error {
	attributes := after.attributes()
	for name := range before.attributes() {
		if _, stays := attributes[name]; !stays {
			attributes[name] = "" // what it is by itself
		}
	}
	for name, value := range attributes {
		in := &sns.SetTopicAttributesInput{TopicArn: &arn, AttributeName: &name, AttributeValue: &value}
		if err := did[sns.SetTopicAttributesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if err := resubscribe(ctx, s, arn, before.Subscription, after.Subscription); err != nil {
		return err
	}
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[sns.UntagResourceOutput](ctx, s, &sns.UntagResourceInput{ResourceArn: &arn, TagKeys: gone})
	}, func() error {
		return did[sns.TagResourceOutput](ctx, s, &sns.TagResourceInput{ResourceArn: &arn, Tags: snsTags(after.Tags)})
	})
}

// resubscribe makes the subscriptions that a topic's properties have, and ends those that they had before.
func resubscribe(ctx context.Context, s Step, arn string, before, after []topicSubscription) error {
	kept := map[topicSubscription]bool{}
	for _, sub := range after {
		kept[sub] = true
		in := &sns.SubscribeInput{TopicArn: &arn, Protocol: &sub.Protocol, Endpoint: &sub.Endpoint}
		if err := did[sns.SubscribeOutput](ctx, s, in); err != nil {
			return err
		}
	}
	for _, sub := range before {
		if kept[sub] {
			continue
		}
		id, err := subscriptionOf(ctx, s, arn, sub)
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		if err := did[sns.UnsubscribeOutput](ctx, s, &sns.UnsubscribeInput{SubscriptionArn: &id}); err != nil {
			return err
		}
	}
	return nil
}

// subscriptionsOf returns a topic's subscriptions by what they are for. Of one that isn't confirmed the list doesn't tell the ARN.
func subscriptionsOf(ctx context.Context, s Step, arn string) (all map[topicSubscription]string, order []topicSubscription, err error) {
	all = map[topicSubscription]string{}
	_, err = pages(func(token *string) (ids []string, next *string, err error) {
		in := &sns.ListSubscriptionsByTopicInput{TopicArn: &arn, NextToken: token}
		out, err := call.Do[sns.ListSubscriptionsByTopicOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for _, is := range out.Subscriptions {
			key := topicSubscription{*is.Endpoint, *is.Protocol}
			order = append(order, key)
			if *is.SubscriptionArn != "PendingConfirmation" {
				all[key] = *is.SubscriptionArn
			}
		}
		return nil, out.NextToken, nil
	})
	return all, order, err
}

// subscriptionOf returns the ARN of a topic's subscription, or "" if there is none that is confirmed.
func subscriptionOf(ctx context.Context, s Step, arn string, sub topicSubscription) (string, error) {
	all, _, err := subscriptionsOf(ctx, s, arn)
	return all[sub], err
}

// liveTopic reads a topic. Subscriptions that the template doesn't have may be resources of their own, and aren't told.
func liveTopic(ctx context.Context, s Step, arn string, asked *topic) (*topic, error) {
	out, err := call.Do[sns.GetTopicAttributesOutput](ctx, s.Services, &sns.GetTopicAttributesInput{TopicArn: &arn})
	if err != nil {
		return nil, err
	}
	tags, err := call.Do[sns.ListTagsForResourceOutput](ctx, s.Services, &sns.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		return nil, err
	}
	_, order, err := subscriptionsOf(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	live := &topic{
		TopicName:           aws.String(nameOfTopic(arn)),
		DisplayName:         some(out.Attributes["DisplayName"]),
		FifoThroughputScope: some(out.Attributes["FifoThroughputScope"]),
		SignatureVersion:    some(out.Attributes["SignatureVersion"]),
		TracingConfig:       some(out.Attributes["TracingConfig"]),
		Tags:                ownTags(tags.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value }),
	}
	if out.Attributes["FifoTopic"] == "true" {
		live.FifoTopic = aws.Bool(true)
		live.ContentBasedDeduplication = aws.Bool(out.Attributes["ContentBasedDeduplication"] == "true")
	}
	for _, sub := range order {
		for _, wanted := range asked.Subscription {
			if wanted == sub {
				live.Subscription = append(live.Subscription, sub)
			}
		}
	}
	return live, nil
}

func listTopics(ctx context.Context, s Step, _ *topic) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[sns.ListTopicsOutput](ctx, s.Services, &sns.ListTopicsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, t := range out.Topics {
			ids = append(ids, *t.TopicArn)
		}
		return ids, out.NextToken, nil
	})
}

func snsTags(tags []Tag) []types.Tag {
	return tagList(tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}
