package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// steps are what happens on the way from an object to its container.
var steps = []string{"notification", "metric", "alarm", "policy", "launch", "register", "daemon task", "RUNNING"}

// printQueue prints when each step was done, since the object was put.
func printQueue(binary, reaction string, rounds int) error {
	times := make([][]time.Duration, len(steps))
	for range rounds {
		at, err := measureQueue(binary, reaction)
		if err != nil {
			return err
		}
		for i, d := range at {
			times[i] = append(times[i], d)
		}
	}
	fmt.Printf("%-8s  from the first object on an empty fleet\n", reaction)
	for i, name := range steps {
		fmt.Printf("          %-12s  %s\n", name, spread(times[i]))
	}
	return nil
}

// clients are what a queue-driven fleet is made with.
type clients struct {
	s3      *s3.Client
	sqs     *sqs.Client
	metrics *cloudwatch.Client
	groups  *autoscaling.Client
	ec2     *ec2.Client
	ecs     *ecs.Client
	url     string // of the queue
}

const empty = "empty" // the alarm

// measureQueue puts an object on an empty fleet, and says when each step was done.
func measureQueue(binary, reaction string) (at []time.Duration, err error) {
	dir, err := os.MkdirTemp("", "pintle-reaction-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config, stop, err := up(binary, dir, "--reaction", reaction, "--fleet", "local")
	if err != nil {
		return nil, err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := &clients{
		s3: s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }), sqs: sqs.NewFromConfig(config), metrics: cloudwatch.NewFromConfig(config),
		groups: autoscaling.NewFromConfig(config), ec2: ec2.NewFromConfig(config), ecs: ecs.NewFromConfig(config),
	}
	period := map[string]int32{"fast": 10}[reaction]
	if period == 0 {
		period = 60
	}
	if err := errors.Join(c.makeQueue(ctx), c.makeService(ctx), c.makeFleet(ctx, period)); err != nil {
		return nil, err
	}
	// The queue has been empty for a while, and the object comes at any moment of a period.
	if err := c.await(ctx, func() (bool, error) {
		a, err := c.alarm(ctx)
		return err == nil && a.StateValue == cloudwatchtypes.StateValueAlarm, err
	}); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(rand.Int64N(int64(period))) * time.Second)
	began := time.Now()
	if _, err := c.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("images"), Key: aws.String("cat.jpg"), Body: strings.NewReader("meow")}); err != nil {
		return nil, err
	}
	moments, err := c.follow(ctx, began)
	for _, m := range moments {
		at = append(at, max(0, m.Sub(began)))
	}
	return at, err
}

func (c *clients) makeQueue(ctx context.Context) error {
	for { // until it is up
		out, err := c.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("images")})
		if err == nil {
			c.url = *out.QueueUrl
			break
		}
		if ctx.Err() != nil {
			return err
		}
	}
	if _, err := c.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("images")}); err != nil {
		return err
	}
	_, err := c.s3.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{Bucket: aws.String("images"), NotificationConfiguration: &s3types.NotificationConfiguration{
		QueueConfigurations: []s3types.QueueConfiguration{{QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:images"), Events: []s3types.Event{"s3:ObjectCreated:*"}}},
	}})
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // until S3 has tested it
	_, err = c.sqs.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &c.url})
	return err
}

func (c *clients) makeService(ctx context.Context) error {
	_, err := c.ecs.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{Family: aws.String("worker"), ContainerDefinitions: []types.ContainerDefinition{{
		Name: aws.String("main"), Image: aws.String("worker"), Memory: aws.Int32(64), StopTimeout: aws.Int32(2), Command: []string{"sleep", "600"},
		ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
	}}})
	if err != nil {
		return err
	}
	_, err = c.ecs.CreateService(ctx, &ecs.CreateServiceInput{ServiceName: aws.String("worker"), TaskDefinition: aws.String("worker"), SchedulingStrategy: types.SchedulingStrategyDaemon})
	return err
}

func (c *clients) makeFleet(ctx context.Context, period int32) error {
	name := aws.String("workers")
	data := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\necho ECS_CLUSTER=default >> /etc/ecs/ecs.config\n"))
	_, err := c.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String("ami-00000000000000000"), InstanceType: ec2types.InstanceTypeG4dnXlarge, UserData: &data,
	}})
	if err != nil {
		return err
	}
	_, err = c.groups.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: name, MinSize: aws.Int32(0), MaxSize: aws.Int32(2), AvailabilityZones: []string{"us-east-1a"},
		LaunchTemplate: &autoscalingtypes.LaunchTemplateSpecification{LaunchTemplateName: name},
	})
	if err != nil {
		return err
	}
	policy, err := c.groups.PutScalingPolicy(ctx, &autoscaling.PutScalingPolicyInput{
		AutoScalingGroupName: name, PolicyName: aws.String("messages"), PolicyType: aws.String("StepScaling"), AdjustmentType: aws.String("ExactCapacity"),
		StepAdjustments: []autoscalingtypes.StepAdjustment{
			{MetricIntervalUpperBound: aws.Float64(1), ScalingAdjustment: aws.Int32(0)}, {MetricIntervalLowerBound: aws.Float64(1), ScalingAdjustment: aws.Int32(1)},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.metrics.PutMetricAlarm(ctx, &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String(empty), Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateNumberOfMessagesVisible"), Dimensions: queueDimensions(),
		Statistic: cloudwatchtypes.StatisticMaximum, Period: &period, EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: cloudwatchtypes.ComparisonOperatorLessThanOrEqualToThreshold, AlarmActions: []string{*policy.PolicyARN}, OKActions: []string{*policy.PolicyARN},
	})
	return err
}

func queueDimensions() []cloudwatchtypes.Dimension {
	return []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String("images")}}
}

