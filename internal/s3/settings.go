package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/s3/objects"
)

// Settings of buckets are stored and returned. Only versioning, notifications, lifecycle and CORS rules, and blocked kinds of
// encryption, have an effect.

// Names of the settings in the object store.
const (
	location      = "location"
	tagging       = "tagging"
	policy        = "policy"
	encryption    = "encryption"
	publicAccess  = "publicAccessBlock"
	ownership     = "ownershipControls"
	corsRules     = "cors"
	lifecycle     = "lifecycle"
	notifications = "notification"
)

// saveSetting stores a setting's value. A nil value removes the setting.
func (s *Service) saveSetting(ctx context.Context, bucket, expectedOwner *string, name string, value any) error {
	if _, err := s.bucket(ctx, bucket, expectedOwner); err != nil {
		return err
	}
	var text json.RawMessage
	if value != nil {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return err
		}
	}
	return s.asError(s.store.Set(ctx, *bucket, name, text), *bucket, "")
}

// loadSetting reads a setting. If the setting has no value, it returns ifUnset, which is S3's error for that, or nil.
func (s *Service) loadSetting(ctx context.Context, bucket, expectedOwner *string, name string, into any, ifUnset error) error {
	b, err := s.bucket(ctx, bucket, expectedOwner)
	if err != nil {
		return err
	}
	if text := b.Settings[name]; text != nil {
		return json.Unmarshal(text, into)
	}
	if e, ok := errors.AsType[*apiError](ifUnset); ok {
		return refuseBucket(e.status, e.code, b.Name, e.message)
	}
	return ifUnset
}

// missing is S3's error for a setting that a bucket doesn't have.
func missing(code, message string) error { return refuse(404, code, "%s", message) }

// Limits of tags.
const (
	maxObjectTags = 10
	maxBucketTags = 50
)

const badTagKey = "The TagKey you have provided is invalid"

func invalidTag(key, message string) error {
	return &apiError{code: "InvalidTag", message: message, status: 400, detail: map[string]string{"TagKey": key}}
}

func invalidTagValue(t types.Tag) error {
	return &apiError{
		code:    "InvalidTag",
		message: "The TagValue you have provided is invalid",
		status:  400,
		detail:  map[string]string{"TagKey": *t.Key, "TagValue": *t.Value},
	}
}

func checkTags(tags []types.Tag, limit int) error {
	if len(tags) > limit {
		if limit == maxObjectTags {
			return refuse(400, "BadRequest", "Object tags cannot be greater than %d", limit)
		}
		return refuse(400, "BadRequest", "Bucket tag count cannot be greater than %d", limit)
	}
	for _, t := range tags {
		if t.Key == nil || t.Value == nil {
			return malformedXML("a Tag needs a Key and a Value")
		}
		if !tagText.MatchString(*t.Key) {
			return invalidTag(*t.Key, badTagKey)
		}
		if !tagText.MatchString(*t.Value) {
			return invalidTagValue(t)
		}
	}
	fault := account.CheckTags(account.TagPairs(tags, keyAndValue), limit)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TagKeyLength:
		return invalidTag(fault.Key, badTagKey)
	case account.TagValueLength:
		return invalidTagValue(tags[fault.Index])
	case account.TagReserved:
		if limit == maxObjectTags {
			return invalidTag(fault.Key, "Your TagKey cannot be prefixed with aws:")
		}
		return invalidTag(fault.Key, "System tags cannot be added/updated by requester")
	}
	return invalidTag(fault.Key, "Cannot provide multiple Tags with the same key")
}

// tagText matches what a tag's key and value may be made of.
var tagText = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

func keyAndValue(t types.Tag) (key, value *string) { return t.Key, t.Value }

// PutBucketTagging is S3's operation.
func (s *Service) PutBucketTagging(ctx context.Context, in *s3.PutBucketTaggingInput) (*s3.PutBucketTaggingOutput, error) {
	if in.Tagging == nil {
		return nil, malformedXML("a Tagging is missing")
	}
	if err := checkTags(in.Tagging.TagSet, maxBucketTags); err != nil {
		return nil, err
	}
	if len(in.Tagging.TagSet) == 0 {
		return &s3.PutBucketTaggingOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, tagging, nil)
	}
	return &s3.PutBucketTaggingOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, tagging, in.Tagging)
}

