package s3

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var theBucket = aws.String("bucket")

// TestACLs: the ACLs that change nothing are taken, as clients send them by habit. All others are refused.
func TestACLs(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	ours := &types.AccessControlPolicy{Owner: s.owner(), Grants: s.grants()}
	theirs := &types.AccessControlPolicy{Owner: s.owner(), Grants: []types.Grant{{
		Grantee:    &types.Grantee{URI: aws.String("http://acs.amazonaws.com/groups/global/AllUsers"), Type: types.TypeGroup},
		Permission: types.PermissionRead,
	}}}
	for _, c := range []struct {
		name   string
		canned string
		policy *types.AccessControlPolicy
		read   *string
		want   string
	}{
		{name: "private", canned: "private"},
		{name: "the owner's", canned: "bucket-owner-full-control"},
		{name: "policy of the owner's control", policy: ours},
		{name: "policy without grants", policy: &types.AccessControlPolicy{Owner: s.owner()}},
		{name: "public", canned: "public-read", want: "AccessControlListNotSupported"},
		{name: "policy for all", policy: theirs, want: "AccessControlListNotSupported"},
		{name: "grant", read: aws.String("id=x"), want: "AccessControlListNotSupported"},
		{name: "none", want: "MissingSecurityHeader"},
	} {
		_, err := s.PutObjectAcl(t.Context(), &s3.PutObjectAclInput{
			Bucket:              theBucket,
			Key:                 aws.String("k"),
			ACL:                 types.ObjectCannedACL(c.canned),
			AccessControlPolicy: c.policy,
			GrantRead:           c.read,
		})
		if code(err) != c.want {
			t.Errorf("%s on an object: %v, want %q", c.name, err, c.want)
		}
		_, err = s.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{
			Bucket:              theBucket,
			ACL:                 types.BucketCannedACL(c.canned),
			AccessControlPolicy: c.policy,
			GrantRead:           c.read,
		})
		if code(err) != c.want {
			t.Errorf("%s on a bucket: %v, want %q", c.name, err, c.want)
		}
	}
	for acl, want := range map[types.BucketCannedACL]string{
		"bucket-owner-full-control": "", "private": "", "public-read": "InvalidBucketAclWithObjectOwnership",
	} {
		if _, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("another"), ACL: acl}); code(err) != want {
			t.Errorf("a new bucket with %s: %v", acl, err)
		}
	}
	if _, err := s.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{Bucket: aws.String("none"), ACL: "private"}); code(err) != "NoSuchBucket" {
		t.Error(err)
	}
}

// TestNoBucketComesFirst: whether an ACL is allowed is the bucket's to say, so a write to a bucket that isn't there says only that.
func TestNoBucketComesFirst(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	none, key, acl := aws.String("none"), aws.String("k"), types.ObjectCannedACLPublicRead
	_, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: none, Key: key, ACL: acl, Body: strings.NewReader("x")})
	if code(err) != "NoSuchBucket" {
		t.Errorf("PutObject: %v", err)
	}
	_, err = s.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: none, Key: key, ACL: acl, CopySource: aws.String("bucket/k")})
	if code(err) != "NoSuchBucket" {
		t.Errorf("CopyObject: %v", err)
	}
	_, err = s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: none, Key: key, ACL: acl})
	if code(err) != "NoSuchBucket" {
		t.Errorf("CreateMultipartUpload: %v", err)
	}
}

// TestLocations: us-east-1 makes buckets for any region, and keeps which.
func TestLocations(t *testing.T) {
	s, _ := newService(t)
	for place, want := range map[types.BucketLocationConstraint]string{
		"eu-west-1": "", "EU": "", "us-east-1": "InvalidLocationConstraint", "nowhere": "InvalidLocationConstraint",
	} {
		bucket := aws.String("bucket-" + strings.ToLower(string(place)))
		_, err := s.CreateBucket(t.Context(), &s3.CreateBucketInput{
			Bucket:                    bucket,
			CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: place},
		})
		if code(err) != want {
			t.Errorf("in %s: %v, want %q", place, err, want)
		}
		if want != "" {
			continue
		}
		out, err := s.GetBucketLocation(t.Context(), &s3.GetBucketLocationInput{Bucket: bucket})
		if err != nil || out.LocationConstraint != place {
			t.Errorf("made in %s, is in %+v, %v", place, out, err)
		}
	}
}

