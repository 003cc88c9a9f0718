package resources

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// The settings of buckets as they are: each is read by a call of its own.

func readVersioning(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetBucketVersioningOutput](ctx, s.Services, &s3.GetBucketVersioningInput{Bucket: &name})
	if err == nil && out.Status != "" {
		live.VersioningConfiguration = &bucketVersioning{out.Status}
	}
	return err
}

func readEncryption(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetBucketEncryptionOutput](ctx, s.Services, &s3.GetBucketEncryptionInput{Bucket: &name})
	if err != nil {
		return err
	}
	live.BucketEncryption = &bucketEncryption{}
	for _, r := range out.ServerSideEncryptionConfiguration.Rules {
		rule := bucketEncryptionRule{r.BucketKeyEnabled, r.ApplyServerSideEncryptionByDefault}
		live.BucketEncryption.ServerSideEncryptionConfiguration = append(live.BucketEncryption.ServerSideEncryptionConfiguration, rule)
	}
	return nil
}

func readPublicAccess(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetPublicAccessBlockOutput](ctx, s.Services, &s3.GetPublicAccessBlockInput{Bucket: &name})
	if err == nil {
		live.PublicAccessBlockConfiguration = out.PublicAccessBlockConfiguration
	}
	return err
}

func readOwnership(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetBucketOwnershipControlsOutput](ctx, s.Services, &s3.GetBucketOwnershipControlsInput{Bucket: &name})
	if err == nil {
		live.OwnershipControls = out.OwnershipControls
	}
	return err
}

func readCORS(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetBucketCorsOutput](ctx, s.Services, &s3.GetBucketCorsInput{Bucket: &name})
	if err != nil {
		return err
	}
	live.CorsConfiguration = &bucketCORS{}
	for _, r := range out.CORSRules {
		live.CorsConfiguration.CorsRules = append(live.CorsConfiguration.CorsRules, bucketCORSRule{
			AllowedHeaders: r.AllowedHeaders,
			AllowedMethods: r.AllowedMethods,
			AllowedOrigins: r.AllowedOrigins,
			ExposedHeaders: r.ExposeHeaders,
			Id:             r.ID,
			MaxAge:         r.MaxAgeSeconds,
		})
	}
	return nil
}

func readBucketTags(ctx context.Context, s Step, name string, live *bucket) error {
	out, err := call.Do[s3.GetBucketTaggingOutput](ctx, s.Services, &s3.GetBucketTaggingInput{Bucket: &name})
	if err == nil {
		live.Tags = ownTags(out.TagSet, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	}
	return err
}

func readLifecycle(ctx context.Context, s Step, name string, live *bucket) error {
	in := &s3.GetBucketLifecycleConfigurationInput{Bucket: &name}
	out, err := call.Do[s3.GetBucketLifecycleConfigurationOutput](ctx, s.Services, in)
	if err != nil {
		return err
	}
	live.LifecycleConfiguration = &bucketLifecycle{TransitionDefaultMinimumObjectSize: out.TransitionDefaultMinimumObjectSize}
	for _, r := range out.Rules {
		live.LifecycleConfiguration.Rules = append(live.LifecycleConfiguration.Rules, ruleOf(r))
	}
	return nil
}

// ruleOf returns a rule of S3's as a template has it.
func ruleOf(r types.LifecycleRule) lifecycleRule {
	out := lifecycleRule{
		Id:                             r.ID,
		Status:                         r.Status,
		AbortIncompleteMultipartUpload: r.AbortIncompleteMultipartUpload,
		NoncurrentVersionExpiration:    r.NoncurrentVersionExpiration,
	}
	if n := r.NoncurrentVersionExpiration; n != nil && n.NewerNoncurrentVersions == nil {
		out.NoncurrentVersionExpirationInDays = n.NoncurrentDays // the older way to say it
	}
	if e := r.Expiration; e != nil {
		out.ExpirationDate, out.ExpirationInDays, out.ExpiredObjectDeleteMarker = written(e.Date), e.Days, e.ExpiredObjectDeleteMarker
	}
	out.narrow(r.Filter)
	for _, t := range r.Transitions {
		out.Transitions = append(out.Transitions, lifecycleTransition{t.StorageClass, written(t.Date), t.Days})
	}
	for _, t := range r.NoncurrentVersionTransitions {
		one := noncurrentTransition{t.StorageClass, t.NoncurrentDays, t.NewerNoncurrentVersions}
		out.NoncurrentVersionTransitions = append(out.NoncurrentVersionTransitions, one)
	}
	return out
}

// narrow is filter the other way round.
func (r *lifecycleRule) narrow(f *types.LifecycleRuleFilter) {
	switch {
	case f == nil:
	case f.And != nil:
		r.Prefix, r.TagFilters = f.And.Prefix, f.And.Tags
		r.ObjectSizeGreaterThan, r.ObjectSizeLessThan = f.And.ObjectSizeGreaterThan, f.And.ObjectSizeLessThan
	case f.Tag != nil:
		r.TagFilters = []types.Tag{*f.Tag}
	default:
		r.Prefix, r.ObjectSizeGreaterThan, r.ObjectSizeLessThan = f.Prefix, f.ObjectSizeGreaterThan, f.ObjectSizeLessThan
	}
}

// written returns a date as templates have it.
func written(date *time.Time) *string {
	if date == nil {
		return nil
	}
	return new(date.UTC().Format(time.RFC3339))
}
