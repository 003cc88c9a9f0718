package s3

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
)

// parseSource reads x-amz-copy-source: bucket/key, escaped, perhaps with a version.
func parseSource(text string) (bucket, key string, version *string, err error) {
	path, query, _ := strings.Cut(text, "?versionId=")
	if query != "" {
		version = &query
	}
	path, err = url.PathUnescape(path)
	bucket, key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if err != nil || bucket == "" || key == "" {
		return "", "", nil, invalidArgument("x-amz-copy-source", text, "Invalid copy source object key")
	}
	return bucket, key, version, checkKey(&key)
}

// open opens a copy's source, as get says how.
func (s *Service) open(ctx context.Context, copySource *string, get *s3.GetObjectInput) (*objects.Object, io.ReadCloser, error) {
	bucket, key, version, err := parseSource(aws.ToString(copySource))
	if err != nil {
		return nil, nil, err
	}
	get.Key, get.VersionId = &key, version
	if err := s.checkReading(get); err != nil {
		return nil, nil, err
	}
	o, body, err := s.store.Read(ctx, bucket, key, func(o *objects.Object) (objects.Stretch, error) {
		want, err := pick(get, o)
		if e, ok := err.(*apiError); ok && e.code == "NotModified" {
			err = preconditionFailed("x-amz-copy-source-If-None-Match") // a copy's conditions have one answer
		}
		if err == nil && want.Length > maxPut {
			err = refuse(400, "InvalidRequest", "The specified copy source is larger than the maximum allowable size for a copy source: %d", int64(maxPut))
		}
		return want, err
	})
	return o, body, s.asError(err, bucket, key)
}

// CopyObject is S3's operation.
func (s *Service) CopyObject(ctx context.Context, in *s3.CopyObjectInput) (*s3.CopyObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	if err := checkDirectives(in); err != nil {
		return nil, err
	}
	a, err := describe(&s3.PutObjectInput{
		ACL: in.ACL, GrantFullControl: in.GrantFullControl, GrantRead: in.GrantRead, GrantReadACP: in.GrantReadACP, GrantWriteACP: in.GrantWriteACP,
		ContentType: in.ContentType, ContentEncoding: in.ContentEncoding, ContentDisposition: in.ContentDisposition, ContentLanguage: in.ContentLanguage,
		CacheControl: in.CacheControl, Expires: in.Expires, Metadata: in.Metadata, Tagging: in.Tagging, StorageClass: in.StorageClass,
		ServerSideEncryption: in.ServerSideEncryption, SSECustomerAlgorithm: in.SSECustomerAlgorithm, SSEKMSKeyId: in.SSEKMSKeyId,
		WebsiteRedirectLocation: in.WebsiteRedirectLocation, ObjectLockMode: in.ObjectLockMode, ObjectLockLegalHoldStatus: in.ObjectLockLegalHoldStatus,
	})
	if err != nil {
		return nil, err
	}
	allow, err := s.conditions(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	if err := s.inherit(ctx, in.Bucket, in.ExpectedBucketOwner, &a); err != nil {
		return nil, err
	}
	from, body, err := s.open(ctx, in.CopySource, &s3.GetObjectInput{
		ExpectedBucketOwner: in.ExpectedSourceBucketOwner, IfMatch: in.CopySourceIfMatch, IfNoneMatch: in.CopySourceIfNoneMatch,
		IfModifiedSince: in.CopySourceIfModifiedSince, IfUnmodifiedSince: in.CopySourceIfUnmodifiedSince, SSECustomerAlgorithm: in.CopySourceSSECustomerAlgorithm,
	})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if a, err = copied(in, from, a); err != nil {
		return nil, err
	}
	otherwise := checksum.CRC64NVME
	if c := a.Checksum; c.Value != "" {
		otherwise = c.Algorithm
	}
	f, made, err := s.receive(body, claim{algorithm: in.ChecksumAlgorithm}, otherwise)
	if err != nil {
		return nil, err
	}
	a.Checksum = made
	o := &objects.Object{Bucket: *in.Bucket, Key: *in.Key, ETag: f.ETag, Attributes: a.encode()}
	if err := s.store.Put(ctx, o, []*objects.File{f}, objects.Conditions{Allow: allow, Owe: s.owe(ctx, "ObjectCreated:Copy")}); err != nil {
		return nil, s.asError(err, o.Bucket, o.Key)
	}
	c := made.wire()
	return &s3.CopyObjectOutput{ServerSideEncryption: a.encryption(), CopyObjectResult: &types.CopyObjectResult{
		ETag: quoted(o.ETag), LastModified: &o.Modified, ChecksumType: c.ChecksumType,
		ChecksumCRC32: c.ChecksumCRC32, ChecksumCRC32C: c.ChecksumCRC32C, ChecksumCRC64NVME: c.ChecksumCRC64NVME, ChecksumSHA1: c.ChecksumSHA1, ChecksumSHA256: c.ChecksumSHA256,
	}}, nil
}

func checkDirectives(in *s3.CopyObjectInput) error {
	switch in.MetadataDirective {
	case "", types.MetadataDirectiveCopy, types.MetadataDirectiveReplace:
	default:
		return invalidArgument("x-amz-metadata-directive", string(in.MetadataDirective), "Unknown metadata directive.")
	}
	switch in.TaggingDirective {
	case "", types.TaggingDirectiveCopy, types.TaggingDirectiveReplace:
	default:
		return invalidArgument("x-amz-tagging-directive", string(in.TaggingDirective), "Unknown tagging directive.")
	}
	return nil
}

// copied is what describes the copy: what describes its source, but for what is replaced.
func copied(in *s3.CopyObjectInput, from *objects.Object, asked attributes) (attributes, error) {
	a, err := attributesOf(from.Attributes)
	if err != nil {
		return a, err
	}
	same := from.Bucket == *in.Bucket && from.Key == *in.Key
	replaces := in.MetadataDirective == types.MetadataDirectiveReplace
	if same && !replaces && in.StorageClass == "" && in.ServerSideEncryption == "" && in.ChecksumAlgorithm == "" {
		return a, refuse(400, "InvalidRequest", "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.")
	}
	tags, sum := a.Tags, a.Checksum
	if replaces {
		a = asked
	}
	a.Tags, a.Checksum, a.StorageClass, a.Encryption, a.UploadID = tags, sum, asked.StorageClass, asked.Encryption, ""
	if in.TaggingDirective == types.TaggingDirectiveReplace {
		a.Tags = asked.Tags
	}
	return a, nil
}
