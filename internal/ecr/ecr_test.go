package ecr

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints check inputs, as package wire does before a call.
var constraints = validation.New(API(nil).Constraints)

// world is a service with a clock of its own.
type world struct {
	*Service
	t        *testing.T
	dir      string
	now      time.Time
	standing func(call.Call) (string, bool)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.standing = func(call.Call) (string, bool) { return "", true }
	w.Service = New(statetest.OpenIn(t, w.dir), Options{
		Account:  accounttest.New(func() time.Time { return w.now }),
		MAC:      func(text string) []byte { sum := sha256.Sum256([]byte("key" + text)); return sum[:] },
		Standing: func(c call.Call) (string, bool) { return w.standing(c) },
	})
	return w
}

// do calls an operation as a client would, and ends the test if it's refused.
func do[I, O any](w *world, operation func(context.Context, *I) (*O, error), in *I) *O {
	w.t.Helper()
	out, err := validation.Checked(constraints, operation)(w.t.Context(), in)
	if err != nil {
		w.t.Fatalf("%T: %v", in, err)
	}
	return out
}

// refused returns how an operation is refused.
func refused[I, O any](w *world, operation func(context.Context, *I) (*O, error), in *I) string {
	_, err := validation.Checked(constraints, operation)(w.t.Context(), in)
	var refusal smithy.APIError
	if !errors.As(err, &refusal) {
		return fmt.Sprintf("%v", err)
	}
	return refusal.ErrorCode() + ": " + refusal.ErrorMessage()
}

