package s3

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
)

// parseSource parses x-amz-copy-source: an escaped bucket/key, with an optional version.
func parseSource(text string) (bucket, key string, version *string, err error) {
	if text == "" {
		return "", "", nil, invalidArgument("x-amz-copy-source", "", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
	}
	path, query, _ := strings.Cut(text, "?versionId=")
	if query != "" {
		version = &query
	}
	path, err = url.QueryUnescape(path) // S3 reads a plus as a space here
	bucket, key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if err != nil || bucket == "" || key == "" {
		return "", "", nil, invalidArgument("x-amz-copy-source", "x-amz-copy-source", "Invalid copy source object key")
	}
	return bucket, key, version, checkKey(&key)
}

// openSource opens a copy's source. get has the conditions and the range to read.
func (s *Service) openSource(ctx context.Context, copySource *string, get *s3.GetObjectInput) (*objects.Object, io.ReadCloser, error) {
	bucket, key, version, err := parseSource(aws.ToString(copySource))
	if err != nil {
		return nil, nil, err
	}
	get.Key = &key
	get.VersionId = version
	if err := s.checkReading(get); err != nil {
		return nil, nil, err
	}
	sourceKey, err := readKey(get)
	if err != nil {
		return nil, nil, err
	}
	var files []*objects.File
	var want objects.Stretch
	o, body, err := s.store.Read(ctx, bucket, key, aws.ToString(version), func(o *objects.Object) (_ objects.Stretch, err error) {
		if files, err = s.encryptedFiles(ctx, o, sourceKey); err != nil {
			return objects.Stretch{}, err
		}
		if err := checkCopyRange(get.Range, o.Size); err != nil {
			return objects.Stretch{}, err
		}
		want, err = s.selectRange(get, o)
		if e, ok := err.(*apiError); ok && e.detail["Condition"] != "" {
			err = preconditionFailed("x-amz-copy-source-" + e.detail["Condition"]) // a copy has one answer for all failed conditions
		}
		if err == nil && want.Length > maxPut {
			err = refuse(
				400, "InvalidRequest", "The specified copy source is larger than the maximum allowable size for a copy source: %d",
				int64(maxPut),
			)
		}
		return want, err
	})
	if e, ok := errors.AsType[*objects.DeletedError](err); ok && e.Named {
		return nil, nil, refuse(
			400, "InvalidRequest", "The source of a copy request may not specifically refer to a delete marker by version id.",
		)
	}
	if err != nil {
		return nil, nil, s.asVersionError(err, bucket, key, version, http.MethodGet)
	}
	return o, decrypt(body, sourceKey, files, want.From), nil
}

// checkCopyRange checks x-amz-copy-source-range, which unlike a Range must name both ends, and lie inside the source.
func checkCopyRange(text *string, size int64) error {
	if text == nil {
		return nil
	}
	first, last, whole := copyRange(*text)
	switch {
	case !whole:
		return invalidArgument(
			"x-amz-copy-source-range", *text,
			"The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based "+
				"offsets of the first and last bytes to copy",
		)
	case first >= size:
		return refuse(400, "InvalidRequest", "The specified copy range is invalid for the source object size")
	case last >= size:
		return invalidArgument("x-amz-copy-source-range", *text, "Range specified is not valid for source object of size: %d", size)
	}
	return nil
}

// copyRange returns the ends of a range that has both, in their order.
func copyRange(text string) (first, last int64, ok bool) {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil || m[1] == "" || m[2] == "" {
		return 0, 0, false
	}
	first, _ = strconv.ParseInt(m[1], 10, 64)
	last, _ = strconv.ParseInt(m[2], 10, 64)
	return first, last, first <= last
}

// CopyObject is S3's operation.
func (s *Service) CopyObject(ctx context.Context, in *s3.CopyObjectInput) (*s3.CopyObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	b, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if err := checkDirectives(in); err != nil {
		return nil, err
	}
	a, err := attributesFrom(copyAsPut(in))
	if err := cmp.Or(err, a.encryptFor(b)); err != nil {
		return nil, err
	}
	if err := checkWriteConditions(in.IfMatch, in.IfNoneMatch); err != nil {
		return nil, err
	}
	from, body, err := s.openSource(ctx, in.CopySource, &s3.GetObjectInput{
		ExpectedBucketOwner:  in.ExpectedSourceBucketOwner,
		IfMatch:              in.CopySourceIfMatch,
		IfNoneMatch:          in.CopySourceIfNoneMatch,
		IfModifiedSince:      in.CopySourceIfModifiedSince,
		IfUnmodifiedSince:    in.CopySourceIfUnmodifiedSince,
		SSECustomerAlgorithm: in.CopySourceSSECustomerAlgorithm,
		SSECustomerKey:       in.CopySourceSSECustomerKey,
		SSECustomerKeyMD5:    in.CopySourceSSECustomerKeyMD5,
	})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if a, err = copiedAttributes(in, b, from, a); err != nil {
		return nil, err
	}
	otherwise := checksum.CRC64NVME
	if c := a.Checksum; c.Value != "" {
		otherwise = c.Algorithm
	}
	f, computed, err := s.receive(body, claim{key: a.key, algorithm: in.ChecksumAlgorithm}, otherwise)
	if err != nil {
		return nil, err
	}
	a.Checksum = computed
	o := &objects.Object{Bucket: *in.Bucket, Key: *in.Key, ETag: f.ETag, Attributes: a.encode()}
	allowed := objects.Conditions{Allow: conditions(in.Key, in.IfMatch, in.IfNoneMatch), Owe: s.owe(ctx, "ObjectCreated:Copy")}
	if err := s.store.Put(ctx, o, []*objects.File{f}, allowed); err != nil {
		return nil, s.asError(err, o.Bucket, o.Key)
	}
	encryption, algorithm, keyMD5 := a.report()
	return &s3.CopyObjectOutput{
		ServerSideEncryption: encryption,
		SSECustomerAlgorithm: algorithm,
		SSECustomerKeyMD5:    keyMD5,
		VersionId:            readVersion(b, o), // a copy's answer tells the null version, too
		CopySourceVersionId:  writtenVersion(from),
		Expiration:           expiration(b, o, a),
		CopyObjectResult:     copyResult(o, computed.wire()),
	}, nil
}

func copyResult(o *objects.Object, c types.Checksum) *types.CopyObjectResult {
	return &types.CopyObjectResult{
		ETag:              quoted(o.ETag),
		LastModified:      &o.Modified,
		ChecksumType:      c.ChecksumType,
		ChecksumCRC32:     c.ChecksumCRC32,
		ChecksumCRC32C:    c.ChecksumCRC32C,
		ChecksumCRC64NVME: c.ChecksumCRC64NVME,
		ChecksumSHA1:      c.ChecksumSHA1,
		ChecksumSHA256:    c.ChecksumSHA256,
	}
}

// copyAsPut returns a copy's description of the new object in the form of a put.
func copyAsPut(in *s3.CopyObjectInput) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		ACL:                       in.ACL,
		GrantFullControl:          in.GrantFullControl,
		GrantRead:                 in.GrantRead,
		GrantReadACP:              in.GrantReadACP,
		GrantWriteACP:             in.GrantWriteACP,
		ContentType:               in.ContentType,
		ContentEncoding:           in.ContentEncoding,
		ContentDisposition:        in.ContentDisposition,
		ContentLanguage:           in.ContentLanguage,
		CacheControl:              in.CacheControl,
		Expires:                   in.Expires,
		Metadata:                  in.Metadata,
		Tagging:                   in.Tagging,
		StorageClass:              in.StorageClass,
		ServerSideEncryption:      in.ServerSideEncryption,
		SSECustomerAlgorithm:      in.SSECustomerAlgorithm,
		SSECustomerKey:            in.SSECustomerKey,
		SSECustomerKeyMD5:         in.SSECustomerKeyMD5,
		SSEKMSKeyId:               in.SSEKMSKeyId,
		WebsiteRedirectLocation:   in.WebsiteRedirectLocation,
		SSEKMSEncryptionContext:   in.SSEKMSEncryptionContext,
		ObjectLockMode:            in.ObjectLockMode,
		ObjectLockRetainUntilDate: in.ObjectLockRetainUntilDate,
		ObjectLockLegalHoldStatus: in.ObjectLockLegalHoldStatus,
	}
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

