package s3

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// refusal is what a test wants of an S3 error: its code, one element of its answer, and a part of its message.
type refusal struct {
	code, name, value, message string
}

func (r refusal) check(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*apiError](err)
	if !ok || e.code != r.code || e.detail[r.name] != r.value || !strings.Contains(e.message, r.message) {
		t.Errorf("%s: %+v, want %+v", what, err, r)
	}
}

// TestCopyConditions: a copy's failed condition is named by the header that asked for it.
func TestCopyConditions(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	key, etag, before, after := aws.String("k"), aws.String(`"9dd4e461268c8034f5c8564e155c67a6"`), noon.Add(-time.Hour), noon
	for _, c := range []struct {
		header string
		in     s3.CopyObjectInput
	}{
		{"If-Match", s3.CopyObjectInput{CopySourceIfMatch: aws.String("other")}},
		{"If-None-Match", s3.CopyObjectInput{CopySourceIfNoneMatch: etag}},
		{"If-Modified-Since", s3.CopyObjectInput{CopySourceIfModifiedSince: &after}},
		{"If-Unmodified-Since", s3.CopyObjectInput{CopySourceIfUnmodifiedSince: &before}},
	} {
		c.in.Bucket, c.in.Key, c.in.CopySource = theBucket, aws.String("copy"), aws.String("bucket/k")
		_, err := s.CopyObject(t.Context(), &c.in)
		refusal{"PreconditionFailed", "Condition", "x-amz-copy-source-" + c.header, ""}.check(t, c.header, err)
	}
	_, err := s.GetObject(t.Context(), &s3.GetObjectInput{Bucket: theBucket, Key: key, IfMatch: aws.String("other")})
	refusal{"PreconditionFailed", "Condition", "If-Match", ""}.check(t, "a get", err)
}

// TestWriteConditions: a write takes one condition, an ETag or that there is no object.
func TestWriteConditions(t *testing.T) {
	s, _ := newService(t)
	star, etag := aws.String("*"), aws.String("e")
	for _, c := range []struct {
		match, noneMatch *string
		header           string
	}{
		{star, nil, "If-Match"},
		{nil, etag, "If-None-Match"},
		{etag, star, "If-Match,If-None-Match"},
	} {
		in := &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("k"), IfMatch: c.match, IfNoneMatch: c.noneMatch}
		_, err := s.PutObject(t.Context(), in)
		refusal{"NotImplemented", "Header", c.header, "A header you provided"}.check(t, "put", err)
	}
}

// TestCopiedParts: a copied part's range must lie in its source, and its answer has a checksum only if the upload named an algorithm.
func TestCopiedParts(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "0123456789")
	for _, algorithm := range []types.ChecksumAlgorithm{"", types.ChecksumAlgorithmCrc32} {
		up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: theBucket, Key: aws.String("u"), ChecksumAlgorithm: algorithm,
		})
		if err != nil {
			t.Fatal(err)
		}
		in := &s3.UploadPartCopyInput{
			Bucket: theBucket, Key: aws.String("u"), UploadId: up.UploadId, PartNumber: aws.Int32(1), CopySource: aws.String("bucket/k"),
		}
		out, err := s.UploadPartCopy(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		r := out.CopyPartResult
		if got := r.ChecksumCRC32 != nil; r.ChecksumCRC64NVME != nil || got != (algorithm != "") {
			t.Errorf("with algorithm %q: %+v", algorithm, r)
		}
		for text, want := range map[string]refusal{
			"bytes=1-0":     {"InvalidArgument", "ArgumentValue", "bytes=1-0", "must be of the form"},
			"bytes=0-100":   {"InvalidArgument", "ArgumentValue", "bytes=0-100", "not valid for source object of size: 10"},
			"bytes=100-200": {"InvalidRequest", "ArgumentName", "", "copy range is invalid"},
		} {
			in.CopySourceRange = &text
			_, err := s.UploadPartCopy(t.Context(), in)
			want.check(t, text, err)
		}
	}
}

