package s3

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

// Limits of objects.
const (
	maxKey      = 1024
	maxMetadata = 2 << 10
)

func checkKey(key *string) error {
	switch k := aws.ToString(key); {
	case k == "":
		return invalidArgument("Key", "", "Object key is missing")
	case len(k) > maxKey:
		return &apiError{
			code:    "KeyTooLongError",
			message: "Your key is too long",
			status:  400,
			detail:  map[string]string{"Size": strconv.Itoa(len(k)), "MaxSizeAllowed": strconv.Itoa(maxKey)},
		}
	case !utf8.ValidString(k):
		return refuse(400, "InvalidURI", "Couldn't parse the specified URI.")
	}
	return nil
}

// storageClasses are the accepted classes: those whose objects can be read without a restore. Pintle stores all of
// them the same way.
var storageClasses = []types.StorageClass{
	"", types.StorageClassStandard, types.StorageClassReducedRedundancy, types.StorageClassStandardIa, types.StorageClassOnezoneIa,
	types.StorageClassIntelligentTiering, types.StorageClassGlacierIr,
}

// attributesFrom returns the attributes that a put, copy or upload asks for. Callers convert copies and uploads to a
// PutObjectInput.
func attributesFrom(in *s3.PutObjectInput) (a attributes, err error) {
	err = refuseUnsupported(
		unsupported{"x-amz-server-side-encryption-aws-kms-key-id", in.SSEKMSKeyId != nil},
		unsupported{
			"x-amz-server-side-encryption other than AES256 and aws:kms",
			in.ServerSideEncryption != "" && !isServed(in.ServerSideEncryption),
		},
		unsupported{"x-amz-website-redirect-location", in.WebsiteRedirectLocation != nil},
		unsupported{"x-amz-server-side-encryption-context", in.SSEKMSEncryptionContext != nil},
		unsupported{"x-amz-object-lock-mode", in.ObjectLockMode != ""},
		unsupported{"x-amz-object-lock-retain-until-date", in.ObjectLockRetainUntilDate != nil},
		unsupported{"x-amz-object-lock-legal-hold", in.ObjectLockLegalHoldStatus != ""},
	)
	if err != nil {
		return a, err
	}
	if err := checkCanned(string(in.ACL)); err != nil {
		return a, err
	}
	if in.GrantFullControl != nil || in.GrantRead != nil || in.GrantReadACP != nil || in.GrantWriteACP != nil {
		return a, errNoACLs
	}
	if !slices.Contains(storageClasses, in.StorageClass) {
		return a, &apiError{
			code:    "InvalidStorageClass",
			message: "The storage class you specified is not valid",
			status:  400,
			detail:  map[string]string{"StorageClassRequested": string(in.StorageClass)},
		}
	}
	size := 0
	for k, v := range in.Metadata {
		size += len(k) + len(v)
	}
	if size > maxMetadata {
		return a, refuse(400, "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}
	a = attributes{
		ContentType:        aws.ToString(in.ContentType),
		ContentEncoding:    withoutChunked(aws.ToString(in.ContentEncoding)),
		ContentDisposition: aws.ToString(in.ContentDisposition),
		ContentLanguage:    aws.ToString(in.ContentLanguage),
		CacheControl:       aws.ToString(in.CacheControl),
		Expires:            in.Expires,
		Metadata:           in.Metadata,
		Encryption:         in.ServerSideEncryption,
	}
	if in.StorageClass != types.StorageClassStandard {
		a.StorageClass = string(in.StorageClass)
	}
	if a.key, err = newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, in.ServerSideEncryption); err != nil {
		return a, err
	}
	a.Lock = a.key.lock()
	if a.ContentType == "" {
		a.ContentType = "binary/octet-stream"
	}
	a.Tags, err = parseTags(in.Tagging)
	return a, err
}

// isOwnersOnly reports whether a canned ACL grants access to nobody but the owner.
func isOwnersOnly(acl string) bool {
	return acl == "" || acl == string(types.ObjectCannedACLPrivate) || acl == string(types.ObjectCannedACLBucketOwnerFullControl)
}

// checkCanned refuses a canned ACL that grants access to others, and one that S3 doesn't have, for which its error has no message.
func checkCanned(acl string) error {
	switch {
	case isOwnersOnly(acl):
		return nil
	case acl == "log-delivery-write", slices.Contains(types.ObjectCannedACL("").Values(), types.ObjectCannedACL(acl)):
		return errNoACLs
	}
	return invalidArgument("x-amz-acl", acl, "")
}

// withoutChunked removes aws-chunked from a Content-Encoding, because that encodes the request and not the object.
func withoutChunked(encoding string) string {
	parts := slices.DeleteFunc(strings.Split(encoding, ","), func(p string) bool {
		return strings.EqualFold(strings.TrimSpace(p), "aws-chunked")
	})
	return strings.TrimSpace(strings.Join(parts, ","))
}

// parseTags parses x-amz-tagging, which is written as a URL's query.
func parseTags(text *string) ([]types.Tag, error) {
	if aws.ToString(text) == "" {
		return nil, nil
	}
	malformed := invalidArgument(
		"x-amz-tagging", *text,
		"The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.",
	)
	values, err := url.ParseQuery(*text)
	if err != nil {
		return nil, malformed
	}
	var tags []types.Tag
	for k, all := range values {
		if len(all) > 1 || !tagText.MatchString(k) || !tagText.MatchString(all[0]) {
			return nil, malformed
		}
		tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(all[0])})
	}
	account.SortBy(tags, func(t types.Tag) string { return *t.Key })
	return tags, checkTags(tags, maxObjectTags)
}

