package s3

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
)

// maxKeys is both the limit and the default for keys in a page.
const maxKeys = 1000

func pageSize(name string, asked *int32) (int, error) {
	if asked == nil {
		return maxKeys, nil
	}
	if *asked < 0 {
		return 0, invalidArgument(name, "", "Argument %s must be an integer between 0 and 2147483647", name)
	}
	return min(int(*asked), maxKeys), nil
}

// encoder returns a function that encodes keys for the answer. XML can't hold every key, so the caller may ask for URL encoding.
func encoder(encoding types.EncodingType) (func(string) *string, error) {
	switch encoding {
	case "":
		return func(s string) *string { return &s }, nil
	case types.EncodingTypeUrl:
		return func(s string) *string { return aws.String(urlEncode(s)) }, nil
	}
	return nil, invalidArgument("encoding-type", string(encoding), "Invalid Encoding Method specified in Request")
}

// urlEncode escapes everything but letters, digits, slashes and - _ . *. A space becomes %20, which form and URL
// decoders both understand.
func urlEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.*/", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// encodeNonEmpty encodes text, or returns nil if there is none.
func encodeNonEmpty(encode func(string) *string, text *string) *string {
	if aws.ToString(text) == "" {
		return nil
	}
	return encode(*text)
}

// listed returns an object as list operations show it.
func (s *Service) listed(o *objects.Object, encode func(string) *string, withOwner bool) (types.Object, error) {
	a, err := attributesOf(o.Attributes)
	l := types.Object{
		Key:          encode(o.Key),
		ETag:         quoted(o.ETag),
		Size:         &o.Size,
		LastModified: &o.Modified,
		StorageClass: types.ObjectStorageClass(classOf(a)),
	}
	if c := a.Checksum; c.Value != "" {
		l.ChecksumAlgorithm = []types.ChecksumAlgorithm{types.ChecksumAlgorithm(c.Algorithm)}
		l.ChecksumType = c.wire().ChecksumType
	}
	if withOwner {
		l.Owner = s.owner()
	}
	return l, err
}

func (s *Service) listedAll(
	page *page, encode func(string) *string, withOwner bool,
) (objects []types.Object, prefixes []types.CommonPrefix, err error) {
	for _, o := range page.Objects {
		l, err := s.listed(o, encode, withOwner)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, l)
	}
	for _, p := range page.Prefixes {
		prefixes = append(prefixes, types.CommonPrefix{Prefix: encode(p)})
	}
	return objects, prefixes, nil
}

// page is one page of a bucket's list, and the most keys it may have.
type page struct {
	*objects.Page
	limit int32
}

// list is the common part of the operations that list objects.
func (s *Service) list(
	ctx context.Context, bucket, owner *string, q objects.Query, maxKeys *int32, encoding types.EncodingType,
) (*page, func(string) *string, error) {
	var err error
	if q.Limit, err = pageSize("max-keys", maxKeys); err != nil {
		return nil, nil, err
	}
	encode, err := encoder(encoding)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkOwner(owner); err != nil {
		return nil, nil, err
	}
	listed, err := s.store.List(ctx, *bucket, q)
	if err != nil {
		return nil, nil, s.asError(err, *bucket, "")
	}
	return &page{listed, int32(q.Limit)}, encode, nil
}

// ListObjectsV2 is S3's operation.
func (s *Service) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	q := objects.Query{Prefix: aws.ToString(in.Prefix), Delimiter: aws.ToString(in.Delimiter), After: aws.ToString(in.StartAfter)}
	if in.ContinuationToken != nil {
		if *in.ContinuationToken == "" {
			return nil, invalidArgument("continuation-token", "", "The continuation token provided is incorrect")
		}
		_, after, err := listing("ListObjectsV2", *in.ContinuationToken).Start(nil, in.ContinuationToken)
		if err != nil {
			return nil, err
		}
		q.After = after
		q.Skip = true
	}
	page, encode, err := s.list(ctx, in.Bucket, in.ExpectedBucketOwner, q, in.MaxKeys, in.EncodingType)
	if err != nil {
		return nil, err
	}
	out := &s3.ListObjectsV2Output{
		Name:              in.Bucket,
		Prefix:            encode(q.Prefix),
		Delimiter:         encodeNonEmpty(encode, in.Delimiter),
		MaxKeys:           &page.limit,
		EncodingType:      in.EncodingType,
		ContinuationToken: in.ContinuationToken,
		IsTruncated:       &page.More,
		KeyCount:          aws.Int32(int32(len(page.Objects) + len(page.Prefixes))),
	}
	if in.ContinuationToken == nil {
		out.StartAfter = encodeNonEmpty(encode, in.StartAfter)
	}
	if page.More {
		out.NextContinuationToken = listing("ListObjectsV2", "").Token(page.Last)
	}
	out.Contents, out.CommonPrefixes, err = s.listedAll(page, encode, aws.ToBool(in.FetchOwner))
	return out, err
}

