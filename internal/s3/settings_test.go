package s3

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestNewBucket checks that a new bucket blocks public access and disables ACLs.
func TestNewBucket(t *testing.T) {
	s, _ := newService(t)
	bucket := aws.String("bucket")
	public, err := s.GetPublicAccessBlock(t.Context(), &s3.GetPublicAccessBlockInput{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	if c := public.PublicAccessBlockConfiguration; !*c.BlockPublicAcls || !*c.BlockPublicPolicy || !*c.IgnorePublicAcls ||
		!*c.RestrictPublicBuckets {
		t.Errorf("%+v", c)
	}
	owner, err := s.GetBucketOwnershipControls(t.Context(), &s3.GetBucketOwnershipControlsInput{Bucket: bucket})
	if err != nil || owner.OwnershipControls.Rules[0].ObjectOwnership != types.ObjectOwnershipBucketOwnerEnforced {
		t.Errorf("%+v, %v", owner, err)
	}
	if _, err := s.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{
		Bucket: bucket,
		ACL:    types.BucketCannedACLPrivate,
	}); code(err) != "AccessControlListNotSupported" {
		t.Error(err)
	}
	if _, err := s.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{Bucket: aws.String("none")}); code(err) != "NoSuchBucket" {
		t.Error(err)
	}
}

// TestEncryption checks that encryption is reported if the call or the bucket asked for it. Terraform's provider compares
// the value it reads.
func TestEncryption(t *testing.T) {
	s, _ := newService(t)
	bucket := aws.String("bucket")
	wanted := types.ServerSideEncryptionAes256
	head := func(key string) types.ServerSideEncryption {
		t.Helper()
		out, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		return out.ServerSideEncryption
	}
	put(t, s, "plain", "a")
	out, err := s.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket:               bucket,
		Key:                  aws.String("asked"),
		ServerSideEncryption: wanted,
		Body:                 strings.NewReader("a"),
	})
	if err != nil || out.ServerSideEncryption != wanted || head("asked") != wanted || head("plain") != "" {
		t.Errorf("put says %q, head %q; of the other %q; %v", out.ServerSideEncryption, head("asked"), head("plain"), err)
	}
	if _, err := s.CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket:     bucket,
		Key:        aws.String("copy"),
		CopySource: aws.String("bucket/asked"),
	}); err != nil || head("copy") != "" {
		t.Errorf("a copy that asks for nothing has %q, %v", head("copy"), err)
	}
	_, err = s.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{
		Bucket: bucket,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
			Rules: []types.ServerSideEncryptionRule{
				{ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: wanted}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "default", "a")
	if head("default") != wanted || head("plain") != "" {
		t.Errorf("after the bucket was set: a new object has %q, an old one %q", head("default"), head("plain"))
	}
}

// TestDeleteObjectsReportsEachError checks that each object that can't be deleted has its own error code.
func TestDeleteObjectsReportsEachError(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "a", "a")
	put(t, s, "b", "b")
	out, err := s.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{
		Bucket: aws.String("bucket"),
		Delete: &types.Delete{Objects: []types.ObjectIdentifier{
			{Key: aws.String("a"), ETag: aws.String(`"other"`)}, {Key: aws.String("b")},
		}},
	})
	if err != nil || len(out.Errors) != 1 || *out.Errors[0].Code != "PreconditionFailed" || *out.Errors[0].Key != "a" ||
		len(out.Deleted) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
