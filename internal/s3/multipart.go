package s3

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

// CompleteMultipartUpload is S3's operation.
func (s *Service) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput,
) (*s3.CompleteMultipartUploadOutput, error) {
	if err := checkWriteConditions(in.IfMatch, in.IfNoneMatch); err != nil {
		return nil, err
	}
	from, u, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if e, ok := err.(*apiError); ok && e.code == "NoSuchUpload" {
		return s.answerRepeated(ctx, in, err)
	}
	if err != nil {
		return nil, err
	}
	if in.MultipartUpload == nil {
		return nil, refuse(400, "InvalidRequest", "You must specify at least one part")
	}
	if n := len(in.MultipartUpload.Parts); n == 0 || n > maxParts {
		return nil, malformedXML("CompleteMultipartUpload must have 1 to 10000 parts")
	}
	if err := cmp.Or(checkCompletionKey(in, u.Object.Lock), refuseOtherSums(otherSums(in))); err != nil {
		return nil, err
	}
	if in.ChecksumType != "" && u.Named && in.ChecksumType != u.kind() {
		return nil, refuse(
			400, "InvalidRequest",
			"The upload was created using the %s checksum mode. The complete request must use the same checksum mode.", u.kind(),
		)
	}
	if err := u.checkPartSums(in.MultipartUpload.Parts); err != nil {
		return nil, err
	}
	u.Object.UploadID = from.ID
	o := &objects.Object{Bucket: *in.Bucket, Key: *in.Key, Parts: len(in.MultipartUpload.Parts)}
	choose := func(have []*objects.File) ([]*objects.File, error) {
		chosen, err := chooseParts(from.ID, in.MultipartUpload.Parts, have)
		if err != nil {
			return nil, err
		}
		o.ETag = etagOf(chosen)
		if u.Object.Checksum, err = u.joinChecksums(chosen); err != nil {
			return nil, err
		}
		o.Attributes = u.Object.encode()
		return chosen, checkWhole(in, u.Object.Checksum, chosen)
	}
	err = s.store.Complete(ctx, from, o, choose, objects.Conditions{
		Allow: completionConditions(in, from, u),
		Owe:   s.owe(ctx, "ObjectCreated:CompleteMultipartUpload"),
	})
	if errors.Is(err, objects.ErrNoUpload) { // another call completed or aborted it first
		return s.answerRepeated(ctx, in, noSuchUpload(from.ID))
	}
	if err != nil {
		return nil, s.asError(err, o.Bucket, o.Key)
	}
	return s.completion(ctx, in, o, u.Object)
}

// checkCompletionKey refuses another key than the upload's. A completion may come without one.
func checkCompletionKey(in *s3.CompleteMultipartUploadInput, l *lock) error {
	key, err := newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, "")
	if err != nil || key == nil {
		return err
	}
	return checkPartKey(l, key)
}

// completionConditions returns a check of a completion's conditions. One that holds still conflicts with what happened to the key since the
// upload began.
func completionConditions(
	in *s3.CompleteMultipartUploadInput, from *objects.Upload, u upload,
) func(*objects.Bucket, *objects.Object) error {
	allow := conditions(in.Key, in.IfMatch, in.IfNoneMatch)
	return func(b *objects.Bucket, now *objects.Object) error {
		if err := allow(b, now); err != nil {
			return err
		}
		switch {
		case in.IfMatch != nil && now.Modified.After(from.Started):
			return conditionConflict("If-Match", from.Key)
		case in.IfNoneMatch != nil && u.Existed:
			return conditionConflict("If-None-Match", from.Key)
		}
		return nil
	}
}

func conditionConflict(condition, key string) error {
	return &apiError{
		code:    "ConditionalRequestConflict",
		message: "The conditional request cannot succeed due to a conflicting operation against this resource.",
		status:  409,
		detail:  map[string]string{"Condition": condition, "Key": key},
	}
}

func (s *Service) completion(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, o *objects.Object, a attributes,
) (*s3.CompleteMultipartUploadOutput, error) {
	b, err := s.bucket(ctx, in.Bucket, nil)
	if err != nil {
		return nil, err
	}
	c := a.Checksum.wire()
	return &s3.CompleteMultipartUploadOutput{
		Bucket:               in.Bucket,
		Key:                  in.Key,
		ETag:                 quoted(o.ETag),
		VersionId:            writtenVersion(o),
		Expiration:           expiration(b, o, a),
		Location:             aws.String("/" + *in.Bucket + "/" + urlEncode(*in.Key)),
		ServerSideEncryption: a.completed(),
		ChecksumType:         c.ChecksumType,
		ChecksumCRC32:        c.ChecksumCRC32,
		ChecksumCRC32C:       c.ChecksumCRC32C,
		ChecksumCRC64NVME:    c.ChecksumCRC64NVME,
		ChecksumSHA1:         c.ChecksumSHA1,
		ChecksumSHA256:       c.ChecksumSHA256,
	}, nil
}