func (w *world) check(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

func (w *world) create(name string) types.Repository {
	w.t.Helper()
	return *do(w, w.CreateRepository, &ecr.CreateRepositoryInput{RepositoryName: &name}).Repository
}

const missing = "RepositoryNotFoundException: The repository with name 'none' does not exist in the registry with id '000000000000'"

func TestRepositories(t *testing.T) {
	w := newWorld(t)
	r := w.create("team/app")
	w.check("the ARN", *r.RepositoryArn, "arn:aws:ecr:us-east-1:000000000000:repository/team/app")
	w.check("the URI", *r.RepositoryUri, "000000000000.dkr.ecr.us-east-1.amazonaws.com/team/app")
	if r.ImageTagMutability != types.ImageTagMutabilityMutable || !r.CreatedAt.Equal(w.now) || r.ImageScanningConfiguration.ScanOnPush {
		t.Errorf("the defaults are %+v", r)
	}
	none := aws.String("none")
	w.check("a second one", refused(w, w.CreateRepository, &ecr.CreateRepositoryInput{RepositoryName: aws.String("team/app")}),
		"RepositoryAlreadyExistsException: The repository with name 'team/app' already exists in the registry with id '000000000000'")
	w.check("described", refused(w, w.DescribeRepositories, &ecr.DescribeRepositoriesInput{RepositoryNames: []string{"none"}}), missing)
	w.check("deleted", refused(w, w.DeleteRepository, &ecr.DeleteRepositoryInput{RepositoryName: none}), missing)
	w.check("another registry", refused(w, w.DeleteRepository, &ecr.DeleteRepositoryInput{RepositoryName: aws.String("team/app"), RegistryId: aws.String("111111111111")}),
		"RepositoryNotFoundException: The repository with name 'team/app' does not exist in the registry with id '111111111111'")
	for n := range 3 {
		w.create(fmt.Sprintf("a-%d", n))
	}
	page := do(w, w.DescribeRepositories, &ecr.DescribeRepositoriesInput{MaxResults: aws.Int32(3)})
	rest := do(w, w.DescribeRepositories, &ecr.DescribeRepositoriesInput{NextToken: page.NextToken})
	if len(page.Repositories) != 3 || len(rest.Repositories) != 1 || *rest.Repositories[0].RepositoryName != "team/app" || rest.NextToken != nil {
		t.Errorf("the pages have %d and %d", len(page.Repositories), len(rest.Repositories))
	}
	do(w, w.DeleteRepository, &ecr.DeleteRepositoryInput{RepositoryName: aws.String("a-1")})
	if left := do(w, w.DescribeRepositories, &ecr.DescribeRepositoriesInput{}).Repositories; len(left) != 3 {
		t.Errorf("%d are left", len(left))
	}
}

// TestNamesRefused: ECR words what is wrong with a repository's name by itself, and the rest as the model's constraints are worded.
func TestNamesRefused(t *testing.T) {
	w := newWorld(t)
	const pattern = "must satisfy regular expression '[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)*'"
	for name, want := range map[string]string{
		"Bad_Name!": pattern, "Team/App": pattern, "a___b": pattern, "a_-b": pattern, "_a": pattern, "a//b": pattern, "/a": pattern,
		"a":                      "must have length greater than or equal to 2",
		strings.Repeat("a", 257): "must have length less than or equal to 256",
	} {
		w.check(name, refused(w, w.CreateRepository, &ecr.CreateRepositoryInput{RepositoryName: &name}),
			"InvalidParameterException: Invalid parameter at 'repositoryName' failed to satisfy constraint: '"+want+"'")
	}
	for _, name := range []string{"team/app", "a__b", "a--b", "a---b", "a/b__c", "a.b", strings.Repeat("a", 256)} {
		w.create(name)
	}
	w.check("no name", refused(w, w.CreateRepository, &ecr.CreateRepositoryInput{}),
		"InvalidParameterException: Invalid parameter at 'repositoryName' failed to satisfy constraint: 'must not be null'")
	w.check("no mutability", refused(w, w.PutImageTagMutability, &ecr.PutImageTagMutabilityInput{RepositoryName: aws.String("a.b")}),
		"InvalidParameterException: Invalid parameter at 'imageTagMutability' failed to satisfy constraint: 'Member must not be null'")
}

func TestSettings(t *testing.T) {
	w := newWorld(t)
	name := w.create("app").RepositoryName
	none := aws.String("none")
	filters := []types.ImageTagMutabilityExclusionFilter{{Filter: aws.String("dev*"), FilterType: types.ImageTagMutabilityExclusionFilterTypeWildcard}}
	do(w, w.PutImageTagMutability, &ecr.PutImageTagMutabilityInput{
		RepositoryName: name, ImageTagMutability: types.ImageTagMutabilityImmutableWithExclusion, ImageTagMutabilityExclusionFilters: filters,
	})
	do(w, w.PutImageScanningConfiguration, &ecr.PutImageScanningConfigurationInput{
		RepositoryName: name, ImageScanningConfiguration: &types.ImageScanningConfiguration{ScanOnPush: true},
	})
	r := do(w, w.DescribeRepositories, &ecr.DescribeRepositoriesInput{RepositoryNames: []string{"app"}}).Repositories[0]
	if len(r.ImageTagMutabilityExclusionFilters) != 1 || r.ImageTagMutability != types.ImageTagMutabilityImmutableWithExclusion || !r.ImageScanningConfiguration.ScanOnPush {
		t.Errorf("it is %+v", r)
	}
	w.check("mutability of none", refused(w, w.PutImageTagMutability, &ecr.PutImageTagMutabilityInput{RepositoryName: none, ImageTagMutability: "MUTABLE"}), missing)
	for _, in := range []*ecr.CreateRepositoryInput{
		{ImageTagMutability: types.ImageTagMutabilityMutableWithExclusion},
		{ImageTagMutability: types.ImageTagMutabilityImmutable, ImageTagMutabilityExclusionFilters: filters},
	} {
		in.RepositoryName = none
		if got := refused(w, w.CreateRepository, in); !strings.HasPrefix(got, "InvalidParameterException: Invalid parameter at 'imageTagMutabilityExclusionFilters'") {
			t.Errorf("%+v: %s", in, got)
		}
	}
	keyed := &types.EncryptionConfiguration{EncryptionType: types.EncryptionTypeKms}
	if got := refused(w, w.CreateRepository, &ecr.CreateRepositoryInput{RepositoryName: none, EncryptionConfiguration: keyed}); !strings.HasPrefix(got, "KmsException: ") {
		t.Errorf("a key: %s", got)
	}
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	arn := w.create("app").RepositoryArn
	tag := func(key string) types.Tag { return types.Tag{Key: &key, Value: aws.String("v")} }
	do(w, w.TagResource, &ecr.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{tag("a"), tag("b")}})
	do(w, w.UntagResource, &ecr.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"a"}})
	if is := do(w, w.ListTagsForResource, &ecr.ListTagsForResourceInput{ResourceArn: arn}).Tags; len(is) != 1 || *is[0].Key != "b" {
		t.Errorf("the tags are %v", is)
	}
	w.check("an empty key", refused(w, w.TagResource, &ecr.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{tag("")}}),
		"InvalidTagParameterException: Tag parameters are invalid")
	var many []types.Tag
	for n := range 50 {
		many = append(many, tag(fmt.Sprint(n)))
	}
	w.check("too many", refused(w, w.TagResource, &ecr.TagResourceInput{ResourceArn: arn, Tags: many}),
		"TooManyTagsException: A repository can have at most 50 tags.")
	w.check("no ARN", refused(w, w.ListTagsForResource, &ecr.ListTagsForResourceInput{ResourceArn: aws.String("app")}),
		"InvalidParameterException: Invalid parameter at 'resourceArn' failed to satisfy constraint: 'Invalid ARN'")
}

