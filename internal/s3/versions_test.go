package s3

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/s3/objects"
)

func setVersioning(t testing.TB, s *Service, status types.BucketVersioningStatus) {
	t.Helper()
	_, err := s.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket:                  theBucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestVersioningConfiguration(t *testing.T) {
	s, _ := newService(t)
	for _, c := range []struct {
		config *types.VersioningConfiguration
		want   string
	}{
		{nil, "IllegalVersioningConfigurationException"},
		{&types.VersioningConfiguration{}, "IllegalVersioningConfigurationException"},
		{&types.VersioningConfiguration{Status: "On"}, "MalformedXML"},
		{&types.VersioningConfiguration{Status: "Enabled", MFADelete: "Enabled"}, "NotImplemented"},
		{&types.VersioningConfiguration{Status: "Enabled", MFADelete: "Disabled"}, ""},
		{&types.VersioningConfiguration{Status: "Suspended"}, ""},
	} {
		_, err := s.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: theBucket, VersioningConfiguration: c.config})
		if code(err) != c.want {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
		out, err := s.GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: theBucket})
		if err != nil || c.want == "" && out.Status != c.config.Status || c.want != "" && out.Status != "" {
			t.Errorf("after %+v: %+v, %v", c.config, out, err)
		}
	}
}

// getVersion returns the content and the version that a get answers.
func getVersion(t testing.TB, s *Service, key string, version *string) (content, tells string, err error) {
	t.Helper()
	out, err := s.GetObject(t.Context(), &s3.GetObjectInput{Bucket: theBucket, Key: &key, VersionId: version})
	if err != nil {
		return "", "", err
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	return string(b), aws.ToString(out.VersionId), err
}

// putVersion puts a key and returns the version that the answer tells.
func putVersion(t testing.TB, s *Service, key, content string) *string {
	t.Helper()
	out, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: &key, Body: strings.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	return out.VersionId
}

// TestVersionsStory puts, deletes and reads versions of a key, before versioning, with it, and while it is suspended.
func TestVersionsStory(t *testing.T) {
	s, _ := newService(t)
	expect := func(version *string, content, tells, refused string) {
		t.Helper()
		got, told, err := getVersion(t, s, "k", version)
		if got != content || told != tells || code(err) != refused {
			t.Errorf("version %s: %q of %q, %v, want %q of %q, %s", aws.ToString(version), got, told, err, content, tells, refused)
		}
	}
	remove := func(version *string) *s3.DeleteObjectOutput {
		t.Helper()
		out, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k"), VersionId: version})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	null, unknown := aws.String("null"), aws.String(strings.Repeat("0", 31)+"1")
	if v := putVersion(t, s, "k", "first"); v != nil {
		t.Errorf("without versioning a put tells version %s", *v)
	}
	expect(nil, "first", "", "")
	expect(null, "first", "", "")
	expect(unknown, "", "", "NoSuchVersion")
	expect(aws.String("x"), "", "", "InvalidArgument")
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	second := putVersion(t, s, "k", "second")
	third := putVersion(t, s, "k", "third")
	expect(nil, "third", *third, "")
	expect(second, "second", *second, "")
	expect(null, "first", "null", "")
	marker := remove(nil)
	if !aws.ToBool(marker.DeleteMarker) || marker.VersionId == nil {
		t.Fatalf("deleted: %+v", marker)
	}
	expect(nil, "", "", "NoSuchKey")
	expect(marker.VersionId, "", "", "MethodNotAllowed")
	expect(third, "third", *third, "")
	if out := remove(third); aws.ToBool(out.DeleteMarker) || *out.VersionId != *third {
		t.Errorf("deleted a version: %+v", out)
	}
	if out := remove(marker.VersionId); !aws.ToBool(out.DeleteMarker) || *out.VersionId != *marker.VersionId {
		t.Errorf("deleted a marker: %+v", out)
	}
	expect(nil, "second", *second, "")
	setVersioning(t, s, types.BucketVersioningStatusSuspended)
	if v := putVersion(t, s, "k", "fourth"); v != nil {
		t.Errorf("while versioning is suspended a put tells version %s", *v)
	}
	expect(null, "fourth", "null", "")
	if out := remove(nil); !aws.ToBool(out.DeleteMarker) || *out.VersionId != "null" {
		t.Errorf("deleted: %+v", out)
	}
	expect(null, "", "", "MethodNotAllowed")
	expect(second, "second", *second, "")
}

// TestMarkerAnswers checks the headers that tell a delete marker from an object that never was.
func TestMarkerAnswers(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	version := putVersion(t, s, "k", "x")
	deleted, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range []*string{nil, deleted.VersionId} {
		_, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: theBucket, Key: aws.String("k"), VersionId: named})
		e, ok := errors.AsType[*apiError](err)
		if !ok || e.header.Get("x-amz-delete-marker") != "true" || e.header.Get("x-amz-version-id") != *deleted.VersionId ||
			(named != nil) != (e.header.Get("Allow") == "DELETE" && e.status == 405) {
			t.Errorf("head of %s: %+v, %v", aws.ToString(named), e, err)
		}
	}
	for _, c := range []struct{ source, want string }{
		{"bucket/k", "NoSuchKey"},
		{"bucket/k?versionId=" + *deleted.VersionId, "InvalidRequest"},
		{"bucket/k?versionId=" + *version, ""}, // restores it
	} {
		out, err := s.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: theBucket, Key: aws.String("k"), CopySource: &c.source})
		if code(err) != c.want || err == nil && (*out.CopySourceVersionId != *version || *out.VersionId == *version) {
			t.Errorf("copied %s: %+v, %v", c.source, out, err)
		}
	}
	if content, _, err := getVersion(t, s, "k", nil); content != "x" {
		t.Errorf("restored by a copy: %q, %v", content, err)
	}
}