// ListObjects is S3's operation, the older one.
func (s *Service) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (*s3.ListObjectsOutput, error) {
	q := objects.Query{Prefix: aws.ToString(in.Prefix), Delimiter: aws.ToString(in.Delimiter), After: aws.ToString(in.Marker), Skip: true}
	page, encode, err := s.list(ctx, in.Bucket, in.ExpectedBucketOwner, q, in.MaxKeys, in.EncodingType)
	if err != nil {
		return nil, err
	}
	out := &s3.ListObjectsOutput{
		Name:         in.Bucket,
		Prefix:       encode(q.Prefix),
		Delimiter:    encodeNonEmpty(encode, in.Delimiter),
		Marker:       encode(q.After),
		MaxKeys:      &page.limit,
		EncodingType: in.EncodingType,
		IsTruncated:  &page.More,
	}
	if page.More && q.Delimiter != "" { // without a delimiter the client continues from the last key
		out.NextMarker = encode(page.Last)
	}
	out.Contents, out.CommonPrefixes, err = s.listedAll(page, encode, true)
	return out, err
}

// ListObjectVersions is S3's operation. Terraform uses this call to empty buckets.
func (s *Service) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput) (*s3.ListObjectVersionsOutput, error) {
	q, err := versionsQuery(in)
	if err != nil {
		return nil, err
	}
	page, encode, err := s.list(ctx, in.Bucket, in.ExpectedBucketOwner, q, in.MaxKeys, in.EncodingType)
	if err != nil {
		return nil, err
	}
	out := &s3.ListObjectVersionsOutput{
		Name:            in.Bucket,
		Prefix:          encode(q.Prefix),
		Delimiter:       encodeNonEmpty(encode, in.Delimiter),
		KeyMarker:       encode(q.After),
		VersionIdMarker: &q.AfterVersion,
		MaxKeys:         &page.limit,
		EncodingType:    in.EncodingType,
		IsTruncated:     &page.More,
	}
	if page.More {
		out.NextKeyMarker = encode(page.Last)
		out.NextVersionIdMarker = nonEmpty(&page.LastVersion)
	}
	for _, p := range page.Prefixes {
		out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: encode(p)})
	}
	for _, o := range page.Objects {
		if o.Marker {
			out.DeleteMarkers = append(out.DeleteMarkers, types.DeleteMarkerEntry{
				Key:          encode(o.Key),
				VersionId:    &o.Version,
				IsLatest:     &o.Latest,
				LastModified: &o.Modified,
				Owner:        s.owner(),
			})
			continue
		}
		v, err := s.listedVersion(o, encode)
		if err != nil {
			return nil, err
		}
		out.Versions = append(out.Versions, v)
	}
	return out, nil
}

func versionsQuery(in *s3.ListObjectVersionsInput) (objects.Query, error) {
	q := objects.Query{
		Prefix:       aws.ToString(in.Prefix),
		Delimiter:    aws.ToString(in.Delimiter),
		After:        aws.ToString(in.KeyMarker),
		AfterVersion: aws.ToString(in.VersionIdMarker),
		Skip:         true,
		Versions:     true,
	}
	switch {
	case in.VersionIdMarker == nil:
		return q, nil
	case q.AfterVersion == "" && q.After != "":
		return q, invalidArgument("version-id-marker", "", "A version-id marker cannot be empty.")
	case q.AfterVersion != "" && q.After == "":
		return q, invalidArgument("version-id-marker", q.AfterVersion, "A version-id marker cannot be specified without a key marker.")
	case q.AfterVersion != "" && !objects.IsVersion(q.AfterVersion):
		return q, invalidArgument("version-id-marker", q.AfterVersion, "Invalid version id specified")
	}
	return q, nil
}

func (s *Service) listedVersion(o *objects.Object, encode func(string) *string) (types.ObjectVersion, error) {
	l, err := s.listed(o, encode, true)
	return types.ObjectVersion{
		Key:               l.Key,
		VersionId:         &o.Version,
		IsLatest:          &o.Latest,
		LastModified:      l.LastModified,
		ETag:              l.ETag,
		Size:              l.Size,
		ChecksumAlgorithm: l.ChecksumAlgorithm,
		ChecksumType:      l.ChecksumType,
		StorageClass:      types.ObjectVersionStorageClass(l.StorageClass),
		Owner:             l.Owner,
	}, err
}
