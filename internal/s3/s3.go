// Package s3 is Amazon S3, as far as ECS workloads, the AWS CLI, SDKs and Terraform need it: buckets and what
// they are set to, objects, multipart uploads, and notifications to SQS. Objects are the object store's; here
// is what S3 makes of them. Policies are kept and answered, and not enforced: whoever has credentials may do
// everything. There are no versions. The wire calls it, with bodies that are read as they come.
package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/s3/objects"
)

// Queues is where notifications go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options say who S3 is.
type Options struct {
	account.Account
	// Queues takes the test message of a notification configuration; with nil, every queue is refused.
	Queues Queues
	// QueueURL is the URL of the queue with an ARN.
	QueueURL func(arn string) string
}

// Service answers S3's operations.
type Service struct {
	store *objects.Store
	opts  Options
}

// New returns a service on the object store.
func New(store *objects.Store, opts Options) *Service { return &Service{store, opts} }

// owner is the account as S3 names owners: its canonical user id is made of the account's.
func (s *Service) owner() *types.Owner {
	sum := sha256.Sum256([]byte(s.opts.ID))
	return &types.Owner{ID: aws.String(hex.EncodeToString(sum[:]))}
}

// checkOwner refuses a call that expects the bucket to be somebody else's.
func (s *Service) checkOwner(expected *string) error {
	if expected != nil && *expected != s.opts.ID {
		return refuse(403, "AccessDenied", "Access Denied")
	}
	return nil
}

// bucket returns a bucket that a call is about.
func (s *Service) bucket(ctx context.Context, name, expectedOwner *string) (*objects.Bucket, error) {
	b, err := s.store.Bucket(ctx, aws.ToString(name))
	if err != nil {
		return nil, s.asError(err, aws.ToString(name), "")
	}
	return b, s.checkOwner(expectedOwner)
}

// asError makes S3's errors of the object store's.
func (s *Service) asError(err error, bucket, key string) error {
	switch {
	case errors.Is(err, objects.ErrNoBucket):
		return noSuchBucket(bucket)
	case errors.Is(err, objects.ErrNoObject):
		return &apiError{code: "NoSuchKey", message: "The specified key does not exist.", status: 404, detail: map[string]string{"Key": key}}
	case errors.Is(err, objects.ErrNoUpload):
		return refuse(404, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.")
	case errors.Is(err, objects.ErrNotEmpty):
		return refuse(409, "BucketNotEmpty", "The bucket you tried to delete is not empty")
	}
	return err
}

func quoted(etag string) *string { return aws.String(`"` + etag + `"`) }