// GetBucketTagging is S3's operation.
func (s *Service) GetBucketTagging(ctx context.Context, in *s3.GetBucketTaggingInput) (*s3.GetBucketTaggingOutput, error) {
	var t types.Tagging
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, tagging, &t, missing("NoSuchTagSet", "The TagSet does not exist"))
	return &s3.GetBucketTaggingOutput{TagSet: t.TagSet}, err
}

// DeleteBucketTagging is S3's operation.
func (s *Service) DeleteBucketTagging(ctx context.Context, in *s3.DeleteBucketTaggingInput) (*s3.DeleteBucketTaggingOutput, error) {
	return &s3.DeleteBucketTaggingOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, tagging, nil)
}

// maxPolicy is the most bytes that a policy may have.
const maxPolicy = 20 << 10

// PutBucketPolicy is S3's operation.
func (s *Service) PutBucketPolicy(ctx context.Context, in *s3.PutBucketPolicyInput) (*s3.PutBucketPolicyOutput, error) {
	text := aws.ToString(in.Policy)
	if len(text) > maxPolicy {
		return nil, refuse(400, "PolicyTooLarge", "The policy is larger than %d bytes.", maxPolicy)
	}
	var p struct{ Statement json.RawMessage }
	if json.Unmarshal([]byte(text), &p) != nil {
		return nil, refuse(400, "MalformedPolicy", "Policies must be valid JSON and the first byte must be '{'")
	}
	if p.Statement == nil {
		return nil, refuse(400, "MalformedPolicy", "Missing required field Statement")
	}
	return &s3.PutBucketPolicyOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, policy, text)
}

var noPolicy = missing("NoSuchBucketPolicy", "The bucket policy does not exist")

// GetBucketPolicy is S3's operation.
func (s *Service) GetBucketPolicy(ctx context.Context, in *s3.GetBucketPolicyInput) (*s3.GetBucketPolicyOutput, error) {
	var text string
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, policy, &text, noPolicy)
	return &s3.GetBucketPolicyOutput{Policy: &text}, err
}

// GetBucketPolicyStatus is S3's operation. No bucket is public, because every call needs credentials (unless checking
// them is off).
func (s *Service) GetBucketPolicyStatus(ctx context.Context, in *s3.GetBucketPolicyStatusInput) (*s3.GetBucketPolicyStatusOutput, error) {
	var text string
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, policy, &text, noPolicy)
	return &s3.GetBucketPolicyStatusOutput{PolicyStatus: &types.PolicyStatus{IsPublic: aws.Bool(false)}}, err
}

// DeleteBucketPolicy is S3's operation.
func (s *Service) DeleteBucketPolicy(ctx context.Context, in *s3.DeleteBucketPolicyInput) (*s3.DeleteBucketPolicyOutput, error) {
	return &s3.DeleteBucketPolicyOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, policy, nil)
}

// PutBucketEncryption is S3's operation. Pintle itself doesn't encrypt: that's left to the disk.
func (s *Service) PutBucketEncryption(ctx context.Context, in *s3.PutBucketEncryptionInput) (*s3.PutBucketEncryptionOutput, error) {
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	c := in.ServerSideEncryptionConfiguration
	if c == nil || len(c.Rules) != 1 || c.Rules[0].ApplyServerSideEncryptionByDefault == nil {
		return nil, malformedXML("ServerSideEncryptionConfiguration must have one Rule with ApplyServerSideEncryptionByDefault")
	}
	byDefault := c.Rules[0].ApplyServerSideEncryptionByDefault
	if !isServed(byDefault.SSEAlgorithm) {
		return nil, notImplemented("SSEAlgorithm other than AES256 and aws:kms")
	}
	if byDefault.KMSMasterKeyID != nil {
		if byDefault.SSEAlgorithm == types.ServerSideEncryptionAwsKms {
			return nil, notImplemented("KMSMasterKeyID, since there are no keys of AWS KMS")
		}
		return nil, invalidArgument("ApplyServerSideEncryptionByDefault", "",
			"a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse")
	}
	if blocked := c.Rules[0].BlockedEncryptionTypes; blocked != nil {
		for _, b := range blocked.EncryptionType {
			if !slices.Contains(b.Values(), b) {
				return nil, malformedXML("BlockedEncryptionTypes must be NONE or SSE-C")
			}
		}
	}
	return &s3.PutBucketEncryptionOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, encryption, c)
}

