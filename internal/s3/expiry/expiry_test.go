package expiry

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

type queues struct{}

func (queues) SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return &sqs.SendMessageOutput{}, nil
}

// world is an S3 and its clock. It has buckets a and b, and a has lifecycle rules.
type world struct {
	*s3.Service
	t     *testing.T
	store *objects.Store
	now   time.Time
}

func newWorld(t *testing.T, rules ...types.LifecycleRule) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 21, 10, 30, 0, 123456789, time.UTC)}
	var err error
	if w.store, err = objects.Open(t.TempDir(), func() time.Time { return w.now }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	w.Service = s3.New(w.store, s3.Options{
		Account:  accounttest.New(func() time.Time { return w.now }),
		Queues:   queues{},
		QueueURL: func(arn string) string { return arn },
	})
	for _, name := range []string{"a", "b"} {
		_, err := w.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String("bucket-" + name)})
		w.must(err)
	}
	_, err = w.PutBucketLifecycleConfiguration(t.Context(), &awss3.PutBucketLifecycleConfigurationInput{
		Bucket:                 aws.String("bucket-a"),
		LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
	})
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(bucket, key, tagging string) {
	w.t.Helper()
	in := &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(key), ContentLength: aws.Int64(int64(len(key)))}
	if tagging != "" {
		in.Tagging = &tagging
	}
	_, err := w.PutObject(w.t.Context(), in)
	w.must(err)
}

func (w *world) keys(bucket string) (keys []string) {
	w.t.Helper()
	out, err := w.ListObjectsV2(w.t.Context(), &awss3.ListObjectsV2Input{Bucket: &bucket})
	w.must(err)
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func (w *world) removeAll() {
	w.t.Helper()
	w.must(removeAll(call.With(w.t.Context(), call.Call{Service: "s3", Identity: call.Identity{Principal: call.S3}}), w, w.now, slog.Default()))
}

func expires(days int32, f types.LifecycleRuleFilter) types.LifecycleRule {
	return types.LifecycleRule{Status: types.ExpirationStatusEnabled, Filter: &f, Expiration: &types.LifecycleExpiration{Days: &days}}
}

// TestRemoves checks that rules remove objects and uploads, and that the bucket's queue is told.
func TestRemoves(t *testing.T) {
	w := newWorld(t,
		expires(1, types.LifecycleRuleFilter{Prefix: aws.String("logs/")}),
		expires(1, types.LifecycleRuleFilter{Tag: &types.Tag{Key: aws.String("keep"), Value: aws.String("no")}}),
		types.LifecycleRule{
			Status:                         types.ExpirationStatusEnabled,
			Filter:                         &types.LifecycleRuleFilter{},
			AbortIncompleteMultipartUpload: &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: aws.Int32(1)},
		})
	_, err := w.PutBucketNotificationConfiguration(t.Context(), &awss3.PutBucketNotificationConfigurationInput{
		Bucket: aws.String("bucket-a"),
		NotificationConfiguration: &types.NotificationConfiguration{
			QueueConfigurations: []types.QueueConfiguration{{
				QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:q"),
				Events:   []types.Event{"s3:LifecycleExpiration:*", "s3:ObjectRemoved:*"},
			}},
		},
	})
	w.must(err)
	for i := range 1001 { // more than a page
		w.put("bucket-a", fmt.Sprintf("logs/%04d", i), "")
	}
	w.put("bucket-a", "tagged", "keep=no")
	w.put("bucket-a", "kept", "keep=yes")
	w.put("bucket-b", "logs/x", "")
	_, err = w.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{
		Bucket: aws.String("bucket-a"),
		Key:    aws.String("part"),
	})
	w.must(err)

	w.now = time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC)
	w.removeAll()
	if got := len(w.keys("bucket-a")); got != 1000 {
		t.Fatalf("%d objects are left before it is time", got)
	}
	w.put("bucket-a", "logs/0007", "") // a new object under an old key
	w.now = w.now.Add(time.Second)
	w.removeAll()
	if got := w.keys("bucket-a"); !slices.Equal(got, []string{"kept", "logs/0007"}) {
		t.Errorf("bucket a has %q", got)
	}
	if got := w.keys("bucket-b"); !slices.Equal(got, []string{"logs/x"}) {
		t.Errorf("bucket b has %q", got)
	}
	uploads, err := w.ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: aws.String("bucket-a")})
	if err != nil || len(uploads.Uploads) != 0 {
		t.Errorf("%d uploads are left, %v", len(uploads.Uploads), err)
	}
	owed, _, _, err := w.store.Owed(t.Context(), 2000, delivery.All)
	if err != nil || len(owed) != 1001 {
		t.Fatalf("%d messages are owed, %v", len(owed), err)
	}
	for _, want := range []string{`"eventName":"LifecycleExpiration:Delete"`, `"principalId":"s3.amazonaws.com"`} {
		if !strings.Contains(string(owed[0].Body), want) {
			t.Errorf("the message lacks %s: %s", want, owed[0].Body)
		}
	}
	w.removeAll() // a second round has nothing to do
	if got := len(w.keys("bucket-a")); got != 2 {
		t.Errorf("%d objects are left", got)
	}
}

