package s3

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

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
		Location:             locationOf(ctx, *in.Bucket, *in.Key),
		ServerSideEncryption: a.completed(),
		ChecksumType:         c.ChecksumType,
		ChecksumCRC32:        c.ChecksumCRC32,
		ChecksumCRC32C:       c.ChecksumCRC32C,
		ChecksumCRC64NVME:    c.ChecksumCRC64NVME,
		ChecksumSHA1:         c.ChecksumSHA1,
		ChecksumSHA256:       c.ChecksumSHA256,
	}, nil
}

// locationOf returns an object's URL as its caller reaches us.
func locationOf(ctx context.Context, bucket, key string) *string {
	url := call.From(ctx).Endpoint
	if _, host, _ := strings.Cut(url, "://"); awsname.BucketOf(host) == "" {
		url += "/" + bucket
	}
	return aws.String(url + "/" + urlEncode(key))
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
