package plane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/wire/call"
)

// resourceTag ends the names of condition keys of a resource's tags, before the tag's key. Condition keys have no case.
const resourceTag = ":resourcetag/"

// ownTagKeys are the services that have a condition key of their own for tags, besides aws:ResourceTag:
// https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
var ownTagKeys = []string{"autoscaling", "ec2", "ecr", "ecs", "iam", "secretsmanager", "ssm"}

// asksForTags reports whether one of the policies asks for the tags of the resource. Few do, and for others nobody reads them.
func asksForTags(all policy.Policies) bool {
	return slices.ContainsFunc(append(slices.Concat(all.Identity, all.Session), all.Resource, all.Boundary), func(p *policy.Policy) bool {
		return p != nil && slices.ContainsFunc(p.Keys(), func(key string) bool { return strings.Contains(strings.ToLower(key), resourceTag) })
	})
}

// withTags returns what is known of a call together with the tags of the resource with an ARN. One that doesn't exist has no tags.
func (g gate) withTags(ctx context.Context, arn string, known policy.Context) (policy.Context, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return known, nil
	}
	service := parts[2]
	owner := call.Call{Service: service, Identity: call.Identity{Principal: g.plane.account().Root()}}
	listed, err := g.listTags(call.With(ctx, owner), service, parts[5], arn)
	if _, refused := errors.AsType[smithy.APIError](err); err != nil && !refused {
		return nil, err
	}
	known = maps.Clone(known)
	for key, value := range authorize.Tags(listed) {
		known.Set("aws"+resourceTag+key, value)
		if slices.Contains(ownTagKeys, service) {
			known.Set(service+resourceTag+key, value)
		}
	}
	return known, nil
}

// listTags asks the service of a resource for its tags, and returns the answer, or nil for a pattern. Policies see none of a bucket's tags,
// as on AWS where nobody has turned that on for the bucket.
func (g gate) listTags(ctx context.Context, service, resource, arn string) (any, error) {
	name := resource[strings.LastIndexAny(resource, ":/")+1:]
	if strings.ContainsAny(name, "*?") && service != "cloudformation" {
		return nil, nil
	}
	switch service {
	case "application-autoscaling":
		return g.plane.ApplicationAutoScaling.ListTagsForResource(ctx, &applicationautoscaling.ListTagsForResourceInput{ResourceARN: &arn})
	case "elasticfilesystem":
		return g.plane.EFS.ListTagsForResource(ctx, &efs.ListTagsForResourceInput{ResourceId: &name})
	case "autoscaling":
		if !strings.HasPrefix(resource, "autoScalingGroup:") {
			return nil, nil
		}
		return g.plane.AutoScaling.DescribeTags(ctx, &autoscaling.DescribeTagsInput{
			Filters:    []autoscalingtypes.Filter{{Name: aws.String("auto-scaling-group"), Values: []string{name}}},
			MaxRecords: aws.Int32(100),
		})
	case "cloudformation":
		return g.listTagsOfStack(ctx, resource)
	case "cloudwatch":
		return g.plane.CloudWatch.ListTagsForResource(ctx, &cloudwatch.ListTagsForResourceInput{ResourceARN: &arn})
	case "ec2":
		return g.plane.EC2.DescribeTags(ctx, &ec2.DescribeTagsInput{
			Filters: []ec2types.Filter{{Name: aws.String("resource-id"), Values: []string{name}}},
		})
	case "ecr":
		return g.plane.ECR.ListTagsForResource(ctx, &ecr.ListTagsForResourceInput{ResourceArn: &arn})
	case "ecs":
		return g.plane.ECS.ListTagsForResource(ctx, &awsecs.ListTagsForResourceInput{ResourceArn: &arn})
	case "events":
		return g.plane.Events.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &arn})
	case "scheduler":
		return g.plane.Schedules.ListTagsForResource(ctx, &scheduler.ListTagsForResourceInput{ResourceArn: &arn})
	case "iam":
		return g.listTagsInIAM(ctx, resource, name, arn)
	case "lambda":
		return g.listTagsInLambda(ctx, arn)
	case "logs":
		group, _, _ := strings.Cut(strings.TrimPrefix(resource, "log-group:"), ":")
		return g.plane.Logs.ListTagsLogGroup(ctx, &cloudwatchlogs.ListTagsLogGroupInput{LogGroupName: &group})
	case "secretsmanager":
		return g.plane.SecretsManager.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &arn})
	case "servicediscovery":
		return g.plane.CloudMap.ListTagsForResource(ctx, &servicediscovery.ListTagsForResourceInput{ResourceARN: &arn})
	case "sns":
		return g.plane.SNS.ListTagsForResource(ctx, &awssns.ListTagsForResourceInput{ResourceArn: &arn})
	case "sqs":
		return g.plane.SQS.ListQueueTags(ctx, &awssqs.ListQueueTagsInput{QueueUrl: &name})
	case "ssm":
		return g.plane.SSM.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{
			ResourceType: ssmtypes.ResourceTypeForTaggingParameter,
			ResourceId:   aws.String(strings.TrimPrefix(resource, "parameter")),
		})
	}
	return nil, nil
}

// listTagsOfStack asks for a stack with its tags.
func (g gate) listTagsOfStack(ctx context.Context, resource string) (any, error) {
	kind, stack, _ := strings.Cut(resource, "/")
	stack, _, _ = strings.Cut(stack, "/")
	if kind != "stack" || stack == "" {
		return nil, nil
	}
	return g.plane.CloudFormation.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
}

// listTagsInLambda asks Lambda for the tags of a function or an event source mapping. Layers have none.
func (g gate) listTagsInLambda(ctx context.Context, arn string) (any, error) {
	if strings.Contains(arn, ":layer:") {
		return nil, nil
	}
	return g.plane.Lambda.ListTags(ctx, &lambda.ListTagsInput{Resource: &arn})
}

// listTagsInIAM asks IAM for the tags of a user, a role, an instance profile or a policy.
func (g gate) listTagsInIAM(ctx context.Context, resource, name, arn string) (any, error) {
	kind, _, _ := strings.Cut(resource, "/")
	switch kind {
	case "instance-profile":
		return g.plane.IAM.ListInstanceProfileTags(ctx, &awsiam.ListInstanceProfileTagsInput{InstanceProfileName: &name})
	case "policy":
		return g.plane.IAM.ListPolicyTags(ctx, &awsiam.ListPolicyTagsInput{PolicyArn: &arn})
	case "role":
		return g.plane.IAM.ListRoleTags(ctx, &awsiam.ListRoleTagsInput{RoleName: &name})
	case "user":
		return g.plane.IAM.ListUserTags(ctx, &awsiam.ListUserTagsInput{UserName: &name})
	}
	return nil, nil
}
