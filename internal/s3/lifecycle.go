package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/s3/rules"
)

// Limits of lifecycle configurations; see "Lifecycle configuration elements" in S3's guide.
const (
	maxLifecycleRules = 1000
	maxRuleID         = 255
)

// lifecycleRules is a lifecycle configuration as stored.
type lifecycleRules struct {
	Rules       []types.LifecycleRule
	MinimumSize types.TransitionDefaultMinimumObjectSize
}

// PutBucketLifecycleConfiguration is S3's operation. Actions on storage classes have no effect, because there is only one
// class.
func (s *Service) PutBucketLifecycleConfiguration(
	ctx context.Context, in *s3.PutBucketLifecycleConfigurationInput,
) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	c := in.LifecycleConfiguration
	if c == nil || len(c.Rules) == 0 || len(c.Rules) > maxLifecycleRules {
		return nil, malformedXML("LifecycleConfiguration must have 1 to 1000 rules")
	}
	kept := lifecycleRules{c.Rules, in.TransitionDefaultMinimumObjectSize}
	switch kept.MinimumSize {
	case "":
		kept.MinimumSize = types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k
	case types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k, types.TransitionDefaultMinimumObjectSizeVariesByStorageClass:
	default:
		return nil, refuse(400, "InvalidRequest", "Invalid TransitionDefaultMinimumObjectSize found: %s", kept.MinimumSize)
	}
	seen := map[string]bool{}
	for i := range kept.Rules {
		r := &kept.Rules[i]
		if aws.ToString(r.ID) == "" {
			r.ID = aws.String(uuid.NewString())
		}
		if seen[*r.ID] {
			return nil, invalidArgument("ID", *r.ID, "Rule ID must be unique. Found same ID for more than one rule")
		}
		seen[*r.ID] = true
		if err := checkLifecycleRule(r); err != nil {
			return nil, err
		}
	}
	out := &s3.PutBucketLifecycleConfigurationOutput{TransitionDefaultMinimumObjectSize: kept.MinimumSize}
	return out, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, lifecycle, kept)
}

