// Package s3 implements as much of Amazon S3 as ECS workloads, the AWS CLI, SDKs and Terraform need: buckets and
// their settings, objects and their versions, multipart uploads, and notifications to SQS and SNS. The object store keeps the objects; this
// package adds S3's rules. Bucket policies are stored and returned; who may do what by them is decided before a
// call gets here. The wire calls this package, and bodies are streamed.
package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/s3/objects"
)

// Topics is the part of SNS that notifications need.
type Topics interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

// Functions is the part of Lambda that notifications need.
type Functions interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Queues is the part of SQS that notifications need.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options configures the service.
type Options struct {
	account.Account
	// Queues receives the test message of a notification configuration. If it is nil, every queue is refused.
	Queues Queues
	// Topics receives it as Queues does.
	Topics Topics
	// Functions says whether a function is there that is to be told. If it is nil, every function is refused.
	Functions Functions
	// QueueURL returns the URL of the queue with this ARN.
	QueueURL func(arn string) string
}

// Service implements S3's operations.
type Service struct {
	store *objects.Store
	opts  Options
}

// New returns a service that keeps its objects in store.
func New(store *objects.Store, opts Options) *Service { return &Service{store, opts} }

// owner returns the account as S3 names owners: a canonical user ID, derived from the account ID.
func (s *Service) owner() *types.Owner {
	sum := sha256.Sum256([]byte(s.opts.ID))
	return &types.Owner{ID: aws.String(hex.EncodeToString(sum[:]))}
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

// checkOwner refuses a call that expects the bucket to belong to another account.
func (s *Service) checkOwner(expected *string) error {
	switch {
	case expected == nil || *expected == s.opts.ID:
		return nil
	case !accountID.MatchString(*expected):
		return refuse(
			400, "InvalidBucketOwnerAWSAccountID",
			"The value of the expected bucket owner parameter must be an AWS Account ID... [%s]", *expected,
		)
	}
	return refuse(403, "AccessDenied", "Access Denied")
}

// bucket returns the bucket that a call names.
func (s *Service) bucket(ctx context.Context, name, expectedOwner *string) (*objects.Bucket, error) {
	b, err := s.store.Bucket(ctx, aws.ToString(name))
	if err != nil {
		return nil, s.asError(err, aws.ToString(name), "")
	}
	return b, s.checkOwner(expectedOwner)
}

// asError translates the object store's errors into S3's.
func (s *Service) asError(err error, bucket, key string) error {
	var damage *file.Damage
	switch {
	case errors.As(err, &damage):
		return &apiError{
			code:    "InternalError",
			message: "The object is damaged: its bytes on the disk are not those that were written.",
			status:  500,
			detail:  map[string]string{"BucketName": bucket, "Key": key},
		}
	case errors.Is(err, objects.ErrNoBucket):
		return noSuchBucket(bucket)
	case errors.Is(err, objects.ErrNoObject):
		return noSuchKey(key)
	}
	return err
}

func quoted(etag string) *string { return aws.String(`"` + etag + `"`) }