// TestReadConditions: a date in the future is no condition.
func TestReadConditions(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	for since, want := range map[time.Time]string{noon.Add(time.Hour): "", noon: "NotModified", noon.Add(-time.Hour): ""} {
		_, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: theBucket, Key: aws.String("k"), IfModifiedSince: &since})
		if code(err) != want {
			t.Errorf("if modified since %s: %v, want %q", since, err, want)
		}
	}
}

// TestConditionalDelete: a delete on condition needs its object.
func TestConditionalDelete(t *testing.T) {
	s, _ := newService(t)
	in := &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k"), IfMatch: aws.String("x")}
	if _, err := s.DeleteObject(t.Context(), in); code(err) != "NoSuchKey" {
		t.Errorf("of no object: %v", err)
	}
	put(t, s, "k", "x")
	if _, err := s.DeleteObject(t.Context(), in); code(err) != "PreconditionFailed" {
		t.Errorf("of another object: %v", err)
	}
}

// TestConditionalCompletion: an upload that completes on condition conflicts with what happened to its key since it began.
func TestConditionalCompletion(t *testing.T) {
	clock := noon
	s, _ := newServiceAt(t, func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})
	key := aws.String("k")
	complete := func(meanwhile func(), match, noneMatch *string) error {
		t.Helper()
		u, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: theBucket, Key: key, UploadId: u.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x"),
		})
		if err != nil {
			t.Fatal(err)
		}
		meanwhile()
		parts := []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: p.ETag}}
		_, err = s.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket:          theBucket,
			Key:             key,
			UploadId:        u.UploadId,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
			IfMatch:         match,
			IfNoneMatch:     noneMatch,
		})
		return err
	}
	etag := aws.String("9dd4e461268c8034f5c8564e155c67a6") // of x
	write := func() { put(t, s, "k", "x") }
	remove := func() {
		if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func() {}
	if err := complete(write, nil, aws.String("*")); code(err) != "PreconditionFailed" {
		t.Errorf("written since, where none may be: %v", err)
	}
	if err := complete(remove, nil, aws.String("*")); code(err) != "ConditionalRequestConflict" {
		t.Errorf("deleted since: %v", err)
	}
	if err := complete(write, etag, nil); code(err) != "ConditionalRequestConflict" {
		t.Errorf("written since: %v", err)
	}
	if err := complete(nothing, etag, nil); err != nil {
		t.Errorf("nothing happened since: %v", err)
	}
	remove()
	if err := complete(nothing, nil, aws.String("*")); err != nil {
		t.Errorf("nothing happened since: %v", err)
	}
}

// TestExpirationHeader: answers say when a lifecycle rule will remove the object.
func TestExpirationHeader(t *testing.T) {
	s, _ := newService(t)
	rule := func(id, prefix string, days int32) types.LifecycleRule {
		return types.LifecycleRule{
			ID:         &id,
			Status:     types.ExpirationStatusEnabled,
			Filter:     &types.LifecycleRuleFilter{Prefix: &prefix},
			Expiration: &types.LifecycleExpiration{Days: &days},
		}
	}
	_, err := s.PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
		Bucket: theBucket,
		LifecycleConfiguration: &types.BucketLifecycleConfiguration{
			Rules: []types.LifecycleRule{rule("slow", "tmp/", 7), rule("soon it is", "tmp/", 1)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"tmp/a": `expiry-date="Mon, 23 Nov 2026 00:00:00 GMT", rule-id="soon%20it%20is"`, "kept": "",
	} {
		out, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: &key, Body: strings.NewReader("x")})
		if err != nil || aws.ToString(out.Expiration) != want {
			t.Errorf("put %s: %q, %v", key, aws.ToString(out.Expiration), err)
		}
		head, err := s.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: theBucket, Key: &key})
		if err != nil || aws.ToString(head.Expiration) != want {
			t.Errorf("head of %s: %q, %v", key, aws.ToString(head.Expiration), err)
		}
		copied, err := s.CopyObject(t.Context(), &s3.CopyObjectInput{
			Bucket: theBucket, Key: aws.String(key + "2"), CopySource: aws.String("bucket/" + key),
		})
		if err != nil || aws.ToString(copied.Expiration) != want {
			t.Errorf("copy of %s: %+v, %v", key, copied, err)
		}
	}
}

