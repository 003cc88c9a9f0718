package plane

import (
	"context"

	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awsecr "github.com/aws/aws-sdk-go-v2/service/ecr"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/secretsmanager"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/sqs"
)

// Services call each other through the signatures of the SDK's clients, so that each could be pointed at AWS itself. Here such
// a call is a plain method call, and its options are ignored.

type ecsClient struct{ service *ecs.Service }

func (p *Plane) ecs() ecsClient { return ecsClient{p.ECS} }

func (c ecsClient) DescribeServices(
	ctx context.Context, in *awsecs.DescribeServicesInput, _ ...func(*awsecs.Options),
) (*awsecs.DescribeServicesOutput, error) {
	return c.service.DescribeServices(ctx, in)
}

func (c ecsClient) UpdateService(
	ctx context.Context, in *awsecs.UpdateServiceInput, _ ...func(*awsecs.Options),
) (*awsecs.UpdateServiceOutput, error) {
	return c.service.UpdateService(ctx, in)
}

func (c ecsClient) UpdateContainerInstancesState(
	ctx context.Context, in *awsecs.UpdateContainerInstancesStateInput, _ ...func(*awsecs.Options),
) (*awsecs.UpdateContainerInstancesStateOutput, error) {
	return c.service.UpdateContainerInstancesState(ctx, in)
}

func (c ecsClient) DeregisterContainerInstance(
	ctx context.Context, in *awsecs.DeregisterContainerInstanceInput, _ ...func(*awsecs.Options),
) (*awsecs.DeregisterContainerInstanceOutput, error) {
	return c.service.DeregisterContainerInstance(ctx, in)
}

// parametersClient finds Parameter Store when it's called: EC2 is built before it, and Parameter Store calls EC2, too.
type parametersClient struct{ plane *Plane }

func (c parametersClient) GetParameter(
	ctx context.Context, in *awsssm.GetParameterInput, _ ...func(*awsssm.Options),
) (*awsssm.GetParameterOutput, error) {
	return c.plane.SSM.GetParameter(ctx, in)
}

// imagesClient finds ECR when it's called: Lambda is built before it.
type imagesClient struct{ plane *Plane }

func (c imagesClient) BatchGetImage(
	ctx context.Context, in *awsecr.BatchGetImageInput, _ ...func(*awsecr.Options),
) (*awsecr.BatchGetImageOutput, error) {
	return c.plane.ECR.BatchGetImage(ctx, in)
}

// functionsClient finds Lambda when it's called: SNS is built before it.
type functionsClient struct{ plane *Plane }

func (c functionsClient) Invoke(
	ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options),
) (*awslambda.InvokeOutput, error) {
	return c.plane.Lambda.Invoke(ctx, in)
}

type ec2Client struct{ service *ec2.Service }

func (p *Plane) ec2() ec2Client { return ec2Client{p.EC2} }

func (c ec2Client) DescribeImages(
	ctx context.Context, in *awsec2.DescribeImagesInput, _ ...func(*awsec2.Options),
) (*awsec2.DescribeImagesOutput, error) {
	return c.service.DescribeImages(ctx, in)
}

type cloudwatchClient struct{ service *cloudwatch.Service }

func (p *Plane) cloudwatch() cloudwatchClient { return cloudwatchClient{p.CloudWatch} }

func (c cloudwatchClient) DescribeAlarms(
	ctx context.Context, in *awscloudwatch.DescribeAlarmsInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.DescribeAlarmsOutput, error) {
	return c.service.DescribeAlarms(ctx, in)
}

func (c cloudwatchClient) GetMetricData(
	ctx context.Context, in *awscloudwatch.GetMetricDataInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.GetMetricDataOutput, error) {
	return c.service.GetMetricData(ctx, in)
}

func (c cloudwatchClient) PutMetricAlarm(
	ctx context.Context, in *awscloudwatch.PutMetricAlarmInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.PutMetricAlarmOutput, error) {
	return c.service.PutMetricAlarm(ctx, in)
}

func (c cloudwatchClient) DeleteAlarms(
	ctx context.Context, in *awscloudwatch.DeleteAlarmsInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.DeleteAlarmsOutput, error) {
	return c.service.DeleteAlarms(ctx, in)
}

func (c cloudwatchClient) PutMetricData(
	ctx context.Context, in *awscloudwatch.PutMetricDataInput, _ ...func(*awscloudwatch.Options),
) (*awscloudwatch.PutMetricDataOutput, error) {
	return c.service.PutMetricData(ctx, in)
}

