package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/s3/objects"
)

// bucketName matches a valid bucket name. See "General purpose bucket naming rules" in S3's guide.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

var (
	reservedPrefixes = []string{"xn--", "sthree-", "amzn-s3-demo-"}
	reservedSuffixes = []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"}
)

func checkBucketName(name string) error {
	bad := !bucketName.MatchString(name) || strings.Contains(name, "..")
	if _, err := netip.ParseAddr(name); err == nil {
		bad = true
	}
	for _, p := range reservedPrefixes {
		bad = bad || strings.HasPrefix(name, p)
	}
	for _, p := range reservedSuffixes {
		bad = bad || strings.HasSuffix(name, p)
	}
	if !bad {
		return nil
	}
	return &apiError{
		code:    "InvalidBucketName",
		message: "The specified bucket is not valid.",
		status:  400,
		detail:  map[string]string{"BucketName": name},
	}
}

// CreateBucket is S3's operation.
func (s *Service) CreateBucket(ctx context.Context, in *s3.CreateBucketInput) (*s3.CreateBucketOutput, error) {
	name := aws.ToString(in.Bucket)
	if err := checkBucketName(name); err != nil {
		return nil, err
	}
	if err := s.checkNewBucket(in); err != nil {
		return nil, err
	}
	settings := newSettings()
	if c := in.CreateBucketConfiguration; c != nil && c.LocationConstraint != "" {
		settings[location], _ = json.Marshal(c.LocationConstraint)
	}
	if c := in.CreateBucketConfiguration; c != nil && len(c.Tags) > 0 {
		if err := checkNewTags(c.Tags); err != nil {
			return nil, err
		}
		settings[tagging], _ = json.Marshal(types.Tagging{TagSet: c.Tags})
	}
	err := s.store.CreateBucket(ctx, name, settings)
	idempotent := s.opts.Region == "us-east-1" && settings[tagging] == nil && settings[location] == nil // see CreateBucket's errors
	if errors.Is(err, objects.ErrExists) && !idempotent {
		return nil, refuseBucket(
			409, "BucketAlreadyOwnedByYou", name, "Your previous request to create the named bucket succeeded and you already own it.",
		)
	}
	if err != nil && !errors.Is(err, objects.ErrExists) {
		return nil, err
	}
	return &s3.CreateBucketOutput{Location: aws.String("/" + name), BucketArn: arnOf(name)}, nil
}

// checkNewTags checks a new bucket's tags. S3 words one of the refusals otherwise than for a bucket that is there.
func checkNewTags(tags []types.Tag) error {
	for _, t := range tags {
		if strings.HasPrefix(strings.ToLower(aws.ToString(t.Key)), "aws:") {
			return refuse(
				400, "InvalidTag", "User-defined tag keys can't start with \"aws:\". This prefix is reserved for system tags. "+
					"Remove \"aws:\" from your tag keys and try again.",
			)
		}
	}
	return checkTags(tags, maxBucketTags)
}

func arnOf(bucket string) *string { return aws.String("arn:aws:s3:::" + bucket) }

// newSettings returns the settings of every new bucket. See "Default settings for new S3 buckets FAQ" in S3's guide.
func newSettings() map[string]json.RawMessage {
	yes := aws.Bool(true)
	public, _ := json.Marshal(types.PublicAccessBlockConfiguration{
		BlockPublicAcls:       yes,
		BlockPublicPolicy:     yes,
		IgnorePublicAcls:      yes,
		RestrictPublicBuckets: yes,
	})
	owner, _ := json.Marshal(
		types.OwnershipControls{Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}}},
	)
	return map[string]json.RawMessage{publicAccess: public, ownership: owner}
}

// checkNewBucket refuses options that new buckets don't have here.
func (s *Service) checkNewBucket(in *s3.CreateBucketInput) error {
	if !isOwnersOnly(string(in.ACL)) {
		return refuse(
			400, "InvalidBucketAclWithObjectOwnership",
			"Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
		)
	}
	if o := in.ObjectOwnership; o != "" && !slices.Contains(o.Values(), o) {
		return invalidArgument("x-amz-object-ownership", "", "Invalid x-amz-object-ownership header: %s", o)
	}
	err := refuseUnsupported(
		unsupported{"x-amz-bucket-object-lock-enabled", aws.ToBool(in.ObjectLockEnabledForBucket)},
		unsupported{"x-amz-bucket-namespace other than global", cmp.Or(in.BucketNamespace, types.BucketNamespaceGlobal) != types.BucketNamespaceGlobal},
		unsupported{"x-amz-grant-full-control", in.GrantFullControl != nil},
		unsupported{"x-amz-grant-read", in.GrantRead != nil},
		unsupported{"x-amz-grant-read-acp", in.GrantReadACP != nil},
		unsupported{"x-amz-grant-write", in.GrantWrite != nil},
		unsupported{"x-amz-grant-write-acp", in.GrantWriteACP != nil},
		unsupported{
			"x-amz-object-ownership other than BucketOwnerEnforced",
			in.ObjectOwnership != "" && in.ObjectOwnership != types.ObjectOwnershipBucketOwnerEnforced,
		},
	)
	c := in.CreateBucketConfiguration
	if err != nil || c == nil {
		return err
	}
	if c.Bucket != nil || c.Location != nil {
		return notImplemented("directory buckets")
	}
	switch place := string(c.LocationConstraint); {
	case place == "", place == s.opts.Region && place != "us-east-1", place == "EU" && s.opts.Region == "eu-west-1":
		return nil
	case s.opts.Region == "us-east-1" && isPlace(place):
		return nil
	case place == "us-east-1" || s.opts.Region == "us-east-1":
		return &apiError{
			code:    "InvalidLocationConstraint",
			message: "The specified location-constraint is not valid",
			status:  400,
			detail:  map[string]string{"LocationConstraint": place},
		}
	default:
		return refuse(
			400, "IllegalLocationConstraintException",
			"The %s location constraint is incompatible for the region specific endpoint this request was sent to.", place,
		)
	}
}