func (c *clients) alarm(ctx context.Context) (a cloudwatchtypes.MetricAlarm, err error) {
	out, err := c.metrics.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{empty}})
	if err != nil || len(out.MetricAlarms) == 0 {
		return a, errors.Join(err, errors.New("there is no alarm"))
	}
	return out.MetricAlarms[0], nil
}

// follow waits for one step after the other, and says when each was done: by the clock of who did it, where that is told.
func (c *clients) follow(ctx context.Context, began time.Time) (moments []time.Time, err error) {
	var task types.Task
	for _, look := range []func() (at time.Time, ok bool, err error){
		func() (time.Time, bool, error) {
			out, err := c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &c.url, AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages"}})
			return time.Now(), err == nil && out.Attributes["ApproximateNumberOfMessages"] == "1", err
		},
		func() (time.Time, bool, error) {
			out, err := c.metrics.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
				Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateNumberOfMessagesVisible"), Dimensions: queueDimensions(), Statistics: []cloudwatchtypes.Statistic{cloudwatchtypes.StatisticMaximum},
				Period: aws.Int32(1), StartTime: aws.Time(began.Add(-time.Second)), EndTime: aws.Time(began.Add(time.Minute)),
			})
			seen := err == nil && len(out.Datapoints) > 0
			for i := 0; seen && i < len(out.Datapoints); i++ {
				if *out.Datapoints[i].Maximum > 0 {
					return time.Now(), true, nil
				}
			}
			return time.Now(), false, err
		},
		func() (time.Time, bool, error) {
			a, err := c.alarm(ctx)
			return aws.ToTime(a.StateUpdatedTimestamp), a.StateValue == cloudwatchtypes.StateValueOk, err
		},
		func() (time.Time, bool, error) {
			return c.activity(ctx, func(a autoscalingtypes.Activity) *time.Time { return a.StartTime })
		},
		func() (time.Time, bool, error) {
			return c.activity(ctx, func(a autoscalingtypes.Activity) *time.Time { return a.EndTime })
		},
		func() (time.Time, bool, error) {
			list, err := c.ecs.ListContainerInstances(ctx, &ecs.ListContainerInstancesInput{})
			if err != nil || len(list.ContainerInstanceArns) == 0 {
				return time.Time{}, false, err
			}
			out, err := c.ecs.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{ContainerInstances: list.ContainerInstanceArns})
			if err != nil || len(out.ContainerInstances) == 0 {
				return time.Time{}, false, err
			}
			return aws.ToTime(out.ContainerInstances[0].RegisteredAt), true, nil
		},
		func() (time.Time, bool, error) {
			list, err := c.ecs.ListTasks(ctx, &ecs.ListTasksInput{})
			if err != nil || len(list.TaskArns) == 0 {
				return time.Time{}, false, err
			}
			out, err := c.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: list.TaskArns})
			if err != nil || len(out.Tasks) == 0 {
				return time.Time{}, false, err
			}
			task = out.Tasks[0]
			return aws.ToTime(task.CreatedAt), true, nil
		},
		func() (time.Time, bool, error) {
			out, err := c.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: []string{*task.TaskArn}})
			return time.Now(), err == nil && len(out.Tasks) == 1 && aws.ToString(out.Tasks[0].LastStatus) == "RUNNING", err
		},
	} {
		var at time.Time
		err := c.await(ctx, func() (ok bool, err error) { at, ok, err = look(); return ok, err })
		if err != nil {
			return nil, err
		}
		moments = append(moments, at)
	}
	return moments, nil
}

// activity is a time of the group's first launch, once that is told.
func (c *clients) activity(ctx context.Context, moment func(autoscalingtypes.Activity) *time.Time) (at time.Time, ok bool, err error) {
	out, err := c.groups.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{})
	if err != nil || len(out.Activities) == 0 || moment(out.Activities[0]) == nil {
		return at, false, err
	}
	return *moment(out.Activities[0]), true, nil
}

// await waits until something is so.
func (c *clients) await(ctx context.Context, ok func() (bool, error)) error {
	for {
		if is, err := ok(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
