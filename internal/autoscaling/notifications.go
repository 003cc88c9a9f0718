package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// notificationTypes are those that groups tell topics of.
var notificationTypes = []string{
	state.NotifyLaunch,
	state.NotifyLaunchError,
	state.NotifyTerminate,
	state.NotifyTerminateError,
	state.NotifyTest,
}

// DescribeAutoScalingNotificationTypes lists the types of notifications.
func (s *Service) DescribeAutoScalingNotificationTypes(
	context.Context, *api.DescribeAutoScalingNotificationTypesInput,
) (*api.DescribeAutoScalingNotificationTypesOutput, error) {
	return &api.DescribeAutoScalingNotificationTypesOutput{AutoScalingNotificationTypes: slices.Clone(notificationTypes)}, nil
}

// maxNotified is the most topics that a group tells: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-quotas.html
const maxNotified = 10

// PutNotificationConfiguration has a group tell a topic of some of its activities, in place of those that it told the topic of before. The
// topic gets a test message at once.
func (s *Service) PutNotificationConfiguration(
	ctx context.Context, in *api.PutNotificationConfigurationInput,
) (*api.PutNotificationConfigurationOutput, error) {
	if !isTopic(aws.ToString(in.TopicARN)) {
		return nil, invalid("TopicARN %q is not the ARN of a topic", aws.ToString(in.TopicARN))
	}
	if len(in.NotificationTypes) == 0 {
		return nil, invalid("NotificationTypes must have a type at least")
	}
	for _, t := range in.NotificationTypes {
		if !slices.Contains(notificationTypes, t) {
			return nil, invalid("%q is not a valid notification type. It must be one of %s", t, strings.Join(notificationTypes, ", "))
		}
	}
	g, err := findGroup(s.store.View(), in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	one := state.GroupNotification{TopicARN: *in.TopicARN, Types: slices.Compact(slices.Sorted(slices.Values(in.NotificationTypes)))}
	if err := putNotification(g.Clone(), one); err != nil {
		return nil, err
	}
	body, err := s.testNotice(g)
	if err != nil {
		return nil, err
	}
	if err := s.publishTest(ctx, g, *in.TopicARN, body); err != nil {
		if _, refused := errors.AsType[smithy.APIError](err); refused {
			return nil, invalid("Unable to publish test notification message to the provided topic: %s.", *in.TopicARN)
		}
		return nil, err
	}
	err = s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		return putNotification(g, one)
	})
	if err != nil {
		return nil, err
	}
	return &api.PutNotificationConfigurationOutput{}, nil
}

// putNotification adds a topic to those that a group tells, or changes what it's told of.
func putNotification(g *state.AutoScalingGroup, one state.GroupNotification) error {
	i := indexOfTopic(g, one.TopicARN)
	switch {
	case i >= 0:
		g.Notifications[i] = one
	case len(g.Notifications) >= maxNotified:
		return &types.LimitExceededFault{Message: new("The group already tells the maximum number of topics")}
	default:
		g.Notifications = append(g.Notifications, one)
	}
	return nil
}

func indexOfTopic(g *state.AutoScalingGroup, arn string) int {
	return slices.IndexFunc(g.Notifications, func(n state.GroupNotification) bool { return n.TopicARN == arn })
}

// DeleteNotificationConfiguration has a group tell a topic nothing more.
func (s *Service) DeleteNotificationConfiguration(
	ctx context.Context, in *api.DeleteNotificationConfigurationInput,
) (*api.DeleteNotificationConfigurationOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		i := indexOfTopic(g, aws.ToString(in.TopicARN))
		if i < 0 {
			return invalid("Group %s does not tell the topic %s", g.Name(), aws.ToString(in.TopicARN))
		}
		g.Notifications = slices.Delete(g.Notifications, i, i+1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteNotificationConfigurationOutput{}, nil
}

// DescribeNotificationConfigurations lists what groups tell whom: a record for each group, topic and type.
func (s *Service) DescribeNotificationConfigurations(
	_ context.Context, in *api.DescribeNotificationConfigurationsInput,
) (*api.DescribeNotificationConfigurationsOutput, error) {
	rows := []types.NotificationConfiguration{}
	for g := range s.store.View().AutoScalingGroups.All() {
		if len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, g.Name()) {
			continue
		}
		for _, n := range g.Notifications {
			for _, t := range n.Types {
				rows = append(rows, types.NotificationConfiguration{
					AutoScalingGroupName: g.AutoScalingGroupName,
					TopicARN:             new(n.TopicARN),
					NotificationType:     new(t),
				})
			}
		}
	}
	key := func(c types.NotificationConfiguration) string {
		return *c.AutoScalingGroupName + "\n" + *c.TopicARN + "\n" + *c.NotificationType
	}
	rows, next, err := account.Ordered(listing("DescribeNotificationConfigurations", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	return &api.DescribeNotificationConfigurationsOutput{NotificationConfigurations: rows, NextToken: next}, nil
}

// testNotice returns the message that tests whether a topic or a queue can be told.
func (s *Service) testNotice(g *state.AutoScalingGroup) (string, error) {
	body, err := json.Marshal(map[string]string{
		"AccountId":            s.opts.ID,
		"RequestId":            state.NewUUID(),
		"AutoScalingGroupARN":  *g.AutoScalingGroupARN,
		"AutoScalingGroupName": g.Name(),
		"Service":              "AWS Auto Scaling",
		"Event":                state.NotifyTest,
		"Time":                 s.now().Format("2006-01-02T15:04:05.000Z"),
	})
	return string(body), err
}

// publishTest publishes a test message to a topic.
func (s *Service) publishTest(ctx context.Context, g *state.AutoScalingGroup, topic, body string) error {
	_, err := s.opts.Topics.Publish(ctx, &sns.PublishInput{
		TopicArn: &topic,
		Subject:  new(subject(state.NotifyTest, g.Name())),
		Message:  &body,
	})
	return err
}

// subject returns the subject of a notification, cut to what a message may have.
func subject(event, group string) string {
	text := []rune(state.GroupSubject(event, group))
	return string(text[:min(len(text), 100)])
}
