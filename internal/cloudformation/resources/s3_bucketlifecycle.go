package resources

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// bucketLifecycle are a bucket's lifecycle rules, as CloudFormation's schema has them.
type bucketLifecycle struct {
	Rules                              []lifecycleRule `cfn:"required"`
	TransitionDefaultMinimumObjectSize types.TransitionDefaultMinimumObjectSize
}

type lifecycleRule struct {
	Id                                *string
	Status                            types.ExpirationStatus `cfn:"required"`
	Prefix                            *string
	TagFilters                        []types.Tag
	ObjectSizeGreaterThan             *int64
	ObjectSizeLessThan                *int64
	AbortIncompleteMultipartUpload    *types.AbortIncompleteMultipartUpload
	ExpirationDate                    *string // ISO 8601, at midnight
	ExpirationInDays                  *int32
	ExpiredObjectDeleteMarker         *bool
	NoncurrentVersionExpiration       *types.NoncurrentVersionExpiration
	NoncurrentVersionExpirationInDays *int32
	Transitions                       []lifecycleTransition
	NoncurrentVersionTransitions      []noncurrentTransition
}

type lifecycleTransition struct {
	StorageClass     types.TransitionStorageClass `cfn:"required"`
	TransitionDate   *string                      // ISO 8601, at midnight
	TransitionInDays *int32
}

type noncurrentTransition struct {
	StorageClass            types.TransitionStorageClass `cfn:"required"`
	TransitionInDays        *int32                       `cfn:"required"`
	NewerNoncurrentVersions *int32
}

func setLifecycle(ctx context.Context, s Step, name string, before, after *bucket) error {
	c := after.LifecycleConfiguration
	if c == nil {
		if before.LifecycleConfiguration == nil {
			return nil
		}
		return did[s3.DeleteBucketLifecycleOutput](ctx, s, &s3.DeleteBucketLifecycleInput{Bucket: &name})
	}
	in := &s3.PutBucketLifecycleConfigurationInput{
		Bucket:                             &name,
		LifecycleConfiguration:             &types.BucketLifecycleConfiguration{},
		TransitionDefaultMinimumObjectSize: c.TransitionDefaultMinimumObjectSize,
	}
	for _, r := range c.Rules {
		rule, err := r.rule()
		if err != nil {
			return err
		}
		in.LifecycleConfiguration.Rules = append(in.LifecycleConfiguration.Rules, rule)
	}
	return did[s3.PutBucketLifecycleConfigurationOutput](ctx, s, in)
}

// rule returns a rule as S3 has it.
func (r lifecycleRule) rule() (types.LifecycleRule, error) {
	out := types.LifecycleRule{
		ID:                             r.Id,
		Status:                         r.Status,
		AbortIncompleteMultipartUpload: r.AbortIncompleteMultipartUpload,
		Filter:                         r.filter(),
		NoncurrentVersionExpiration:    r.NoncurrentVersionExpiration,
	}
	if r.NoncurrentVersionExpirationInDays != nil {
		out.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: r.NoncurrentVersionExpirationInDays}
	}
	if r.ExpirationDate != nil || r.ExpirationInDays != nil || r.ExpiredObjectDeleteMarker != nil {
		date, err := midnight(r.ExpirationDate)
		if err != nil {
			return out, err
		}
		out.Expiration = &types.LifecycleExpiration{Date: date, Days: r.ExpirationInDays, ExpiredObjectDeleteMarker: r.ExpiredObjectDeleteMarker}
	}
	for _, t := range r.Transitions {
		date, err := midnight(t.TransitionDate)
		if err != nil {
			return out, err
		}
		out.Transitions = append(out.Transitions, types.Transition{Date: date, Days: t.TransitionInDays, StorageClass: t.StorageClass})
	}
	for _, t := range r.NoncurrentVersionTransitions {
		out.NoncurrentVersionTransitions = append(out.NoncurrentVersionTransitions, types.NoncurrentVersionTransition{
			NewerNoncurrentVersions: t.NewerNoncurrentVersions,
			NoncurrentDays:          t.TransitionInDays,
			StorageClass:            t.StorageClass,
		})
	}
	return out, nil
}

// filter returns which objects a rule is for: all conditions must hold, and more than one are joined by And.
func (r lifecycleRule) filter() *types.LifecycleRuleFilter {
	conditions := len(r.TagFilters)
	for _, set := range []bool{r.Prefix != nil, r.ObjectSizeGreaterThan != nil, r.ObjectSizeLessThan != nil} {
		if set {
			conditions++
		}
	}
	switch {
	case conditions > 1:
		return &types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{
			ObjectSizeGreaterThan: r.ObjectSizeGreaterThan,
			ObjectSizeLessThan:    r.ObjectSizeLessThan,
			Prefix:                r.Prefix,
			Tags:                  r.TagFilters,
		}}
	case len(r.TagFilters) == 1:
		return &types.LifecycleRuleFilter{Tag: &r.TagFilters[0]}
	case r.ObjectSizeGreaterThan != nil || r.ObjectSizeLessThan != nil:
		return &types.LifecycleRuleFilter{ObjectSizeGreaterThan: r.ObjectSizeGreaterThan, ObjectSizeLessThan: r.ObjectSizeLessThan}
	}
	return &types.LifecycleRuleFilter{Prefix: aws.String(aws.ToString(r.Prefix))}
}

// midnight reads a date.
func midnight(date *string) (*time.Time, error) {
	if date == nil {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, *date); err == nil {
			return &t, nil
		}
	}
	return nil, template.Errorf("The date %s is not in ISO 8601 format", *date)
}
