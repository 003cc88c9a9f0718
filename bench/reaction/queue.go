package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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

// steps are the steps on the way from an object to its container.
var steps = []string{"notification", "metric", "alarm", "policy", "launch", "register", "daemon task", "RUNNING"}

// printQueue prints how long after the object was put each step was done.
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

// clients are the clients that set up a queue-driven fleet.
type clients struct {
	s3      *s3.Client
	sqs     *sqs.Client
	metrics *cloudwatch.Client
	groups  *autoscaling.Client
	ec2     *ec2.Client
	ecs     *ecs.Client
	url     string // the queue's
}

// measureQueue puts an object on an empty fleet and returns when each step was done.
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
		s3:      s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }),
		sqs:     sqs.NewFromConfig(config),
		metrics: cloudwatch.NewFromConfig(config),
		groups:  autoscaling.NewFromConfig(config),
		ec2:     ec2.NewFromConfig(config),
		ecs:     ecs.NewFromConfig(config),
	}
	period := map[string]int32{"fast": 10, "faithful": 60}[reaction]
	if err := errors.Join(c.makeQueue(ctx), c.makeService(ctx), c.makeFleet(ctx, period), c.awaitEmpty(ctx)); err != nil {
		return nil, err
	}
	// The object comes at a random moment of a period.
	time.Sleep(rand.N(time.Duration(period) * time.Second))
	began := time.Now()
	if _, err := c.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("images"),
		Key:    aws.String("cat.jpg"),
		Body:   strings.NewReader("meow"),
	}); err != nil {
		return nil, err
	}
	for _, done := range c.steps() {
		if err := await(ctx, done); err != nil {
			return nil, err
		}
		at = append(at, time.Since(began))
	}
	return at, nil
}

// awaitEmpty waits until the queue has been empty for a while, and removes the machines that S3's test message launched.
func (c *clients) awaitEmpty(ctx context.Context) error {
	if err := await(ctx, c.alarmIs(cloudwatchtypes.StateValueAlarm)); err != nil {
		return err
	}
	if _, err := c.groups.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String("workers"),
		DesiredCapacity:      aws.Int32(0),
	}); err != nil {
		return err
	}
	return await(ctx, func(ctx context.Context) (bool, error) {
		g, err := c.group(ctx)
		if err != nil || len(g.Instances) > 0 {
			return false, err
		}
		n, err := c.countInstances(ctx)
		return n == 0, err
	})
}

func (c *clients) makeQueue(ctx context.Context) error {
	for { // until pintle is up
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
	_, err := c.s3.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{
		Bucket: aws.String("images"),
		NotificationConfiguration: &s3types.NotificationConfiguration{
			QueueConfigurations: []s3types.QueueConfiguration{{
				QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:images"),
				Events:   []s3types.Event{"s3:ObjectCreated:*"},
			}},
		},
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // until S3 has tested the queue
	_, err = c.sqs.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &c.url})
	return err
}

func (c *clients) makeService(ctx context.Context) error {
	_, err := c.ecs.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("worker"),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name:                 aws.String("main"),
			Image:                aws.String("worker"),
			Memory:               aws.Int32(64),
			StopTimeout:          aws.Int32(2),
			Command:              []string{"sleep", "600"},
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
		}},
	})
	if err != nil {
		return err
	}
	_, err = c.ecs.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:        aws.String("worker"),
		TaskDefinition:     aws.String("worker"),
		SchedulingStrategy: types.SchedulingStrategyDaemon,
	})
	return err
}

