package plane

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventstypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
)

// TestForeignARNs: what names a resource of another account or region is refused wherever something is to be sent there: it never means the local
// resource of that name.
func TestForeignARNs(t *testing.T) {
	p := serve(t, Options{})
	putFunction(t, p, "f")
	ctx, x := t.Context(), aws.String("x")
	topic := do(p.SNS.CreateTopic(ctx, &awssns.CreateTopicInput{Name: x}))(t).TopicArn
	do(p.Events.PutRule(ctx, &eventbridge.PutRuleInput{Name: x, EventPattern: aws.String(`{"source": ["mine"]}`)}))(t)
	do(p.S3.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("bucket")}))(t)
	do(p.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: x}))(t)
	const queue, role = "arn:aws:sqs:us-east-1:000000000000:x", "arn:aws:iam::000000000000:role/x"
	rule := func(target eventstypes.Target) error {
		target.Id = x
		_, err := p.Events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: x, Targets: []eventstypes.Target{target}})
		return err
	}
	schedule := func(target schedulertypes.Target) error {
		target.RoleArn = aws.String(role)
		_, err := p.Schedules.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
			Name: x, ScheduleExpression: aws.String("rate(1 day)"), Target: &target,
			FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		})
		return err
	}
	notify := func(c s3types.NotificationConfiguration) error {
		_, err := p.S3.PutBucketNotificationConfiguration(ctx, &awss3.PutBucketNotificationConfigurationInput{
			Bucket: aws.String("bucket"), NotificationConfiguration: &c, SkipDestinationValidation: aws.Bool(true),
		})
		return err
	}
	created := []s3types.Event{"s3:ObjectCreated:*"}
	for name, put := range map[string]struct {
		arn string
		put func(arn *string) error
	}{
		"a rule's queue":     {queue, func(arn *string) error { return rule(eventstypes.Target{Arn: arn}) }},
		"a rule's topic":     {*topic, func(arn *string) error { return rule(eventstypes.Target{Arn: arn}) }},
		"a rule's bus":       {"arn:aws:events:us-east-1:000000000000:event-bus/x", func(arn *string) error { return rule(eventstypes.Target{Arn: arn}) }},
		"a rule's function":  {functionARN, func(arn *string) error { return rule(eventstypes.Target{Arn: arn}) }},
		"a rule's log group": {"arn:aws:logs:us-east-1:000000000000:log-group:x", func(arn *string) error { return rule(eventstypes.Target{Arn: arn}) }},
		"a rule's cluster": {"arn:aws:ecs:us-east-1:000000000000:cluster/x", func(arn *string) error {
			return rule(eventstypes.Target{Arn: arn, RoleArn: aws.String(role), EcsParameters: &eventstypes.EcsParameters{TaskDefinitionArn: x}})
		}},
		"a rule's dead letters": {queue, func(arn *string) error {
			return rule(eventstypes.Target{Arn: aws.String(queue), DeadLetterConfig: &eventstypes.DeadLetterConfig{Arn: arn}})
		}},
		"a schedule's queue":    {queue, func(arn *string) error { return schedule(schedulertypes.Target{Arn: arn}) }},
		"a schedule's function": {functionARN, func(arn *string) error { return schedule(schedulertypes.Target{Arn: arn}) }},
		"a schedule's dead letters": {queue, func(arn *string) error {
			return schedule(schedulertypes.Target{Arn: aws.String(queue), DeadLetterConfig: &schedulertypes.DeadLetterConfig{Arn: arn}})
		}},
		"a subscription's queue": {queue, func(arn *string) error {
			_, err := p.SNS.Subscribe(ctx, &awssns.SubscribeInput{TopicArn: topic, Protocol: aws.String("sqs"), Endpoint: arn})
			return err
		}},
		"a subscription's function": {functionARN, func(arn *string) error {
			_, err := p.SNS.Subscribe(ctx, &awssns.SubscribeInput{TopicArn: topic, Protocol: aws.String("lambda"), Endpoint: arn})
			return err
		}},
		"a subscription's dead letters": {queue, func(arn *string) error {
			_, err := p.SNS.Subscribe(ctx, &awssns.SubscribeInput{TopicArn: topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queue),
				Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn": "` + *arn + `"}`}})
			return err
		}},
		"a bucket's queue": {queue, func(arn *string) error {
			return notify(s3types.NotificationConfiguration{QueueConfigurations: []s3types.QueueConfiguration{{Events: created, QueueArn: arn}}})
		}},
		"a bucket's topic": {*topic, func(arn *string) error {
			return notify(s3types.NotificationConfiguration{TopicConfigurations: []s3types.TopicConfiguration{{Events: created, TopicArn: arn}}})
		}},
		"a bucket's function": {functionARN, func(arn *string) error {
			return notify(s3types.NotificationConfiguration{
				LambdaFunctionConfigurations: []s3types.LambdaFunctionConfiguration{{Events: created, LambdaFunctionArn: arn}},
			})
		}},
		"a function's destination": {queue, func(arn *string) error {
			_, err := p.Lambda.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{
				FunctionName: aws.String("f"), DestinationConfig: &lambdatypes.DestinationConfig{OnSuccess: &lambdatypes.OnSuccess{Destination: arn}},
			})
			return err
		}},
		"a function's dead letters": {*topic, func(arn *string) error {
			_, err := p.Lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
				FunctionName: aws.String("f"), DeadLetterConfig: &lambdatypes.DeadLetterConfig{TargetArn: arn},
			})
			return err
		}},
		"a group's subscription filter": {functionARN, func(arn *string) error {
			_, err := p.Logs.PutSubscriptionFilter(ctx, &cloudwatchlogs.PutSubscriptionFilterInput{
				LogGroupName: x, FilterName: x, FilterPattern: aws.String(""), DestinationArn: arn,
			})
			return err
		}},
	} {
		for _, other := range []string{strings.Replace(put.arn, "us-east-1", "eu-west-1", 1), strings.Replace(put.arn, "000000000000", "111111111111", 1)} {
			if err := put.put(&other); err == nil {
				t.Errorf("%s may be %s", name, other)
			}
		}
	}
}
