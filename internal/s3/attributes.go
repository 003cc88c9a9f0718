package s3

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
)

// attributes describes an object, beside its bytes.
type attributes struct {
	ContentType        string            `json:",omitzero"`
	ContentEncoding    string            `json:",omitzero"`
	ContentDisposition string            `json:",omitzero"`
	ContentLanguage    string            `json:",omitzero"`
	CacheControl       string            `json:",omitzero"`
	Expires            *time.Time        `json:",omitzero"`
	Metadata           map[string]string `json:",omitzero"`
	Tags               []types.Tag       `json:",omitzero"`
	StorageClass       string            `json:",omitzero"`
	Checksum           sum               `json:",omitzero"`
	UploadID           string            `json:",omitzero"` // of the multipart upload that made the object
	Lock               *lock             `json:",omitzero"` // of the customer's key that encrypts the object, nil if none does
	// Encryption is what answers report if no customer's key encrypts the object; "" is AES256.
	Encryption types.ServerSideEncryption `json:",omitzero"`

	key *customerKey // of the lock, during the call that has it
}

func attributesOf(text json.RawMessage) (a attributes, err error) {
	if len(text) == 0 {
		return a, nil
	}
	return a, json.Unmarshal(text, &a)
}

func (a attributes) encode() json.RawMessage {
	b, _ := json.Marshal(a) // strings and times always marshal
	return b
}

// PutObjectTagging is S3's operation.
func (s *Service) PutObjectTagging(ctx context.Context, in *s3.PutObjectTaggingInput) (*s3.PutObjectTaggingOutput, error) {
	if in.Tagging == nil {
		return nil, malformedXML("a Tagging is missing")
	}
	if err := checkTags(in.Tagging.TagSet, maxObjectTags); err != nil {
		return nil, err
	}
	version, err := s.setTags(
		ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner, in.Tagging.TagSet, "ObjectTagging:Put", http.MethodPut,
	)
	return &s3.PutObjectTaggingOutput{VersionId: version}, err
}

// DeleteObjectTagging is S3's operation.
func (s *Service) DeleteObjectTagging(ctx context.Context, in *s3.DeleteObjectTaggingInput) (*s3.DeleteObjectTaggingOutput, error) {
	version, err := s.setTags(
		ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner, nil, "ObjectTagging:Delete", http.MethodDelete,
	)
	return &s3.DeleteObjectTaggingOutput{VersionId: version}, err
}

// setTags replaces the tags of an object or one of its versions, and returns the version.
func (s *Service) setTags(
	ctx context.Context, bucket, key, version, expectedOwner *string, tags []types.Tag, event, method string,
) (*string, error) {
	if err := s.checkReading(&s3.GetObjectInput{Key: key, VersionId: version, ExpectedBucketOwner: expectedOwner}); err != nil {
		return nil, err
	}
	o, err := s.store.Describe(ctx, *bucket, *key, aws.ToString(version), func(o *objects.Object) error {
		a, err := attributesOf(o.Attributes)
		a.Tags = tags
		o.Attributes = a.encode()
		return err
	}, objects.Conditions{Owe: s.owe(ctx, event)})
	if err != nil {
		return nil, s.asDescribingError(err, *bucket, *key, version, method)
	}
	return writtenVersion(o), nil
}

// findObject returns an object and its attributes.
func (s *Service) findObject(ctx context.Context, bucket, key, version, expectedOwner *string) (*objects.Object, attributes, error) {
	if err := s.checkReading(&s3.GetObjectInput{Key: key, VersionId: version, ExpectedBucketOwner: expectedOwner}); err != nil {
		return nil, attributes{}, err
	}
	o, err := s.store.Object(ctx, *bucket, *key, aws.ToString(version))
	if err != nil {
		return nil, attributes{}, s.asVersionError(err, *bucket, *key, version, http.MethodGet)
	}
	a, err := attributesOf(o.Attributes)
	return o, a, err
}

// GetObjectTagging is S3's operation.
func (s *Service) GetObjectTagging(ctx context.Context, in *s3.GetObjectTaggingInput) (*s3.GetObjectTaggingOutput, error) {
	err := s.checkReading(&s3.GetObjectInput{Key: in.Key, VersionId: in.VersionId, ExpectedBucketOwner: in.ExpectedBucketOwner})
	if err != nil {
		return nil, err
	}
	o, err := s.store.Object(ctx, *in.Bucket, *in.Key, aws.ToString(in.VersionId))
	if err != nil {
		return nil, s.asDescribingError(err, *in.Bucket, *in.Key, in.VersionId, http.MethodGet)
	}
	a, err := attributesOf(o.Attributes)
	return &s3.GetObjectTaggingOutput{TagSet: append([]types.Tag{}, a.Tags...), VersionId: writtenVersion(o)}, err
}