// TestRemovesVersions: an expired object gets a delete marker, old versions go when they have been old for long enough, but for the newest
// of them, and a marker that is left alone goes.
func TestRemovesVersions(t *testing.T) {
	days := aws.Int32(1)
	w := newWorld(t,
		types.LifecycleRule{
			Status:                      types.ExpirationStatusEnabled,
			Filter:                      &types.LifecycleRuleFilter{Prefix: aws.String("old/")},
			NoncurrentVersionExpiration: &types.NoncurrentVersionExpiration{NoncurrentDays: days, NewerNoncurrentVersions: aws.Int32(1)},
		},
		types.LifecycleRule{
			Status:                      types.ExpirationStatusEnabled,
			Filter:                      &types.LifecycleRuleFilter{Tag: &types.Tag{Key: aws.String("keep"), Value: aws.String("no")}},
			NoncurrentVersionExpiration: &types.NoncurrentVersionExpiration{NoncurrentDays: days},
		},
		expires(1, types.LifecycleRuleFilter{Prefix: aws.String("tmp/")}),
		types.LifecycleRule{
			Status:     types.ExpirationStatusEnabled,
			Filter:     &types.LifecycleRuleFilter{Prefix: aws.String("gone/")},
			Expiration: &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)},
		})
	bucket := aws.String("bucket-a")
	_, err := w.PutBucketVersioning(t.Context(), &awss3.PutBucketVersioningInput{
		Bucket:                  bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	w.must(err)
	put := func(key, tagging string) {
		w.now = w.now.Add(time.Second)
		w.put(*bucket, key, tagging)
	}
	remove := func(key string) {
		w.now = w.now.Add(time.Second)
		_, err := w.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: bucket, Key: &key})
		w.must(err)
	}
	for range 4 {
		put("old/a", "")
	}
	put("tagged", "keep=no")
	put("tagged", "keep=yes")
	put("tagged", "keep=no")
	put("tmp/a", "")
	put("gone/kept", "")
	remove("gone/kept")
	remove("gone/a")
	show := func() (shown []string) {
		all, err := w.ListObjectVersions(t.Context(), &awss3.ListObjectVersionsInput{Bucket: bucket})
		w.must(err)
		counts := map[string]int{}
		for _, v := range all.Versions {
			counts[*v.Key]++
		}
		for _, m := range all.DeleteMarkers {
			counts["marker "+*m.Key]++
		}
		for key, n := range counts {
			shown = append(shown, fmt.Sprint(key, " ", n))
		}
		slices.Sort(shown)
		return shown
	}
	w.must(removeAll(t.Context(), shortPages{w}, w.now, slog.Default()))
	if got, want := show(), []string{"gone/kept 1", "marker gone/kept 1", "old/a 4", "tagged 3", "tmp/a 1"}; !slices.Equal(got, want) {
		t.Errorf("at once: %q, want %q", got, want)
	}
	w.now = w.now.AddDate(0, 0, 3)
	w.must(removeAll(t.Context(), shortPages{w}, w.now, slog.Default()))
	want := []string{"gone/kept 1", "marker gone/kept 1", "marker tmp/a 1", "old/a 2", "tagged 2", "tmp/a 1"}
	if got := show(); !slices.Equal(got, want) {
		t.Errorf("after three days: %q, want %q", got, want)
	}
}

// shortPages is an S3 that lists two versions at once.
type shortPages struct{ *world }

func (s shortPages) ListObjectVersions(
	ctx context.Context, in *awss3.ListObjectVersionsInput,
) (*awss3.ListObjectVersionsOutput, error) {
	in.MaxKeys = aws.Int32(2)
	return s.Service.ListObjectVersions(ctx, in)
}

// changing is an S3 where somebody rewrites objects just before they are deleted.
type changing struct{ *world }

func (c changing) DeleteObjects(ctx context.Context, in *awss3.DeleteObjectsInput) (*awss3.DeleteObjectsOutput, error) {
	for _, o := range in.Delete.Objects {
		c.put(*in.Bucket, *o.Key, "")
	}
	return c.Service.DeleteObjects(ctx, in)
}

// TestKeepsRewrittenObjects checks that an object that was rewritten after it was listed stays.
func TestKeepsRewrittenObjects(t *testing.T) {
	w := newWorld(t, expires(1, types.LifecycleRuleFilter{}))
	w.put("bucket-a", "o", "")
	w.now = w.now.AddDate(0, 0, 3)
	w.must(removeAll(t.Context(), changing{w}, w.now, slog.Default()))
	if got := w.keys("bucket-a"); len(got) != 1 {
		t.Errorf("bucket a has %q", got)
	}
}

// failing is an S3 that always fails, and counts the calls.
type failing struct {
	S3
	asked int
}

func (f *failing) ListBuckets(context.Context, *awss3.ListBucketsInput) (*awss3.ListBucketsOutput, error) {
	f.asked++
	return nil, fmt.Errorf("no luck")
}

// TestRunRetries checks that a failure doesn't end the loop.
func TestRunRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*every+time.Minute)
		defer cancel()
		f := &failing{}
		if err := Run(ctx, f, time.Now, slog.New(slog.DiscardHandler)); err != context.DeadlineExceeded || f.asked != 3 {
			t.Errorf("it asked %d times, and ended with %v", f.asked, err)
		}
	})
}
