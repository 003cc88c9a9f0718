package resources

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// subscription has the properties of AWS::SNS::Subscription. Its physical ID is the subscription's ARN.
type subscription struct {
	Endpoint            *string `cfn:"create"`
	Protocol            *string `cfn:"required,create"`
	TopicArn            *string `cfn:"required,create"`
	DeliveryPolicy      any
	FilterPolicy        any
	FilterPolicyScope   *string
	RawMessageDelivery  *bool
	RedrivePolicy       any
	Region              *string `cfn:"write"` // of the topic
	ReplayPolicy        any
	SubscriptionRoleArn *string
}

// attributes returns what the template says as attributes.
func (u *subscription) attributes() map[string]string {
	out := map[string]string{}
	for name, v := range map[string]*string{
		"DeliveryPolicy":      document(u.DeliveryPolicy),
		"FilterPolicy":        document(u.FilterPolicy),
		"FilterPolicyScope":   u.FilterPolicyScope,
		"RedrivePolicy":       document(u.RedrivePolicy),
		"ReplayPolicy":        document(u.ReplayPolicy),
		"SubscriptionRoleArn": u.SubscriptionRoleArn,
	} {
		if v != nil {
			out[name] = *v
		}
	}
	if u.RawMessageDelivery != nil {
		out["RawMessageDelivery"] = strconv.FormatBool(*u.RawMessageDelivery)
	}
	return out
}

var _ = add(&kind[*subscription]{
	name:       "AWS::SNS::Subscription",
	live:       liveSubscription,
	list:       listSubscriptions,
	identifier: []string{"Arn"},
	attributes: []string{"Arn", "Id"},
	after:      []string{"AWS::SQS::QueuePolicy", "AWS::SQS::QueueInlinePolicy"},
	find: func(ctx context.Context, s Step, u *subscription) (string, error) {
		id, err := subscriptionOf(ctx, s, *u.TopicArn, topicSubscription{aws.ToString(u.Endpoint), *u.Protocol})
		if isMissing(err) {
			return "", nil
		}
		return id, err
	},
	create: func(ctx context.Context, s Step, u *subscription) (string, error) {
		if region := aws.ToString(u.Region); region != "" && region != s.Account.Region {
			return "", template.Errorf("Region: Pintle has topics in %s alone, not in %s", s.Account.Region, region)
		}
		out, err := call.Do[sns.SubscribeOutput](ctx, s.Services, &sns.SubscribeInput{
			TopicArn:              u.TopicArn,
			Protocol:              u.Protocol,
			Endpoint:              u.Endpoint,
			Attributes:            u.attributes(),
			ReturnSubscriptionArn: true,
		})
		if err != nil {
			return "", err
		}
		return *out.SubscriptionArn, nil
	},
	update: updateSubscription,
	delete: func(ctx context.Context, s Step, arn string, _ *subscription) error {
		return did[sns.UnsubscribeOutput](ctx, s, &sns.UnsubscribeInput{SubscriptionArn: &arn})
	},
	read: func(ctx context.Context, s Step, arn string, _ *subscription) (Made, error) {
		in := &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn}
		return Made{Attributes: map[string]any{"Arn": arn, "Id": arn}}, did[sns.GetSubscriptionAttributesOutput](ctx, s, in)
	},
})

// unset are the values of attributes that a template has no more, where that isn't "".
var unset = map[string]string{"FilterPolicyScope": "MessageAttributes", "RawMessageDelivery": "false"}

// updateSubscription changes the attributes. Each filter policy on the way is one that its scope allows: that of bodies allows more.
func updateSubscription(ctx context.Context, s Step, arn string, before, after *subscription) error {
	attributes := after.attributes()
	for name := range before.attributes() {
		if _, stays := attributes[name]; !stays {
			attributes[name] = unset[name]
		}
	}
	names := []string{"DeliveryPolicy", "FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy", "ReplayPolicy", "SubscriptionRoleArn"}
	if attributes["FilterPolicyScope"] == "MessageBody" {
		names[1], names[2] = names[2], names[1]
	}
	for _, name := range names {
		value, given := attributes[name]
		if !given {
			continue
		}
		in := &sns.SetSubscriptionAttributesInput{SubscriptionArn: &arn, AttributeName: &name, AttributeValue: &value}
		if err := did[sns.SetSubscriptionAttributesOutput](ctx, s, in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func liveSubscription(ctx context.Context, s Step, arn string, _ *subscription) (*subscription, error) {
	out, err := call.Do[sns.GetSubscriptionAttributesOutput](ctx, s.Services, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn})
	if err != nil {
		return nil, err
	}
	is := out.Attributes
	return &subscription{
		Endpoint:           some(is["Endpoint"]),
		Protocol:           some(is["Protocol"]),
		TopicArn:           some(is["TopicArn"]),
		DeliveryPolicy:     parsed(some(is["DeliveryPolicy"])),
		FilterPolicy:       parsed(some(is["FilterPolicy"])),
		FilterPolicyScope:  some(is["FilterPolicyScope"]),
		RawMessageDelivery: aws.Bool(is["RawMessageDelivery"] == "true"),
		RedrivePolicy:      parsed(some(is["RedrivePolicy"])),
	}, nil
}

func listSubscriptions(ctx context.Context, s Step, _ *subscription) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[sns.ListSubscriptionsOutput](ctx, s.Services, &sns.ListSubscriptionsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, is := range out.Subscriptions {
			if *is.SubscriptionArn != "PendingConfirmation" {
				ids = append(ids, *is.SubscriptionArn)
			}
		}
		return ids, out.NextToken, nil
	})
}
