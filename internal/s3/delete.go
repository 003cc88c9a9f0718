package s3

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

// DeleteObject is S3's operation. In a bucket with versions it makes a delete marker, unless the call names a version.
func (s *Service) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	if err := checkVersion(in.VersionId); err != nil {
		return nil, err
	}
	if err := s.checkOwner(in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	if err := checkBypass(in.BypassGovernanceRetention); err != nil {
		return nil, err
	}
	event := "ObjectRemoved:Delete"
	if call.From(ctx).Principal == call.S3 {
		event = "LifecycleExpiration:Delete"
	}
	deleted, err := s.store.Delete(ctx, *in.Bucket, *in.Key, aws.ToString(in.VersionId), objects.Conditions{
		Allow: ifUnchanged(in.Key, in.IfMatch, in.IfMatchSize, in.IfMatchLastModifiedTime),
		Owe: func(b *objects.Bucket, o *objects.Object) []objects.Message {
			if in.VersionId == nil && o.Marker {
				return s.owe(ctx, event+"MarkerCreated")(b, o)
			}
			return s.owe(ctx, event)(b, o)
		},
		OweAbsent: in.VersionId == nil && call.From(ctx).Principal != call.S3,
	})
	if err != nil {
		return nil, s.asError(err, *in.Bucket, *in.Key)
	}
	out := &s3.DeleteObjectOutput{VersionId: in.VersionId}
	if deleted != nil && deleted.Marker {
		out.DeleteMarker = aws.Bool(true)
		out.VersionId = &deleted.Version
	}
	return out, nil
}

// checkBypass refuses the header of Object Lock, whatever it says, since no bucket here has locks.
func checkBypass(bypass *bool) error {
	if bypass == nil {
		return nil
	}
	const header = "x-amz-bypass-governance-retention"
	return invalidArgument(header, "", header+" is only applicable to Object Lock enabled buckets.")
}

// ifUnchanged refuses to delete an object that differs from the one the caller means.
func ifUnchanged(key, etag *string, size *int64, modified *time.Time) func(*objects.Bucket, *objects.Object) error {
	return func(_ *objects.Bucket, o *objects.Object) error {
		switch {
		case o == nil && etag != nil:
			return noSuchKey(*key)
		case o == nil:
			return nil
		case etag != nil && !matches(*etag, o.ETag):
			return preconditionFailed("If-Match")
		case size != nil && *size != o.Size:
			return preconditionFailed("x-amz-if-match-size")
		case modified != nil && !modified.Equal(o.Modified.Truncate(time.Second)):
			return preconditionFailed("x-amz-if-match-last-modified-time")
		}
		return nil
	}
}

// Limits of DeleteObjects.
const (
	maxDeletes  = 1000 // objects in one call
	maxDeleting = 64   // objects deleted at once
)

// DeleteObjects is S3's operation. Each object succeeds or fails on its own.
func (s *Service) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) {
	if in.Delete == nil || len(in.Delete.Objects) == 0 || len(in.Delete.Objects) > maxDeletes {
		return nil, malformedXML("Delete must name 1 to 1000 objects")
	}
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	if err := checkBypass(in.BypassGovernanceRetention); err != nil {
		return nil, err
	}
	outs := make([]*s3.DeleteObjectOutput, len(in.Delete.Objects))
	errs := make([]error, len(in.Delete.Objects))
	var g errgroup.Group
	g.SetLimit(maxDeleting) // concurrent deletes share flushes
	for i, o := range in.Delete.Objects {
		if id := nonEmpty(o.VersionId); id != nil && checkVersion(id) != nil {
			errs[i] = noSuchVersion(aws.ToString(o.Key), id) // here S3 doesn't tell what can't be a version from what isn't one
			continue
		}
		g.Go(func() error {
			outs[i], errs[i] = s.DeleteObject(ctx, &s3.DeleteObjectInput{
				Bucket:                  in.Bucket,
				Key:                     o.Key,
				VersionId:               nonEmpty(o.VersionId),
				IfMatch:                 o.ETag,
				IfMatchSize:             o.Size,
				IfMatchLastModifiedTime: o.LastModifiedTime,
			})
			return nil
		})
	}
	g.Wait() //nolint:errcheck // errs has one error for each object
	out := &s3.DeleteObjectsOutput{}
	for i, o := range in.Delete.Objects {
		if e := toAPIError(errs[i]); e != nil {
			out.Errors = append(out.Errors, types.Error{Key: o.Key, VersionId: o.VersionId, Code: &e.code, Message: &e.message})
		} else if !aws.ToBool(in.Delete.Quiet) {
			out.Deleted = append(out.Deleted, deletedObject(o, outs[i]))
		}
	}
	return out, nil
}

// deletedObject returns what was deleted: the version that the call named, and the delete marker that is there now or has gone.
func deletedObject(o types.ObjectIdentifier, out *s3.DeleteObjectOutput) types.DeletedObject {
	deleted := types.DeletedObject{Key: o.Key, VersionId: nonEmpty(o.VersionId), DeleteMarker: out.DeleteMarker}
	if out.DeleteMarker != nil {
		deleted.DeleteMarkerVersionId = out.VersionId
	}
	return deleted
}

func nonEmpty(text *string) *string {
	if aws.ToString(text) == "" {
		return nil
	}
	return text
}

// toAPIError returns the error to report for one object of many.
func toAPIError(err error) *apiError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return &apiError{code: "InternalError", message: "We encountered an internal error. Please try again."}
}