// TestRefusalsAsRecorded: requests that AWS was recorded refusing.
func TestRefusalsAsRecorded(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	put(t, s, "k", "x")
	rule := func(r types.FilterRule) *s3.PutBucketNotificationConfigurationInput {
		return &s3.PutBucketNotificationConfigurationInput{
			Bucket: theBucket,
			NotificationConfiguration: &types.NotificationConfiguration{QueueConfigurations: []types.QueueConfiguration{{
				QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:q"),
				Events:   []types.Event{"s3:ObjectCreated:*"},
				Filter:   &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{FilterRules: []types.FilterRule{r}}},
			}}},
		}
	}
	_, nameless := s.PutBucketNotificationConfiguration(t.Context(), rule(types.FilterRule{Value: aws.String("x")}))
	_, valueless := s.PutBucketNotificationConfiguration(t.Context(), rule(types.FilterRule{Name: "prefix"}))
	_, notEmpty := s.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: theBucket})
	_, region := s.ListBuckets(t.Context(), &s3.ListBucketsInput{BucketRegion: aws.String("eu-east-1")})
	_, owned := s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("new"), ObjectOwnership: "Nobody"})
	_, noBucket := s.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{Bucket: aws.String("none")})
	_, again := s.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket:                    theBucket,
		CreateBucketConfiguration: &types.CreateBucketConfiguration{Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}},
	})
	_, controls := s.PutBucketOwnershipControls(t.Context(), &s3.PutBucketOwnershipControlsInput{
		Bucket: theBucket, OwnershipControls: &types.OwnershipControls{Rules: []types.OwnershipControlsRule{{ObjectOwnership: "Nobody"}}},
	})
	_, policy := s.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: theBucket, Policy: aws.String("")})
	for what, c := range map[string]struct {
		err  error
		want refusal
	}{
		"a filter rule without a name":  {nameless, refusal{code: "MalformedXML"}},
		"a filter rule without a value": {valueless, refusal{code: "MalformedXML"}},
		"a bucket with versions":        {notEmpty, refusal{"BucketNotEmpty", "BucketName", "bucket", "You must delete all versions"}},
		"no region":                     {region, refusal{"InvalidArgument", "ArgumentName", "bucket-region", "eu-east-1 is not a valid"}},
		"an unknown ownership":          {owned, refusal{"InvalidArgument", "ArgumentName", "x-amz-object-ownership", ": Nobody"}},
		"unknown ownership controls":    {controls, refusal{code: "MalformedXML"}},
		"encryption of no bucket":       {noBucket, refusal{code: "NoSuchBucket", name: "BucketName", value: "none"}},
		"tags for a bucket that is":     {again, refusal{code: "BucketAlreadyOwnedByYou", name: "BucketName", value: "bucket"}},
		"a policy that is no JSON":      {policy, refusal{code: "MalformedPolicy", message: "the first byte must be '{'"}},
	} {
		c.want.check(t, what, c.err)
	}
}

// TestTagRefusals: refusals name the tag.
func TestTagRefusals(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	for _, c := range []struct {
		key, value      string
		object, bucket  string // the messages
		element, refers string
	}{
		{"a,b", "x", "TagKey you have", "TagKey you have", "TagKey", "a,b"},
		{"a", "x,y", "TagValue you have", "TagValue you have", "TagValue", "x,y"},
		{"aws:a", "x", "cannot be prefixed", "System tags", "TagKey", "aws:a"},
	} {
		tags := &types.Tagging{TagSet: []types.Tag{{Key: &c.key, Value: &c.value}}}
		_, err := s.PutObjectTagging(t.Context(), &s3.PutObjectTaggingInput{Bucket: theBucket, Key: aws.String("k"), Tagging: tags})
		refusal{"InvalidTag", c.element, c.refers, c.object}.check(t, "object", err)
		_, err = s.PutBucketTagging(t.Context(), &s3.PutBucketTaggingInput{Bucket: theBucket, Tagging: tags})
		refusal{"InvalidTag", c.element, c.refers, c.bucket}.check(t, "bucket", err)
	}
}