// GetBucketEncryption is S3's operation. Every bucket has a default.
func (s *Service) GetBucketEncryption(ctx context.Context, in *s3.GetBucketEncryptionInput) (*s3.GetBucketEncryptionOutput, error) {
	c := types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
		ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
		BucketKeyEnabled:                   aws.Bool(false),
	}}}
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, encryption, &c, nil)
	return &s3.GetBucketEncryptionOutput{ServerSideEncryptionConfiguration: &c}, err
}

// encryptFor gives an object that is written the bucket's encryption if the call asks for none. It refuses a caller's own key for one of a bucket
// that blocks these.
func (a *attributes) encryptFor(b *objects.Bucket) error {
	text := b.Settings[encryption]
	if text == nil {
		return nil
	}
	var c types.ServerSideEncryptionConfiguration
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	a.Encryption = cmp.Or(a.Encryption, c.Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm)
	blocked := c.Rules[0].BlockedEncryptionTypes
	if a.key != nil && blocked != nil && slices.Contains(blocked.EncryptionType, types.EncryptionTypeSseC) {
		return refuse(http.StatusForbidden, "AccessDenied", "The bucket blocks server-side encryption with customer-provided keys (SSE-C).")
	}
	return nil
}

// DeleteBucketEncryption is S3's operation. The bucket has the default again.
func (s *Service) DeleteBucketEncryption(
	ctx context.Context, in *s3.DeleteBucketEncryptionInput,
) (*s3.DeleteBucketEncryptionOutput, error) {
	return &s3.DeleteBucketEncryptionOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, encryption, nil)
}

// PutPublicAccessBlock is S3's operation.
func (s *Service) PutPublicAccessBlock(ctx context.Context, in *s3.PutPublicAccessBlockInput) (*s3.PutPublicAccessBlockOutput, error) {
	c := in.PublicAccessBlockConfiguration
	if c == nil {
		return nil, malformedXML("PublicAccessBlockConfiguration is missing")
	}
	for _, b := range []**bool{&c.BlockPublicAcls, &c.BlockPublicPolicy, &c.IgnorePublicAcls, &c.RestrictPublicBuckets} {
		*b = aws.Bool(aws.ToBool(*b))
	}
	return &s3.PutPublicAccessBlockOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, publicAccess, c)
}

// GetPublicAccessBlock is S3's operation.
func (s *Service) GetPublicAccessBlock(ctx context.Context, in *s3.GetPublicAccessBlockInput) (*s3.GetPublicAccessBlockOutput, error) {
	var c types.PublicAccessBlockConfiguration
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, publicAccess, &c,
		missing("NoSuchPublicAccessBlockConfiguration", "The public access block configuration was not found"))
	return &s3.GetPublicAccessBlockOutput{PublicAccessBlockConfiguration: &c}, err
}

// DeletePublicAccessBlock is S3's operation.
func (s *Service) DeletePublicAccessBlock(
	ctx context.Context, in *s3.DeletePublicAccessBlockInput,
) (*s3.DeletePublicAccessBlockOutput, error) {
	return &s3.DeletePublicAccessBlockOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, publicAccess, nil)
}

// PutBucketOwnershipControls is S3's operation. Objects always belong to the bucket's owner.
func (s *Service) PutBucketOwnershipControls(
	ctx context.Context, in *s3.PutBucketOwnershipControlsInput,
) (*s3.PutBucketOwnershipControlsOutput, error) {
	c := in.OwnershipControls
	if c == nil || len(c.Rules) != 1 {
		return nil, malformedXML("OwnershipControls must have one Rule")
	}
	if o := c.Rules[0].ObjectOwnership; !slices.Contains(o.Values(), o) {
		return nil, malformedXML("ObjectOwnership is " + string(o))
	}
	if c.Rules[0].ObjectOwnership != types.ObjectOwnershipBucketOwnerEnforced {
		return nil, notImplemented("ObjectOwnership other than BucketOwnerEnforced")
	}
	return &s3.PutBucketOwnershipControlsOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, ownership, c)
}

