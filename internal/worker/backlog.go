package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Backlog publishes to CloudWatch how many messages there are for each running task of a service. Every task of the service publishes the
// same value, so the metric's average is right however many tasks there are.
type Backlog struct {
	SQS interface {
		GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	}
	ECS interface {
		DescribeServices(context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options)) (*ecs.DescribeServicesOutput, error)
	}
	CloudWatch interface {
		PutMetricData(
			context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options),
		) (*cloudwatch.PutMetricDataOutput, error)
	}
	Queue     string // its URL
	QueueName string // for the metric's dimension
	Cluster   string
	Service   string
	Interval  time.Duration
	Log       *slog.Logger
}

// The metric's namespace and name.
const (
	Namespace  = "Pintle/Worker"
	MetricName = "BacklogPerTask"
)

// Run publishes the metric at every interval until ctx ends.
func (b *Backlog) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := b.put(ctx); err != nil && ctx.Err() == nil {
			b.Log.Warn("cannot put the backlog per task", "error", err)
		}
		sleep(ctx, b.Interval)
	}
}

func (b *Backlog) put(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	waiting, err := b.waiting(ctx)
	if err != nil {
		return err
	}
	tasks, err := b.tasks(ctx)
	if err != nil {
		return err
	}
	dimension := func(name, value string) cwtypes.Dimension { return cwtypes.Dimension{Name: &name, Value: &value} }
	datum := cwtypes.MetricDatum{
		MetricName: aws.String(MetricName),
		Value:      aws.Float64(waiting / float64(max(1, tasks))),
		Unit:       cwtypes.StandardUnitCount,
		Dimensions: []cwtypes.Dimension{
			dimension("ClusterName", b.Cluster), dimension("ServiceName", b.Service), dimension("QueueName", b.QueueName),
		},
	}
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String(Namespace), MetricData: []cwtypes.MetricDatum{datum}}
	_, err = b.CloudWatch.PutMetricData(ctx, in)
	return err
}

// waiting returns how many messages are waiting.
func (b *Backlog) waiting(ctx context.Context) (float64, error) {
	out, err := b.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &b.Queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages},
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)], 64)
}

// tasks returns how many tasks the service has running.
func (b *Backlog) tasks(ctx context.Context) (int32, error) {
	out, err := b.ECS.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &b.Cluster, Services: []string{b.Service}})
	if err != nil {
		return 0, err
	}
	if len(out.Services) == 0 {
		return 0, fmt.Errorf("there is no service %s in cluster %s", b.Service, b.Cluster)
	}
	return out.Services[0].RunningCount, nil
}
