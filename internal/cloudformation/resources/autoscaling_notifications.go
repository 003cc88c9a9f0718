package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/pintle/pintle/internal/wire/call"
)

// groupNotification is what a group tells a topic. Templates name one topic, or several in a list.
type groupNotification struct {
	NotificationTypes []string
	TopicARN          any `cfn:"required"`
}

func (n groupNotification) topics() (arns []string) {
	switch topics := n.TopicARN.(type) {
	case string:
		return []string{topics}
	case []any:
		for _, t := range topics {
			if arn, isText := t.(string); isText {
				arns = append(arns, arn)
			}
		}
	}
	return arns
}

// types are the types of notifications that the topics get: without any named, all that are about instances. CloudFormation's reference requires
// none, and a topic that is named to hear nothing is nobody's wish.
func (n groupNotification) types() []string {
	if len(n.NotificationTypes) > 0 {
		return n.NotificationTypes
	}
	return []string{
		"autoscaling:EC2_INSTANCE_LAUNCH", "autoscaling:EC2_INSTANCE_LAUNCH_ERROR",
		"autoscaling:EC2_INSTANCE_TERMINATE", "autoscaling:EC2_INSTANCE_TERMINATE_ERROR",
	}
}

// notified returns the types of notifications that each topic gets, and the topics in order.
func notified(list []groupNotification) (of map[string][]string, topics []string) {
	of = map[string][]string{}
	for _, n := range list {
		for _, arn := range n.topics() {
			if _, known := of[arn]; !known {
				topics = append(topics, arn)
			}
			of[arn] = append(of[arn], n.types()...)
		}
	}
	return of, topics
}

// changeNotifications has a group tell the topics that its template names, and no more those that it named before.
func changeNotifications(ctx context.Context, s Step, group string, before, after []groupNotification) error {
	wanted, order := notified(after)
	told, had := notified(before)
	for _, arn := range order {
		if same(told[arn], wanted[arn]) {
			continue // telling it once more would send it another test message
		}
		in := &autoscaling.PutNotificationConfigurationInput{AutoScalingGroupName: &group, TopicARN: &arn, NotificationTypes: wanted[arn]}
		if err := did[autoscaling.PutNotificationConfigurationOutput](ctx, s, in); err != nil {
			return err
		}
	}
	for _, arn := range had {
		if _, stays := wanted[arn]; stays {
			continue
		}
		in := &autoscaling.DeleteNotificationConfigurationInput{AutoScalingGroupName: &group, TopicARN: &arn}
		if err := did[autoscaling.DeleteNotificationConfigurationOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether two lists have the same texts, however often and in which order.
func same(a, b []string) bool {
	set := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return slices.Equal(set(a), set(b))
}

// liveNotifications returns what a group tells topics, in the form that was asked for where it's just that.
func liveNotifications(ctx context.Context, s Step, group string, asked []groupNotification) (list []groupNotification, err error) {
	told := map[string][]string{}
	var order []string
	_, err = pages(func(token *string) (ids []string, next *string, err error) {
		in := &autoscaling.DescribeNotificationConfigurationsInput{AutoScalingGroupNames: []string{group}, NextToken: token}
		out, err := call.Do[autoscaling.DescribeNotificationConfigurationsOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range out.NotificationConfigurations {
			if told[*c.TopicARN] == nil {
				order = append(order, *c.TopicARN)
			}
			told[*c.TopicARN] = append(told[*c.TopicARN], *c.NotificationType)
		}
		return nil, out.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range asked {
		if !slices.ContainsFunc(n.topics(), func(arn string) bool { return !same(told[arn], n.types()) }) {
			list = append(list, n)
			for _, arn := range n.topics() {
				delete(told, arn)
			}
		}
	}
	for _, arn := range order {
		if types := told[arn]; types != nil {
			list = append(list, groupNotification{types, arn})
		}
	}
	return list, nil
}
