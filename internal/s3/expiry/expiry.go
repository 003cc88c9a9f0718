// Package expiry is the loop that follows buckets' lifecycle configurations: it deletes expired objects, old versions and
// delete markers, and aborts incomplete uploads. It calls S3 as an SDK client would. It stores nothing: after a kill, the next round finishes the
// work.
package expiry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/s3/rules"
)

// S3 is the part of S3 that the loop calls.
type S3 interface {
	ListBuckets(context.Context, *s3.ListBucketsInput) (*s3.ListBucketsOutput, error)
	GetBucketLifecycleConfiguration(
		context.Context, *s3.GetBucketLifecycleConfigurationInput,
	) (*s3.GetBucketLifecycleConfigurationOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error)
	GetBucketVersioning(context.Context, *s3.GetBucketVersioningInput) (*s3.GetBucketVersioningOutput, error)
	ListObjectVersions(context.Context, *s3.ListObjectVersionsInput) (*s3.ListObjectVersionsOutput, error)
	GetObjectTagging(context.Context, *s3.GetObjectTaggingInput) (*s3.GetObjectTaggingOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error)
	ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput) (*s3.ListMultipartUploadsOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput) (*s3.AbortMultipartUploadOutput, error)
}

// every is how often the loop looks; S3 looks once a day. Objects expire at midnight, or when the configuration changes.
const every = time.Hour

// Run runs the loop until ctx ends. It retries failures an hour later.
func Run(ctx context.Context, client S3, now func() time.Time, log *slog.Logger) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := removeAll(ctx, client, now(), log); err != nil && ctx.Err() == nil {
			log.Error("cannot follow the buckets' lifecycle configurations", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func removeAll(ctx context.Context, client S3, now time.Time, log *slog.Logger) error {
	in := &s3.ListBucketsInput{MaxBuckets: aws.Int32(1000)}
	for {
		out, err := client.ListBuckets(ctx, in)
		if err != nil {
			return err
		}
		for _, b := range out.Buckets {
			if err := applyRules(ctx, client, b.Name, now, log); err != nil && !isGone(err) {
				return err
			}
		}
		if in.ContinuationToken = out.ContinuationToken; in.ContinuationToken == nil {
			return nil
		}
	}
}

// applyRules applies one bucket's rules.
func applyRules(ctx context.Context, client S3, bucket *string, now time.Time, log *slog.Logger) error {
	out, err := client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	if err != nil {
		return err
	}
	var expiring, ofVersions, aborting []types.LifecycleRule
	for _, r := range out.Rules {
		if r.Expiration != nil {
			expiring = append(expiring, r)
		}
		if r.Expiration != nil || r.NoncurrentVersionExpiration != nil {
			ofVersions = append(ofVersions, r)
		}
		if r.AbortIncompleteMultipartUpload != nil {
			aborting = append(aborting, r)
		}
	}
	expired, err := expire(ctx, client, bucket, expiring, now)
	if err != nil {
		return err
	}
	versions, err := expireVersions(ctx, client, bucket, ofVersions, now)
	if err != nil {
		return err
	}
	aborted, err := abort(ctx, client, bucket, aborting, now)
	if err != nil {
		return err
	}
	if expired+versions+aborted > 0 {
		log.Info("lifecycle", "bucket", *bucket, "objects expired", expired, "versions expired", versions, "uploads aborted", aborted)
	}
	return nil
}

// expire deletes the objects that a rule expires, and returns how many.
func expire(ctx context.Context, client S3, bucket *string, of []types.LifecycleRule, now time.Time) (n int, err error) {
	if len(of) == 0 {
		return 0, nil
	}
	in := &s3.ListObjectsV2Input{Bucket: bucket}
	for {
		page, err := client.ListObjectsV2(ctx, in)
		if err != nil {
			return n, err
		}
		var all []types.ObjectIdentifier
		for _, o := range page.Contents {
			object := rules.Object{Key: *o.Key, Size: *o.Size, Modified: *o.LastModified}
			over, err := anyOf(ctx, client, bucket, of, &object, nil, func(r types.LifecycleRule) bool {
				return rules.Expired(r, object, now)
			})
			if err != nil {
				return n, err
			}
			if over { // delete it only if nobody has replaced it
				all = append(all, types.ObjectIdentifier{
					Key:              o.Key,
					ETag:             o.ETag,
					Size:             o.Size,
					LastModifiedTime: aws.Time(o.LastModified.Truncate(time.Second)),
				})
			}
		}
		deleted, err := deleteAll(ctx, client, bucket, all)
		if n += deleted; err != nil {
			return n, err
		}
		if in.ContinuationToken = page.NextContinuationToken; in.ContinuationToken == nil {
			return n, nil
		}
	}
}

// deleteAll deletes a page of objects in one call, so that they share flushes, and returns how many it deleted.
func deleteAll(ctx context.Context, client S3, bucket *string, all []types.ObjectIdentifier) (n int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	out, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: bucket,
		Delete: &types.Delete{Objects: all, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return 0, err
	}
	for _, e := range out.Errors {
		if refused := (&smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)}); !isGone(refused) {
			err = errors.Join(err, refused)
		}
	}
	return len(all) - len(out.Errors), err
}

// anyOf reports whether one of the rules holds for an object. It reads the tags of the object, or of its version, only if a rule needs them.
func anyOf(
	ctx context.Context, client S3, bucket *string, of []types.LifecycleRule, object *rules.Object, version *string,
	holds func(types.LifecycleRule) bool,
) (bool, error) {
	tagged := false
	for _, r := range of {
		if len(rules.Tags(r.Filter)) > 0 && !tagged {
			out, err := client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: &object.Key, VersionId: version})
			if isGone(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			object.Tags = out.TagSet
			tagged = true
		}
		if holds(r) {
			return true, nil
		}
	}
	return false, nil
}

// abort aborts the uploads that have been incomplete for longer than a rule allows, and returns how many.
func abort(ctx context.Context, client S3, bucket *string, of []types.LifecycleRule, now time.Time) (n int, err error) {
	if len(of) == 0 {
		return 0, nil
	}
	in := &s3.ListMultipartUploadsInput{Bucket: bucket}
	for {
		page, err := client.ListMultipartUploads(ctx, in)
		if err != nil {
			return n, err
		}
		for _, u := range page.Uploads {
			for _, r := range of {
				if !rules.Aborted(r, *u.Key, *u.Initiated, now) {
					continue
				}
				_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: bucket, Key: u.Key, UploadId: u.UploadId})
				if err != nil && !isGone(err) {
					return n, err
				}
				n++
				break
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return n, nil
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// isGone reports whether a call failed because its target has been removed or replaced. Then there is nothing to do.
func isGone(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "NoSuchBucket", "NoSuchKey", "NoSuchVersion", "MethodNotAllowed", "NoSuchUpload", "NoSuchLifecycleConfiguration", "PreconditionFailed":
		return true
	}
	return false
}