func TestPolicies(t *testing.T) {
	w := newWorld(t)
	name := w.create("app").RepositoryName
	const text = `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": "*", "Action": "ecr:BatchGetImage"}}`
	const none = "RepositoryPolicyNotFoundException: Repository policy does not exist for the repository with name 'app' in the registry with id '000000000000'"
	w.check("none", refused(w, w.GetRepositoryPolicy, &ecr.GetRepositoryPolicyInput{RepositoryName: name}), none)
	w.check("none to delete", refused(w, w.DeleteRepositoryPolicy, &ecr.DeleteRepositoryPolicyInput{RepositoryName: name}), none)
	do(w, w.SetRepositoryPolicy, &ecr.SetRepositoryPolicyInput{RepositoryName: name, PolicyText: aws.String(text)})
	w.check("the policy", *do(w, w.GetRepositoryPolicy, &ecr.GetRepositoryPolicyInput{RepositoryName: name}).PolicyText, text)
	for _, bad := range []string{
		"", "{}", `{"Statement": []}`, strings.Replace(text, `"Principal": "*", `, "", 1),
		strings.Replace(text, `"Action"`, `"Resource": "*", "Action"`, 1),
	} {
		w.check(bad, refused(w, w.SetRepositoryPolicy, &ecr.SetRepositoryPolicyInput{RepositoryName: name, PolicyText: &bad}),
			"InvalidParameterException: Invalid parameter at 'PolicyText' failed to satisfy constraint: 'Invalid repository policy provided'")
	}
	locking := strings.NewReplacer("Allow", "Deny", "BatchGetImage", "*").Replace(text)
	in := &ecr.SetRepositoryPolicyInput{RepositoryName: name, PolicyText: &locking}
	if got := refused(w, w.SetRepositoryPolicy, in); !strings.Contains(got, "must be forced") {
		t.Errorf("a policy that locks its caller out: %s", got)
	}
	in.Force = true
	do(w, w.SetRepositoryPolicy, in)
	w.check("deleted", *do(w, w.DeleteRepositoryPolicy, &ecr.DeleteRepositoryPolicyInput{RepositoryName: name}).PolicyText, locking)
}

func TestLifecyclePolicies(t *testing.T) {
	w := newWorld(t)
	name := w.create("app").RepositoryName
	text := `{"rules": [{"rulePriority": 1, "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 5}, "action": {"type": "expire"}}]}`
	const none = "LifecyclePolicyNotFoundException: Lifecycle policy does not exist for the repository with name 'app' in the registry with id '000000000000'"
	w.check("none", refused(w, w.GetLifecyclePolicy, &ecr.GetLifecyclePolicyInput{RepositoryName: name}), none)
	w.check("none to delete", refused(w, w.DeleteLifecyclePolicy, &ecr.DeleteLifecyclePolicyInput{RepositoryName: name}), none)
	do(w, w.PutLifecyclePolicy, &ecr.PutLifecyclePolicyInput{RepositoryName: name, LifecyclePolicyText: &text})
	got := do(w, w.GetLifecyclePolicy, &ecr.GetLifecyclePolicyInput{RepositoryName: name})
	w.check("the policy", *got.LifecyclePolicyText, text)
	w.check("too short", refused(w, w.PutLifecyclePolicy, &ecr.PutLifecyclePolicyInput{RepositoryName: name, LifecyclePolicyText: aws.String("{}")}),
		"InvalidParameterException: Invalid parameter at 'lifecyclePolicyText' failed to satisfy constraint: 'Member must have length greater than or equal to 100'")
	bad := strings.Replace(text, `"any"`, `"all"`, 1)
	w.check("a bad one", refused(w, w.PutLifecyclePolicy, &ecr.PutLifecyclePolicyInput{RepositoryName: name, LifecyclePolicyText: &bad}),
		"InvalidParameterException: Invalid parameter at 'LifecyclePolicyText' failed to satisfy constraint: 'Lifecycle policy validation failure: "+
			`instance value ("all") not found in enum (possible values: ["tagged","untagged","any"])'`)
	w.check("deleted", *do(w, w.DeleteLifecyclePolicy, &ecr.DeleteLifecyclePolicyInput{RepositoryName: name}).LifecyclePolicyText, text)
}