// TestMarkersOfLists: what the lists' answers say of where they begin and end.
func TestMarkersOfLists(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "a", "x")
	put(t, s, "b", "x")
	first, err := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: theBucket, MaxKeys: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{
		Bucket: theBucket, ContinuationToken: first.NextContinuationToken, StartAfter: aws.String("z"),
	})
	if err != nil || next.StartAfter != nil || len(next.Contents) != 1 {
		t.Errorf("a token and StartAfter: %+v, %v", next, err)
	}
	uploads, err := s.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: theBucket})
	if err != nil || aws.ToString(uploads.NextKeyMarker) != "" || uploads.NextKeyMarker == nil || uploads.NextUploadIdMarker == nil {
		t.Errorf("no uploads: %+v, %v", uploads, err)
	}
	up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: aws.String("u")})
	if err != nil {
		t.Fatal(err)
	}
	uploads, err = s.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: theBucket})
	if err != nil || *uploads.NextKeyMarker != "u" || *uploads.NextUploadIdMarker != *up.UploadId {
		t.Errorf("an upload: %+v, %v", uploads, err)
	}
}

// TestRefusedUploads: what AWS was recorded refusing of multipart uploads, and what it says of them.
func TestRefusedUploads(t *testing.T) {
	s, _ := newService(t)
	key := aws.String("k")
	up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	complete := func(id *string, u *types.CompletedMultipartUpload) error {
		_, err := s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket: theBucket, Key: key, UploadId: id, MultipartUpload: u,
		})
		return err
	}
	none := []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: aws.String(`"e"`)}}
	for what, c := range map[string]struct {
		err  error
		want refusal
	}{
		"of no upload":      {complete(aws.String("fake"), nil), refusal{code: "NoSuchUpload", name: "UploadId", value: "fake"}},
		"without any parts": {complete(up.UploadId, nil), refusal{code: "InvalidRequest", message: "at least one part"}},
		"of no such part": {
			complete(up.UploadId, &types.CompletedMultipartUpload{Parts: none}), refusal{"InvalidPart", "UploadId", *up.UploadId, ""},
		},
		"by an ETag in quotes": {
			complete(up.UploadId, &types.CompletedMultipartUpload{Parts: none}), refusal{"InvalidPart", "ETag", "e", ""},
		},
	} {
		c.want.check(t, what, c.err)
	}
	put(t, s, "k", "x")
	_, err = s.GetObject(t.Context(), &s3.GetObjectInput{Bucket: theBucket, Key: key, PartNumber: aws.Int32(2)})
	refusal{"InvalidPartNumber", "ActualPartCount", "1", ""}.check(t, "a part that isn't there", err)
}

// TestRefusedPuts: a refusal repeats what was wrong.
func TestRefusedPuts(t *testing.T) {
	s, _ := newService(t)
	for _, c := range []struct {
		in   s3.PutObjectInput
		want refusal
	}{
		{s3.PutObjectInput{ContentMD5: aws.String("000")}, refusal{"InvalidDigest", "Content-MD5", "000", ""}},
		{
			s3.PutObjectInput{ContentMD5: aws.String("CYketZBSTjX8czcs3cXVlg==")},
			refusal{"BadDigest", "CalculatedDigest", "1B2M2Y8AsgTpgAmY7PhCfg==", ""},
		},
		{s3.PutObjectInput{StorageClass: "OUTPOSTS"}, refusal{"InvalidStorageClass", "StorageClassRequested", "OUTPOSTS", ""}},
	} {
		c.in.Bucket, c.in.Key = theBucket, aws.String("k")
		_, err := s.PutObject(t.Context(), &c.in)
		c.want.check(t, "put", err)
	}
	_, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: aws.String("new"), CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: "nowhere"},
	})
	refusal{"InvalidLocationConstraint", "LocationConstraint", "nowhere", ""}.check(t, "create", err)
	_, err = s.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: theBucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: "us-west-1"},
	})
	refusal{"BucketAlreadyOwnedByYou", "BucketName", "bucket", ""}.check(t, "create again, elsewhere", err)
}

