package plane

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/iam/policy"
)

// nobody is the policy of a resource whose own can't be read: it denies everything. The services that keep such policies check less of
// them than it takes to evaluate them.
const nobody = `{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}}`

// resourcePolicy returns the policy of a bucket, a queue, a topic, an event bus, a function, a secret or a repository with an ARN, or nil if it has none.
func (g gate) resourcePolicy(ctx context.Context, arn string) *policy.Policy {
	document := g.policyOf(ctx, arn)
	if document == "" {
		return nil
	}
	parsed, err := policy.Parse(policy.Resource, document)
	if err != nil {
		parsed, _ = policy.Parse(policy.Resource, nobody) // it parses
	}
	return parsed
}

// policyOf returns the policy's document, or "" if the resource has none or is none.
func (g gate) policyOf(ctx context.Context, arn string) string {
	document, err := g.askPolicy(ctx, arn)
	if err != nil {
		return withoutPolicy(err)
	}
	return aws.ToString(document)
}

// askPolicy asks the resource's service.
func (g gate) askPolicy(ctx context.Context, arn string) (*string, error) {
	service, resource, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:"), ":")
	_, name, _ := strings.Cut(resource, "/")
	switch service {
	case "s3":
		bucket, _, _ := strings.Cut(strings.TrimLeft(resource, ":"), "/")
		out, err := g.plane.S3.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: &bucket})
		return policyIn(out, err, func(o *awss3.GetBucketPolicyOutput) *string { return o.Policy })
	case "sqs":
		out, err := g.plane.SQS.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl:       aws.String(resource[strings.LastIndexByte(resource, ':')+1:]),
			AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy},
		})
		return policyIn(out, err, func(o *awssqs.GetQueueAttributesOutput) *string { return new(o.Attributes["Policy"]) })
	case "sns":
		out, err := g.plane.SNS.GetTopicAttributes(ctx, &awssns.GetTopicAttributesInput{TopicArn: &arn})
		return policyIn(out, err, func(o *awssns.GetTopicAttributesOutput) *string { return new(o.Attributes["Policy"]) })
	case "events":
		if !strings.Contains(resource, ":event-bus/") {
			return nil, nil
		}
		out, err := g.plane.Events.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &name})
		return policyIn(out, err, func(o *eventbridge.DescribeEventBusOutput) *string { return o.Policy })
	case "secretsmanager":
		out, err := g.plane.SecretsManager.GetResourcePolicy(ctx, &secretsmanager.GetResourcePolicyInput{SecretId: &arn})
		return policyIn(out, err, func(o *secretsmanager.GetResourcePolicyOutput) *string { return o.ResourcePolicy })
	case "lambda":
		_, function, isFunction := strings.Cut(resource, ":function:")
		if !isFunction {
			return nil, nil
		}
		out, err := g.plane.Lambda.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &function})
		return policyIn(out, err, func(o *lambda.GetPolicyOutput) *string { return o.Policy })
	case "ecr":
		out, err := g.plane.ECR.GetRepositoryPolicy(ctx, &ecr.GetRepositoryPolicyInput{RepositoryName: &name})
		return policyIn(out, err, func(o *ecr.GetRepositoryPolicyOutput) *string { return o.PolicyText })
	}
	return nil, nil
}

// policyIn takes the policy out of a service's answer.
func policyIn[T any](answer *T, err error, policy func(*T) *string) (*string, error) {
	if err != nil {
		return nil, err
	}
	return policy(answer), nil
}

// withoutPolicy returns what stands for a policy that couldn't be had. A service's refusal says that there is none.
func withoutPolicy(err error) string {
	if _, refused := errors.AsType[smithy.APIError](err); refused {
		return ""
	}
	return nobody
}