// TestTokens: a token stands for who got it for twelve hours, as long as that caller is there.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	who := call.Identity{Principal: "arn:aws:sts::000000000000:assumed-role/r/t", Role: "arn:aws:iam::000000000000:role/r"}
	role := "AROA1"
	w.standing = func(c call.Call) (string, bool) { return role, c.AccessKeyID == "ASIA1" }
	out, err := w.GetAuthorizationToken(call.With(t.Context(), call.Call{Identity: who, AccessKeyID: "ASIA1"}), &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		t.Fatal(err)
	}
	data := out.AuthorizationData[0]
	if !data.ExpiresAt.Equal(w.now.Add(12 * time.Hour)) {
		t.Errorf("it ends at %v", data.ExpiresAt)
	}
	w.check("the endpoint", *data.ProxyEndpoint, "https://000000000000.dkr.ecr.us-east-1.amazonaws.com")
	text, err := base64.StdEncoding.DecodeString(*data.AuthorizationToken)
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(string(text), ":")
	w.check("the user", user, "AWS")
	good := func() bool {
		is, err := w.Bearer(password)
		return err == nil && is == who
	}
	if !good() {
		t.Error("it's not good")
	}
	for name, bad := range map[string]string{
		"changed": "x" + password[1:], "cut": password[:len(password)-2], "nothing": "", "no seal": password[:strings.IndexByte(password, '.')],
		"another's": base64.RawURLEncoding.EncodeToString([]byte("{}")) + "." + password[strings.IndexByte(password, '.')+1:],
	} {
		if _, err := w.Bearer(bad); err == nil {
			t.Errorf("%s is good", name)
		}
	}
	role = "AROA2"
	if good() {
		t.Error("it's good for another role of the name")
	}
	role = "AROA1"
	w.now = w.now.Add(12*time.Hour - time.Second)
	if !good() {
		t.Error("it's over too soon")
	}
	w.now = w.now.Add(time.Second)
	if good() {
		t.Error("it's good for more than twelve hours")
	}
	if got := refused(w, w.GetAuthorizationToken, &ecr.GetAuthorizationTokenInput{RegistryIds: []string{"111111111111"}}); !strings.HasPrefix(got, "InvalidParameterException: ") {
		t.Errorf("another registry: %s", got)
	}
}

// TestLargeManifests: what is kept of each image in memory is bounded, whatever a manifest has room for.
func TestLargeManifests(t *testing.T) {
	digest := blobs.DigestOf(nil)
	long := strings.Repeat("x", 1<<20)
	with := func(more string) string {
		return fmt.Sprintf(`{"schemaVersion":2,"config":{"digest":%q},"layers":[]%s}`, digest, more)
	}
	about := fmt.Sprintf(`,"subject":{"digest":%q}`, digest)
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"annotations of an image":         {with(`,"annotations":{"a":"` + long + `"}`), true},
		"of what is about another":        {with(about + `,"annotations":{"a":"b"}`), true},
		"large ones of that":              {with(about + `,"annotations":{"a":"` + long + `"}`), false},
		"a subject that is no digest":     {with(`,"subject":{"digest":"` + long + `"}`), false},
		"a large artifactType":            {with(`,"artifactType":"` + long + `"`), false},
		"a large media type":              {fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":%q,"digest":%q}}`, long, digest), false},
		"sizes that are too large to add": {fmt.Sprintf(`{"schemaVersion":2,"config":{"digest":%q,"size":9223372036854775807}}`, digest), false},
	} {
		if _, err := Parse([]byte(c.text), ociManifest); (err == nil) != c.ok {
			t.Errorf("%s: %.99v", name, err)
		}
	}
}
