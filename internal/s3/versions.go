package s3

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
)

// PutBucketVersioning is S3's operation.
func (s *Service) PutBucketVersioning(ctx context.Context, in *s3.PutBucketVersioningInput) (*s3.PutBucketVersioningOutput, error) {
	c := in.VersioningConfiguration
	if c == nil || c.Status == "" {
		return nil, refuse(400, "IllegalVersioningConfigurationException", "The Versioning element must be specified")
	}
	if c.Status != types.BucketVersioningStatusEnabled && c.Status != types.BucketVersioningStatusSuspended {
		return nil, malformedXML("Status must be Enabled or Suspended")
	}
	if c.MFADelete != "" && c.MFADelete != types.MFADeleteDisabled && c.MFADelete != types.MFADeleteEnabled {
		return nil, malformedXML("MfaDelete must be Enabled or Disabled")
	}
	if c.MFADelete == types.MFADeleteEnabled || in.MFA != nil {
		return nil, notImplemented("MfaDelete")
	}
	return &s3.PutBucketVersioningOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, objects.Versioning, c.Status)
}

// GetBucketVersioning is S3's operation. A bucket whose versioning was never set has no Status.
func (s *Service) GetBucketVersioning(ctx context.Context, in *s3.GetBucketVersioningInput) (*s3.GetBucketVersioningOutput, error) {
	out := &s3.GetBucketVersioningOutput{}
	return out, s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, objects.Versioning, &out.Status, nil)
}

// checkVersion refuses what can't be a version. No version at all is the latest one.
func checkVersion(id *string) error {
	if id == nil || objects.IsVersion(*id) {
		return nil
	}
	if *id == "" {
		return invalidArgument("versionId", "", "Version id cannot be the empty string")
	}
	return invalidArgument("versionId", *id, "Invalid version id specified")
}

// writtenVersion returns the version that a write's answer tells. S3 tells none of a null version.
func writtenVersion(o *objects.Object) *string {
	if o.Version == objects.Null {
		return nil
	}
	return &o.Version
}

// readVersion returns the version that a read's answer tells, which is none if the bucket never had versions.
func readVersion(b *objects.Bucket, o *objects.Object) *string {
	if !b.HasVersions() {
		return nil
	}
	return &o.Version
}

// markerError returns S3's error for a delete marker in an object's place. The call may only delete a marker that it names.
func markerError(e *objects.DeletedError, method string) error {
	header := http.Header{"X-Amz-Delete-Marker": {"true"}, "X-Amz-Version-Id": {e.Marker.Version}}
	if !e.Named {
		return &apiError{
			code:    "NoSuchKey",
			message: "The specified key does not exist.",
			status:  http.StatusNotFound,
			detail:  map[string]string{"Key": e.Marker.Key},
			header:  header,
		}
	}
	header.Set("Allow", http.MethodDelete)
	header.Set("Last-Modified", e.Marker.Modified.Format(http.TimeFormat))
	return &apiError{
		code:    "MethodNotAllowed",
		message: "The specified method is not allowed against this resource.",
		status:  http.StatusMethodNotAllowed,
		detail:  map[string]string{"Method": method, "ResourceType": "DeleteMarker"},
		header:  header,
	}
}

// asVersionError translates the object store's errors about an object or one of its versions into S3's. method is the call's.
func (s *Service) asVersionError(err error, bucket, key string, version *string, method string) error {
	if e, ok := errors.AsType[*objects.DeletedError](err); ok {
		return markerError(e, method)
	}
	if errors.Is(err, objects.ErrNoVersion) {
		return noSuchVersion(key, version)
	}
	return s.asError(err, bucket, key)
}

func noSuchVersion(key string, version *string) error {
	return &apiError{
		code:    "NoSuchVersion",
		message: "The specified version does not exist.",
		status:  http.StatusNotFound,
		detail:  map[string]string{"Key": key, "VersionId": aws.ToString(version)},
	}
}