// checkLifecycleRule refuses a rule that does nothing or contradicts itself.
func checkLifecycleRule(r *types.LifecycleRule) error {
	switch {
	case len(*r.ID) > maxRuleID:
		return invalidArgument("ID", *r.ID, "ID length should not exceed allowed limit of %d", maxRuleID)
	case r.Status != types.ExpirationStatusEnabled && r.Status != types.ExpirationStatusDisabled:
		return malformedXML("a Rule's Status must be Enabled or Disabled")
	case r.Filter == nil && r.Prefix == nil: // Prefix is the old form of Filter
		return malformedXML("a Rule needs a Filter")
	case r.Filter != nil && r.Prefix != nil:
		return malformedXML("a Rule must not have both a Filter and a Prefix")
	case r.Filter != nil && countConditions(r.Filter) > 1:
		return malformedXML("a Filter must have at most one of Prefix, Tag, ObjectSizeGreaterThan, ObjectSizeLessThan and And")
	case r.Expiration == nil && r.AbortIncompleteMultipartUpload == nil && len(r.Transitions) == 0 &&
		r.NoncurrentVersionExpiration == nil && len(r.NoncurrentVersionTransitions) == 0:
		return refuse(400, "InvalidRequest", "At least one action needs to be specified in a rule")
	}
	for _, t := range r.Transitions {
		if !slices.Contains(t.StorageClass.Values(), t.StorageClass) {
			return malformedXML("a Transition's StorageClass must be one that there is")
		}
	}
	for _, t := range r.NoncurrentVersionTransitions {
		if !slices.Contains(t.StorageClass.Values(), t.StorageClass) {
			return malformedXML("a NoncurrentVersionTransition's StorageClass must be one that there is")
		}
	}
	tags := rules.Tags(r.Filter)
	if hasTwice(tags) {
		return refuse(400, "InvalidRequest", "Duplicate Tag Keys are not allowed.")
	}
	if err := checkTags(tags, maxObjectTags); err != nil {
		return err
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil {
		switch {
		case aws.ToInt32(a.DaysAfterInitiation) < 1:
			return invalidArgument(
				"DaysAfterInitiation", "", "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action must be a positive integer",
			)
		case filtersByMoreThanPrefix(r.Filter):
			return refuse(400, "InvalidRequest", "AbortIncompleteMultipartUpload cannot be specified with Tags or sizes of objects")
		}
	}
	if e := r.Expiration; e != nil && e.ExpiredObjectDeleteMarker != nil && len(rules.Tags(r.Filter)) > 0 {
		return refuse(400, "InvalidRequest", "ExpiredObjectDeleteMarker cannot be specified with Tags.")
	}
	if err := checkNoncurrent(r.NoncurrentVersionExpiration); err != nil {
		return err
	}
	return checkExpiration(r.Expiration)
}

// hasTwice reports whether two tags have the same key.
func hasTwice(tags []types.Tag) bool {
	seen := map[string]bool{}
	for _, t := range tags {
		key := aws.ToString(t.Key)
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// maxNewerVersions is the most non-current versions that a rule can keep.
const maxNewerVersions = 100

func checkNoncurrent(e *types.NoncurrentVersionExpiration) error {
	switch {
	case e == nil:
		return nil
	case e.NoncurrentDays == nil:
		return malformedXML("a NoncurrentVersionExpiration needs NoncurrentDays")
	case *e.NoncurrentDays < 1:
		return invalidArgument(
			"NoncurrentDays", "", "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer",
		)
	case e.NewerNoncurrentVersions != nil && (*e.NewerNoncurrentVersions < 1 || *e.NewerNoncurrentVersions > maxNewerVersions):
		return invalidArgument(
			"NewerNoncurrentVersions", "", "'NewerNoncurrentVersions' for NoncurrentVersionExpiration action must be between 1 and %d",
			maxNewerVersions,
		)
	}
	return nil
}

func countConditions(f *types.LifecycleRuleFilter) (n int) {
	for _, set := range []bool{f.Prefix != nil, f.Tag != nil, f.ObjectSizeGreaterThan != nil, f.ObjectSizeLessThan != nil, f.And != nil} {
		if set {
			n++
		}
	}
	return n
}

// filtersByMoreThanPrefix reports whether a filter asks for more than a prefix.
func filtersByMoreThanPrefix(f *types.LifecycleRuleFilter) bool {
	return f != nil && (f.Tag != nil || f.And != nil || f.ObjectSizeGreaterThan != nil || f.ObjectSizeLessThan != nil)
}

func checkExpiration(e *types.LifecycleExpiration) error {
	if e == nil {
		return nil
	}
	n := 0
	for _, set := range []bool{e.Days != nil, e.Date != nil, e.ExpiredObjectDeleteMarker != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return malformedXML("an Expiration needs one of Days, Date and ExpiredObjectDeleteMarker")
	case e.Days != nil && *e.Days < 1:
		return invalidArgument("Days", "", "'Days' for Expiration action must be a positive integer")
	case e.Date != nil && !e.Date.Equal(e.Date.UTC().Truncate(24*time.Hour)):
		return invalidArgument("Date", "", "'Date' must be at midnight GMT")
	}
	return nil
}

// expiration returns what x-amz-expiration says: when the first rule will remove an object, and which.
func expiration(b *objects.Bucket, o *objects.Object, a attributes) *string {
	var c lifecycleRules
	if text := b.Settings[lifecycle]; text == nil || !o.Latest || json.Unmarshal(text, &c) != nil {
		return nil
	}
	var first time.Time
	var id string
	for _, r := range c.Rules {
		at, ok := rules.Expiry(r, rules.Object{Key: o.Key, Size: o.Size, Modified: o.Modified, Tags: a.Tags})
		if ok && (first.IsZero() || at.Before(first)) {
			first = at
			id = aws.ToString(r.ID)
		}
	}
	if first.IsZero() {
		return nil
	}
	return aws.String(fmt.Sprintf("expiry-date=%q, rule-id=%q", first.UTC().Format(http.TimeFormat), url.PathEscape(id)))
}

// GetBucketLifecycleConfiguration is S3's operation.
func (s *Service) GetBucketLifecycleConfiguration(
	ctx context.Context, in *s3.GetBucketLifecycleConfigurationInput,
) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	var c lifecycleRules
	err := s.loadSetting(
		ctx, in.Bucket, in.ExpectedBucketOwner, lifecycle, &c,
		missing("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist"),
	)
	return &s3.GetBucketLifecycleConfigurationOutput{Rules: c.Rules, TransitionDefaultMinimumObjectSize: c.MinimumSize}, err
}

// DeleteBucketLifecycle is S3's operation.
func (s *Service) DeleteBucketLifecycle(ctx context.Context, in *s3.DeleteBucketLifecycleInput) (*s3.DeleteBucketLifecycleOutput, error) {
	return &s3.DeleteBucketLifecycleOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, lifecycle, nil)
}