// completed returns the encryption that a completed upload reports: none if a customer's key did it.
func (a attributes) completed() types.ServerSideEncryption {
	if a.Lock != nil {
		return ""
	}
	return cmp.Or(a.Encryption, types.ServerSideEncryptionAes256)
}

// answerRepeated answers a call that the client repeats because the first answer was lost. If the object isn't from this
// upload, it returns refusal.
func (s *Service) answerRepeated(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, refusal error,
) (*s3.CompleteMultipartUploadOutput, error) {
	o, err := s.store.Object(ctx, *in.Bucket, *in.Key, "")
	if err != nil {
		return nil, refusal
	}
	if a, err := attributesOf(o.Attributes); err == nil && a.UploadID != "" && a.UploadID == aws.ToString(in.UploadId) {
		return s.completion(ctx, in, o, a)
	}
	return nil, refusal
}

// chooseParts finds the parts that a call names among those that were uploaded.
func chooseParts(upload string, named []types.CompletedPart, have []*objects.File) ([]*objects.File, error) {
	byNumber := make(map[int]*objects.File, len(have))
	for _, f := range have {
		byNumber[f.Number] = f
	}
	var chosen []*objects.File
	for i, p := range named {
		n := int(aws.ToInt32(p.PartNumber))
		if p.PartNumber == nil || p.ETag == nil {
			return nil, malformedXML("a Part needs PartNumber and ETag")
		}
		if i > 0 && n <= chosen[i-1].Number {
			return nil, &apiError{
				code:    "InvalidPartOrder",
				message: "The list of parts was not in ascending order. Parts must be ordered by part number.",
				status:  400,
				detail:  map[string]string{"UploadId": upload},
			}
		}
		f := byNumber[n]
		etag := strings.Trim(*p.ETag, `"`)
		if f == nil || etag != f.ETag || !checksumMatches(p, sumOf(f)) {
			return nil, &apiError{
				code:   "InvalidPart",
				status: 400,
				detail: map[string]string{"PartNumber": strconv.Itoa(n), "ETag": etag, "UploadId": upload},
				message: "One or more of the specified parts could not be found.  The part may not have been uploaded, or the " +
					"specified entity tag may not match the part's entity tag.",
			}
		}
		if i > 0 && chosen[i-1].Size < minPart {
			small := chosen[i-1]
			return nil, &apiError{
				code:    "EntityTooSmall",
				message: "Your proposed upload is smaller than the minimum allowed size",
				status:  400,
				detail: map[string]string{
					"ProposedSize": strconv.FormatInt(small.Size, 10), "MinSizeAllowed": strconv.Itoa(minPart),
					"PartNumber": strconv.Itoa(small.Number), "ETag": small.ETag,
				},
			}
		}
		chosen = append(chosen, f)
	}
	return chosen, nil
}

// checksumMatches reports whether a part has the checksum that the call names. A call may name none.
func checksumMatches(p types.CompletedPart, computed sum) bool {
	want := partSum(p, computed.Algorithm)
	return want == nil || *want == computed.Value
}

// partSum returns the checksum that a call names for a part, nil if there is none of this algorithm.
func partSum(p types.CompletedPart, a checksum.Algorithm) *string {
	c := types.Checksum{
		ChecksumCRC32:     p.ChecksumCRC32,
		ChecksumCRC32C:    p.ChecksumCRC32C,
		ChecksumCRC64NVME: p.ChecksumCRC64NVME,
		ChecksumSHA1:      p.ChecksumSHA1,
		ChecksumSHA256:    p.ChecksumSHA256,
	}
	return *value(&c, a)
}

// checkPartSums refuses a completion that doesn't name each part's checksum, if the caller chose one that is computed from them.
func (u upload) checkPartSums(named []types.CompletedPart) error {
	if !u.Named || !u.Composite {
		return nil
	}
	for _, p := range named {
		n := aws.ToInt32(p.PartNumber)
		for _, a := range checksum.Algorithms {
			if a != u.Algorithm && partSum(p, a) != nil {
				return refuse(
					400, "BadDigest", "The %s you specified for part %d did not match what we received.", strings.ToLower(string(a)), n,
				)
			}
		}
		if partSum(p, u.Algorithm) == nil {
			return refuse(
				400, "InvalidRequest", "The upload was created using a %s checksum. The complete request must include the checksum for "+
					"each part. It was missing for part %d in the request.", strings.ToLower(string(u.Algorithm)), n,
			)
		}
	}
	return nil
}

