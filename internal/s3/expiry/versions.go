package expiry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/rules"
)

// versionsPage is how many versions are listed at once. With the delete marker that a page before it left over, they fit into one
// DeleteObjects.
const versionsPage = 999

// version is a version of an object, or a delete marker.
type version struct {
	rules.OldVersion
	id             *string
	latest, marker bool
}

// expireVersions deletes the old versions that a rule expires, and the delete markers that are the only version of their key, and returns
// how many.
func expireVersions(ctx context.Context, client S3, bucket *string, of []types.LifecycleRule, now time.Time) (n int, err error) {
	if len(of) == 0 {
		return 0, nil
	}
	if v, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: bucket}); err != nil || v.Status == "" {
		return 0, err
	}
	in := &s3.ListObjectVersionsInput{Bucket: bucket, MaxKeys: aws.Int32(versionsPage)}
	var h history
	for {
		page, err := client.ListObjectVersions(ctx, in)
		if err != nil {
			return n, err
		}
		var all []types.ObjectIdentifier
		for _, v := range inOrder(page) {
			all = appendExpired(all, h.add(v), of, now)
			over, err := isOldExpired(ctx, client, bucket, v, of, now)
			if err != nil {
				return n, err
			}
			if over {
				all = append(all, types.ObjectIdentifier{Key: &v.Key, VersionId: v.id})
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			all = appendExpired(all, h.alone, of, now)
		}
		deleted, err := deleteAll(ctx, client, bucket, all)
		if n += deleted; err != nil || !aws.ToBool(page.IsTruncated) {
			return n, err
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

// inOrder returns a page's versions and delete markers by key, the newest of a key first.
func inOrder(page *s3.ListObjectVersionsOutput) (all []*version) {
	add := func(key, id *string, size int64, modified *time.Time, latest *bool, marker bool) {
		v := &version{id: id, latest: aws.ToBool(latest), marker: marker}
		v.Object = rules.Object{Key: *key, Size: size, Modified: *modified}
		all = append(all, v)
	}
	for _, v := range page.Versions {
		add(v.Key, v.VersionId, aws.ToInt64(v.Size), v.LastModified, v.IsLatest, false)
	}
	for _, m := range page.DeleteMarkers {
		add(m.Key, m.VersionId, 0, m.LastModified, m.IsLatest, true)
	}
	slices.SortStableFunc(all, func(a, b *version) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), b.Modified.Compare(a.Modified))
	})
	return all
}

// history is what a list has shown so far, as far as later versions depend on it.
type history struct {
	last  *version
	alone *version // the last one, if it's a delete marker and, so far, the only version of its key
}

// add completes the next version by what came before it. It returns the delete marker before it if that is the only version of its key.
func (h *history) add(v *version) (alone *version) {
	if h.last != nil && h.last.Key == v.Key {
		v.Since = h.last.Modified
		if v.Newer = h.last.Newer; !h.last.latest {
			v.Newer++
		}
		h.alone = nil
	} else {
		alone = h.alone
		if h.alone = nil; v.marker && v.latest {
			h.alone = v
		}
	}
	h.last = v
	return alone
}

// appendExpired adds a delete marker, if there is one that a rule removes by now.
func appendExpired(all []types.ObjectIdentifier, marker *version, of []types.LifecycleRule, now time.Time) []types.ObjectIdentifier {
	removes := func(r types.LifecycleRule) bool { return rules.MarkerExpired(r, marker.Object, now) }
	if marker == nil || !slices.ContainsFunc(of, removes) {
		return all
	}
	return append(all, types.ObjectIdentifier{Key: &marker.Key, VersionId: marker.id})
}

// isOldExpired reports whether a rule removes a version that is not its key's latest by now.
func isOldExpired(ctx context.Context, client S3, bucket *string, v *version, of []types.LifecycleRule, now time.Time) (bool, error) {
	if v.latest {
		return false, nil
	}
	holds := func(r types.LifecycleRule) bool { return rules.OldExpired(r, v.OldVersion, now) }
	if v.marker { // it has no tags to read
		return slices.ContainsFunc(of, holds), nil
	}
	return anyOf(ctx, client, bucket, of, &v.Object, v.id, holds)
}