// TestVersionTags: each version has tags of its own.
func TestVersionTags(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	key := aws.String("k")
	first, second := putVersion(t, s, "k", "x"), putVersion(t, s, "k", "y")
	tags := []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
	put, err := s.PutObjectTagging(t.Context(), &s3.PutObjectTaggingInput{
		Bucket: theBucket, Key: key, VersionId: first, Tagging: &types.Tagging{TagSet: tags},
	})
	if err != nil || *put.VersionId != *first {
		t.Errorf("%+v, %v", put, err)
	}
	for version, want := range map[*string]int{first: 1, second: 0, nil: 0} {
		got, err := s.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: theBucket, Key: key, VersionId: version})
		if err != nil || len(got.TagSet) != want || version != nil && *got.VersionId != *version {
			t.Errorf("%s: %+v, %v", aws.ToString(version), got, err)
		}
	}
}

// TestListVersions lists versions and markers in pages, with a common prefix, and refuses bad markers.
func TestListVersions(t *testing.T) {
	s, _ := newService(t)
	putVersion(t, s, "a", "null")
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	putVersion(t, s, "a", "new")
	putVersion(t, s, "dir/x", "x")
	putVersion(t, s, "dir/x", "y")
	if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("b")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	in := &s3.ListObjectVersionsInput{Bucket: theBucket, Delimiter: aws.String("/"), MaxKeys: aws.Int32(1)}
	for {
		page, err := s.ListObjectVersions(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Versions {
			got = append(got, fmt.Sprint(*v.Key, " ", *v.VersionId == "null", " ", *v.IsLatest))
		}
		for _, m := range page.DeleteMarkers {
			got = append(got, fmt.Sprint("marker ", *m.Key, " ", *m.IsLatest))
		}
		for _, p := range page.CommonPrefixes {
			got = append(got, *p.Prefix)
		}
		if !*page.IsTruncated {
			break
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
	if want := []string{"a false true", "a true false", "marker b true", "dir/"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	for marker, key := range map[string]*string{"": aws.String("a"), "null": nil, "x": aws.String("a")} {
		_, err := s.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{
			Bucket: theBucket, KeyMarker: key, VersionIdMarker: &marker,
		})
		if code(err) != "InvalidArgument" {
			t.Errorf("version marker %q with key marker %v: %v", marker, key, err)
		}
	}
}

// TestDeleteVersions deletes several versions in one call.
func TestDeleteVersions(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	version := putVersion(t, s, "a", "x")
	putVersion(t, s, "b", "x")
	out, err := s.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: theBucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{
		{Key: aws.String("a"), VersionId: version}, {Key: aws.String("b")}, {Key: aws.String("c"), VersionId: aws.String("x")},
	}}})
	if err != nil || len(out.Deleted) != 2 || len(out.Errors) != 1 || *out.Errors[0].Code != "NoSuchVersion" {
		t.Fatalf("%+v, %v", out, err)
	}
	if d := out.Deleted[0]; *d.VersionId != *version || d.DeleteMarker != nil {
		t.Errorf("a version: %+v", d)
	}
	if d := out.Deleted[1]; d.VersionId != nil || !aws.ToBool(d.DeleteMarker) || d.DeleteMarkerVersionId == nil {
		t.Errorf("a key: %+v", d)
	}
	listed, err := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: theBucket})
	if err != nil || len(listed.Contents) != 0 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	if _, err := s.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: theBucket}); code(err) != "BucketNotEmpty" {
		t.Errorf("a bucket with versions was deleted: %v", err)
	}
}