// etagOf returns the ETag of a completed upload: the MD5 of the parts' MD5s, and their number.
func etagOf(parts []*objects.File) string {
	h := md5.New()
	for _, f := range parts {
		b, _ := hex.DecodeString(f.ETag) // receive wrote it as hex
		h.Write(b)
	}
	return fmt.Sprintf("%x-%d", h.Sum(nil), len(parts))
}

// joinChecksums returns the checksum of a completed upload.
func (u upload) joinChecksums(parts []*objects.File) (sum, error) {
	computed := sum{Algorithm: u.Algorithm, Composite: u.Composite}
	var err error
	if u.Composite {
		var values []string
		for _, f := range parts {
			values = append(values, sumOf(f).Value)
		}
		computed.Value, err = u.Algorithm.Composite(values)
		return computed, err
	}
	var values []checksum.Part
	for _, f := range parts {
		values = append(values, checksum.Part{Sum: sumOf(f).Value, Size: f.Size})
	}
	computed.Value, err = u.Algorithm.Join(values)
	return computed, err
}

// otherSums returns the checksums in a completion of algorithms that Pintle doesn't have.
func otherSums(in *s3.CompleteMultipartUploadInput) []*string {
	all := []*string{in.ChecksumMD5, in.ChecksumSHA512, in.ChecksumXXHASH3, in.ChecksumXXHASH64, in.ChecksumXXHASH128}
	for _, p := range in.MultipartUpload.Parts {
		all = append(all, p.ChecksumMD5, p.ChecksumSHA512, p.ChecksumXXHASH3, p.ChecksumXXHASH64, p.ChecksumXXHASH128)
	}
	return all
}

// checkWhole compares a completed upload with the checksum and size that the call names.
func checkWhole(in *s3.CompleteMultipartUploadInput, computed sum, parts []*objects.File) error {
	c := types.Checksum{
		ChecksumCRC32:     in.ChecksumCRC32,
		ChecksumCRC32C:    in.ChecksumCRC32C,
		ChecksumCRC64NVME: in.ChecksumCRC64NVME,
		ChecksumSHA1:      in.ChecksumSHA1,
		ChecksumSHA256:    in.ChecksumSHA256,
	}
	if want := *value(&c, computed.Algorithm); want != nil && *want != computed.Value &&
		!(computed.Composite && strings.HasPrefix(computed.Value, *want+"-")) {
		return refuse(400, "BadDigest", "The %s you specified did not match the calculated checksum.", computed.Algorithm)
	}
	var size int64
	for _, f := range parts {
		size += f.Size
	}
	if in.MpuObjectSize != nil && *in.MpuObjectSize != size {
		return refuse(
			400, "InvalidRequest", "The provided 'x-amz-mp-object-size' header value %d does not match what was computed: %d",
			*in.MpuObjectSize, size,
		)
	}
	return nil
}

// AbortMultipartUpload is S3's operation.
func (s *Service) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput) (*s3.AbortMultipartUploadOutput, error) {
	u, _, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	return &s3.AbortMultipartUploadOutput{}, s.asUploadError(s.store.Abort(ctx, u.Bucket, u.Key, u.ID), u)
}

// partsPage returns the part number after which a page begins, and the page's length.
func partsPage(marker *string, asked *int32) (after, limit int, err error) {
	if after, err = strconv.Atoi(aws.ToString(marker)); marker != nil && *marker != "" && (err != nil || after < 0) {
		return 0, 0, invalidArgument(
			"part-number-marker", *marker, "Argument part-number-marker must be an integer between 0 and 2147483647",
		)
	}
	limit, err = pageSize("max-parts", asked)
	return after, limit, err
}