// TestCopyOntoItself: a bucket with a default encryption of its own allows that, and a copy's answer tells the null version.
func TestCopyOntoItself(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	in := &s3.CopyObjectInput{Bucket: theBucket, Key: aws.String("k"), CopySource: aws.String("bucket/k")}
	if _, err := s.CopyObject(t.Context(), in); code(err) != "InvalidRequest" {
		t.Errorf("without a change: %v", err)
	}
	_, err := s.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{
		Bucket: theBucket,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
			ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.CopyObject(t.Context(), in); err != nil || out.VersionId != nil {
		t.Errorf("with encryption: %+v, %v", out, err)
	}
	setVersioning(t, s, types.BucketVersioningStatusSuspended)
	if out, err := s.CopyObject(t.Context(), in); err != nil || aws.ToString(out.VersionId) != "null" {
		t.Errorf("with versions suspended: %+v, %v", out, err)
	}
}

// TestVersionForm: a version's name that was altered can't be one.
func TestVersionForm(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	for _, id := range []string{strings.Repeat("0", 28) + "ABCD", strings.Repeat("0", 31) + "g", "+" + strings.Repeat("0", 31)} {
		in := &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k"), VersionId: &id}
		_, err := s.DeleteObject(t.Context(), in)
		refusal{"InvalidArgument", "ArgumentValue", id, "Invalid version id specified"}.check(t, id, err)
	}
}

// TestCompositeCompletions: if the caller chose a checksum that is computed from the parts', each part's must be named.
func TestCompositeCompletions(t *testing.T) {
	s, _ := newService(t)
	key := aws.String("k")
	up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: theBucket, Key: key, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: theBucket, Key: key, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("abc"),
	})
	if err != nil {
		t.Fatal(err)
	}
	complete := func(p types.CompletedPart, size int64) error {
		p.PartNumber, p.ETag = aws.Int32(1), part.ETag
		_, err := s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket: theBucket, Key: key, UploadId: up.UploadId, MpuObjectSize: &size,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{p}},
		})
		return err
	}
	refusal{"InvalidRequest", "", "", "It was missing for part 1 in the request."}.check(t, "none", complete(types.CompletedPart{}, 3))
	refusal{"BadDigest", "", "", "The sha256 you specified for part 1"}.check(
		t, "another algorithm", complete(types.CompletedPart{ChecksumSHA256: aws.String("x")}, 3),
	)
	right := types.CompletedPart{ChecksumCRC32: part.ChecksumCRC32}
	refusal{"InvalidRequest", "", "", "header value 5 does not match what was computed: 3"}.check(t, "another size", complete(right, 5))
	if err := complete(right, 3); err != nil {
		t.Fatal(err)
	}
	got, err := s.GetObjectAttributes(t.Context(), &s3.GetObjectAttributesInput{
		Bucket: theBucket, Key: key, ObjectAttributes: []types.ObjectAttributes{types.ObjectAttributesChecksum},
	})
	if err != nil || strings.Contains(aws.ToString(got.Checksum.ChecksumCRC32), "-") {
		t.Errorf("the attributes have %+v (%v), want a checksum without the number of parts", got, err)
	}
}