// asDescribingError is asVersionError for tags, and for writing ACLs: a delete marker is the same error whether the call names it or it is the latest version.
func (s *Service) asDescribingError(err error, bucket, key string, version *string, method string) error {
	if e, ok := errors.AsType[*objects.DeletedError](err); ok {
		return markerError(&objects.DeletedError{Marker: e.Marker, Named: true}, method)
	}
	return s.asVersionError(err, bucket, key, version, method)
}

// GetObjectAcl is S3's operation. The owner has full control.
func (s *Service) GetObjectAcl(ctx context.Context, in *s3.GetObjectAclInput) (*s3.GetObjectAclOutput, error) {
	_, _, err := s.findObject(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner)
	return &s3.GetObjectAclOutput{Owner: s.owner(), Grants: s.grants()}, err
}

// PutObjectAcl is S3's operation.
func (s *Service) PutObjectAcl(ctx context.Context, in *s3.PutObjectAclInput) (*s3.PutObjectAclOutput, error) {
	err := s.checkReading(&s3.GetObjectInput{Key: in.Key, VersionId: in.VersionId, ExpectedBucketOwner: in.ExpectedBucketOwner})
	if err != nil {
		return nil, err
	}
	if _, err := s.store.Object(ctx, *in.Bucket, *in.Key, aws.ToString(in.VersionId)); err != nil {
		return nil, s.asDescribingError(err, *in.Bucket, *in.Key, in.VersionId, http.MethodPut)
	}
	return &s3.PutObjectAclOutput{}, s.checkACL(string(in.ACL), in.AccessControlPolicy,
		in.GrantFullControl, in.GrantRead, in.GrantReadACP, in.GrantWrite, in.GrantWriteACP)
}

// GetObjectAttributes is S3's operation.
func (s *Service) GetObjectAttributes(ctx context.Context, in *s3.GetObjectAttributesInput) (*s3.GetObjectAttributesOutput, error) {
	if len(in.ObjectAttributes) == 0 {
		return nil, invalidArgument("x-amz-object-attributes", "",
			"The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty")
	}
	o, a, err := s.findObject(ctx, in.Bucket, in.Key, in.VersionId, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	key, err := newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, "")
	if err != nil {
		return nil, err
	}
	if err := checkReadKey(a.Lock, key); err != nil {
		return nil, err
	}
	out := &s3.GetObjectAttributesOutput{LastModified: &o.Modified, VersionId: writtenVersion(o)}
	for _, name := range in.ObjectAttributes {
		switch name {
		case types.ObjectAttributesEtag:
			out.ETag = &o.ETag
		case types.ObjectAttributesObjectSize:
			out.ObjectSize = &o.Size
		case types.ObjectAttributesStorageClass:
			out.StorageClass = types.StorageClass(classOf(a))
		case types.ObjectAttributesChecksum:
			c := a.Checksum.attribute()
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

// objectParts returns a page of the parts of an object that came from a multipart upload.
func (s *Service) objectParts(
	ctx context.Context, o *objects.Object, a attributes, in *s3.GetObjectAttributesInput,
) (*types.GetObjectAttributesParts, error) {
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
	out.MaxParts = aws.Int32(int32(limit))
	out.PartNumberMarker = aws.String(strconv.Itoa(after))
	out.NextPartNumberMarker = aws.String("0")
	out.IsTruncated = aws.Bool(len(files) > limit)
	for _, f := range files[:min(limit, len(files))] {
		c := sumOf(f).wire()
		out.Parts = append(out.Parts, types.ObjectPart{
			PartNumber:        aws.Int32(int32(f.Number)),
			Size:              &f.Size,
			ChecksumCRC32:     c.ChecksumCRC32,
			ChecksumCRC32C:    c.ChecksumCRC32C,
			ChecksumCRC64NVME: c.ChecksumCRC64NVME,
			ChecksumSHA1:      c.ChecksumSHA1,
			ChecksumSHA256:    c.ChecksumSHA256,
		})
		out.NextPartNumberMarker = aws.String(strconv.Itoa(f.Number))
	}
	return out, nil
}