// GetBucketOwnershipControls is S3's operation.
func (s *Service) GetBucketOwnershipControls(
	ctx context.Context, in *s3.GetBucketOwnershipControlsInput,
) (*s3.GetBucketOwnershipControlsOutput, error) {
	var c types.OwnershipControls
	err := s.loadSetting(ctx, in.Bucket, in.ExpectedBucketOwner, ownership, &c,
		missing("OwnershipControlsNotFoundError", "The bucket ownership controls were not found"))
	return &s3.GetBucketOwnershipControlsOutput{OwnershipControls: &c}, err
}

// DeleteBucketOwnershipControls is S3's operation.
func (s *Service) DeleteBucketOwnershipControls(
	ctx context.Context, in *s3.DeleteBucketOwnershipControlsInput,
) (*s3.DeleteBucketOwnershipControlsOutput, error) {
	return &s3.DeleteBucketOwnershipControlsOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, ownership, nil)
}

// maxCORSRules is the most CORS rules that a bucket may have.
const maxCORSRules = 100

// PutBucketCors is S3's operation. AllowOrigin applies the rules.
func (s *Service) PutBucketCors(ctx context.Context, in *s3.PutBucketCorsInput) (*s3.PutBucketCorsOutput, error) {
	c := in.CORSConfiguration
	if c == nil || len(c.CORSRules) == 0 || len(c.CORSRules) > maxCORSRules {
		return nil, malformedXML("CORSConfiguration must have 1 to 100 rules")
	}
	for _, r := range c.CORSRules {
		if len(r.AllowedMethods) == 0 || len(r.AllowedOrigins) == 0 {
			return nil, malformedXML("a CORSRule needs AllowedMethod and AllowedOrigin")
		}
		if err := checkWildcards(r); err != nil {
			return nil, err
		}
		for _, m := range r.AllowedMethods {
			switch m {
			case "GET", "PUT", "POST", "DELETE", "HEAD":
			default:
				return nil, refuse(400, "InvalidRequest", "Found unsupported HTTP method in CORS config. Unsupported method is %s", m)
			}
		}
	}
	return &s3.PutBucketCorsOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, corsRules, c)
}

// GetBucketCors is S3's operation.
func (s *Service) GetBucketCors(ctx context.Context, in *s3.GetBucketCorsInput) (*s3.GetBucketCorsOutput, error) {
	var c types.CORSConfiguration
	err := s.loadSetting(
		ctx, in.Bucket, in.ExpectedBucketOwner, corsRules, &c,
		missing("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
	)
	return &s3.GetBucketCorsOutput{CORSRules: c.CORSRules}, err
}

// DeleteBucketCors is S3's operation.
func (s *Service) DeleteBucketCors(ctx context.Context, in *s3.DeleteBucketCorsInput) (*s3.DeleteBucketCorsOutput, error) {
	return &s3.DeleteBucketCorsOutput{}, s.saveSetting(ctx, in.Bucket, in.ExpectedBucketOwner, corsRules, nil)
}

// The operations below read settings that buckets never have here. They answer as S3 does for a bucket without the
// setting, because Terraform and the CDK always read all of them. Writing these settings is refused.

// GetBucketAcl is S3's operation. The owner has full control.
func (s *Service) GetBucketAcl(ctx context.Context, in *s3.GetBucketAclInput) (*s3.GetBucketAclOutput, error) {
	_, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	return &s3.GetBucketAclOutput{Owner: s.owner(), Grants: s.grants()}, err
}

// errNoACLs is S3's error for a bucket that disables ACLs, as every bucket here does.
var errNoACLs = refuse(400, "AccessControlListNotSupported", "The bucket does not allow ACLs")

// PutBucketAcl is S3's operation.
func (s *Service) PutBucketAcl(ctx context.Context, in *s3.PutBucketAclInput) (*s3.PutBucketAclOutput, error) {
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	return &s3.PutBucketAclOutput{}, s.checkACL(string(in.ACL), in.AccessControlPolicy,
		in.GrantFullControl, in.GrantRead, in.GrantReadACP, in.GrantWrite, in.GrantWriteACP)
}

// checkACL takes an ACL that changes nothing, which many clients send by habit, and refuses all others.
func (s *Service) checkACL(canned string, policy *types.AccessControlPolicy, grants ...*string) error {
	if err := checkCanned(canned); err != nil {
		return err
	}
	granted := slices.ContainsFunc(grants, func(g *string) bool { return g != nil })
	switch {
	case granted, policy != nil && slices.ContainsFunc(policy.Grants, s.isOthers):
		return errNoACLs
	case canned == "" && policy == nil:
		return refuse(400, "MissingSecurityHeader", "Your request was missing a required header")
	}
	return nil
}

// isOthers reports whether a grant is not the one that every owner has.
func (s *Service) isOthers(g types.Grant) bool {
	return g.Grantee == nil || aws.ToString(g.Grantee.ID) != *s.owner().ID || g.Permission != types.PermissionFullControl
}

func (s *Service) grants() []types.Grant {
	return []types.Grant{{
		Grantee:    &types.Grantee{ID: s.owner().ID, Type: types.TypeCanonicalUser},
		Permission: types.PermissionFullControl,
	}}
}

// GetBucketAccelerateConfiguration is S3's operation.
func (s *Service) GetBucketAccelerateConfiguration(
	ctx context.Context, in *s3.GetBucketAccelerateConfigurationInput,
) (*s3.GetBucketAccelerateConfigurationOutput, error) {
	_, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	return &s3.GetBucketAccelerateConfigurationOutput{}, err
}

// GetBucketLogging is S3's operation.
func (s *Service) GetBucketLogging(ctx context.Context, in *s3.GetBucketLoggingInput) (*s3.GetBucketLoggingOutput, error) {
	_, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	return &s3.GetBucketLoggingOutput{}, err
}

// GetBucketRequestPayment is S3's operation.
func (s *Service) GetBucketRequestPayment(
	ctx context.Context, in *s3.GetBucketRequestPaymentInput,
) (*s3.GetBucketRequestPaymentOutput, error) {
	_, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner)
	return &s3.GetBucketRequestPaymentOutput{Payer: types.PayerBucketOwner}, err
}

