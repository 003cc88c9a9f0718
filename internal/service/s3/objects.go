package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/objectstore"
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
			code: "KeyTooLongError", message: "Your key is too long", status: 400,
			detail: map[string]string{"Size": strconv.Itoa(len(k)), "MaxSizeAllowed": strconv.Itoa(maxKey)},
		}
	case !utf8.ValidString(k):
		return refuse(400, "InvalidURI", "Couldn't parse the specified URI.")
	}
	return nil
}

// storageClasses are those that say how an object is kept, but not that it has to be restored first. All are
// kept alike.
var storageClasses = []types.StorageClass{
	"", types.StorageClassStandard, types.StorageClassReducedRedundancy, types.StorageClassStandardIa, types.StorageClassOnezoneIa, types.StorageClassIntelligentTiering,
}

// description is what the inputs of put, copy and upload say of an object, in the members that they share.
type description struct {
	acl                                        types.ObjectCannedACL
	contentType, encoding, disposition         *string
	language, cacheControl, tags               *string
	expires                                    *time.Time
	metadata                                   map[string]string
	storageClass                               types.StorageClass
	encryption                                 types.ServerSideEncryption
	customerKey, kmsKey, websiteRedirect       *string
	lockMode, legalHold                        string
	grantFull, grantRead, grantACP, grantWrite *string
}

// attributes checks the description.
func (d description) attributes() (a attributes, err error) {
	err = refuseAny(
		wanted{"x-amz-server-side-encryption-customer-algorithm", d.customerKey != nil},
		wanted{"x-amz-server-side-encryption-aws-kms-key-id", d.kmsKey != nil},
		wanted{"x-amz-server-side-encryption other than AES256", d.encryption != "" && d.encryption != types.ServerSideEncryptionAes256},
		wanted{"x-amz-website-redirect-location", d.websiteRedirect != nil}, wanted{"x-amz-object-lock-mode", d.lockMode != ""},
		wanted{"x-amz-object-lock-legal-hold", d.legalHold != ""},
	)
	if err != nil {
		return a, err
	}
	if d.acl != "" && d.acl != types.ObjectCannedACLPrivate && d.acl != types.ObjectCannedACLBucketOwnerFullControl || d.grantFull != nil || d.grantRead != nil || d.grantACP != nil || d.grantWrite != nil {
		return a, errNoACLs
	}
	if !slices.Contains(storageClasses, d.storageClass) {
		return a, refuse(400, "InvalidStorageClass", "The storage class you specified is not valid")
	}
	size := 0
	for k, v := range d.metadata {
		size += len(k) + len(v)
	}
	if size > maxMetadata {
		return a, refuse(400, "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}
	a = attributes{
		ContentType: aws.ToString(d.contentType), ContentEncoding: withoutChunked(aws.ToString(d.encoding)), ContentDisposition: aws.ToString(d.disposition),
		ContentLanguage: aws.ToString(d.language), CacheControl: aws.ToString(d.cacheControl), Expires: d.expires, Metadata: d.metadata,
		Encryption: string(d.encryption),
	}
	if d.storageClass != types.StorageClassStandard {
		a.StorageClass = string(d.storageClass)
	}
	if a.ContentType == "" {
		a.ContentType = "binary/octet-stream"
	}
	a.Tags, err = parseTags(d.tags)
	return a, err
}

// withoutChunked is a Content-Encoding without aws-chunked, which is the request's and not the object's.
func withoutChunked(encoding string) string {
	parts := strings.FieldsFunc(encoding, func(r rune) bool { return r == ',' || r == ' ' })
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.EqualFold(p, "aws-chunked") }), ",")
}

