package s3

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
)

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
