package s3

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestBlockedEncryption: a bucket that blocks callers' own keys takes no object with one, by whatever call.
func TestBlockedEncryption(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "from", "x")
	block := func(kind types.EncryptionType) error {
		_, err := s.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{
			Bucket: theBucket,
			ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
				ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
				BlockedEncryptionTypes:             &types.BlockedEncryptionTypes{EncryptionType: []types.EncryptionType{kind}},
			}}},
		})
		return err
	}
	if err := block("AES"); code(err) != "MalformedXML" {
		t.Errorf("an unknown kind: %v", err)
	}
	key, sum := customer(1)
	with := withKey(aes256, key, sum)
	for kind, want := range map[types.EncryptionType]string{types.EncryptionTypeSseC: "AccessDenied", types.EncryptionTypeNone: ""} {
		if err := block(kind); err != nil {
			t.Fatal(err)
		}
		in := with
		in.Bucket, in.Key = theBucket, aws.String("k")
		_, put := s.PutObject(t.Context(), &in)
		_, upload := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: theBucket, Key: in.Key,
			SSECustomerAlgorithm: with.SSECustomerAlgorithm, SSECustomerKey: with.SSECustomerKey, SSECustomerKeyMD5: with.SSECustomerKeyMD5,
		})
		_, dup := s.CopyObject(t.Context(), &s3.CopyObjectInput{
			Bucket: theBucket, Key: in.Key, CopySource: aws.String("bucket/from"),
			SSECustomerAlgorithm: with.SSECustomerAlgorithm, SSECustomerKey: with.SSECustomerKey, SSECustomerKeyMD5: with.SSECustomerKeyMD5,
		})
		for what, err := range map[string]error{"put": put, "upload": upload, "copy": dup} {
			if code(err) != want {
				t.Errorf("%s with %s blocked: %v", what, kind, err)
			}
		}
	}
}

// TestUnknownToS3: what an object would not get is refused by name.
func TestUnknownToS3(t *testing.T) {
	s, _ := newService(t)
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, in := range map[string]s3.PutObjectInput{
		"a time of retention": {ObjectLockRetainUntilDate: &until},
		"a context":           {SSEKMSEncryptionContext: aws.String("e30=")},
	} {
		in.Bucket, in.Key = theBucket, aws.String("k")
		if _, err := s.PutObject(t.Context(), &in); code(err) != "NotImplemented" {
			t.Errorf("%s: %v", what, err)
		}
	}
	up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: theBucket, Key: aws.String("k"), UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ChecksumSHA512: aws.String("x")}}},
	})
	if code(err) != "NotImplemented" {
		t.Errorf("a part's SHA512: %v", err)
	}
	_, err = s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("another"), BucketNamespace: types.BucketNamespaceAccountRegional})
	if code(err) != "NotImplemented" {
		t.Errorf("a bucket of the account's namespace: %v", err)
	}
}
