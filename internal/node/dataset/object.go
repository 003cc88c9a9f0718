package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// object is an object as a listing has it.
type object struct {
	bucket, key string
	etag        string
	size        int64
	modified    time.Time
	path        string // below the directory
}

// id names the object in the cache. Other content has another ETag, and so another id.
func (o *object) id() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.bucket, o.key, o.etag, strconv.FormatInt(o.size, 10)}, "\x00")))
	return hex.EncodeToString(sum[:])
}

func (o *object) stored() string  { return filepath.Join(objectsDir, o.id()) }
func (o *object) partial() string { return filepath.Join(partialDir, o.id()) }

// isDirectory reports whether the object only stands for a directory, as consoles and tools make them.
func (o *object) isDirectory() bool { return strings.HasSuffix(o.key, "/") && o.size == 0 }

// maxName is how long a file's name may be.
const maxName = 255

// locate finds the object's place below the directory of a source.
func (o *object) locate(s Source) error {
	rest := strings.TrimPrefix(o.key, s.Prefix)
	if o.isDirectory() {
		rest = strings.TrimSuffix(rest, "/")
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > maxName || strings.ContainsRune(segment, 0) {
			return fmt.Errorf("s3://%s: the key %q can't be a path: its parts must be names of 1 to %d bytes, without . and .. alone",
				s.Bucket, o.key, maxName)
		}
	}
	o.path = rest
	return nil
}

// list lists what a source has. Keys come encoded, since XML has no control characters.
func list(ctx context.Context, client Client, s Source) (all []object, err error) {
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &s.Bucket, Prefix: &s.Prefix, EncodingType: types.EncodingTypeUrl})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", s, err)
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			if page.EncodingType == types.EncodingTypeUrl { // else the server doesn't know of it
				if key, err = url.QueryUnescape(key); err != nil {
					return nil, fmt.Errorf("list %s: %w", s, err)
				}
			}
			if key == s.Prefix && aws.ToInt64(o.Size) == 0 { // the directory itself
				continue
			}
			all = append(all, object{
				bucket:   s.Bucket,
				key:      key,
				etag:     aws.ToString(o.ETag),
				size:     aws.ToInt64(o.Size),
				modified: aws.ToTime(o.LastModified).Truncate(time.Second), // what GetObject tells, too
			})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no object under %s", s)
	}
	return all, nil
}
