package plane

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// Some calls have a service of AWS's write into buckets and queues from then on: what a caller may not write, it must not have written.

// writing is what a service of AWS's is to write.
type writing struct {
	authorize.Need
	service string // such as s3.amazonaws.com
	source  string // the ARN of what makes it write, as aws:SourceArn has it
}

// writings returns what a call has written on its caller's behalf.
func (g gate) writings(in any) (all []writing) {
	owner := g.plane.account()
	switch in := in.(type) {
	case *cloudwatchlogs.CreateExportTaskInput:
		object := path.Join(aws.ToString(in.Destination), aws.ToString(in.DestinationPrefix)) + "/*"
		all = append(all, writing{
			authorize.Need{Action: "s3:PutObject", Resource: "arn:aws:s3:::" + object},
			"logs.amazonaws.com", owner.ARN("logs", "log-group:"+aws.ToString(in.LogGroupName)),
		})
	case *cloudwatchlogs.PutSubscriptionFilterInput:
		all = append(all, writing{
			authorize.Need{Action: "sqs:SendMessage", Resource: aws.ToString(in.DestinationArn)},
			"logs.amazonaws.com", owner.ARN("logs", "log-group:"+aws.ToString(in.LogGroupName)),
		})
	case *awssns.SubscribeInput:
		if aws.ToString(in.Protocol) == "sqs" {
			all = append(all, toQueue(aws.ToString(in.Endpoint), aws.ToString(in.TopicArn)))
		}
		if policy, given := in.Attributes["RedrivePolicy"]; given {
			all = append(all, toDeadLetters(policy, aws.ToString(in.TopicArn))...)
		}
	case *awssns.SetSubscriptionAttributesInput:
		if aws.ToString(in.AttributeName) == "RedrivePolicy" {
			topic := authorize.TopicOf(aws.ToString(in.SubscriptionArn))
			all = append(all, toDeadLetters(aws.ToString(in.AttributeValue), topic)...)
		}
	case *awss3.PutBucketNotificationConfigurationInput:
		if in.NotificationConfiguration == nil {
			break
		}
		for _, q := range in.NotificationConfiguration.QueueConfigurations {
			all = append(all, writing{
				authorize.Need{Action: "sqs:SendMessage", Resource: aws.ToString(q.QueueArn)},
				"s3.amazonaws.com", "arn:aws:s3:::" + aws.ToString(in.Bucket),
			})
		}
		for _, t := range in.NotificationConfiguration.TopicConfigurations {
			all = append(all, toTopics([]string{aws.ToString(t.TopicArn)}, "s3", "arn:aws:s3:::"+aws.ToString(in.Bucket))...)
		}
	}
	return append(all, g.publications(in)...)
}

// publications returns what a call has services publish to topics on its caller's behalf.
func (g gate) publications(in any) (all []writing) {
	owner := g.plane.account()
	switch in := in.(type) {
	case *autoscaling.PutNotificationConfigurationInput:
		all = append(all, toTopics([]string{aws.ToString(in.TopicARN)}, "autoscaling", g.groupARN(in.AutoScalingGroupName))...)
	case *autoscaling.PutLifecycleHookInput:
		all = append(all, toTopics([]string{aws.ToString(in.NotificationTargetARN)}, "autoscaling", g.groupARN(in.AutoScalingGroupName))...)
	case *autoscaling.CreateAutoScalingGroupInput:
		for _, h := range in.LifecycleHookSpecificationList {
			all = append(all, toTopics([]string{aws.ToString(h.NotificationTargetARN)}, "autoscaling", g.groupARN(in.AutoScalingGroupName))...)
		}
	case *cloudwatch.PutMetricAlarmInput:
		actions := slices.Concat(in.AlarmActions, in.OKActions, in.InsufficientDataActions)
		all = append(all, toTopics(actions, "cloudwatch", owner.ARN("cloudwatch", "alarm:"+aws.ToString(in.AlarmName)))...)
	case *cloudwatch.PutCompositeAlarmInput:
		actions := slices.Concat(in.AlarmActions, in.OKActions, in.InsufficientDataActions)
		all = append(all, toTopics(actions, "cloudwatch", owner.ARN("cloudwatch", "alarm:"+aws.ToString(in.AlarmName)))...)
	case *cloudformation.CreateStackInput:
		all = append(all, toTopics(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	case *cloudformation.UpdateStackInput:
		all = append(all, toTopics(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	case *cloudformation.CreateChangeSetInput:
		all = append(all, toTopics(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	}
	return all
}

// groupARN returns the ARN of an Auto Scaling group, or what all those of the name match, if there is none yet.
func (g gate) groupARN(name *string) string {
	if group := g.plane.State.View().AutoScalingGroups.Get(aws.ToString(name)); group != nil {
		return *group.AutoScalingGroupARN
	}
	return g.plane.account().ARN("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+aws.ToString(name))
}

// toTopics returns that a service publishes to topics. Other destinations aren't looked at here.
func toTopics(destinations []string, service, source string) (all []writing) {
	for _, arn := range destinations {
		if strings.HasPrefix(arn, sns.ARNPrefix) {
			all = append(all, writing{authorize.Need{Action: "sns:Publish", Resource: arn}, service + ".amazonaws.com", source})
		}
	}
	return all
}

// stackARN returns what the ARNs match of all stacks with the name that a call has, or with that in the ARN that it has.
func (g gate) stackARN(nameOrID *string) string {
	name := aws.ToString(nameOrID)
	if _, rest, isARN := strings.Cut(name, ":stack/"); isARN {
		name, _, _ = strings.Cut(rest, "/")
	}
	return g.plane.account().ARN("cloudformation", "stack/"+name+"/*")
}

// toQueue returns that a topic sends its messages to a queue.
func toQueue(queue, topic string) writing {
	return writing{authorize.Need{Action: "sqs:SendMessage", Resource: queue}, "sns.amazonaws.com", topic}
}

// toDeadLetters returns that a topic sends what it can't deliver to the queue of a redrive policy. One that can't be read is refused later.
func toDeadLetters(policy, topic string) []writing {
	var redrive struct {
		Queue string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(policy), &redrive) != nil || redrive.Queue == "" {
		return nil
	}
	return []writing{toQueue(redrive.Queue, topic)}
}

// checkWritings refuses a call that has written what neither its caller may write, nor the service by the policy of the bucket or queue.
func (g gate) checkWritings(ctx context.Context, c call.Call, in any, who iam.Permissions, known policy.Context) error {
	for _, w := range g.writings(in) {
		d := g.decide(ctx, w.Need, who, known)
		if d.Effect == policy.Allowed || g.lets(ctx, w, known) {
			continue
		}
		return refusal.New("AccessDeniedException", "%s", authorize.Message(c.Service, c.Principal, w.Need, d))
	}
	return nil
}

// lets reports whether the policy of a bucket or a queue lets a service write.
func (g gate) lets(ctx context.Context, w writing, known policy.Context) bool {
	resource := g.resourcePolicy(ctx, w.Resource)
	if resource == nil {
		return false
	}
	of := maps.Clone(known)
	of.Set("aws:SourceArn", w.source)
	of.Set("aws:SourceAccount", g.plane.options.Account)
	of.Set("aws:SourceOwner", g.plane.options.Account) // topics' default policies ask for it
	return policy.Evaluate(policy.Request{
		Principal: policy.Principal{Service: w.service},
		Action:    w.Action,
		Resource:  w.Resource,
		Context:   of,
	}, policy.Policies{Resource: resource}).Effect == policy.Allowed
}
