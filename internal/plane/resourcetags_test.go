package plane

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	ecrtypes "github.com/aws/aws-sdk-go-v2/service/ecr/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

var team = aws.String("team")

// makeTagged makes a resource of each service with the tag team=a.
func makeTagged(t *testing.T, p *Plane) {
	t.Helper()
	value := aws.String("a")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := aws.String("x")
	must(p.ECS.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: name, Tags: []types.Tag{{Key: team, Value: value}}}))
	must(p.ECR.CreateRepository(t.Context(), &ecr.CreateRepositoryInput{RepositoryName: aws.String("xx"), Tags: []ecrtypes.Tag{{Key: team, Value: value}}}))
	must(p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: name, Tags: map[string]string{*team: *value}}))
	must(p.Logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: name, Tags: map[string]string{*team: *value}}))
	must(p.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: aws.String("/x/y"), Value: name, Type: ssmtypes.ParameterTypeString, Tags: []ssmtypes.Tag{{Key: team, Value: value}},
	}))
	secret := newSecret("x")
	secret.Tags = []secretstypes.Tag{{Key: team, Value: value}}
	must(p.SecretsManager.CreateSecret(t.Context(), secret))
	must(p.IAM.CreateUser(t.Context(), &iam.CreateUserInput{UserName: name, Tags: []iamtypes.Tag{{Key: team, Value: value}}}))
	must(p.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("xxx"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "p3.2xlarge", ImageId: aws.String("ami-00000000")},
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: []ec2types.Tag{{Key: team, Value: value}},
		}},
	}))
	must(p.AutoScaling.CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: name,
		MinSize:              aws.Int32(0),
		MaxSize:              aws.Int32(0),
		AvailabilityZones:    []string{"us-east-1a"},
		LaunchTemplate:       &autoscalingtypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("xxx")},
		Tags: []autoscalingtypes.Tag{{
			Key: team, Value: value, ResourceId: name, ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false),
		}},
	}))
	must(p.CloudWatch.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: name, Namespace: name, MetricName: name, Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1),
		ComparisonOperator: "GreaterThanThreshold", Statistic: "Sum", Tags: []cloudwatchtypes.Tag{{Key: team, Value: value}},
	}))
	must(p.CloudFormation.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName:    name,
		TemplateBody: aws.String(`{"Resources": {"W": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}`),
		Tags:         []cfntypes.Tag{{Key: team, Value: value}},
	}))
}

// callsOnTagged are calls on what makeTagged made, by service.
func callsOnTagged(t *testing.T, p *Plane, task aws.Config) map[string]func() error {
	return map[string]func() error{
		"autoscaling": func() error {
			_, err := autoscaling.NewFromConfig(task).SuspendProcesses(t.Context(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("x")})
			return err
		},
		"cloudformation": func() error {
			_, err := cloudformation.NewFromConfig(task).GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: aws.String("x")})
			return err
		},
		"cloudwatch": func() error {
			_, err := cloudwatch.NewFromConfig(task).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{"x"}})
			return err
		},
		"ec2": func() error {
			_, err := ec2.NewFromConfig(task).ModifyLaunchTemplate(t.Context(), &ec2.ModifyLaunchTemplateInput{
				LaunchTemplateName: aws.String("xxx"), DefaultVersion: aws.String("1"),
			})
			return err
		},
		"ecr": func() error {
			_, err := ecr.NewFromConfig(task).DescribeRepositories(t.Context(), &ecr.DescribeRepositoriesInput{RepositoryNames: []string{"xx"}})
			return err
		},
		"ecs": func() error {
			_, err := awsecs.NewFromConfig(task).DescribeClusters(t.Context(), &awsecs.DescribeClustersInput{Clusters: []string{"x"}})
			return err
		},
		"iam": func() error {
			_, err := iam.NewFromConfig(task).GetUser(t.Context(), &iam.GetUserInput{UserName: aws.String("x")})
			return err
		},
		"logs": func() error {
			_, err := cloudwatchlogs.NewFromConfig(task).DescribeLogStreams(t.Context(), &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: aws.String("x")})
			return err
		},
		"secretsmanager": func() error {
			_, err := secretsmanager.NewFromConfig(task).GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("x")})
			return err
		},
		"sqs": func() error {
			_, err := sqs.NewFromConfig(task).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(p.Endpoint() + "/000000000000/x")})
			return err
		},
		"ssm": func() error {
			_, err := ssm.NewFromConfig(task).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/x/y")})
			return err
		},
	}
}

// TestTagsOfResources: conditions hold on the tags of the resource that a call names, by AWS's key and by the service's own, and what doesn't
// exist has no tags.
func TestTagsOfResources(t *testing.T) {
	p := serveSigned(t)
	makeTagged(t, p)
	createRole(t, p, "tagged", `{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}`)
	task := asTask(t, p, "tagged")
	calls := callsOnTagged(t, p, task)
	allow := func(key, value string) {
		putPolicy(t, p, "tagged", `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"`+key+`": "`+value+`"}}}`)
	}
	for service, do := range calls {
		keys := []string{"aws:ResourceTag/team"}
		if own := service + ":ResourceTag/Team"; !strings.Contains("cloudformation cloudwatch logs sqs", service) {
			keys = append(keys, own)
		}
		for _, key := range keys {
			if allow(key, "a"); do() != nil {
				t.Errorf("%s with %s: %v", service, key, do())
			}
			if allow(key, "b"); do() == nil {
				t.Errorf("%s with another value of %s: allowed", service, key)
			}
		}
	}
	allow("aws:ResourceTag/team", "a")
	_, err := sqs.NewFromConfig(task).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("new")})
	if code(err) != "AccessDenied" {
		t.Errorf("what doesn't exist: %v", err)
	}
	putPolicy(t, p, "tagged", `{"Effect": "Allow", "Action": "*", "Resource": "*"},
		{"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/team": "a"}}}`)
	for service, do := range calls {
		if do() == nil {
			t.Errorf("%s isn't denied", service)
		}
	}
}
