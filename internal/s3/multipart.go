package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
)

// Limits of multipart uploads; see "Amazon S3 multipart upload limits" in S3's guide.
const (
	maxParts = 10000
	minPart  = 5 << 20
)

// upload describes a multipart upload until it becomes an object.
type upload struct {
	Object    attributes
	Algorithm checksum.Algorithm // of the parts' checksums
	Composite bool               // whether the object's checksum covers the parts' checksums, and not the bytes
	Named     bool               // whether the caller chose the algorithm
	Existed   bool               // whether the key had an object when the upload began
}

func (u upload) kind() types.ChecksumType {
	if u.Composite {
		return types.ChecksumTypeComposite
	}
	return types.ChecksumTypeFullObject
}

// checksumOf chooses the kind of checksum for an upload.
func checksumOf(algorithm types.ChecksumAlgorithm, kind types.ChecksumType) (u upload, err error) {
	u = upload{Algorithm: checksum.CRC64NVME}
	if algorithm != "" {
		u.Algorithm = checksum.Algorithm(algorithm)
		u.Named = true
	}
	switch {
	case !u.Algorithm.Known() && slices.Contains(algorithm.Values(), algorithm):
		return u, notImplemented("x-amz-checksum-algorithm other than CRC32, CRC32C, CRC64NVME, SHA1 and SHA256")
	case !u.Algorithm.Known():
		return u, errAlgorithm
	case kind != "" && !u.Named:
		return u, refuse(400, "InvalidRequest", "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
	case kind == "":
		u.Composite = u.Algorithm != checksum.CRC64NVME
	case kind == types.ChecksumTypeComposite && u.Algorithm != checksum.CRC64NVME:
		u.Composite = true
	case kind == types.ChecksumTypeFullObject && u.Algorithm.Joins():
	default:
		return u, refuse(
			400, "InvalidRequest", "The %s checksum type cannot be used with the %s checksum algorithm.", kind,
			strings.ToLower(string(u.Algorithm)),
		)
	}
	return u, nil
}

// CreateMultipartUpload is S3's operation.
func (s *Service) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput) (*s3.CreateMultipartUploadOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	b, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	a, err := attributesFrom(uploadAsPut(in))
	if err := cmp.Or(err, a.encryptFor(b)); err != nil {
		return nil, err
	}
	u, err := checksumOf(in.ChecksumAlgorithm, in.ChecksumType)
	if err != nil {
		return nil, err
	}
	if _, err := s.store.Object(ctx, *in.Bucket, *in.Key, ""); err == nil {
		u.Existed = true
	}
	u.Object = a
	text, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	created, err := s.store.CreateUpload(ctx, *in.Bucket, *in.Key, text)
	if err != nil {
		return nil, s.asError(err, *in.Bucket, *in.Key)
	}
	out := &s3.CreateMultipartUploadOutput{Bucket: in.Bucket, Key: in.Key, UploadId: &created.ID}
	out.ServerSideEncryption, out.SSECustomerAlgorithm, out.SSECustomerKeyMD5 = a.report()
	if u.Named {
		out.ChecksumAlgorithm = types.ChecksumAlgorithm(u.Algorithm)
		out.ChecksumType = u.kind()
	}
	return out, nil
}

// uploadAsPut returns an upload's description of the new object in the form of a put.
func uploadAsPut(in *s3.CreateMultipartUploadInput) *s3.PutObjectInput {
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

// upload finds an upload.
func (s *Service) findUpload(ctx context.Context, bucket, key, id, expectedOwner *string) (*objects.Upload, upload, error) {
	var u upload
	if err := checkKey(key); err != nil {
		return nil, u, err
	}
	if err := s.checkOwner(expectedOwner); err != nil {
		return nil, u, err
	}
	found, err := s.store.Upload(ctx, *bucket, *key, aws.ToString(id))
	if err != nil {
		return nil, u, s.asUploadError(err, &objects.Upload{Bucket: *bucket, Key: *key, ID: aws.ToString(id)})
	}
	return found, u, json.Unmarshal(found.Attributes, &u)
}

// asUploadError translates the object store's errors about an upload into S3's.
func (s *Service) asUploadError(err error, u *objects.Upload) error {
	if errors.Is(err, objects.ErrNoUpload) {
		return noSuchUpload(u.ID)
	}
	return s.asError(err, u.Bucket, u.Key)
}

// UploadPart is S3's operation.
func (s *Service) UploadPart(ctx context.Context, in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	key, err := newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, "")
	if err != nil {
		return nil, err
	}
	into, u, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	computed, f, err := s.receivePart(ctx, into, u, in.PartNumber, in.Body, claim{
		key:       key,
		length:    in.ContentLength,
		md5:       in.ContentMD5,
		algorithm: in.ChecksumAlgorithm,
		values: types.Checksum{
			ChecksumCRC32:     in.ChecksumCRC32,
			ChecksumCRC32C:    in.ChecksumCRC32C,
			ChecksumCRC64NVME: in.ChecksumCRC64NVME,
			ChecksumSHA1:      in.ChecksumSHA1,
			ChecksumSHA256:    in.ChecksumSHA256,
		},
		other: []*string{in.ChecksumMD5, in.ChecksumSHA512, in.ChecksumXXHASH3, in.ChecksumXXHASH64, in.ChecksumXXHASH128},
	})
	if err != nil {
		return nil, err
	}
	c := computed.wire()
	encryption, algorithm, keyMD5 := attributes{key: key, Encryption: u.Object.Encryption}.report()
	return &s3.UploadPartOutput{
		ServerSideEncryption: encryption,
		SSECustomerAlgorithm: algorithm,
		SSECustomerKeyMD5:    keyMD5,
		ETag:                 quoted(f.ETag),
		ChecksumCRC32:        c.ChecksumCRC32,
		ChecksumCRC32C:       c.ChecksumCRC32C,
		ChecksumCRC64NVME:    c.ChecksumCRC64NVME,
		ChecksumSHA1:         c.ChecksumSHA1,
		ChecksumSHA256:       c.ChecksumSHA256,
	}, nil
}