// TestTagSets: a Tagging needs a TagSet. An empty one takes a bucket's tags away.
func TestTagSets(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	tag := func(tagging *types.Tagging) (onBucket, onObject string) {
		_, err := s.PutBucketTagging(t.Context(), &s3.PutBucketTaggingInput{Bucket: theBucket, Tagging: tagging})
		_, err2 := s.PutObjectTagging(t.Context(), &s3.PutObjectTaggingInput{Bucket: theBucket, Key: aws.String("k"), Tagging: tagging})
		return code(err), code(err2)
	}
	one := []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	for _, c := range []struct {
		tagging *types.Tagging
		want    string
	}{
		{nil, "MalformedXML"},
		{&types.Tagging{TagSet: []types.Tag{{Value: aws.String("v")}}}, "MalformedXML"},
		{&types.Tagging{TagSet: []types.Tag{{Key: aws.String("k")}}}, "MalformedXML"},
		{&types.Tagging{}, ""},
		{&types.Tagging{TagSet: []types.Tag{{Key: aws.String("a,b"), Value: aws.String("v")}}}, "InvalidTag"},
		{&types.Tagging{TagSet: []types.Tag{{Key: aws.String("a"), Value: aws.String("v?")}}}, "InvalidTag"},
		{&types.Tagging{TagSet: one}, ""},
		{&types.Tagging{TagSet: []types.Tag{}}, ""},
	} {
		if onBucket, onObject := tag(c.tagging); onBucket != c.want || onObject != c.want {
			t.Errorf("%+v: %q, %q, want %q", c.tagging, onBucket, onObject, c.want)
		}
	}
	if _, err := s.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: theBucket}); code(err) != "NoSuchTagSet" {
		t.Errorf("after an empty TagSet: %v", err)
	}
	for _, text := range []string{"a=b,c=d", "a=b&a=c", "a=%zz"} {
		_, err := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("k"), Tagging: &text})
		if code(err) != "InvalidArgument" {
			t.Errorf("x-amz-tagging %s: %v", text, err)
		}
	}
}

// TestErrorDetails: errors name what they are about.
func TestErrorDetails(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	key := aws.String("k")
	_, noTags := s.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: theBucket})
	_, noUpload := s.ListParts(t.Context(), &s3.ListPartsInput{Bucket: theBucket, Key: key, UploadId: aws.String("u")})
	_, noWebsite := s.GetBucketWebsite(t.Context(), &s3.GetBucketWebsiteInput{Bucket: theBucket})
	_, notEmpty := s.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: theBucket})
	_, noKey := s.PutObject(t.Context(), &s3.PutObjectInput{Bucket: theBucket, Key: aws.String("n"), IfMatch: aws.String("e")})
	_, badOwner := s.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: theBucket, ExpectedBucketOwner: aws.String("me")})
	_, noToken := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: theBucket, ContinuationToken: aws.String("")})
	for _, c := range []struct {
		err               error
		code, name, value string
	}{
		{noTags, "NoSuchTagSet", "BucketName", "bucket"},
		{noUpload, "NoSuchUpload", "UploadId", "u"},
		{noWebsite, "NoSuchWebsiteConfiguration", "BucketName", "bucket"},
		{notEmpty, "BucketNotEmpty", "BucketName", "bucket"},
		{noKey, "NoSuchKey", "Key", "n"},
		{badOwner, "InvalidBucketOwnerAWSAccountID", "", ""},
		{noToken, "InvalidArgument", "ArgumentName", "continuation-token"},
	} {
		e, ok := errors.AsType[*apiError](c.err)
		if !ok || e.code != c.code || e.detail[c.name] != c.value {
			t.Errorf("%+v, want %s with %s %s", c.err, c.code, c.name, c.value)
		}
	}
	if e := noToken.(*apiError); len(e.detail) != 1 {
		t.Errorf("an empty argument has a value: %v", e.detail)
	}
}

// TestListMarkerInPrefix: the older list doesn't show a common prefix again that its marker is in.
func TestListMarkerInPrefix(t *testing.T) {
	s, _ := newService(t)
	for _, key := range []string{"a/1", "a/2", "b/1", "c"} {
		put(t, s, key, "x")
	}
	out, err := s.ListObjects(t.Context(), &s3.ListObjectsInput{Bucket: theBucket, Marker: aws.String("a/1"), Delimiter: aws.String("/")})
	if err != nil || len(out.CommonPrefixes) != 1 || *out.CommonPrefixes[0].Prefix != "b/" || len(out.Contents) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	two, err := s.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{
		Bucket: theBucket, StartAfter: aws.String("a/1"), Delimiter: aws.String("/"),
	})
	if err != nil || len(two.CommonPrefixes) != 2 {
		t.Errorf("%+v, %v", two, err)
	}
}

