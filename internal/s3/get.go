package s3

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/checksum"
	"github.com/pintle/pintle/internal/s3/objects"
)

// selectRange checks a get's conditions and returns the bytes that its Range asks for.
func (s *Service) selectRange(in *s3.GetObjectInput, o *objects.Object) (objects.Stretch, error) {
	all := objects.Stretch{Length: o.Size}
	if err := checkConditions(in, o, s.opts.Now()); err != nil {
		return all, err
	}
	if in.Range == nil {
		return all, nil
	}
	return parseRange(*in.Range, o.Size)
}

// checkConditions checks a get's conditions in RFC 9110's order. If-Modified-Since is none if it lies in the future.
func checkConditions(in *s3.GetObjectInput, o *objects.Object, now time.Time) error {
	modified := o.Modified.Truncate(time.Second) // clients see whole seconds
	if in.IfMatch != nil {
		if !matches(*in.IfMatch, o.ETag) {
			return preconditionFailed("If-Match")
		}
	} else if in.IfUnmodifiedSince != nil && modified.After(*in.IfUnmodifiedSince) {
		return preconditionFailed("If-Unmodified-Since")
	}
	if in.IfNoneMatch != nil {
		if matches(*in.IfNoneMatch, o.ETag) {
			return notModified("If-None-Match", o)
		}
	} else if t := in.IfModifiedSince; t != nil && !t.After(now) && !modified.After(*t) {
		return notModified("If-Modified-Since", o)
	}
	return nil
}

func notModified(condition string, o *objects.Object) error {
	return &apiError{
		code:    "NotModified",
		message: "Not Modified",
		status:  http.StatusNotModified,
		detail:  map[string]string{"Condition": condition}, // a copy's answer tells it; a 304 has no body
		header:  http.Header{"Etag": {*quoted(o.ETag)}, "Last-Modified": {o.Modified.Format(http.TimeFormat)}},
	}
}

var rangeForm = regexp.MustCompile(`^bytes=([0-9]{1,18})?-([0-9]{1,18})?$`)

// isRange reports whether a text is a single range that doesn't end before it begins.
func isRange(text string) bool {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil || m[1] == "" && m[2] == "" {
		return false
	}
	from, _ := strconv.ParseInt(m[1], 10, 64)
	to, err := strconv.ParseInt(m[2], 10, 64)
	return m[1] == "" || err != nil || from <= to
}

// parseRange parses a Range. It ignores an invalid one, as RFC 9110 says. It also ignores several ranges, because S3
// sends only one.
func parseRange(text string, size int64) (objects.Stretch, error) {
	all := objects.Stretch{Length: size}
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
	return objects.Stretch{From: from, Length: min(to, size-1) - from + 1}, nil
}

func invalidRange(text string, size int64) error {
	return &apiError{
		code:    "InvalidRange",
		message: "The requested range is not satisfiable",
		status:  http.StatusRequestedRangeNotSatisfiable,
		detail:  map[string]string{"RangeRequested": text, "ActualObjectSize": strconv.FormatInt(size, 10)},
		header:  http.Header{"Content-Range": {"bytes */" + strconv.FormatInt(size, 10)}},
	}
}

// GetObject is S3's operation.
func (s *Service) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	if err := s.checkReading(in); err != nil {
		return nil, err
	}
	key, err := readKey(in)
	if err != nil {
		return nil, err
	}
	var want objects.Stretch
	var files []*objects.File
	o, body, err := s.store.Read(ctx, *in.Bucket, *in.Key, aws.ToString(in.VersionId), func(o *objects.Object) (_ objects.Stretch, err error) {
		if files, err = s.encryptedFiles(ctx, o, key); err != nil {
			return want, err
		}
		want, err = s.selectBytes(ctx, in, o)
		return want, err
	})
	if err != nil {
		return nil, s.asVersionError(err, *in.Bucket, *in.Key, in.VersionId, http.MethodGet)
	}
	out, err := s.answer(ctx, in, o, want, key)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	out.Body = decrypt(body, key, files, want.From)
	return out, nil
}

