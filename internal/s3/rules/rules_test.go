package rules

import (
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var made = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

func at(month time.Month, day, hour int) time.Time {
	return time.Date(2026, month, day, hour, 0, 0, 0, time.UTC)
}

func rule(change func(*types.LifecycleRule)) types.LifecycleRule {
	r := types.LifecycleRule{
		Status:     types.ExpirationStatusEnabled,
		Filter:     &types.LifecycleRuleFilter{},
		Expiration: &types.LifecycleExpiration{Days: aws.Int32(3)},
	}
	change(&r)
	return r
}

func filter(f types.LifecycleRuleFilter) types.LifecycleRule {
	return rule(func(r *types.LifecycleRule) { r.Filter = &f })
}

// TestExpired uses the example of https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html: an
// object made at 10:30 under a three-day rule expires at the midnight that ends the third day.
func TestExpired(t *testing.T) {
	object := Object{
		Key:      "logs/a",
		Size:     500,
		Modified: made,
		Tags:     []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}, {Key: aws.String("l"), Value: aws.String("")}},
	}
	tag := func(k, v string) *types.Tag { return &types.Tag{Key: &k, Value: &v} }
	late := at(12, 31, 0)
	for name, c := range map[string]struct {
		rule types.LifecycleRule
		now  time.Time
		want bool
	}{
		"three days later":   {rule(func(*types.LifecycleRule) {}), at(11, 24, 23), false},
		"the midnight after": {rule(func(*types.LifecycleRule) {}), at(11, 25, 0), true},
		"disabled":           {rule(func(r *types.LifecycleRule) { r.Status = types.ExpirationStatusDisabled }), late, false},
		"no expiration":      {rule(func(r *types.LifecycleRule) { r.Expiration = nil }), late, false},
		"of delete markers": {rule(func(r *types.LifecycleRule) {
			r.Expiration = &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)}
		}), late, false},
		"a date to come": {
			rule(func(r *types.LifecycleRule) { r.Expiration = &types.LifecycleExpiration{Date: aws.Time(at(12, 1, 0))} }),
			at(11, 30, 23), false,
		},
		"a date that has come": {
			rule(func(r *types.LifecycleRule) { r.Expiration = &types.LifecycleExpiration{Date: aws.Time(at(12, 1, 0))} }),
			at(12, 1, 0), true,
		},
		"never":              {rule(func(r *types.LifecycleRule) { r.Expiration.Days = aws.Int32(math.MaxInt32) }), late, false},
		"an old prefix":      {rule(func(r *types.LifecycleRule) { r.Filter, r.Prefix = nil, aws.String("logs/") }), late, true},
		"another old prefix": {rule(func(r *types.LifecycleRule) { r.Filter, r.Prefix = nil, aws.String("x") }), late, false},
		"a prefix":           {filter(types.LifecycleRuleFilter{Prefix: aws.String("logs/")}), late, true},
		"another prefix":     {filter(types.LifecycleRuleFilter{Prefix: aws.String("log/")}), late, false},
		"a tag":              {filter(types.LifecycleRuleFilter{Tag: tag("k", "v")}), late, true},
		"another value":      {filter(types.LifecycleRuleFilter{Tag: tag("k", "w")}), late, false},
		"larger":             {filter(types.LifecycleRuleFilter{ObjectSizeGreaterThan: aws.Int64(499)}), late, true},
		"not larger":         {filter(types.LifecycleRuleFilter{ObjectSizeGreaterThan: aws.Int64(500)}), late, false},
		"smaller":            {filter(types.LifecycleRuleFilter{ObjectSizeLessThan: aws.Int64(501)}), late, true},
		"not smaller":        {filter(types.LifecycleRuleFilter{ObjectSizeLessThan: aws.Int64(500)}), late, false},
		"all of it": {filter(types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{
			Prefix: aws.String("logs"),
			Tags:   []types.Tag{*tag("l", ""), *tag("k", "v")},
		}}), late, true},
		"all of it but one": {filter(types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{
			Prefix: aws.String("logs"),
			Tags:   []types.Tag{*tag("l", ""), *tag("m", "")},
		}}), late, false},
		"all of it but for the size": {filter(types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{
			Prefix:             aws.String("logs"),
			ObjectSizeLessThan: aws.Int64(5),
		}}), late, false},
	} {
		if got := Expired(c.rule, object, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestOldExpired: a version is old from the time at which the next one came. Some of the newest old ones may be kept.
func TestOldExpired(t *testing.T) {
	r := func(days, keep int32) types.LifecycleRule {
		return rule(func(r *types.LifecycleRule) {
			r.Expiration = nil
			r.Filter = &types.LifecycleRuleFilter{Prefix: aws.String("a/")}
			r.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: &days, NewerNoncurrentVersions: &keep}
		})
	}
	for name, c := range map[string]struct {
		rule  types.LifecycleRule
		key   string
		newer int
		now   time.Time
		want  bool
	}{
		"too soon":            {r(1, 0), "a/b", 0, at(11, 22, 23), false},
		"over":                {r(1, 0), "a/b", 0, at(11, 23, 0), true},
		"among those to keep": {r(1, 2), "a/b", 1, at(12, 1, 0), false},
		"behind them":         {r(1, 2), "a/b", 2, at(12, 1, 0), true},
		"another's":           {r(1, 0), "b", 0, at(12, 1, 0), false},
		"a rule for others":   {rule(func(*types.LifecycleRule) {}), "a/b", 0, at(12, 1, 0), false},
	} {
		v := OldVersion{Object: Object{Key: c.key, Modified: made.AddDate(0, 0, -9)}, Since: made, Newer: c.newer}
		if got := OldExpired(c.rule, v, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMarkerExpired(t *testing.T) {
	marker := Object{Key: "a", Modified: made}
	atOnce := rule(func(r *types.LifecycleRule) {
		r.Expiration = &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)}
	})
	byDays := rule(func(*types.LifecycleRule) {})
	if !MarkerExpired(atOnce, marker, made) || MarkerExpired(byDays, marker, at(11, 24, 23)) || !MarkerExpired(byDays, marker, at(11, 25, 0)) {
		t.Error("a rule on markers holds at once, one on days after as many")
	}
}

func TestAborted(t *testing.T) {
	r := types.LifecycleRule{
		Status:                         types.ExpirationStatusEnabled,
		Filter:                         &types.LifecycleRuleFilter{Prefix: aws.String("a/")},
		AbortIncompleteMultipartUpload: &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: aws.Int32(1)},
	}
	for name, c := range map[string]struct {
		key  string
		now  time.Time
		want bool
	}{
		"too soon": {"a/b", at(11, 22, 23), false}, "over": {"a/b", at(11, 23, 0), true}, "another's": {"b", at(12, 1, 0), false},
	} {
		if got := Aborted(r, c.key, made, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if Expired(r, Object{Key: "a/b", Modified: made}, at(12, 1, 0)) {
		t.Error("an object expires by a rule for uploads")
	}
}