// PutBucketRequestPayment is S3's operation. Nobody is charged here, so nobody but the owner can be made to pay.
func (s *Service) PutBucketRequestPayment(
	ctx context.Context, in *s3.PutBucketRequestPaymentInput,
) (*s3.PutBucketRequestPaymentOutput, error) {
	if _, err := s.bucket(ctx, in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	switch c := in.RequestPaymentConfiguration; {
	case c == nil || !slices.Contains(c.Payer.Values(), c.Payer):
		return nil, malformedXML("Payer must be BucketOwner or Requester")
	case c.Payer == types.PayerRequester:
		return nil, notImplemented("Payer Requester")
	}
	return &s3.PutBucketRequestPaymentOutput{}, nil
}

// refuseUnset returns S3's error for a setting that buckets never have here.
func (s *Service) refuseUnset(ctx context.Context, bucket, expectedOwner *string, code, message string) error {
	if _, err := s.bucket(ctx, bucket, expectedOwner); err != nil {
		return err
	}
	return refuseBucket(404, code, *bucket, message)
}

// GetBucketReplication is S3's operation.
func (s *Service) GetBucketReplication(ctx context.Context, in *s3.GetBucketReplicationInput) (*s3.GetBucketReplicationOutput, error) {
	return nil, s.refuseUnset(
		ctx, in.Bucket, in.ExpectedBucketOwner, "ReplicationConfigurationNotFoundError", "The replication configuration was not found",
	)
}

// GetBucketWebsite is S3's operation.
func (s *Service) GetBucketWebsite(ctx context.Context, in *s3.GetBucketWebsiteInput) (*s3.GetBucketWebsiteOutput, error) {
	return nil, s.refuseUnset(
		ctx, in.Bucket, in.ExpectedBucketOwner, "NoSuchWebsiteConfiguration",
		"The specified bucket does not have a website configuration",
	)
}

// GetObjectLockConfiguration is S3's operation.
func (s *Service) GetObjectLockConfiguration(
	ctx context.Context, in *s3.GetObjectLockConfigurationInput,
) (*s3.GetObjectLockConfigurationOutput, error) {
	return nil, s.refuseUnset(
		ctx, in.Bucket, in.ExpectedBucketOwner, "ObjectLockConfigurationNotFoundError",
		"Object Lock configuration does not exist for this bucket",
	)
}