// TestChecksumRequests: what S3 says of checksums that can't be.
func TestChecksumRequests(t *testing.T) {
	s, _ := newService(t)
	create := func(algorithm types.ChecksumAlgorithm, kind types.ChecksumType) error {
		_, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: theBucket, Key: aws.String("k"), ChecksumAlgorithm: algorithm, ChecksumType: kind,
		})
		return err
	}
	refusal{"InvalidRequest", "", "", "Checksum algorithm provided is unsupported."}.check(t, "unknown", create("TEST", ""))
	refusal{"InvalidRequest", "", "", "can only be used with the x-amz-checksum-algorithm header."}.check(t, "a type alone", create("", "COMPOSITE"))
	refusal{"NotImplemented", "", "", "x-amz-checksum-algorithm other than"}.check(t, "S3's, not ours", create("SHA512", ""))
	_, err := s.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: theBucket, Key: aws.String("k"), ChecksumCRC32: aws.String("x"), ChecksumSHA1: aws.String("y"),
	})
	refusal{"InvalidRequest", "", "", "Expecting a single x-amz-checksum- header."}.check(t, "two", err)
	_, err = s.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: theBucket, Key: aws.String("k"), ContentMD5: aws.String("AAAAAAAAAAAAAAAAAAAAAA=="),
	})
	refusal{"BadDigest", "ExpectedDigest", strings.Repeat("0", 32), ""}.check(t, "Content-MD5", err)
	up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: theBucket, Key: aws.String("k"), UploadId: up.UploadId, PartNumber: aws.Int32(1),
		ContentMD5: aws.String("AAAAAAAAAAAAAAAAAAAAAA=="),
	})
	refusal{"BadDigest", "ExpectedDigest", "AAAAAAAAAAAAAAAAAAAAAA==", ""}.check(t, "a part's Content-MD5", err)

	put(t, s, "k", "x")
	got, err := s.GetObject(t.Context(), &s3.GetObjectInput{Bucket: theBucket, Key: aws.String("k"), ChecksumMode: "enabled"})
	if err != nil || got.ChecksumCRC64NVME == nil {
		t.Errorf("checksum mode enabled, in lower case: %+v, %v", got, err)
	}
}

// TestCannedACLs: a canned ACL that S3 doesn't have is refused as an argument.
func TestCannedACLs(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	_, err := s.PutObjectAcl(t.Context(), &s3.PutObjectAclInput{Bucket: theBucket, Key: aws.String("k"), ACL: "fake-acl"})
	refusal{"InvalidArgument", "ArgumentValue", "fake-acl", ""}.check(t, "an object's", err)
	_, err = s.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{Bucket: theBucket, ACL: "fake-acl"})
	refusal{"InvalidArgument", "ArgumentName", "x-amz-acl", ""}.check(t, "a bucket's", err)
	_, err = s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("k"), ACL: "fake-acl"})
	refusal{"InvalidArgument", "ArgumentName", "x-amz-acl", ""}.check(t, "a new object's", err)

	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k")}); err != nil {
		t.Fatal(err)
	}
	_, err = s.PutObjectAcl(t.Context(), &s3.PutObjectAclInput{Bucket: theBucket, Key: aws.String("k"), ACL: "private"})
	refusal{"MethodNotAllowed", "Method", "PUT", ""}.check(t, "a delete marker's", err)
}

// TestStorageClasses: objects of a class that needs no restore are taken.
func TestStorageClasses(t *testing.T) {
	s, _ := newService(t)
	for class, want := range map[types.StorageClass]string{types.StorageClassGlacierIr: "", types.StorageClassGlacier: "InvalidStorageClass"} {
		_, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("k"), StorageClass: class})
		if code(err) != want {
			t.Errorf("%s: %v, want %q", class, err, want)
		}
	}
}