// isPlace reports whether a text is a LocationConstraint. All regions are, but us-east-1.
func isPlace(text string) bool {
	place := types.BucketLocationConstraint(text)
	return slices.Contains(place.Values(), place)
}

// DeleteBucket is S3's operation.
func (s *Service) DeleteBucket(ctx context.Context, in *s3.DeleteBucketInput) (*s3.DeleteBucketOutput, error) {
	b, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	err = s.store.DeleteBucket(ctx, *in.Bucket)
	if errors.Is(err, objects.ErrNotEmpty) {
		message := "The bucket you tried to delete is not empty"
		if b.HasVersions() {
			message += ". You must delete all versions in the bucket."
		}
		return nil, refuseBucket(409, "BucketNotEmpty", *in.Bucket, message)
	}
	return &s3.DeleteBucketOutput{}, s.asError(err, *in.Bucket, "")
}

// HeadBucket is S3's operation.
func (s *Service) HeadBucket(ctx context.Context, in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	return &s3.HeadBucketOutput{BucketRegion: &s.opts.Region, BucketArn: arnOf(*in.Bucket), AccessPointAlias: aws.Bool(false)}, nil
}

// GetBucketLocation is S3's operation. It answers us-east-1 with an empty LocationConstraint. A bucket that us-east-1 made for another
// region has that one's name, and is called here all the same.
func (s *Service) GetBucketLocation(ctx context.Context, in *s3.GetBucketLocationInput) (*s3.GetBucketLocationOutput, error) {
	var place types.BucketLocationConstraint
	if err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, location, &place, nil); err != nil {
		return nil, err
	}
	if place == "" && s.opts.Region != "us-east-1" {
		place = types.BucketLocationConstraint(s.opts.Region)
	}
	return &s3.GetBucketLocationOutput{LocationConstraint: place}, nil
}

// maxBuckets is both the limit and the default for buckets in one answer.
const maxBuckets = 10000

// ListBuckets is S3's operation.
func (s *Service) ListBuckets(ctx context.Context, in *s3.ListBucketsInput) (*s3.ListBucketsOutput, error) {
	limit := int(aws.ToInt32(in.MaxBuckets))
	if in.MaxBuckets == nil {
		limit = maxBuckets
	}
	if limit < 1 || limit > maxBuckets {
		return nil, invalidArgument("max-buckets", "", "Argument max-buckets must be an integer between 1 and 10000")
	}
	if r := in.BucketRegion; r != nil && *r != s.opts.Region && *r != "us-east-1" && !isPlace(*r) {
		return nil, invalidArgument("bucket-region", "", "Argument value %s is not a valid AWS Region", *r)
	}
	out := &s3.ListBucketsOutput{Owner: s.owner(), Prefix: in.Prefix, Buckets: []types.Bucket{}}
	if in.BucketRegion != nil && *in.BucketRegion != s.opts.Region {
		return out, nil
	}
	_, after, err := listing("ListBuckets", aws.ToString(in.ContinuationToken)).Start(nil, in.ContinuationToken)
	if err != nil {
		return nil, err
	}
	all, err := s.store.Buckets(ctx, aws.ToString(in.Prefix), after, limit+1)
	if err != nil {
		return nil, err
	}
	for i, b := range all {
		if i == limit {
			out.ContinuationToken = listing("ListBuckets", "").Token(all[i-1].Name)
			break
		}
		listed := types.Bucket{Name: &b.Name, CreationDate: &b.Created, BucketArn: arnOf(b.Name)}
		if in.MaxBuckets != nil || in.Prefix != nil {
			listed.BucketRegion = &s.opts.Region
		}
		out.Buckets = append(out.Buckets, listed)
	}
	return out, nil
}

// listing returns the pagination of a list operation. token is the caller's, for the error message.
func listing(operation, token string) account.List {
	return account.List{
		Kind: "s3:" + operation,
		Most: maxBuckets,
		BadToken: func() error {
			return invalidArgument("continuation-token", token, "The continuation token provided is incorrect")
		},
	}
}