// answer returns everything but the body of a get's answer. Head uses it, too.
func (s *Service) answer(
	ctx context.Context, in *s3.GetObjectInput, o *objects.Object, want objects.Stretch, key *customerKey,
) (*s3.GetObjectOutput, error) {
	a, err := attributesOf(o.Attributes)
	if err != nil {
		return nil, err
	}
	b, err := s.bucket(ctx, in.Bucket, nil)
	if err != nil {
		return nil, err
	}
	a.key = key
	encryption, algorithm, keyMD5 := a.report()
	out := &s3.GetObjectOutput{
		AcceptRanges:         aws.String("bytes"),
		ETag:                 quoted(o.ETag),
		LastModified:         &o.Modified,
		ContentLength:        &want.Length,
		ContentType:          override(in.ResponseContentType, a.ContentType),
		ContentEncoding:      override(in.ResponseContentEncoding, a.ContentEncoding),
		ContentDisposition:   override(in.ResponseContentDisposition, a.ContentDisposition),
		ContentLanguage:      override(in.ResponseContentLanguage, a.ContentLanguage),
		CacheControl:         override(in.ResponseCacheControl, a.CacheControl),
		Expires:              a.Expires,
		Metadata:             a.Metadata,
		StorageClass:         types.StorageClass(a.StorageClass),
		VersionId:            readVersion(b, o),
		Expiration:           expiration(b, o, a),
		ServerSideEncryption: encryption,
		SSECustomerAlgorithm: algorithm,
		SSECustomerKeyMD5:    keyMD5,
		ContentRange:         contentRange(in, want, o.Size),
		PartsCount:           partsCount(in, o),
	}
	if in.ResponseExpires != nil {
		out.Expires = in.ResponseExpires
	}
	if len(a.Tags) > 0 {
		out.TagCount = aws.Int32(int32(len(a.Tags)))
	}
	c, err := s.readChecksum(ctx, in, o, a.Checksum, want)
	out.ChecksumType = c.ChecksumType
	out.ChecksumCRC32 = c.ChecksumCRC32
	out.ChecksumCRC32C = c.ChecksumCRC32C
	out.ChecksumCRC64NVME = c.ChecksumCRC64NVME
	out.ChecksumSHA1 = c.ChecksumSHA1
	out.ChecksumSHA256 = c.ChecksumSHA256
	return out, err
}

// readChecksum returns the checksum that a read's answer tells, if the call asks for one: that of the object if all of it is sent, or that
// of the part that the call names.
func (s *Service) readChecksum(
	ctx context.Context, in *s3.GetObjectInput, o *objects.Object, whole sum, want objects.Stretch,
) (types.Checksum, error) {
	switch {
	case !strings.EqualFold(string(in.ChecksumMode), string(types.ChecksumModeEnabled)):
		return types.Checksum{}, nil
	case in.PartNumber != nil && o.Parts > 0:
		return s.partChecksum(ctx, o, whole, int(*in.PartNumber))
	case want.Length == o.Size:
		return whole.wire(), nil
	}
	return types.Checksum{}, nil
}

// partChecksum returns the checksum of a part. As in S3, there is none if nobody chose the algorithm, which is CRC64NVME then.
func (s *Service) partChecksum(ctx context.Context, o *objects.Object, whole sum, n int) (types.Checksum, error) {
	if whole.Algorithm == checksum.CRC64NVME {
		return types.Checksum{}, nil
	}
	files, err := s.store.Files(ctx, o, -1, n)
	if err != nil || len(files) < n { // the object may have gone meanwhile
		return types.Checksum{}, err
	}
	part := sumOf(files[n-1])
	part.Composite = whole.Composite
	return part.wire(), nil
}

// HeadObject is S3's operation. It answers like GetObject, without the body.
func (s *Service) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	get := &s3.GetObjectInput{
		Bucket:                     in.Bucket,
		Key:                        in.Key,
		ExpectedBucketOwner:        in.ExpectedBucketOwner,
		VersionId:                  in.VersionId,
		Range:                      in.Range,
		PartNumber:                 in.PartNumber,
		IfMatch:                    in.IfMatch,
		IfNoneMatch:                in.IfNoneMatch,
		IfModifiedSince:            in.IfModifiedSince,
		IfUnmodifiedSince:          in.IfUnmodifiedSince,
		SSECustomerAlgorithm:       in.SSECustomerAlgorithm,
		SSECustomerKey:             in.SSECustomerKey,
		SSECustomerKeyMD5:          in.SSECustomerKeyMD5,
		ChecksumMode:               in.ChecksumMode,
		ResponseContentType:        in.ResponseContentType,
		ResponseContentEncoding:    in.ResponseContentEncoding,
		ResponseContentDisposition: in.ResponseContentDisposition,
		ResponseContentLanguage:    in.ResponseContentLanguage,
		ResponseCacheControl:       in.ResponseCacheControl,
		ResponseExpires:            in.ResponseExpires,
	}
	if err := s.checkReading(get); err != nil {
		return nil, err
	}
	o, err := s.store.Object(ctx, *in.Bucket, *in.Key, aws.ToString(in.VersionId))
	if err != nil {
		return nil, s.asVersionError(err, *in.Bucket, *in.Key, in.VersionId, http.MethodHead)
	}
	key, err := readKey(get)
	if err != nil {
		return nil, err
	}
	if _, err := s.encryptedFiles(ctx, o, key); err != nil {
		return nil, err
	}
	want, err := s.selectBytes(ctx, get, o)
	if err != nil {
		return nil, err
	}
	g, err := s.answer(ctx, get, o, want, key)
	if err != nil {
		return nil, err
	}
	return headOf(g), nil
}