// copiedAttributes returns the copy's attributes: those of its source, except what the call replaces.
func copiedAttributes(in *s3.CopyObjectInput, b *objects.Bucket, from *objects.Object, asked attributes) (attributes, error) {
	a, err := attributesOf(from.Attributes)
	if err != nil {
		return a, err
	}
	same := from.Bucket == *in.Bucket && from.Key == *in.Key && from.Latest
	replaces := in.MetadataDirective == types.MetadataDirectiveReplace
	if same && !replaces && in.StorageClass == "" && in.ServerSideEncryption == "" && in.ChecksumAlgorithm == "" &&
		a.Lock == nil && asked.Lock == nil && b.Settings[encryption] == nil {
		return a, refuse(
			400, "InvalidRequest",
			"This copy request is illegal because it is trying to copy an object to itself without changing the object's "+
				"metadata, storage class, website redirect location or encryption attributes.",
		)
	}
	tags := a.Tags
	sum := a.Checksum
	if replaces {
		a = asked
	}
	a.Tags = tags
	a.Checksum = sum
	a.StorageClass = asked.StorageClass
	a.UploadID = ""
	a.Lock, a.key, a.Encryption = asked.Lock, asked.key, asked.Encryption
	if in.TaggingDirective == types.TaggingDirectiveReplace {
		a.Tags = asked.Tags
	}
	return a, nil
}
