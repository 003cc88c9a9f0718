package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// The settings of buckets, as CloudFormation's schema has them.

type bucketVersioning struct {
	Status types.BucketVersioningStatus `cfn:"required"`
}

type bucketEncryption struct {
	ServerSideEncryptionConfiguration []bucketEncryptionRule `cfn:"required"`
}

type bucketEncryptionRule struct {
	BucketKeyEnabled              *bool
	ServerSideEncryptionByDefault *types.ServerSideEncryptionByDefault
}

type bucketCORS struct {
	CorsRules []bucketCORSRule `cfn:"required"`
}

type bucketCORSRule struct {
	AllowedHeaders []string
	AllowedMethods []string `cfn:"required"`
	AllowedOrigins []string `cfn:"required"`
	ExposedHeaders []string
	Id             *string
	MaxAge         *int32
}

func setVersioning(ctx context.Context, s Step, name string, before, after *bucket) error {
	c := after.VersioningConfiguration
	if c == nil && before.VersioningConfiguration == nil {
		return nil
	}
	if c == nil {
		c = &bucketVersioning{types.BucketVersioningStatusSuspended} // a bucket that ever had versions goes on having them
	}
	in := &s3.PutBucketVersioningInput{Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: c.Status}}
	return did[s3.PutBucketVersioningOutput](ctx, s, in)
}

func setEncryption(ctx context.Context, s Step, name string, before, after *bucket) error {
	if after.BucketEncryption == nil {
		if before.BucketEncryption == nil {
			return nil
		}
		return did[s3.DeleteBucketEncryptionOutput](ctx, s, &s3.DeleteBucketEncryptionInput{Bucket: &name})
	}
	var rules []types.ServerSideEncryptionRule
	for _, r := range after.BucketEncryption.ServerSideEncryptionConfiguration {
		rules = append(rules, types.ServerSideEncryptionRule{
			ApplyServerSideEncryptionByDefault: r.ServerSideEncryptionByDefault,
			BucketKeyEnabled:                   r.BucketKeyEnabled,
		})
	}
	c := &types.ServerSideEncryptionConfiguration{Rules: rules}
	in := &s3.PutBucketEncryptionInput{Bucket: &name, ServerSideEncryptionConfiguration: c}
	return did[s3.PutBucketEncryptionOutput](ctx, s, in)
}

func setPublicAccess(ctx context.Context, s Step, name string, before, after *bucket) error {
	if after.PublicAccessBlockConfiguration != nil {
		in := &s3.PutPublicAccessBlockInput{Bucket: &name, PublicAccessBlockConfiguration: after.PublicAccessBlockConfiguration}
		return did[s3.PutPublicAccessBlockOutput](ctx, s, in)
	}
	if before.PublicAccessBlockConfiguration == nil {
		return nil
	}
	return did[s3.DeletePublicAccessBlockOutput](ctx, s, &s3.DeletePublicAccessBlockInput{Bucket: &name})
}

func setOwnership(ctx context.Context, s Step, name string, before, after *bucket) error {
	if after.OwnershipControls != nil {
		in := &s3.PutBucketOwnershipControlsInput{Bucket: &name, OwnershipControls: after.OwnershipControls}
		return did[s3.PutBucketOwnershipControlsOutput](ctx, s, in)
	}
	if before.OwnershipControls == nil {
		return nil
	}
	return did[s3.DeleteBucketOwnershipControlsOutput](ctx, s, &s3.DeleteBucketOwnershipControlsInput{Bucket: &name})
}

func setCORS(ctx context.Context, s Step, name string, before, after *bucket) error {
	if after.CorsConfiguration == nil {
		if before.CorsConfiguration == nil {
			return nil
		}
		return did[s3.DeleteBucketCorsOutput](ctx, s, &s3.DeleteBucketCorsInput{Bucket: &name})
	}
	c := &types.CORSConfiguration{}
	for _, r := range after.CorsConfiguration.CorsRules {
		c.CORSRules = append(c.CORSRules, types.CORSRule{
			AllowedHeaders: r.AllowedHeaders,
			AllowedMethods: r.AllowedMethods,
			AllowedOrigins: r.AllowedOrigins,
			ExposeHeaders:  r.ExposedHeaders,
			ID:             r.Id,
			MaxAgeSeconds:  r.MaxAge,
		})
	}
	return did[s3.PutBucketCorsOutput](ctx, s, &s3.PutBucketCorsInput{Bucket: &name, CORSConfiguration: c})
}

func setBucketTags(ctx context.Context, s Step, name string, before, after *bucket) error {
	if len(after.Tags) > 0 {
		tags := tagList(after.Tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
		in := &s3.PutBucketTaggingInput{Bucket: &name, Tagging: &types.Tagging{TagSet: tags}}
		return did[s3.PutBucketTaggingOutput](ctx, s, in)
	}
	if len(before.Tags) == 0 {
		return nil
	}
	return did[s3.DeleteBucketTaggingOutput](ctx, s, &s3.DeleteBucketTaggingInput{Bucket: &name})
}