// parseTags reads x-amz-tagging: a URL's query.
func parseTags(text *string) ([]types.Tag, error) {
	if aws.ToString(text) == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(*text)
	if err != nil {
		return nil, invalidArgument("x-amz-tagging", *text, "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.")
	}
	var tags []types.Tag
	for k, all := range values {
		for _, v := range all {
			tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
		}
	}
	slices.SortFunc(tags, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	return tags, checkTags(tags, maxObjectTags)
}

// conditions are a write's: the object has to be there as it says, or not at all.
func (s *Service) conditions(ifMatch, ifNoneMatch *string) (func(*objectstore.Bucket, *objectstore.Object) error, error) {
	if ifNoneMatch != nil && *ifNoneMatch != "*" {
		return nil, notImplemented("If-None-Match other than *")
	}
	return func(_ *objectstore.Bucket, now *objectstore.Object) error {
		switch {
		case ifNoneMatch != nil && now != nil:
			return preconditionFailed("If-None-Match")
		case ifMatch == nil:
			return nil
		case now == nil:
			return refuse(404, "NoSuchKey", "The specified key does not exist.")
		case !matches(*ifMatch, now.ETag):
			return preconditionFailed("If-Match")
		}
		return nil
	}, nil
}

func preconditionFailed(condition string) error {
	return &apiError{
		code: "PreconditionFailed", message: "At least one of the pre-conditions you specified did not hold", status: 412,
		detail: map[string]string{"Condition": condition},
	}
}

// matches says whether an ETag is among those of a condition.
func matches(condition, etag string) bool {
	for one := range strings.SplitSeq(condition, ",") {
		one = strings.Trim(strings.TrimPrefix(strings.TrimSpace(one), "W/"), `"`)
		if one == "*" || one == etag {
			return true
		}
	}
	return false
}

// PutObject is S3's operation.
func (s *Service) PutObject(ctx context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	if in.WriteOffsetBytes != nil {
		return nil, notImplemented("x-amz-write-offset-bytes")
	}
	a, err := description{
		in.ACL, in.ContentType, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Tagging, in.Expires, in.Metadata, in.StorageClass,
		in.ServerSideEncryption, in.SSECustomerAlgorithm, in.SSEKMSKeyId, in.WebsiteRedirectLocation, string(in.ObjectLockMode), string(in.ObjectLockLegalHoldStatus),
		in.GrantFullControl, in.GrantRead, in.GrantReadACP, in.GrantWriteACP,
	}.attributes()
	if err != nil {
		return nil, err
	}
	allow, err := s.conditions(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	into, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	a.inherit(into)
	f, made, err := s.receive(in.Body, claim{
		in.ContentLength, in.ContentMD5, in.ChecksumAlgorithm,
		types.Checksum{ChecksumCRC32: in.ChecksumCRC32, ChecksumCRC32C: in.ChecksumCRC32C, ChecksumCRC64NVME: in.ChecksumCRC64NVME, ChecksumSHA1: in.ChecksumSHA1, ChecksumSHA256: in.ChecksumSHA256},
		[]*string{in.ChecksumMD5, in.ChecksumSHA512, in.ChecksumXXHASH3, in.ChecksumXXHASH64, in.ChecksumXXHASH128},
	}, checksum.CRC64NVME)
	if err != nil {
		return nil, err
	}
	a.Checksum = made
	o := &objectstore.Object{Bucket: *in.Bucket, Key: *in.Key, ETag: f.ETag, Attributes: a.encode()}
	if err := s.store.Put(ctx, o, []*objectstore.File{f}, objectstore.Conditions{Allow: allow, Owe: s.owe(ctx, "ObjectCreated:Put")}); err != nil {
		return nil, s.asError(err, o.Bucket, o.Key)
	}
	c := made.wire()
	return &s3.PutObjectOutput{
		ETag: quoted(o.ETag), ServerSideEncryption: a.encryption(), ChecksumType: c.ChecksumType,
		ChecksumCRC32: c.ChecksumCRC32, ChecksumCRC32C: c.ChecksumCRC32C, ChecksumCRC64NVME: c.ChecksumCRC64NVME, ChecksumSHA1: c.ChecksumSHA1, ChecksumSHA256: c.ChecksumSHA256,
	}, nil
}

// checkVersion refuses every version but the one that objects have where there is no versioning.
func checkVersion(id *string) error {
	if id == nil || *id == "null" || *id == "" {
		return nil
	}
	return invalidArgument("versionId", *id, "Invalid version id specified")
}

// reading is what get and head ask for.
type reading struct {
	bucket, key, expectedOwner, version, ranged *string
	part                                        *int32
	ifMatch, ifNoneMatch                        *string
	ifModified, ifUnmodified                    *time.Time
	customerKey                                 *string
}

// pick decides what of an object is sent.
func (r reading) pick(o *objectstore.Object) (objectstore.Stretch, error) {
	all := objectstore.Stretch{Length: o.Size}
	if err := r.check(o); err != nil {
		return all, err
	}
	if r.ranged == nil {
		return all, nil
	}
	return parseRange(*r.ranged, o.Size)
}

// check is RFC 9110's order of conditions.
func (r reading) check(o *objectstore.Object) error {
	modified := o.Modified.Truncate(time.Second) // as clients know it
	if r.ifMatch != nil {
		if !matches(*r.ifMatch, o.ETag) {
			return preconditionFailed("If-Match")
		}
	} else if r.ifUnmodified != nil && modified.After(*r.ifUnmodified) {
		return preconditionFailed("If-Unmodified-Since")
	}
	if r.ifNoneMatch != nil {
		if matches(*r.ifNoneMatch, o.ETag) {
			return notModified(o)
		}
	} else if r.ifModified != nil && !modified.After(*r.ifModified) {
		return notModified(o)
	}
	return nil
}

func notModified(o *objectstore.Object) error {
	return &apiError{
		code: "NotModified", message: "Not Modified", status: http.StatusNotModified,
		header: http.Header{"Etag": {*quoted(o.ETag)}, "Last-Modified": {o.Modified.Format(http.TimeFormat)}},
	}
}

var rangeForm = regexp.MustCompile(`^bytes=([0-9]{1,18})?-([0-9]{1,18})?$`)

// isRange says whether a text is one range, with an end that is not before its beginning.
func isRange(text string) bool {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil || m[1] == "" && m[2] == "" {
		return false
	}
	from, _ := strconv.ParseInt(m[1], 10, 64)
	to, err := strconv.ParseInt(m[2], 10, 64)
	return m[1] == "" || err != nil || from <= to
}

// parseRange reads a Range. One that makes no sense is ignored, as RFC 9110 has it; S3 sends one range at most.
func parseRange(text string, size int64) (objectstore.Stretch, error) {
	all := objectstore.Stretch{Length: size}
	if !isRange(text) {
		return all, nil
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	from, _ := strconv.ParseInt(first, 10, 64)
	to, _ := strconv.ParseInt(last, 10, 64)
	switch {
	case first == "" && to == 0:
		return all, invalidRange(text, size)
	case first == "":
		from, to = max(size-to, 0), size-1
	case last == "":
		to = size - 1
	}
	if from >= size {
		return all, invalidRange(text, size)
	}
	return objectstore.Stretch{From: from, Length: min(to, size-1) - from + 1}, nil
}

func invalidRange(text string, size int64) error {
	return &apiError{
		code: "InvalidRange", message: "The requested range is not satisfiable", status: http.StatusRequestedRangeNotSatisfiable,
		detail: map[string]string{"RangeRequested": text, "ActualObjectSize": strconv.FormatInt(size, 10)},
		header: http.Header{"Content-Range": {"bytes */" + strconv.FormatInt(size, 10)}},
	}
}

// GetObject is S3's operation.
func (s *Service) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	r := readingOf(in)
	if err := s.checkReading(r); err != nil {
		return nil, err
	}
	var want objectstore.Stretch
	o, body, err := s.store.Read(ctx, *in.Bucket, *in.Key, func(o *objectstore.Object) (_ objectstore.Stretch, err error) {
		want, err = s.stretch(ctx, r, o)
		return want, err
	})
	if err != nil {
		return nil, s.asError(err, *in.Bucket, *in.Key)
	}
	out, err := answer(in, r, o, want)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	out.Body = body
	return out, nil
}

func readingOf(in *s3.GetObjectInput) reading {
	return reading{
		in.Bucket, in.Key, in.ExpectedBucketOwner, in.VersionId, in.Range, in.PartNumber, in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince,
		in.SSECustomerAlgorithm,
	}
}

// answer is what get and head say of an object.
func answer(in *s3.GetObjectInput, r reading, o *objectstore.Object, want objectstore.Stretch) (*s3.GetObjectOutput, error) {
	a, err := attributesOf(o.Attributes)
	if err != nil {
		return nil, err
	}
	out := &s3.GetObjectOutput{
		AcceptRanges: aws.String("bytes"), ETag: quoted(o.ETag), LastModified: &o.Modified, ContentLength: &want.Length,
		ContentType: override(in.ResponseContentType, a.ContentType), ContentEncoding: override(in.ResponseContentEncoding, a.ContentEncoding),
		ContentDisposition: override(in.ResponseContentDisposition, a.ContentDisposition), ContentLanguage: override(in.ResponseContentLanguage, a.ContentLanguage),
		CacheControl: override(in.ResponseCacheControl, a.CacheControl), Expires: a.Expires, Metadata: a.Metadata, StorageClass: types.StorageClass(a.StorageClass), ServerSideEncryption: a.encryption(),
		ContentRange: contentRange(r, want, o.Size), PartsCount: partsCount(r, o),
	}
	if in.ResponseExpires != nil {
		out.Expires = in.ResponseExpires
	}
	if len(a.Tags) > 0 {
		out.TagCount = aws.Int32(int32(len(a.Tags)))
	}
	if in.ChecksumMode == types.ChecksumModeEnabled && want.Length == o.Size {
		c := a.Checksum.wire()
		out.ChecksumType, out.ChecksumCRC32, out.ChecksumCRC32C, out.ChecksumCRC64NVME = c.ChecksumType, c.ChecksumCRC32, c.ChecksumCRC32C, c.ChecksumCRC64NVME
		out.ChecksumSHA1, out.ChecksumSHA256 = c.ChecksumSHA1, c.ChecksumSHA256
	}
	return out, nil
}

// HeadObject is S3's operation: what GetObject says, without the bytes.
func (s *Service) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	get := &s3.GetObjectInput{
		Bucket: in.Bucket, Key: in.Key, ExpectedBucketOwner: in.ExpectedBucketOwner, VersionId: in.VersionId, Range: in.Range, PartNumber: in.PartNumber,
		IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch, IfModifiedSince: in.IfModifiedSince, IfUnmodifiedSince: in.IfUnmodifiedSince,
		SSECustomerAlgorithm: in.SSECustomerAlgorithm, ChecksumMode: in.ChecksumMode, ResponseContentType: in.ResponseContentType,
		ResponseContentEncoding: in.ResponseContentEncoding, ResponseContentDisposition: in.ResponseContentDisposition,
		ResponseContentLanguage: in.ResponseContentLanguage, ResponseCacheControl: in.ResponseCacheControl, ResponseExpires: in.ResponseExpires,
	}
	r := readingOf(get)
	if err := s.checkReading(r); err != nil {
		return nil, err
	}
	o, err := s.store.Object(ctx, *in.Bucket, *in.Key)
	if err != nil {
		return nil, s.asError(err, *in.Bucket, *in.Key)
	}
	want, err := s.stretch(ctx, r, o)
	if err != nil {
		return nil, err
	}
	g, err := answer(get, r, o, want)
	if err != nil {
		return nil, err
	}
	return &s3.HeadObjectOutput{
		AcceptRanges: g.AcceptRanges, ETag: g.ETag, LastModified: g.LastModified, ContentLength: g.ContentLength, ContentType: g.ContentType,
		ContentEncoding: g.ContentEncoding, ContentDisposition: g.ContentDisposition, ContentLanguage: g.ContentLanguage, CacheControl: g.CacheControl,
		Expires: g.Expires, Metadata: g.Metadata, StorageClass: g.StorageClass, ServerSideEncryption: g.ServerSideEncryption, ContentRange: g.ContentRange, PartsCount: g.PartsCount, TagCount: g.TagCount,
		ChecksumType: g.ChecksumType, ChecksumCRC32: g.ChecksumCRC32, ChecksumCRC32C: g.ChecksumCRC32C, ChecksumCRC64NVME: g.ChecksumCRC64NVME,
		ChecksumSHA1: g.ChecksumSHA1, ChecksumSHA256: g.ChecksumSHA256,
	}, nil
}

func (s *Service) checkReading(r reading) error {
	if err := checkKey(r.key); err != nil {
		return err
	}
	if err := checkVersion(r.version); err != nil {
		return err
	}
	if r.customerKey != nil {
		return notImplemented("x-amz-server-side-encryption-customer-algorithm")
	}
	if r.part != nil && r.ranged != nil {
		return refuse(400, "InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
	}
	return s.checkOwner(r.expectedOwner)
}

// stretch is what of an object is sent: a range, a part, or all.
func (s *Service) stretch(ctx context.Context, r reading, o *objectstore.Object) (objectstore.Stretch, error) {
	want, err := r.pick(o)
	if err != nil || r.part == nil {
		return want, err
	}
	n := int(*r.part)
	if n < 1 || n > maxParts {
		return want, invalidArgument("partNumber", strconv.Itoa(n), "Part number must be an integer between 1 and 10000, inclusive")
	}
	files, err := s.store.Files(ctx, o, -1, n)
	if err != nil {
		return want, err
	}
	if n > len(files) {
		return want, refuse(416, "InvalidPartNumber", "The requested partnumber is not satisfiable")
	}
	want.From = 0
	for _, f := range files[:n-1] {
		want.From += f.Size
	}
	want.Length = files[n-1].Size
	return want, nil
}

// contentRange says what of an object is sent, where that was asked for. A range that was ignored says nothing.
func contentRange(r reading, want objectstore.Stretch, size int64) *string {
	if size == 0 || r.part == nil && (r.ranged == nil || !isRange(*r.ranged)) {
		return nil
	}
	return aws.String("bytes " + strconv.FormatInt(want.From, 10) + "-" + strconv.FormatInt(want.From+want.Length-1, 10) + "/" + strconv.FormatInt(size, 10))
}

func partsCount(r reading, o *objectstore.Object) *int32 {
	if r.part == nil || o.Parts == 0 {
		return nil
	}
	return aws.Int32(int32(o.Parts))
}

func override(want *string, have string) *string {
	if want != nil {
		return want
	}
	if have == "" {
		return nil
	}
	return &have
}

// DeleteObject is S3's operation.
func (s *Service) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	if err := checkVersion(in.VersionId); err != nil {
		return nil, err
	}
	if err := s.checkOwner(in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	c := objectstore.Conditions{Owe: s.owe(ctx, "ObjectRemoved:Delete"), Allow: unlessOther(in.IfMatch, in.IfMatchSize, in.IfMatchLastModifiedTime)}
	return &s3.DeleteObjectOutput{}, s.asError(s.store.Delete(ctx, *in.Bucket, *in.Key, c), *in.Bucket, *in.Key)
}

// unlessOther refuses to delete an object that is not the one that is meant.
func unlessOther(etag *string, size *int64, modified *time.Time) func(*objectstore.Bucket, *objectstore.Object) error {
	return func(_ *objectstore.Bucket, o *objectstore.Object) error {
		switch {
		case o == nil:
			return nil
		case etag != nil && !matches(*etag, o.ETag):
			return preconditionFailed("If-Match")
		case size != nil && *size != o.Size:
			return preconditionFailed("x-amz-if-match-size")
		case modified != nil && !modified.Equal(o.Modified.Truncate(time.Second)):
			return preconditionFailed("x-amz-if-match-last-modified-time")
		}
		return nil
	}
}

// Limits of DeleteObjects: how many objects one call names, and how many are deleted at a time.
const (
	maxDeletes  = 1000
	maxDeleting = 64
)

// DeleteObjects is S3's operation. Each object is deleted for itself.
func (s *Service) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) {
	if in.Delete == nil || len(in.Delete.Objects) == 0 || len(in.Delete.Objects) > maxDeletes {
		return nil, malformedXML("Delete must name 1 to 1000 objects")
	}
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	errs := make([]error, len(in.Delete.Objects))
	var g errgroup.Group
	g.SetLimit(maxDeleting) // they share flushes
	for i, o := range in.Delete.Objects {
		g.Go(func() error {
			_, errs[i] = s.DeleteObject(ctx, &s3.DeleteObjectInput{
				Bucket: in.Bucket, Key: o.Key, VersionId: o.VersionId, IfMatch: o.ETag, IfMatchSize: o.Size, IfMatchLastModifiedTime: o.LastModifiedTime,
			})
			return nil
		})
	}
	g.Wait() //nolint:errcheck // errors are kept one by one
	out := &s3.DeleteObjectsOutput{}
	for i, o := range in.Delete.Objects {
		if e := asS3(errs[i]); e != nil {
			out.Errors = append(out.Errors, types.Error{Key: o.Key, VersionId: o.VersionId, Code: &e.code, Message: &e.message})
		} else if !aws.ToBool(in.Delete.Quiet) {
			out.Deleted = append(out.Deleted, types.DeletedObject{Key: o.Key, VersionId: o.VersionId})
		}
	}
	return out, nil
}

// asS3 is an error as one object of many has it.
func asS3(err error) *apiError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return &apiError{code: "InternalError", message: "We encountered an internal error. Please try again."}
}