// receivePart receives a part of an upload. The stored part has a checksum of the upload's algorithm, from which the object's
// checksum is computed.
func (s *Service) receivePart(
	ctx context.Context, into *objects.Upload, u upload, number *int32, body io.Reader, c claim,
) (sum, *objects.File, error) {
	n := int(aws.ToInt32(number))
	if n < 1 || n > maxParts {
		return sum{}, nil, invalidArgument("partNumber", strconv.Itoa(n), "Part number must be an integer between 1 and 10000, inclusive")
	}
	if err := checkPartKey(u.Object.Lock, c.key); err != nil {
		return sum{}, nil, err
	}
	if body == nil {
		body = strings.NewReader("")
	}
	c.part = true
	if sent := c.choose(body, u.Algorithm); sent != u.Algorithm {
		if u.Named {
			return sum{}, nil, refuse(
				400, "InvalidRequest", "Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s",
				strings.ToLower(string(u.Algorithm)), strings.ToLower(string(sent)),
			)
		}
		body = &secondSum{Reader: body, with: u.Algorithm, hash: u.Algorithm.New()}
	}
	f, computed, err := s.receive(body, c, u.Algorithm)
	if err != nil {
		return sum{}, nil, err
	}
	if also, ok := body.(*secondSum); ok {
		f.Checksum = string(also.with) + ":" + checksum.Of(also.hash)
	}
	f.Number = n
	return computed, f, s.asUploadError(s.store.PutPart(ctx, into, f), into)
}

// UploadPartCopy is S3's operation.
func (s *Service) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput) (*s3.UploadPartCopyOutput, error) {
	key, err := newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, "")
	if err != nil {
		return nil, err
	}
	into, u, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	source, body, err := s.openSource(ctx, in.CopySource, &s3.GetObjectInput{
		ExpectedBucketOwner:  in.ExpectedSourceBucketOwner,
		Range:                in.CopySourceRange,
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
	computed, f, err := s.receivePart(ctx, into, u, in.PartNumber, body, claim{key: key})
	if err != nil {
		return nil, err
	}
	if !u.Named {
		computed = sum{}
	}
	c := computed.wire()
	encryption, algorithm, keyMD5 := attributes{key: key, Encryption: u.Object.Encryption}.report()
	return &s3.UploadPartCopyOutput{
		CopySourceVersionId:  writtenVersion(source),
		ServerSideEncryption: encryption,
		SSECustomerAlgorithm: algorithm,
		SSECustomerKeyMD5:    keyMD5,
		CopyPartResult: &types.CopyPartResult{
			ETag:              quoted(f.ETag),
			LastModified:      &f.Modified,
			ChecksumCRC32:     c.ChecksumCRC32,
			ChecksumCRC32C:    c.ChecksumCRC32C,
			ChecksumCRC64NVME: c.ChecksumCRC64NVME,
			ChecksumSHA1:      c.ChecksumSHA1,
			ChecksumSHA256:    c.ChecksumSHA256,
		},
	}, nil
}

// AbortMultipartUpload is S3's operation.
func (s *Service) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput) (*s3.AbortMultipartUploadOutput, error) {
	u, _, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	return &s3.AbortMultipartUploadOutput{}, s.asUploadError(s.store.Abort(ctx, u.Bucket, u.Key, u.ID), u)
}