// headOf returns a get's answer as a head's.
func headOf(g *s3.GetObjectOutput) *s3.HeadObjectOutput {
	return &s3.HeadObjectOutput{
		AcceptRanges:         g.AcceptRanges,
		ETag:                 g.ETag,
		LastModified:         g.LastModified,
		ContentLength:        g.ContentLength,
		ContentType:          g.ContentType,
		ContentEncoding:      g.ContentEncoding,
		ContentDisposition:   g.ContentDisposition,
		ContentLanguage:      g.ContentLanguage,
		CacheControl:         g.CacheControl,
		Expires:              g.Expires,
		Metadata:             g.Metadata,
		StorageClass:         g.StorageClass,
		VersionId:            g.VersionId,
		Expiration:           g.Expiration,
		ServerSideEncryption: g.ServerSideEncryption,
		SSECustomerAlgorithm: g.SSECustomerAlgorithm,
		SSECustomerKeyMD5:    g.SSECustomerKeyMD5,
		ContentRange:         g.ContentRange,
		PartsCount:           g.PartsCount,
		TagCount:             g.TagCount,
		ChecksumType:         g.ChecksumType,
		ChecksumCRC32:        g.ChecksumCRC32,
		ChecksumCRC32C:       g.ChecksumCRC32C,
		ChecksumCRC64NVME:    g.ChecksumCRC64NVME,
		ChecksumSHA1:         g.ChecksumSHA1,
		ChecksumSHA256:       g.ChecksumSHA256,
	}
}

// checkReading refuses a bad request for an object before the object is looked up.
func (s *Service) checkReading(in *s3.GetObjectInput) error {
	if err := checkKey(in.Key); err != nil {
		return err
	}
	if err := checkVersion(in.VersionId); err != nil {
		return err
	}
	if in.PartNumber != nil && in.Range != nil {
		return refuse(400, "InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
	}
	return s.checkOwner(in.ExpectedBucketOwner)
}

// selectBytes returns the bytes of an object to send: a range, a part, or all of it.
func (s *Service) selectBytes(ctx context.Context, in *s3.GetObjectInput, o *objects.Object) (objects.Stretch, error) {
	want, err := s.selectRange(in, o)
	if err != nil || in.PartNumber == nil {
		return want, err
	}
	n := int(*in.PartNumber)
	if n < 1 || n > maxParts {
		return want, invalidArgument("partNumber", strconv.Itoa(n), "Part number must be an integer between 1 and 10000, inclusive")
	}
	files, err := s.store.Files(ctx, o, -1, n)
	if err != nil {
		return want, err
	}
	if n > len(files) {
		return want, &apiError{
			code:    "InvalidPartNumber",
			message: "The requested partnumber is not satisfiable",
			status:  http.StatusRequestedRangeNotSatisfiable,
			detail:  map[string]string{"PartNumberRequested": strconv.Itoa(n), "ActualPartCount": strconv.Itoa(max(o.Parts, 1))},
		}
	}
	want.From = 0
	for _, f := range files[:n-1] {
		want.From += f.Size
	}
	want.Length = files[n-1].Size
	return want, nil
}

// contentRange returns the Content-Range if the call asked for a range or a part, and nil otherwise. An ignored range
// counts as none.
func contentRange(in *s3.GetObjectInput, want objects.Stretch, size int64) *string {
	if size == 0 || in.PartNumber == nil && (in.Range == nil || !isRange(*in.Range)) {
		return nil
	}
	return aws.String(
		"bytes " + strconv.FormatInt(want.From, 10) + "-" + strconv.FormatInt(want.From+want.Length-1, 10) + "/" +
			strconv.FormatInt(size, 10),
	)
}

func partsCount(in *s3.GetObjectInput, o *objects.Object) *int32 {
	if in.PartNumber == nil || o.Parts == 0 {
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
