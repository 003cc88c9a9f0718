package plane

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventstypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const functionARN = "arn:aws:lambda:us-east-1:000000000000:function:f"

// invoked waits for an asynchronous invocation, and returns its event.
func invoked(t *testing.T, p *Plane) (event map[string]any) {
	t.Helper()
	for {
		v := p.State.Watch()
		for i := range v.Invocations.All() {
			if err := json.Unmarshal(i.Payload, &event); err != nil {
				t.Fatalf("%s: %v", i.Payload, err)
			}
			statetest.Update(t, p.State, func(tx *state.Tx) { tx.Invocations.Delete(i.ID) })
			return event
		}
		if err := v.Changed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// at returns what lies in an event at a path, or fails.
func at(t *testing.T, event any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		if list, is := event.([]any); is && len(list) == 1 {
			event = list[0]
		}
		m, _ := event.(map[string]any) //nolint:errcheck // then there's nothing in it
		event = m[name]
	}
	if event == nil {
		t.Errorf("there's no %s in the event", path)
	}
	return event
}

func want(t *testing.T, event any, members map[string]any) {
	t.Helper()
	for path, want := range members {
		if got := at(t, event, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func do[Out any](out Out, err error) func(*testing.T) Out {
	return func(t *testing.T) Out {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// TestEventsOfFunctions: each service's events reach functions in AWS's form.
func TestEventsOfFunctions(t *testing.T) {
	p := serve(t, Options{})
	putFunction(t, p, "f")
	ctx, f, x := t.Context(), aws.String(functionARN), aws.String("x")
	for name, see := range map[string]func(t *testing.T){
		"EventBridge": func(t *testing.T) {
			do(p.Events.PutRule(ctx, &eventbridge.PutRuleInput{Name: x, EventPattern: aws.String(`{"source": ["mine"]}`)}))(t)
			do(p.Events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: x, Targets: []eventstypes.Target{{Id: x, Arn: f}}}))(t)
			do(p.Events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventstypes.PutEventsRequestEntry{
				{Source: aws.String("mine"), DetailType: aws.String("a thing"), Detail: aws.String(`{"n": "1"}`)},
			}}))(t)
			want(t, invoked(t, p), map[string]any{"source": "mine", "detail-type": "a thing", "detail.n": "1", "account": "000000000000"})
		},
		"S3 by EventBridge": func(t *testing.T) {
			do(p.S3.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("told")}))(t)
			do(p.S3.PutBucketNotificationConfiguration(ctx, &awss3.PutBucketNotificationConfigurationInput{
				Bucket:                    aws.String("told"),
				NotificationConfiguration: &s3types.NotificationConfiguration{EventBridgeConfiguration: &s3types.EventBridgeConfiguration{}},
			}))(t)
			rule := aws.String("objects")
			do(p.Events.PutRule(ctx, &eventbridge.PutRuleInput{Name: rule, EventPattern: aws.String(`{"source": ["aws.s3"]}`)}))(t)
			do(p.Events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: rule, Targets: []eventstypes.Target{{Id: x, Arn: f}}}))(t)
			do(p.S3.PutObject(ctx, &awss3.PutObjectInput{Bucket: aws.String("told"), Key: aws.String("a b"), Body: strings.NewReader("hello")}))(t)
			want(t, invoked(t, p), map[string]any{"detail-type": "Object Created", "detail.object.key": "a b", "detail.reason": "PutObject"})
		},
		"SNS": func(t *testing.T) {
			topic := do(p.SNS.CreateTopic(ctx, &sns.CreateTopicInput{Name: x}))(t).TopicArn
			do(p.SNS.Subscribe(ctx, &sns.SubscribeInput{TopicArn: topic, Protocol: aws.String("lambda"), Endpoint: f}))(t)
			do(p.SNS.Publish(ctx, &sns.PublishInput{TopicArn: topic, Message: aws.String("hello")}))(t)
			want(t, invoked(t, p), map[string]any{
				"Records.EventSource": "aws:sns", "Records.EventVersion": "1.0", "Records.Sns.Message": "hello", "Records.Sns.TopicArn": *topic,
				"Records.Sns.Type": "Notification",
			})
		},
		"S3": func(t *testing.T) {
			do(p.S3.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("bucket")}))(t)
			do(p.S3.PutBucketNotificationConfiguration(ctx, &awss3.PutBucketNotificationConfigurationInput{
				Bucket: aws.String("bucket"), NotificationConfiguration: &s3types.NotificationConfiguration{
					LambdaFunctionConfigurations: []s3types.LambdaFunctionConfiguration{{
						LambdaFunctionArn: f, Events: []s3types.Event{"s3:ObjectCreated:*"},
					}},
				},
			}))(t)
			do(p.S3.PutObject(ctx, &awss3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key"), Body: strings.NewReader("x")}))(t)
			want(t, invoked(t, p), map[string]any{
				"Records.eventSource": "aws:s3", "Records.eventName": "ObjectCreated:Put", "Records.s3.bucket.name": "bucket",
				"Records.s3.object.key": "key", "Records.s3.object.size": 1.0,
			})
		},
		"Logs": func(t *testing.T) {
			do(p.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: x}))(t)
			do(p.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: x, LogStreamName: x}))(t)
			do(p.Logs.PutSubscriptionFilter(ctx, &cloudwatchlogs.PutSubscriptionFilterInput{
				LogGroupName: x, FilterName: x, FilterPattern: aws.String(""), DestinationArn: f,
			}))(t)
			do(p.Logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: x, LogStreamName: x, LogEvents: []logstypes.InputLogEvent{
				{Message: aws.String("hello"), Timestamp: aws.Int64(time.Now().UnixMilli())},
			}}))(t)
			data, _ := at(t, invoked(t, p), "awslogs.data").(string) //nolint:errcheck // then it's no Base64 of gzip
			b := do(base64.StdEncoding.DecodeString(data))(t)
			z := do(gzip.NewReader(bytes.NewReader(b)))(t)
			var told map[string]any
			if err := json.Unmarshal(do(io.ReadAll(z))(t), &told); err != nil {
				t.Fatal(err)
			}
			want(t, told, map[string]any{"messageType": "DATA_MESSAGE", "logGroup": "x", "logEvents.message": "hello"})
		},
		"alarms": func(t *testing.T) {
			do(p.CloudWatch.PutMetricAlarm(ctx, &awscloudwatch.PutMetricAlarmInput{
				AlarmName: x, Namespace: x, MetricName: x, Statistic: "Average", Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
				Threshold: aws.Float64(1), ComparisonOperator: "GreaterThanThreshold", AlarmActions: []string{*f},
			}))(t)
			do(p.CloudWatch.SetAlarmState(ctx, &awscloudwatch.SetAlarmStateInput{
				AlarmName: x, StateValue: cloudwatchtypes.StateValueAlarm, StateReason: aws.String("as asked"),
			}))(t)
			want(t, invoked(t, p), map[string]any{
				"source": "aws.cloudwatch", "alarmArn": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:x", "accountId": "000000000000",
				"region": "us-east-1", "alarmData.alarmName": "x", "alarmData.state.value": "ALARM", "alarmData.state.reason": "as asked",
				"alarmData.previousState.value": "INSUFFICIENT_DATA", "alarmData.configuration.metrics.metricStat.metric.name": "x",
			})
		},
	} {
		t.Run(name, see)
	}
}

// TestFunctionsRolesTrustLambda: whom IAM has a role of that doesn't, is told so in AWS's words.
func TestFunctionsRolesTrustLambda(t *testing.T) {
	p := serve(t, Options{})
	for _, service := range []string{"ecs-tasks", "lambda"} {
		do(p.IAM.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &service, AssumeRolePolicyDocument: aws.String(
			`{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "` + service + `.amazonaws.com"}}}`,
		)}))(t)
	}
	putFunction(t, p, "f")
	change := func(role string) error {
		_, err := p.Lambda.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
			FunctionName: aws.String("f"), Role: aws.String(roleARNs + role),
		})
		return err
	}
	refused(t, "a role of tasks", change("ecs-tasks"), "InvalidParameterValueException", "The role defined for the function cannot be assumed by Lambda.")
	if err := change("lambda"); err != nil {
		t.Error(err)
	}
}
