package wire

import (
	"github.com/pintle/pintle/internal/acm"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/cloudformation"
	"github.com/pintle/pintle/internal/cloudformation/cloudcontrol"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/efs"
	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/events"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/lambda"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/schedules"
	"github.com/pintle/pintle/internal/secretsmanager"
	"github.com/pintle/pintle/internal/servicediscovery"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/ssm"
)

// The services' APIs, under names that don't clash with the SDK's packages.
var (
	ECS                    = ecs.API
	Logs                   = logs.API
	CloudWatch             = cloudwatch.API
	EC2                    = ec2.API
	SQS                    = sqs.API
	ECR                    = ecr.API
	SecretsManager         = secretsmanager.API
	SSM                    = ssm.API
	IAM                    = iam.API
	STS                    = sts.API
	ApplicationAutoScaling = appautoscaling.API
	S3                     = s3.API
	AutoScaling            = autoscaling.API
	CloudFormation         = cloudformation.API
	CloudControl           = cloudcontrol.API
	ACM                    = acm.API
	EFS                    = efs.API
	ELB                    = elb.API
	Events                 = events.API
	Lambda                 = lambda.API
	Scheduler              = schedules.API
	ServiceDiscovery       = servicediscovery.API
	SNS                    = sns.API
)
