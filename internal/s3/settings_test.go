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
}

// TestEncryption: every answer says AES256, or what the bucket's own setting is.
func TestEncryption(t *testing.T) {
	s, _ := newService(t)
	testEncryption(t, s, types.ServerSideEncryptionAes256)
	kms := &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAwsKms}
	in := &s3.PutBucketEncryptionInput{
		Bucket: aws.String("bucket"),
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
			Rules: []types.ServerSideEncryptionRule{{ApplyServerSideEncryptionByDefault: kms}},
		},
	}
	if _, err := s.PutBucketEncryption(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	testEncryption(t, s, types.ServerSideEncryptionAwsKms)
	kms.KMSMasterKeyID = aws.String("k")
	if _, err := s.PutBucketEncryption(t.Context(), in); code(err) != "NotImplemented" {
		t.Errorf("a key of AWS KMS: %v", err)
	}
}

func testEncryption(t *testing.T, s *Service, want types.ServerSideEncryption) {
	t.Helper()
	bucket := aws.String("bucket")
	ofBucket := func() types.ServerSideEncryption {
		t.Helper()
		out, err := s.GetBucketEncryption(t.Context(), &s3.GetBucketEncryptionInput{Bucket: bucket})
		if err != nil {
			t.Fatal(err)
		}
		return out.ServerSideEncryptionConfiguration.Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm
	}
	if ofBucket() != want {
		t.Errorf("a new bucket has %q", ofBucket())
	}
	out, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: aws.String("k"), Body: strings.NewReader("a")})
	if err != nil || out.ServerSideEncryption != want {
		t.Errorf("put: %+v, %v", out, err)
	}
	head, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("k")})
	if err != nil || head.ServerSideEncryption != want {
		t.Errorf("head: %+v, %v", head, err)
	}
	u, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("m")})
	if err != nil || u.ServerSideEncryption != want {
		t.Fatalf("create: %+v, %v", u, err)
	}
	p, err := s.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: bucket, Key: aws.String("m"), UploadId: u.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("a"),
	})
	if err != nil || p.ServerSideEncryption != want {
		t.Errorf("part: %+v, %v", p, err)
	}
	c, err := s.UploadPartCopy(t.Context(), &s3.UploadPartCopyInput{
		Bucket: bucket, Key: aws.String("m"), UploadId: u.UploadId, PartNumber: aws.Int32(2), CopySource: aws.String("bucket/k"),
	})
	if err != nil || c.ServerSideEncryption != want {
		t.Errorf("copied part: %+v, %v", c, err)
	}
	if _, err := s.DeleteBucketEncryption(t.Context(), &s3.DeleteBucketEncryptionInput{Bucket: bucket}); err != nil || ofBucket() != types.ServerSideEncryptionAes256 {
		t.Errorf("without a setting the bucket has %q, %v", ofBucket(), err)
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

// TestRequestPayment: the owner pays, and nobody else can be made to.
func TestRequestPayment(t *testing.T) {
	s, _ := newService(t)
	put := func(bucket string, c *types.RequestPaymentConfiguration) error {
		_, err := s.PutBucketRequestPayment(t.Context(), &s3.PutBucketRequestPaymentInput{Bucket: &bucket, RequestPaymentConfiguration: c})
		return err
	}
	for _, c := range []struct {
		bucket string
		given  *types.RequestPaymentConfiguration
		want   string
	}{
		{"bucket", &types.RequestPaymentConfiguration{Payer: types.PayerBucketOwner}, ""},
		{"bucket", &types.RequestPaymentConfiguration{Payer: types.PayerRequester}, "NotImplemented"},
		{"bucket", &types.RequestPaymentConfiguration{Payer: "Nobody"}, "MalformedXML"},
		{"bucket", nil, "MalformedXML"},
		{"nowhere", &types.RequestPaymentConfiguration{Payer: types.PayerBucketOwner}, "NoSuchBucket"},
	} {
		if err := put(c.bucket, c.given); code(err) != c.want {
			t.Errorf("%s %+v: %v, want %s", c.bucket, c.given, err, c.want)
		}
	}
}