// checkWriteConditions refuses the conditions that S3 itself doesn't implement for writes.
func checkWriteConditions(ifMatch, ifNoneMatch *string) error {
	const badValue = "We don't accept the provided value of %s header for this API"
	header, why := "", badValue
	switch {
	case ifMatch != nil && ifNoneMatch != nil:
		header, why = "If-Match,If-None-Match", "Multiple conditional request headers present in the request"
	case aws.ToString(ifMatch) == "*":
		header = "If-Match"
	case ifNoneMatch != nil && *ifNoneMatch != "*":
		header = "If-None-Match"
	default:
		return nil
	}
	return &apiError{
		code:    "NotImplemented",
		message: "A header you provided implies functionality that is not implemented",
		status:  http.StatusNotImplemented,
		detail:  map[string]string{"Header": header, "additionalMessage": strings.ReplaceAll(why, "%s", header)},
	}
}

// conditions returns a check of a write's conditions: that the object still has an ETag, or doesn't exist yet.
func conditions(key, ifMatch, ifNoneMatch *string) func(*objects.Bucket, *objects.Object) error {
	return func(_ *objects.Bucket, now *objects.Object) error {
		switch {
		case ifNoneMatch != nil && now != nil:
			return preconditionFailed("If-None-Match")
		case ifMatch == nil:
			return nil
		case now == nil:
			return noSuchKey(*key)
		case !matches(*ifMatch, now.ETag):
			return preconditionFailed("If-Match")
		}
		return nil
	}
}

func preconditionFailed(condition string) error {
	return &apiError{
		code:    "PreconditionFailed",
		message: "At least one of the pre-conditions you specified did not hold",
		status:  412,
		detail:  map[string]string{"Condition": condition},
	}
}

// matches reports whether an ETag is among those that a condition lists.
func matches(condition, etag string) bool {
	for one := range strings.SplitSeq(condition, ",") {
		one = strings.Trim(strings.TrimPrefix(strings.TrimSpace(one), "W/"), `"`)
		if one == "*" || one == etag {
			return true
		}
	}
	return false
}

// putEvent returns the event of a put. An upload by a form has one of its own.
func putEvent(ctx context.Context) string {
	if call.From(ctx).Form {
		return "ObjectCreated:Post"
	}
	return "ObjectCreated:Put"
}

// PutObject is S3's operation.
func (s *Service) PutObject(ctx context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	b, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.WriteOffsetBytes != nil {
		return nil, notImplemented("x-amz-write-offset-bytes")
	}
	a, err := attributesFrom(in)
	if err := cmp.Or(err, a.encryptFor(b)); err != nil {
		return nil, err
	}
	if err := checkWriteConditions(in.IfMatch, in.IfNoneMatch); err != nil {
		return nil, err
	}
	f, computed, err := s.receive(in.Body, claim{
		key:       a.key,
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
	}, checksum.CRC64NVME)
	if err != nil {
		return nil, err
	}
	a.Checksum = computed
	o := &objects.Object{Bucket: *in.Bucket, Key: *in.Key, ETag: f.ETag, Attributes: a.encode()}
	allowed := objects.Conditions{Allow: conditions(in.Key, in.IfMatch, in.IfNoneMatch), Owe: s.owe(ctx, putEvent(ctx))}
	if err := s.store.Put(ctx, o, []*objects.File{f}, allowed); err != nil {
		return nil, s.asError(err, o.Bucket, o.Key)
	}
	c := computed.wire()
	encryption, algorithm, keyMD5 := a.report()
	return &s3.PutObjectOutput{
		ETag:                 quoted(o.ETag),
		VersionId:            writtenVersion(o),
		Expiration:           expiration(b, o, a),
		ServerSideEncryption: encryption,
		SSECustomerAlgorithm: algorithm,
		SSECustomerKeyMD5:    keyMD5,
		ChecksumType:         c.ChecksumType,
		ChecksumCRC32:        c.ChecksumCRC32,
		ChecksumCRC32C:       c.ChecksumCRC32C,
		ChecksumCRC64NVME:    c.ChecksumCRC64NVME,
		ChecksumSHA1:         c.ChecksumSHA1,
		ChecksumSHA256:       c.ChecksumSHA256,
	}, nil
}