// TestPartChecksums: a read of a part tells the part's own checksum, if the upload's caller chose an algorithm.
func TestPartChecksums(t *testing.T) {
	s, _ := newService(t)
	for _, c := range []struct {
		algorithm types.ChecksumAlgorithm
		kind      types.ChecksumType
	}{
		{types.ChecksumAlgorithmCrc32, types.ChecksumTypeComposite},
		{types.ChecksumAlgorithmCrc32, types.ChecksumTypeFullObject},
		{"", ""},
	} {
		key := aws.String("k")
		up, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: theBucket, Key: key, ChecksumAlgorithm: c.algorithm, ChecksumType: c.kind,
		})
		if err != nil {
			t.Fatal(err)
		}
		part, err := s.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: theBucket, Key: key, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("abc"),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket: theBucket, Key: key, UploadId: up.UploadId,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{
				{PartNumber: aws.Int32(1), ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{
			Bucket: theBucket, Key: key, PartNumber: aws.Int32(1), ChecksumMode: types.ChecksumModeEnabled,
		})
		if err != nil || got.ChecksumType != c.kind || aws.ToString(got.ChecksumCRC32) != aws.ToString(part.ChecksumCRC32) ||
			got.ChecksumCRC64NVME != nil {
			t.Errorf("%s %s: %+v (%v), want the part's %s", c.algorithm, c.kind, got, err, aws.ToString(part.ChecksumCRC32))
		}
	}
}

// TestContentEncodings: only aws-chunked is removed, which encodes a request and no object.
func TestContentEncodings(t *testing.T) {
	for encoding, want := range map[string]string{
		"deflate, gzip":          "deflate, gzip",
		"gzip,aws-chunked":       "gzip",
		"aws-chunked, gzip":      "gzip",
		"AWS-Chunked":            "",
		"a,aws-chunked, deflate": "a, deflate",
	} {
		if got := withoutChunked(encoding); got != want {
			t.Errorf("%q without aws-chunked is %q, want %q", encoding, got, want)
		}
	}
}

// TestTagRefusalsByPlace: what S3 says of tags depends on where they are.
func TestTagRefusalsByPlace(t *testing.T) {
	s, _ := newService(t)
	tag := func(key string) types.Tag { return types.Tag{Key: &key, Value: aws.String("v")} }
	_, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: aws.String("tagged"), CreateBucketConfiguration: &types.CreateBucketConfiguration{Tags: []types.Tag{tag("aws:x")}},
	})
	refusal{"InvalidTag", "", "", "User-defined tag keys can't start with \"aws:\"."}.check(t, "a new bucket's", err)
	_, err = s.PutBucketTagging(t.Context(), &s3.PutBucketTaggingInput{
		Bucket: theBucket, Tagging: &types.Tagging{TagSet: []types.Tag{tag("aws:x")}},
	})
	refusal{"InvalidTag", "TagKey", "aws:x", "System tags cannot be added"}.check(t, "a bucket's", err)
	_, err = s.PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
		Bucket: theBucket,
		LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{{
			Status:     types.ExpirationStatusEnabled,
			Expiration: &types.LifecycleExpiration{Days: aws.Int32(1)},
			Filter:     &types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{Tags: []types.Tag{tag("k"), tag("k")}}},
		}}},
	})
	refusal{"InvalidRequest", "", "", "Duplicate Tag Keys are not allowed."}.check(t, "a rule's", err)
}

// TestUnreachableQueues: the refusal names each queue that there isn't.
func TestUnreachableQueues(t *testing.T) {
	s, q := newService(t)
	q.err = &smithy.GenericAPIError{Code: "QueueDoesNotExist"}
	var all []types.QueueConfiguration
	for name, event := range map[string]types.Event{"a": types.EventS3ObjectTaggingPut, "b": types.EventS3ObjectTaggingDelete} {
		all = append(all, types.QueueConfiguration{
			Id: &name, QueueArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + name), Events: []types.Event{event},
		})
	}
	_, err := s.PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
		Bucket: theBucket, NotificationConfiguration: &types.NotificationConfiguration{QueueConfigurations: all},
	})
	refusal{"InvalidArgument", "ArgumentName1", *all[0].QueueArn, "Unable to validate"}.check(t, "the first", err)
	refusal{"InvalidArgument", "ArgumentName2", *all[1].QueueArn, ""}.check(t, "the second", err)
	refusal{"InvalidArgument", "ArgumentValue2", "The destination queue does not exist", ""}.check(t, "why", err)
}
