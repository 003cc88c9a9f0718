package plane

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
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

// resourcePolicy returns the policy of a bucket, a queue, a topic, an event bus, a secret or a repository with an ARN, or nil if it has none.
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
	service, resource, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:"), ":")
	switch service {
	case "s3":
		bucket, _, _ := strings.Cut(strings.TrimLeft(resource, ":"), "/")
		out, err := g.plane.S3.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: &bucket})
		if err != nil {
			return withoutPolicy(err)
		}
		return aws.ToString(out.Policy)
	case "sqs":
		out, err := g.plane.SQS.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl:       aws.String(resource[strings.LastIndexByte(resource, ':')+1:]),
			AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy},
		})
		if err != nil {
			return withoutPolicy(err)
		}
		return out.Attributes["Policy"]
	case "sns":
		out, err := g.plane.SNS.GetTopicAttributes(ctx, &awssns.GetTopicAttributesInput{TopicArn: &arn})
		if err != nil {
			return withoutPolicy(err)
		}
		return out.Attributes["Policy"]
	case "events":
		_, bus, isBus := strings.Cut(resource, ":event-bus/")
		if !isBus {
			return ""
		}
		out, err := g.plane.Events.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &bus})
		if err != nil {
			return withoutPolicy(err)
		}
		return aws.ToString(out.Policy)
	case "secretsmanager":
		out, err := g.plane.SecretsManager.GetResourcePolicy(ctx, &secretsmanager.GetResourcePolicyInput{SecretId: &arn})
		if err != nil {
			return withoutPolicy(err)
		}
		return aws.ToString(out.ResourcePolicy)
	case "ecr":
		_, name, _ := strings.Cut(resource, ":repository/")
		out, err := g.plane.ECR.GetRepositoryPolicy(ctx, &ecr.GetRepositoryPolicyInput{RepositoryName: &name})
		if err != nil {
			return withoutPolicy(err)
		}
		return aws.ToString(out.PolicyText)
	}
	return ""
}

// withoutPolicy returns what stands for a policy that couldn't be had. A service's refusal says that there is none.
func withoutPolicy(err error) string {
	if _, refused := errors.AsType[smithy.APIError](err); refused {
		return ""
	}
	return nobody
}
