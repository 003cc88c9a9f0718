package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/wire/call"
)

// bucketPolicy has the properties of AWS::S3::BucketPolicy. Its physical ID is the bucket's name.
type bucketPolicy struct {
	Bucket         *string `cfn:"required,create"`
	PolicyDocument any     `cfn:"required"`
}

var _ = add(&kind[*bucketPolicy]{
	name:       "AWS::S3::BucketPolicy",
	live:       liveBucketPolicy,
	identifier: []string{"Bucket"},
	id:         func(_ Step, p *bucketPolicy) string { return aws.ToString(p.Bucket) },
	create: func(ctx context.Context, s Step, p *bucketPolicy) (string, error) {
		return *p.Bucket, putBucketPolicy(ctx, s, p)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *bucketPolicy) error {
		return putBucketPolicy(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, bucket string, _ *bucketPolicy) error {
		return did[s3.DeleteBucketPolicyOutput](ctx, s, &s3.DeleteBucketPolicyInput{Bucket: &bucket})
	},
	read: func(ctx context.Context, s Step, bucket string, _ *bucketPolicy) (Made, error) {
		err := did[s3.GetBucketPolicyOutput](ctx, s, &s3.GetBucketPolicyInput{Bucket: &bucket})
		return Made{}, err
	},
})

func putBucketPolicy(ctx context.Context, s Step, p *bucketPolicy) error {
	in := &s3.PutBucketPolicyInput{Bucket: p.Bucket, Policy: document(p.PolicyDocument)}
	return did[s3.PutBucketPolicyOutput](ctx, s, in)
}

func liveBucketPolicy(ctx context.Context, s Step, name string, _ *bucketPolicy) (*bucketPolicy, error) {
	out, err := call.Do[s3.GetBucketPolicyOutput](ctx, s.Services, &s3.GetBucketPolicyInput{Bucket: &name})
	if err != nil {
		return nil, err
	}
	return &bucketPolicy{Bucket: &name, PolicyDocument: parsed(out.Policy)}, nil
}