// TestVersionConditions: writes on condition look at the latest version, of which a delete marker is none.
func TestVersionConditions(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	in := func() *s3.PutObjectInput {
		return &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("k"), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")}
	}
	for _, want := range []string{"", "PreconditionFailed"} {
		if _, err := s.PutObject(t.Context(), in()); code(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutObject(t.Context(), in()); err != nil {
		t.Errorf("over a delete marker: %v", err)
	}
}

// TestVersionNotifications: events have the version, and tell a marker from a removal.
func TestVersionNotifications(t *testing.T) {
	s, _ := newService(t)
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	if err := configure(s, t.Context(), rule("", "", "s3:ObjectCreated:*", "s3:ObjectRemoved:*")); err != nil {
		t.Fatal(err)
	}
	version := putVersion(t, s, "k", "x")
	marker, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*string{marker.VersionId, version} {
		if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k"), VersionId: v}); err != nil {
			t.Fatal(err)
		}
	}
	owed, _, _, err := s.store.Owed(t.Context(), 10, delivery.All)
	if err != nil || len(owed) != 4 {
		t.Fatalf("%d are owed, %v", len(owed), err)
	}
	for i, want := range []struct{ name, version, etag string }{
		{"ObjectCreated:Put", *version, "9dd4e461268c8034f5c8564e155c67a6"},
		{"ObjectRemoved:DeleteMarkerCreated", *marker.VersionId, emptyETag},
		{"ObjectRemoved:Delete", *marker.VersionId, ""},
		{"ObjectRemoved:Delete", *version, ""},
	} {
		var e event
		if err := json.Unmarshal([]byte(owed[i].Body), &e); err != nil {
			t.Fatal(err)
		}
		if r := e.Records[0]; r.EventName != want.name || r.S3.Object.VersionID != want.version || r.S3.Object.ETag != want.etag {
			t.Errorf("owed %s, want %+v", owed[i].Body, want)
		}
	}
}

// TestVersionName: what names a version is one, and nothing else.
func TestVersionName(t *testing.T) {
	for text, want := range map[string]bool{
		"null": true, strings.Repeat("0", 32): true, strings.Repeat("0", 31): false, "": false, strings.Repeat("z", 32): false,
	} {
		if objects.IsVersion(text) != want {
			t.Errorf("%q", text)
		}
	}
}