// PutObjectTagging is S3's operation.
func (s *Service) PutObjectTagging(ctx context.Context, in *s3.PutObjectTaggingInput) (*s3.PutObjectTaggingOutput, error) {
	if in.Tagging == nil {
		return nil, malformedXML("Tagging is missing")
	}
	if err := checkTags(in.Tagging.TagSet, maxObjectTags); err != nil {
		return nil, err
	}
	return &s3.PutObjectTaggingOutput{}, s.tag(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner, in.Tagging.TagSet, "ObjectTagging:Put")
}

// DeleteObjectTagging is S3's operation.
func (s *Service) DeleteObjectTagging(ctx context.Context, in *s3.DeleteObjectTaggingInput) (*s3.DeleteObjectTaggingOutput, error) {
	return &s3.DeleteObjectTaggingOutput{}, s.tag(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner, nil, "ObjectTagging:Delete")
}

func (s *Service) tag(ctx context.Context, bucket, key, version, expectedOwner *string, tags []types.Tag, event string) error {
	if err := s.checkReading(reading{key: key, version: version, expectedOwner: expectedOwner}); err != nil {
		return err
	}
	err := s.store.Describe(ctx, *bucket, *key, func(o *objectstore.Object) error {
		a, err := attributesOf(o.Attributes)
		a.Tags = tags
		o.Attributes = a.encode()
		return err
	}, objectstore.Conditions{Owe: s.owe(ctx, event)})
	return s.asError(err, *bucket, *key)
}

