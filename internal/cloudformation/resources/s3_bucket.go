package resources

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// bucket has the properties of AWS::S3::Bucket. Its physical ID is the name. Those that Pintle's S3 doesn't serve aren't there.
type bucket struct {
	BucketName                     *string `cfn:"create"`
	AccessControl                  *string `cfn:"write"`
	BucketEncryption               *bucketEncryption
	CorsConfiguration              *bucketCORS
	LifecycleConfiguration         *bucketLifecycle
	NotificationConfiguration      *bucketNotifications
	OwnershipControls              *types.OwnershipControls
	PublicAccessBlockConfiguration *types.PublicAccessBlockConfiguration
	Tags                           []Tag
	VersioningConfiguration        *bucketVersioning
}

var _ = add(&kind[*bucket]{
	name:       "AWS::S3::Bucket",
	live:       liveBucket,
	list:       listBuckets,
	identifier: []string{"BucketName"},
	attributes: []string{"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL"},
	id:         bucketName,
	create: func(ctx context.Context, s Step, b *bucket) (string, error) {
		name := bucketName(s, b)
		in := &s3.CreateBucketInput{Bucket: &name, ACL: types.BucketCannedACL(cannedACL(b))}
		if err := did[s3.CreateBucketOutput](ctx, s, in); err != nil {
			return "", err
		}
		if err := setBucket(ctx, s, name, &bucket{}, b); err != nil {
			return "", undo(ctx, s, name, b, deleteBucket, err)
		}
		return name, nil
	},
	update: updateBucket,
	delete: deleteBucket,
	read: func(ctx context.Context, s Step, name string, _ *bucket) (Made, error) {
		if err := did[s3.HeadBucketOutput](ctx, s, &s3.HeadBucketInput{Bucket: &name}); err != nil {
			return Made{}, err
		}
		region := s.Account.Region
		return Made{Attributes: map[string]any{
			"Arn":                 "arn:aws:s3:::" + name,
			"DomainName":          name + ".s3.amazonaws.com",
			"DualStackDomainName": name + ".s3.dualstack." + region + ".amazonaws.com",
			"RegionalDomainName":  name + ".s3." + region + ".amazonaws.com",
			"WebsiteURL":          "http://" + name + ".s3-website" + websiteMark(region) + region + ".amazonaws.com",
		}}, nil
	},
})

func bucketName(s Step, b *bucket) string {
	if b.BucketName != nil {
		return *b.BucketName
	}
	return strings.ToLower(s.generated(63))
}

// websiteMark returns what stands before the region in the address of a bucket's website: a dash in the oldest regions, a dot in all others.
func websiteMark(region string) string {
	oldest := []string{
		"us-east-1", "us-west-1", "us-west-2", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "eu-west-1", "sa-east-1", "us-gov-west-1",
	}
	if slices.Contains(oldest, region) {
		return "-"
	}
	return "."
}

var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// cannedACL returns an ACL's name as S3 has it, where templates say BucketOwnerFullControl.
func cannedACL(b *bucket) string {
	if b.AccessControl == nil {
		return ""
	}
	return strings.ToLower(capital.ReplaceAllString(*b.AccessControl, "$1-$2"))
}

func updateBucket(ctx context.Context, s Step, name string, before, after *bucket) error {
	if acl := cannedACL(after); acl != "" && acl != cannedACL(before) {
		in := &s3.PutBucketAclInput{Bucket: &name, ACL: types.BucketCannedACL(acl)}
		if err := did[s3.PutBucketAclOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return setBucket(ctx, s, name, before, after)
}

// setBucket sets what a bucket is set to by calls of their own.
func setBucket(ctx context.Context, s Step, name string, before, after *bucket) error {
	for _, set := range []func(ctx context.Context, s Step, name string, before, after *bucket) error{
		setVersioning, setEncryption, setPublicAccess, setOwnership, setCORS, setLifecycle, setNotifications, setBucketTags,
	} {
		if err := set(ctx, s, name, before, after); err != nil {
			return err
		}
	}
	return nil
}

func deleteBucket(ctx context.Context, s Step, name string, _ *bucket) error {
	return did[s3.DeleteBucketOutput](ctx, s, &s3.DeleteBucketInput{Bucket: &name})
}

func liveBucket(ctx context.Context, s Step, name string, _ *bucket) (*bucket, error) {
	if err := did[s3.HeadBucketOutput](ctx, s, &s3.HeadBucketInput{Bucket: &name}); err != nil {
		if hasCode(err, "NotFound") {
			err = errMissing
		}
		return nil, err
	}
	live := &bucket{BucketName: &name}
	for _, read := range []func(ctx context.Context, s Step, name string, live *bucket) error{
		readVersioning, readEncryption, readPublicAccess, readOwnership, readCORS, readLifecycle, readNotifications, readBucketTags,
	} {
		if err := read(ctx, s, name, live); err != nil && !isNothing(err) {
			return nil, err
		}
	}
	return live, nil
}

func listBuckets(ctx context.Context, s Step, _ *bucket) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[s3.ListBucketsOutput](ctx, s.Services, &s3.ListBucketsInput{ContinuationToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Buckets {
			ids = append(ids, *x.Name)
		}
		return ids, out.ContinuationToken, nil
	})
}