func (c *clients) makeFleet(ctx context.Context, period int32) error {
	name := aws.String("workers")
	data := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\necho ECS_CLUSTER=default >> /etc/ecs/ecs.config\n"))
	_, err := c.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: name,
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId:      aws.String("ami-00000000000000000"),
			InstanceType: ec2types.InstanceTypeG4dnXlarge,
			UserData:     &data,
		},
	})
	if err != nil {
		return err
	}
	_, err = c.groups.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: name,
		MinSize:              aws.Int32(0),
		MaxSize:              aws.Int32(2),
		AvailabilityZones:    []string{"us-east-1a"},
		LaunchTemplate:       &autoscalingtypes.LaunchTemplateSpecification{LaunchTemplateName: name},
	})
	if err != nil {
		return err
	}
	policy, err := c.groups.PutScalingPolicy(ctx, &autoscaling.PutScalingPolicyInput{
		AutoScalingGroupName: name,
		PolicyName:           aws.String("messages"),
		PolicyType:           aws.String("StepScaling"),
		AdjustmentType:       aws.String("ExactCapacity"),
		StepAdjustments: []autoscalingtypes.StepAdjustment{
			{MetricIntervalUpperBound: aws.Float64(1), ScalingAdjustment: aws.Int32(0)},
			{MetricIntervalLowerBound: aws.Float64(1), ScalingAdjustment: aws.Int32(1)},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.metrics.PutMetricAlarm(ctx, &cloudwatch.PutMetricAlarmInput{
		AlarmName:          aws.String("empty"),
		Namespace:          aws.String("AWS/SQS"),
		MetricName:         aws.String("ApproximateNumberOfMessagesVisible"),
		Dimensions:         queueDimensions(),
		Statistic:          cloudwatchtypes.StatisticMaximum,
		Period:             &period,
		EvaluationPeriods:  aws.Int32(1),
		Threshold:          aws.Float64(0),
		ComparisonOperator: cloudwatchtypes.ComparisonOperatorLessThanOrEqualToThreshold,
		AlarmActions:       []string{*policy.PolicyARN},
		OKActions:          []string{*policy.PolicyARN},
	})
	return err
}

func queueDimensions() []cloudwatchtypes.Dimension {
	return []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String("images")}}
}

// steps returns functions that report whether each step is done.
func (c *clients) steps() []func(context.Context) (bool, error) {
	return []func(context.Context) (bool, error){
		c.notified, c.measured, c.alarmIs(cloudwatchtypes.StateValueOk),
		func(ctx context.Context) (bool, error) {
			g, err := c.group(ctx)
			return aws.ToInt32(g.DesiredCapacity) == 1, err
		},
		func(ctx context.Context) (bool, error) {
			g, err := c.group(ctx)
			return len(g.Instances) == 1 && g.Instances[0].LifecycleState == autoscalingtypes.LifecycleStateInService, err
		},
		func(ctx context.Context) (bool, error) { n, err := c.countInstances(ctx); return n == 1, err },
		func(ctx context.Context) (bool, error) {
			s, err := c.service(ctx)
			return s.PendingCount+s.RunningCount == 1, err
		},
		func(ctx context.Context) (bool, error) { s, err := c.service(ctx); return s.RunningCount == 1, err },
	}
}

func (c *clients) notified(ctx context.Context) (bool, error) {
	out, err := c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &c.url,
		AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages"},
	})
	return err == nil && out.Attributes["ApproximateNumberOfMessages"] == "1", err
}

func (c *clients) measured(ctx context.Context) (bool, error) {
	out, err := c.metrics.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace:  aws.String("AWS/SQS"),
		MetricName: aws.String("ApproximateNumberOfMessagesVisible"),
		Dimensions: queueDimensions(),
		Statistics: []cloudwatchtypes.Statistic{cloudwatchtypes.StatisticMaximum},
		Period:     aws.Int32(1),
		StartTime:  aws.Time(time.Now().Add(-5 * time.Second)),
		EndTime:    aws.Time(time.Now().Add(time.Second)),
	})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(out.Datapoints, func(d cloudwatchtypes.Datapoint) bool { return *d.Maximum > 0 }), nil
}

func (c *clients) alarmIs(state cloudwatchtypes.StateValue) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		out, err := c.metrics.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{})
		return err == nil && len(out.MetricAlarms) == 1 && out.MetricAlarms[0].StateValue == state, err
	}
}

func (c *clients) group(ctx context.Context) (g autoscalingtypes.AutoScalingGroup, err error) {
	out, err := c.groups.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	if err == nil && len(out.AutoScalingGroups) == 1 {
		g = out.AutoScalingGroups[0]
	}
	return g, err
}

// countInstances returns how many container instances there are.
func (c *clients) countInstances(ctx context.Context) (int, error) {
	out, err := c.ecs.ListContainerInstances(ctx, &ecs.ListContainerInstancesInput{})
	if err != nil {
		return 0, err
	}
	return len(out.ContainerInstanceArns), nil
}

func (c *clients) service(ctx context.Context) (s types.Service, err error) {
	out, err := c.ecs.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{"worker"}})
	if err == nil && len(out.Services) == 1 {
		s = out.Services[0]
	}
	return s, err
}

// await waits until done returns true.
func await(ctx context.Context, done func(context.Context) (bool, error)) error {
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