// described returns an object and its attributes.
func (s *Service) described(ctx context.Context, bucket, key, version, expectedOwner *string) (*objectstore.Object, attributes, error) {
	if err := s.checkReading(reading{key: key, version: version, expectedOwner: expectedOwner}); err != nil {
		return nil, attributes{}, err
	}
	o, err := s.store.Object(ctx, *bucket, *key)
	if err != nil {
		return nil, attributes{}, s.asError(err, *bucket, *key)
	}
	a, err := attributesOf(o.Attributes)
	return o, a, err
}

// GetObjectTagging is S3's operation.
func (s *Service) GetObjectTagging(ctx context.Context, in *s3.GetObjectTaggingInput) (*s3.GetObjectTaggingOutput, error) {
	_, a, err := s.described(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner)
	return &s3.GetObjectTaggingOutput{TagSet: append([]types.Tag{}, a.Tags...)}, err
}

// GetObjectAcl is S3's operation: the owner may do everything.
func (s *Service) GetObjectAcl(ctx context.Context, in *s3.GetObjectAclInput) (*s3.GetObjectAclOutput, error) {
	_, _, err := s.described(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner)
	return &s3.GetObjectAclOutput{Owner: s.owner(), Grants: s.grants()}, err
}

// PutObjectAcl is S3's operation.
func (s *Service) PutObjectAcl(ctx context.Context, in *s3.PutObjectAclInput) (*s3.PutObjectAclOutput, error) {
	if _, _, err := s.described(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	return nil, errNoACLs
}

// GetObjectAttributes is S3's operation.
func (s *Service) GetObjectAttributes(ctx context.Context, in *s3.GetObjectAttributesInput) (*s3.GetObjectAttributesOutput, error) {
	o, a, err := s.described(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	out := &s3.GetObjectAttributesOutput{LastModified: &o.Modified}
	for _, name := range in.ObjectAttributes {
		switch name {
		case types.ObjectAttributesEtag:
			out.ETag = &o.ETag
		case types.ObjectAttributesObjectSize:
			out.ObjectSize = &o.Size
		case types.ObjectAttributesStorageClass:
			out.StorageClass = types.StorageClass(classOf(a))
		case types.ObjectAttributesChecksum:
			c := a.Checksum.wire()
			out.Checksum = &c
		case types.ObjectAttributesObjectParts:
			if out.ObjectParts, err = s.objectParts(ctx, o, a, in); err != nil {
				return nil, err
			}
		default:
			return nil, invalidArgument("x-amz-object-attributes", string(name), "Invalid attribute name specified.")
		}
	}
	return out, nil
}

func classOf(a attributes) string {
	if a.StorageClass == "" {
		return string(types.StorageClassStandard)
	}
	return a.StorageClass
}

// objectParts is a page of the parts that an object was put together from.
func (s *Service) objectParts(ctx context.Context, o *objectstore.Object, a attributes, in *s3.GetObjectAttributesInput) (*types.GetObjectAttributesParts, error) {
	if o.Parts == 0 {
		return nil, nil
	}
	out := &types.GetObjectAttributesParts{TotalPartsCount: aws.Int32(int32(o.Parts))}
	if !a.Checksum.Composite {
		return out, nil
	}
	after, limit, err := partsPage(in.PartNumberMarker, in.MaxParts)
	if err != nil {
		return nil, err
	}
	files, err := s.store.Files(ctx, o, after, limit+1)
	if err != nil {
		return nil, err
	}
	out.MaxParts, out.PartNumberMarker, out.IsTruncated = aws.Int32(int32(limit)), aws.String(strconv.Itoa(after)), aws.Bool(len(files) > limit)
	for _, f := range files[:min(limit, len(files))] {
		c := sumOf(f).wire()
		out.Parts = append(out.Parts, types.ObjectPart{
			PartNumber: aws.Int32(int32(f.Number)), Size: &f.Size,
			ChecksumCRC32: c.ChecksumCRC32, ChecksumCRC32C: c.ChecksumCRC32C, ChecksumCRC64NVME: c.ChecksumCRC64NVME, ChecksumSHA1: c.ChecksumSHA1, ChecksumSHA256: c.ChecksumSHA256,
		})
		out.NextPartNumberMarker = aws.String(strconv.Itoa(f.Number))
	}
	return out, nil
}
