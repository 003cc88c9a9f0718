package s3

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestLifecycle(t *testing.T) {
	s, _ := newService(t)
	days := &types.LifecycleExpiration{Days: aws.Int32(1)}
	bucket := aws.String("bucket")
	all := &types.LifecycleRuleFilter{}
	put := func(rules ...types.LifecycleRule) error {
		_, err := s.PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
			Bucket:                 bucket,
			LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
		})
		return err
	}
	good := types.LifecycleRule{ID: aws.String("a"), Status: types.ExpirationStatusEnabled, Filter: all, Expiration: days}
	but := func(change func(*types.LifecycleRule)) types.LifecycleRule {
		r := good
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		want  string
		rules []types.LifecycleRule
	}{
		"none":              {"MalformedXML", nil},
		"twice the same id": {"InvalidArgument", []types.LifecycleRule{good, good}},
		"a long id": {
			"InvalidArgument", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.ID = aws.String(strings.Repeat("a", 256)) })},
		},
		"no status":         {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Status = "" })}},
		"no filter":         {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Filter = nil })}},
		"filter and prefix": {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Prefix = aws.String("a") })}},
		"two conditions": {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.Filter = &types.LifecycleRuleFilter{Prefix: aws.String("a"), Tag: &types.Tag{}}
		})}},
		"no action": {"InvalidRequest", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Expiration = nil })}},
		"no days": {
			"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Expiration = &types.LifecycleExpiration{} })},
		},
		"zero days": {
			"InvalidArgument",
			[]types.LifecycleRule{but(func(r *types.LifecycleRule) { r.Expiration = &types.LifecycleExpiration{Days: aws.Int32(0)} })},
		},
		"days and a date": {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.Expiration = &types.LifecycleExpiration{Days: aws.Int32(1), Date: aws.Time(time.Unix(0, 0))}
		})}},
		"a date in the day": {"InvalidArgument", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.Expiration = &types.LifecycleExpiration{Date: aws.Time(time.Unix(1, 0))}
		})}},
		"old versions never": {"MalformedXML", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{}
		})}},
		"old versions at once": {"InvalidArgument", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: aws.Int32(0)}
		})}},
		"too many old versions": {"InvalidArgument", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{
				NoncurrentDays: aws.Int32(1), NewerNoncurrentVersions: aws.Int32(101),
			}
		})}},
		"abort after 0 days": {"InvalidArgument", []types.LifecycleRule{but(func(r *types.LifecycleRule) {
			r.AbortIncompleteMultipartUpload = &types.AbortIncompleteMultipartUpload{}
		})}},
	} {
		if got := code(put(c.rules...)); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	get := func() (*s3.GetBucketLifecycleConfigurationOutput, error) {
		return s.GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	}
	if _, err := get(); code(err) != "NoSuchLifecycleConfiguration" {
		t.Errorf("what was refused is kept: %v", err)
	}
	nameless := but(func(r *types.LifecycleRule) { r.ID = nil })
	if err := put(good, nameless); err != nil {
		t.Fatal(err)
	}
	out, err := get()
	if err != nil || len(out.Rules) != 2 || !reflect.DeepEqual(out.Rules[0], good) || aws.ToString(out.Rules[1].ID) == "" ||
		out.TransitionDefaultMinimumObjectSize != "all_storage_classes_128K" {
		t.Errorf("%+v, %v", out, err)
	}
}