// TestUploadsByFolder lists uploads with a delimiter, in pages of every size.
func TestUploadsByFolder(t *testing.T) {
	s, _ := newService(t)
	for _, key := range []string{"a", "b/1", "b/2", "b/c/3", "d", "d", "e/1"} {
		if _, err := s.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: theBucket, Key: &key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ prefix, want string }{
		{"", "a b/ d d e/"},
		{"b/", "b/1 b/2 b/c/"},
		{"d", "d d"},
		{"x", ""},
	} {
		for limit := int32(1); limit < 6; limit++ {
			var got []string
			in := &s3.ListMultipartUploadsInput{
				Bucket: theBucket, Prefix: &c.prefix, Delimiter: aws.String("/"), MaxUploads: &limit,
			}
			for pages := 0; pages < 10; pages++ {
				out, err := s.ListMultipartUploads(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				page := len(got)
				for _, u := range out.Uploads {
					got = append(got, *u.Key)
				}
				for _, p := range out.CommonPrefixes {
					got = append(got, *p.Prefix)
				}
				slices.Sort(got[page:])
				if !*out.IsTruncated {
					break
				}
				in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q in pages of %d: %q, want %q", c.prefix, limit, got, c.want)
			}
		}
	}
}

// TestRecordedRefusals: answers to calls that S3 refuses, as it was recorded doing.
func TestRecordedRefusals(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	for _, bypass := range []bool{true, false} {
		_, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{
			Bucket: theBucket, Key: aws.String("k"), BypassGovernanceRetention: &bypass,
		})
		if code(err) != "InvalidArgument" {
			t.Errorf("bypass %v without Object Lock: %v", bypass, err)
		}
	}
	out, err := s.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: theBucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("k"), VersionId: aws.String("random")}},
	}})
	if err != nil || len(out.Errors) != 1 || *out.Errors[0].Code != "NoSuchVersion" {
		t.Errorf("deleting a bad version among many: %+v, %v", out, err)
	}
	_, err = s.PutBucketEncryption(t.Context(), &s3.PutBucketEncryptionInput{
		Bucket: theBucket,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
			ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: "AES256", KMSMasterKeyID: aws.String("k")},
		}}},
	})
	if code(err) != "InvalidArgument" {
		t.Errorf("a KMS key with AES256: %v", err)
	}
	setVersioning(t, s, types.BucketVersioningStatusEnabled)
	if _, err := s.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: theBucket, Key: aws.String("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{
		Bucket: theBucket, Key: aws.String("k"),
	}); code(err) != "MethodNotAllowed" {
		t.Errorf("tags of a delete marker: %v", err)
	}
}

// TestFilterRuleNames: S3 shows the names of filter rules in its own case.
func TestFilterRuleNames(t *testing.T) {
	s, _ := newService(t)
	r := rule("in/", ".jpg", "s3:ObjectCreated:*")
	for i := range r.Filter.Key.FilterRules {
		r.Filter.Key.FilterRules[i].Name = types.FilterRuleName(strings.ToUpper(string(r.Filter.Key.FilterRules[i].Name)))
	}
	if err := configure(s, t.Context(), r); err != nil {
		t.Fatal(err)
	}
	out, err := s.GetBucketNotificationConfiguration(t.Context(), &s3.GetBucketNotificationConfigurationInput{Bucket: theBucket})
	if err != nil {
		t.Fatal(err)
	}
	rules := out.QueueConfigurations[0].Filter.Key.FilterRules
	if len(rules) != 2 || rules[0].Name != "Prefix" || rules[1].Name != "Suffix" {
		t.Errorf("%+v", rules)
	}
}

// TestEmptyHeaders: headers without which an operation means nothing are missed by name when they're empty.
func TestEmptyHeaders(t *testing.T) {
	s, _ := newService(t)
	put(t, s, "k", "x")
	key := aws.String("k")
	_, err := s.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: theBucket, Key: key, CopySource: aws.String("")})
	refusal{"InvalidArgument", "", "", "Copy Source must mention the source bucket and key"}.check(t, "no source", err)
	_, err = s.GetObjectAttributes(t.Context(), &s3.GetObjectAttributesInput{Bucket: theBucket, Key: key})
	refusal{"InvalidArgument", "", "", "attributes to be retrieved is either missing or empty"}.check(t, "no attributes", err)
}