// ListParts is S3's operation.
func (s *Service) ListParts(ctx context.Context, in *s3.ListPartsInput) (*s3.ListPartsOutput, error) {
	of, u, err := s.findUpload(ctx, in.Bucket, in.Key, in.UploadId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	after, limit, err := partsPage(in.PartNumberMarker, in.MaxParts)
	if err != nil {
		return nil, err
	}
	files, err := s.store.Parts(ctx, of, after, limit+1)
	if err != nil {
		return nil, err
	}
	out := &s3.ListPartsOutput{
		Bucket:               in.Bucket,
		Key:                  in.Key,
		UploadId:             in.UploadId,
		PartNumberMarker:     aws.String(strconv.Itoa(after)),
		MaxParts:             aws.Int32(int32(limit)),
		IsTruncated:          aws.Bool(len(files) > limit),
		StorageClass:         types.StorageClass(classOf(u.Object)),
		Owner:                s.owner(),
		Initiator:            s.initiator(),
		NextPartNumberMarker: aws.String("0"),
	}
	if u.Named {
		out.ChecksumAlgorithm = types.ChecksumAlgorithm(u.Algorithm)
		out.ChecksumType = u.kind()
	}
	for _, f := range files[:min(limit, len(files))] {
		p := types.Part{PartNumber: aws.Int32(int32(f.Number)), ETag: quoted(f.ETag), Size: &f.Size, LastModified: &f.Modified}
		if u.Named {
			c := sumOf(f).wire()
			p.ChecksumCRC32 = c.ChecksumCRC32
			p.ChecksumCRC32C = c.ChecksumCRC32C
			p.ChecksumCRC64NVME = c.ChecksumCRC64NVME
			p.ChecksumSHA1 = c.ChecksumSHA1
			p.ChecksumSHA256 = c.ChecksumSHA256
		}
		out.Parts = append(out.Parts, p)
		out.NextPartNumberMarker = aws.String(strconv.Itoa(f.Number))
	}
	return out, nil
}

func (s *Service) initiator() *types.Initiator { return &types.Initiator{ID: s.owner().ID} }

// ListMultipartUploads is S3's operation.
func (s *Service) ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput) (*s3.ListMultipartUploadsOutput, error) {
	limit, err := pageSize("max-uploads", in.MaxUploads)
	if err != nil {
		return nil, err
	}
	encode, err := encoder(in.EncodingType)
	if err != nil {
		return nil, err
	}
	if err := s.checkOwner(in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	all, err := s.uploads(ctx, in, limit+1)
	if err != nil {
		return nil, s.asError(err, *in.Bucket, "")
	}
	out := &s3.ListMultipartUploadsOutput{
		Bucket:         in.Bucket,
		Prefix:         encodeNonEmpty(encode, in.Prefix),
		Delimiter:      encodeNonEmpty(encode, in.Delimiter),
		KeyMarker:      encode(aws.ToString(in.KeyMarker)),
		UploadIdMarker: aws.String(""),
		MaxUploads:     aws.Int32(int32(limit)),
		EncodingType:   in.EncodingType,
		IsTruncated:    aws.Bool(len(all) > limit),

		NextKeyMarker:      aws.String(""), // there even without a next page
		NextUploadIdMarker: aws.String(""),
	}
	if *out.KeyMarker != "" { // otherwise S3 ignores the other marker
		out.UploadIdMarker = aws.String(aws.ToString(in.UploadIdMarker))
	}
	for _, u := range all[:min(limit, len(all))] {
		if u.ID != "" || *out.IsTruncated {
			out.NextKeyMarker = encode(u.Key)
			out.NextUploadIdMarker = &u.ID
		}
		if u.ID == "" {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: encode(u.Key)})
			continue
		}
		listed, err := s.listedUpload(u)
		if err != nil {
			return nil, err
		}
		listed.Key = encode(u.Key)
		out.Uploads = append(out.Uploads, *listed)
	}
	return out, nil
}

// afterAll is greater than every upload's ID, and at the end of a prefix greater than every key with it: keys are UTF-8, which lacks it.
const afterAll = "\xff"

// uploads returns up to limit uploads and common prefixes after a call's markers, in the order of their keys. A common prefix is an upload
// without an ID.
func (s *Service) uploads(ctx context.Context, in *s3.ListMultipartUploadsInput, limit int) (listed []*objects.Upload, err error) {
	prefix, delimiter := aws.ToString(in.Prefix), aws.ToString(in.Delimiter)
	key, id := aws.ToString(in.KeyMarker), aws.ToString(in.UploadIdMarker)
	if common := objects.CommonPrefix(key, prefix, delimiter); common != "" {
		key, id = common+afterAll, afterAll // a page before has listed it
	} else if key != "" && id == "" {
		id = afterAll
	}
	for len(listed) < limit {
		batch, err := s.store.Uploads(ctx, *in.Bucket, prefix, key, id, limit-len(listed))
		if err != nil || len(batch) == 0 {
			return listed, err
		}
		for _, u := range batch {
			key, id = u.Key, u.ID
			if common := objects.CommonPrefix(u.Key, prefix, delimiter); common != "" {
				listed = append(listed, &objects.Upload{Key: common})
				key, id = common+afterAll, afterAll
				break
			}
			listed = append(listed, u)
		}
	}
	return listed, nil
}

// listedUpload describes an upload, without its key.
func (s *Service) listedUpload(u *objects.Upload) (*types.MultipartUpload, error) {
	var d upload
	if err := json.Unmarshal(u.Attributes, &d); err != nil {
		return nil, err
	}
	listed := &types.MultipartUpload{
		UploadId:     &u.ID,
		Initiated:    &u.Started,
		StorageClass: types.StorageClass(classOf(d.Object)),
		Owner:        s.owner(),
		Initiator:    s.initiator(),
	}
	if d.Named {
		listed.ChecksumAlgorithm = types.ChecksumAlgorithm(d.Algorithm)
		listed.ChecksumType = d.kind()
	}
	return listed, nil
}
