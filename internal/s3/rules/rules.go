// Package rules decides what a bucket's lifecycle rules remove, and when. It is pure. It follows "Lifecycle configuration
// elements" in S3's guide, unless a comment names another source.
package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Object is what rules look at. An incomplete upload has only a key and a time.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
	Tags     []types.Tag
}

// Expired reports whether a rule removes the latest version of an object by now. Rules that only move objects to other storage classes, or
// only cover older versions, remove nothing.
func Expired(r types.LifecycleRule, o Object, now time.Time) bool {
	at, ok := Expiry(r, o)
	return ok && !now.Before(at)
}

// Expiry returns when a rule removes an object. It's false if the rule doesn't.
func Expiry(r types.LifecycleRule, o Object) (at time.Time, ok bool) {
	e := r.Expiration
	switch {
	case e == nil || !applies(r, o):
	case e.Date != nil:
		return *e.Date, true
	case e.Days != nil:
		return midnightAfter(o.Modified, *e.Days), true
	}
	return time.Time{}, false
}

// OldVersion is a version that is not the latest one of its key.
type OldVersion struct {
	Object
	Since time.Time // when the next version took its place
	Newer int       // number of old versions of the key that are newer
}

// OldExpired reports whether a rule removes an old version by now.
func OldExpired(r types.LifecycleRule, v OldVersion, now time.Time) bool {
	e := r.NoncurrentVersionExpiration
	return e != nil && applies(r, v.Object) && v.Newer >= int(aws.ToInt32(e.NewerNoncurrentVersions)) &&
		!now.Before(midnightAfter(v.Since, aws.ToInt32(e.NoncurrentDays)))
}

// MarkerExpired reports whether a rule removes, by now, a delete marker that is the only version of its key.
func MarkerExpired(r types.LifecycleRule, marker Object, now time.Time) bool {
	if r.Expiration != nil && aws.ToBool(r.Expiration.ExpiredObjectDeleteMarker) {
		return applies(r, marker)
	}
	return Expired(r, marker, now)
}

// Aborted reports whether a rule aborts an upload by now. Such a rule can filter only by prefix.
func Aborted(r types.LifecycleRule, key string, began, now time.Time) bool {
	a := r.AbortIncompleteMultipartUpload
	return a != nil && applies(r, Object{Key: key}) && !now.Before(midnightAfter(began, aws.ToInt32(a.DaysAfterInitiation)))
}

// midnightAfter returns the first midnight in UTC at least a number of days after t.
func midnightAfter(t time.Time, days int32) time.Time {
	t = t.UTC().AddDate(0, 0, int(days))
	if midnight := t.Truncate(24 * time.Hour); midnight.Before(t) {
		return midnight.AddDate(0, 0, 1)
	}
	return t
}

// Tags returns the tags that a filter asks for. An object must have all of them.
func Tags(f *types.LifecycleRuleFilter) []types.Tag {
	switch {
	case f != nil && f.Tag != nil:
		return []types.Tag{*f.Tag}
	case f != nil && f.And != nil:
		return f.And.Tags
	}
	return nil
}

func applies(r types.LifecycleRule, o Object) bool {
	if r.Status != types.ExpirationStatusEnabled ||
		!strings.HasPrefix(o.Key, aws.ToString(r.Prefix)) { //nolint:staticcheck // older clients have no filter
		return false
	}
	f := r.Filter
	if f == nil {
		return true
	}
	want := types.LifecycleRuleAndOperator{
		Prefix:                f.Prefix,
		ObjectSizeGreaterThan: f.ObjectSizeGreaterThan,
		ObjectSizeLessThan:    f.ObjectSizeLessThan,
	}
	if f.And != nil {
		want = *f.And
	}
	return strings.HasPrefix(o.Key, aws.ToString(want.Prefix)) &&
		(want.ObjectSizeGreaterThan == nil || o.Size > *want.ObjectSizeGreaterThan) &&
		(want.ObjectSizeLessThan == nil || o.Size < *want.ObjectSizeLessThan) &&
		hasAll(o.Tags, Tags(f))
}

func hasAll(tags, wanted []types.Tag) bool {
	for _, w := range wanted {
		has := func(t types.Tag) bool {
			return aws.ToString(t.Key) == aws.ToString(w.Key) && aws.ToString(t.Value) == aws.ToString(w.Value)
		}
		if !slices.ContainsFunc(tags, has) {
			return false
		}
	}
	return true
}