type snsClient struct{ service *sns.Service }

func (p *Plane) sns() snsClient { return snsClient{p.SNS} }

func (c snsClient) Publish(
	ctx context.Context, in *awssns.PublishInput, _ ...func(*awssns.Options),
) (*awssns.PublishOutput, error) {
	return c.service.Publish(ctx, in)
}

type sqsClient struct{ service *sqs.Service }

func (p *Plane) sqs() sqsClient { return sqsClient{p.SQS} }

func (c sqsClient) SendMessage(
	ctx context.Context, in *awssqs.SendMessageInput, _ ...func(*awssqs.Options),
) (*awssqs.SendMessageOutput, error) {
	return c.service.SendMessage(ctx, in)
}

func (c sqsClient) GetQueueAttributes(
	ctx context.Context, in *awssqs.GetQueueAttributesInput, _ ...func(*awssqs.Options),
) (*awssqs.GetQueueAttributesOutput, error) {
	return c.service.GetQueueAttributes(ctx, in)
}

func (c sqsClient) ReceiveMessage(
	ctx context.Context, in *awssqs.ReceiveMessageInput, _ ...func(*awssqs.Options),
) (*awssqs.ReceiveMessageOutput, error) {
	return c.service.ReceiveMessage(ctx, in)
}

func (c sqsClient) DeleteMessageBatch(
	ctx context.Context, in *awssqs.DeleteMessageBatchInput, _ ...func(*awssqs.Options),
) (*awssqs.DeleteMessageBatchOutput, error) {
	return c.service.DeleteMessageBatch(ctx, in)
}

type secretsManagerClient struct{ service *secretsmanager.Service }

func (p *Plane) secretsManager() secretsManagerClient { return secretsManagerClient{p.SecretsManager} }

func (c secretsManagerClient) GetSecretValue(
	ctx context.Context, in *awssecretsmanager.GetSecretValueInput, _ ...func(*awssecretsmanager.Options),
) (*awssecretsmanager.GetSecretValueOutput, error) {
	return c.service.GetSecretValue(ctx, in)
}

type s3Client struct{ service *s3.Service }

func (p *Plane) s3() s3Client { return s3Client{p.S3} }

func (c s3Client) GetObject(
	ctx context.Context, in *awss3.GetObjectInput, _ ...func(*awss3.Options),
) (*awss3.GetObjectOutput, error) {
	return c.service.GetObject(ctx, in)
}

func (c s3Client) PutObject(
	ctx context.Context, in *awss3.PutObjectInput, _ ...func(*awss3.Options),
) (*awss3.PutObjectOutput, error) {
	return c.service.PutObject(ctx, in)
}

func (c ecsClient) RegisterTaskDefinition(ctx context.Context, in *awsecs.RegisterTaskDefinitionInput, _ ...func(*awsecs.Options)) (*awsecs.RegisterTaskDefinitionOutput, error) {
	return c.service.RegisterTaskDefinition(ctx, in)
}

func (c ecsClient) DeregisterTaskDefinition(ctx context.Context, in *awsecs.DeregisterTaskDefinitionInput, _ ...func(*awsecs.Options)) (*awsecs.DeregisterTaskDefinitionOutput, error) {
	return c.service.DeregisterTaskDefinition(ctx, in)
}

func (c ecsClient) RunTask(ctx context.Context, in *awsecs.RunTaskInput, _ ...func(*awsecs.Options)) (*awsecs.RunTaskOutput, error) {
	return c.service.RunTask(ctx, in)
}

func (c ecsClient) StopTask(ctx context.Context, in *awsecs.StopTaskInput, _ ...func(*awsecs.Options)) (*awsecs.StopTaskOutput, error) {
	return c.service.StopTask(ctx, in)
}

type logsClient struct{ service *logs.Service }

func (p *Plane) logs() logsClient { return logsClient{p.Logs} }

func (c logsClient) CreateLogGroup(
	ctx context.Context, in *cloudwatchlogs.CreateLogGroupInput, _ ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	return c.service.CreateLogGroup(ctx, in)
}

func (c logsClient) CreateLogStream(
	ctx context.Context, in *cloudwatchlogs.CreateLogStreamInput, _ ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	return c.service.CreateLogStream(ctx, in)
}

func (c logsClient) PutLogEvents(
	ctx context.Context, in *cloudwatchlogs.PutLogEventsInput, _ ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.PutLogEventsOutput, error) {
	return c.service.PutLogEvents(ctx, in)
}
