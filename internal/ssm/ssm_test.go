package ssm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints check inputs, as package wire does before a call.
var constraints = validation.New(API(nil).Constraints)

// world is a service with a clock of its own.
type world struct {
	*Service
	t   *testing.T
	dir string
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	v := vaulttest.New(t, 7)
	w.Service = New(statetest.OpenIn(t, w.dir), Options{
		Account: accounttest.New(func() time.Time { return w.now }),
		Vault:   v,
		Images:  images{},
		Secrets: secrets{},
	})
	return w
}

// images has a public image for ECS, and one of Amazon Linux.
type images struct{}

func (images) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return &ec2.DescribeImagesOutput{Images: []ec2types.Image{{
		ImageId:                aws.String("ami-12345678"),
		Name:                   aws.String("al2023-ami-ecs"),
		CreationDate:           aws.String("2026-01-01T00:00:00.000Z"),
		PublicSsmParameterName: aws.String("/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id"),
	}, {
		ImageId:                aws.String("ami-87654321"),
		Name:                   aws.String("amzn2-ami-hvm"),
		CreationDate:           aws.String("2026-01-01T00:00:00.000Z"),
		PublicSsmParameterName: aws.String("/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-x86_64-gp2"),
	}}}, nil
}

// secrets has one secret with two versions.
type secrets struct{}

func (secrets) GetSecretValue(
	_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options),
) (*secretsmanager.GetSecretValueOutput, error) {
	value, ok := map[string]string{
		"app/db  ": "current", "app/db AWSPREVIOUS ": "previous", "app/db  " + strings.Repeat("1", 36): "version",
	}[*in.SecretId+" "+aws.ToString(in.VersionStage)+" "+aws.ToString(in.VersionId)]
	if *in.SecretId == "deleted" {
		return nil, &smtypes.InvalidRequestException{Message: aws.String("It was marked for deletion.")}
	}
	if !ok {
		return nil, &smtypes.ResourceNotFoundException{Message: aws.String("none")}
	}
	return &secretsmanager.GetSecretValueOutput{
		ARN: aws.String("arn"), CreatedDate: aws.Time(time.Unix(1, 0)), Name: in.SecretId, SecretString: &value,
	}, nil
}

func TestParametersThatStandForSecrets(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{
		"app/db":                            "current",
		"app/db:AWSPREVIOUS":                "previous",
		"app/db:" + strings.Repeat("1", 36): "version",
		"app/db:AWSPENDING":                 "(ParameterNotFound)",
		"none":                              "(ParameterNotFound)",
		"deleted":                           "(ValidationException)",
	} {
		if got := w.get(secretPrefix + name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	_, err := w.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String(secretPrefix + "app/db")})
	if err == nil || !strings.HasSuffix(err.Error(), "WithDecryption flag must be True for retrieving a Secret Manager secret.") {
		t.Errorf("without decryption: %v", err)
	}
	out, err := w.GetParameters(t.Context(), &ssm.GetParametersInput{
		Names: []string{secretPrefix + "app/db:AWSPREVIOUS", secretPrefix + "none"}, WithDecryption: aws.Bool(true),
	})
	if err != nil || len(out.Parameters) != 1 || *out.Parameters[0].Selector != ":AWSPREVIOUS" ||
		*out.Parameters[0].Name != secretPrefix+"app/db" || len(out.InvalidParameters) != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func (w *world) tryPut(name, value string, options ...func(*ssm.PutParameterInput)) (*ssm.PutParameterOutput, error) {
	in := &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeString}
	for _, o := range options {
		o(in)
	}
	return validation.Checked(constraints, w.PutParameter)(w.t.Context(), in)
}

func (w *world) put(name, value string, options ...func(*ssm.PutParameterInput)) int64 {
	w.t.Helper()
	out, err := w.tryPut(name, value, options...)
	if err != nil {
		w.t.Fatalf("put %s: %v", name, err)
	}
	return out.Version
}

func overwrite(in *ssm.PutParameterInput) { in.Overwrite = aws.Bool(true); in.Type = "" }
func secure(in *ssm.PutParameterInput)    { in.Type = types.ParameterTypeSecureString }
func advanced(in *ssm.PutParameterInput)  { in.Tier = types.ParameterTierAdvanced }

// get returns a value, or the code of the refusal in brackets.
func (w *world) get(name string) string {
	out, err := w.GetParameter(w.t.Context(), &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
	if err != nil {
		return "(" + code(err) + ")"
	}
	return *out.Parameter.Value
}

func code(err error) string {
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorMessage() == "" {
		return fmt.Sprintf("%v without code or message", err)
	}
	return refused.ErrorCode()
}

func TestNamesAndSelectors(t *testing.T) {
	w := newWorld(t)
	w.put("/a/b", "one")
	w.put("/a/b", "two", overwrite)
	w.put("plain", "three")
	if _, err := w.LabelParameterVersion(t.Context(), &ssm.LabelParameterVersionInput{
		Name: aws.String("/a/b"), ParameterVersion: aws.Int64(1), Labels: []string{"stable"},
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/a/b":        "two",
		" /a/b ":      "two",
		"/a/b:1":      "one",
		"/a/b:2":      "two",
		"/a/b:3":      "(ParameterVersionNotFound)",
		"/a/b:stable": "one",
		"/a/b:none":   "(ParameterVersionNotFound)",
		"/a/b/":       "(ValidationException)",
		"/a//b":       "(ValidationException)",
		"a/b":         "(ValidationException)",
		"plain":       "three",
		"/plain":      "three",
		"arn:aws:ssm:us-east-1:000000000000:parameter/a/b":                                                      "two",
		"arn:aws:ssm:us-east-1:000000000000:parameter/a/b:1":                                                    "one",
		"arn:aws:ssm:us-east-1:000000000000:parameter/plain":                                                    "three",
		"arn:aws:ssm:us-east-1:111111111111:parameter/plain":                                                    "(ParameterNotFound)",
		"arn:aws:ssm:us-west-2:000000000000:parameter/plain":                                                    "(ParameterNotFound)",
		"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id":                                 "ami-12345678",
		"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_name":                               "al2023-ami-ecs",
		"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended":                                          `{"image_id":"ami-12345678","image_name":"al2023-ami-ecs","schema_version":1}`,
		"arn:aws:ssm:us-east-1::parameter/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id": "ami-12345678",
		"/aws/service/ecs/optimized-ami/amazon-linux-2/recommended/image_id":                                    "(ParameterNotFound)",
		"/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-x86_64-gp2":                                         "ami-87654321",
		"/aws/service/aws-for-fluent-bit/stable":                                                                "906394416424.dkr.ecr.us-east-1.amazonaws.com/aws-for-fluent-bit:stable",
	} {
		if got := w.get(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestNamesAtTheTop: without a path, a name is the same with a slash and without, and shown as it was asked for.
func TestNamesAtTheTop(t *testing.T) {
	w := newWorld(t)
	for put, other := range map[string]string{"plain": "/plain", "/slash": "slash"} {
		w.put(put, "one")
		if _, err := w.tryPut(other, "two"); code(err) != "ParameterAlreadyExists" {
			t.Errorf("put %s beside %s: %v", other, put, err)
		}
		if version := w.put(other, "two", overwrite); version != 2 {
			t.Errorf("overwriting %s as %s made version %d", put, other, version)
		}
		for _, name := range []string{put, other} {
			out, err := w.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
			if err != nil || *out.Parameter.Name != name || *out.Parameter.Value != "two" {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		}
		if _, err := w.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: &other}); err != nil || w.get(put) != "(ParameterNotFound)" {
			t.Errorf("%s deleted as %s: %v", put, other, err)
		}
	}
}

func TestRefusedPuts(t *testing.T) {
	w := newWorld(t)
	w.put("there", "1")
	w.put("large", "1", advanced)
	with := func(change func(*ssm.PutParameterInput)) func(*ssm.PutParameterInput) { return change }
	policies := func(text string) func(*ssm.PutParameterInput) {
		return func(in *ssm.PutParameterInput) { in.Tier, in.Policies = types.ParameterTierAdvanced, &text }
	}
	expiration := `{"Type":"Expiration","Version":"1.0","Attributes":{"Timestamp":"%s"}}`
	for _, c := range []struct {
		name, value string
		change      func(*ssm.PutParameterInput)
		code        string
	}{
		{"there", "2", nil, "ParameterAlreadyExists"},
		{"a/b", "1", nil, "ValidationException"},
		{"/a//b", "1", nil, "ValidationException"},
		{"/a/", "1", nil, "ValidationException"},
		{"a b", "1", nil, "ValidationException"},
		{"a:1", "1", nil, "ValidationException"},
		{"arn:aws:ssm:us-east-1:000000000000:parameter/x", "1", nil, "ValidationException"},
		{"AWSx", "1", nil, "ValidationException"},
		{"/ssm/x", "1", nil, "ValidationException"},
		{"/aws/service/x", "1", nil, "AccessDeniedException"},
		{strings.Repeat("/a", 16), "1", nil, "HierarchyLevelLimitExceededException"},
		{strings.Repeat("a", 1011), "1", nil, "ValidationException"},
		{"x", "", nil, "ValidationException"},
		{"x", "{{ssm:y}}", nil, "ValidationException"},
		{"x", strings.Repeat("s", 4097), nil, "ValidationException"},
		{"x", strings.Repeat("s", 8193), advanced, "ValidationException"},
		{"x", "1", with(func(in *ssm.PutParameterInput) { in.Type = "" }), "ValidationException"},
		{"x", "1", with(func(in *ssm.PutParameterInput) { in.Type = "Secret" }), "ValidationException"},
		{"x", "1", with(func(in *ssm.PutParameterInput) { secure(in); in.KeyId = aws.String("alias/mine") }), "InvalidKeyId"},
		{"x", "1", with(func(in *ssm.PutParameterInput) { in.KeyId = aws.String(defaultKey) }), "ValidationException"},
		{"x", "secret", with(func(in *ssm.PutParameterInput) { in.AllowedPattern = aws.String(`^\d+$`) }), "ParameterPatternMismatchException"},
		{"x", "secret", with(func(in *ssm.PutParameterInput) { in.AllowedPattern = aws.String(`(`) }), "InvalidAllowedPatternException"},
		{"x", "secret", with(func(in *ssm.PutParameterInput) { in.DataType = aws.String("aws:ec2:image") }), "ValidationException"},
		{"x", "1", with(func(in *ssm.PutParameterInput) { in.DataType = aws.String("aws:ssm:integration") }), "ValidationException"},
		{"there", "1", with(func(in *ssm.PutParameterInput) {
			in.Overwrite, in.Tags = aws.Bool(true), []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
		}), "ValidationException"},
		{"large", "1", with(func(in *ssm.PutParameterInput) { in.Overwrite, in.Tier = aws.Bool(true), types.ParameterTierStandard }), "ValidationException"},
		{"x", "1", with(func(in *ssm.PutParameterInput) {
			in.Policies = aws.String("[" + fmt.Sprintf(expiration, "2030-01-01T00:00:00Z") + "]")
		}), "ValidationException"},
		{"x", "1", policies("x"), "InvalidPolicyAttributeException"},
		{"x", "1", policies("[1]"), "InvalidPolicyAttributeException"},
		{"x", "1", policies("[" + fmt.Sprintf(expiration, "2020-01-01T00:00:00Z") + "]"), "InvalidPolicyAttributeException"},
		{"x", "1", policies("[" + fmt.Sprintf(expiration, "2030-01-01T00:00:00Z") + "," + fmt.Sprintf(expiration, "2031-01-01T00:00:00Z") + "]"), "IncompatiblePolicyException"},
		{"x", "1", policies(`[{"Type":"NoChangeNotification","Version":"1.0","Attributes":{"After":"1","Unit":"Days"}}]`), "InvalidPolicyTypeException"},
		{"x", "1", policies(`[{"Type":"Other","Version":"1.0"}]`), "InvalidPolicyTypeException"},
		{"x", "1", policies("[" + strings.Repeat("{},", 10) + "{}]"), "PoliciesLimitExceededException"},
	} {
		change := func(in *ssm.PutParameterInput) {}
		if c.change != nil {
			change = c.change
		}
		_, err := w.tryPut(c.name, c.value, change)
		if code(err) != c.code || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%.40s: got %v, want %s", c.name, err, c.code)
		}
	}
	if w.get("x") != "(ParameterNotFound)" || w.get("there:2") != "(ParameterVersionNotFound)" || w.get("large:2") != "(ParameterVersionNotFound)" {
		t.Error("a refused call has changed something")
	}
}

// TestVersions: the oldest of a hundred versions goes, unless it has a label; what a call doesn't give stays.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.put("p", "1", func(in *ssm.PutParameterInput) {
		in.Description = aws.String("d")
		in.AllowedPattern = aws.String(`^\d+$`)
	})
	for i := 2; i <= 101; i++ {
		if v := w.put("p", fmt.Sprint(i), overwrite); v != int64(i) {
			t.Fatalf("version %d", v)
		}
	}
	if w.get("p:1") != "(ParameterVersionNotFound)" || w.get("p:2") != "2" {
		t.Errorf("got %s and %s", w.get("p:1"), w.get("p:2"))
	}
	if _, err := w.tryPut("p", "no number", overwrite); code(err) != "ParameterPatternMismatchException" {
		t.Errorf("the pattern is forgotten: %v", err)
	}
	label := func(version int64, labels ...string) []string {
		t.Helper()
		out, err := w.LabelParameterVersion(t.Context(), &ssm.LabelParameterVersionInput{Name: aws.String("p"), ParameterVersion: &version, Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		return out.InvalidLabels
	}
	if bad := label(2, "keep", "1st", "aws-x", "SSM", "a b"); !slices.Equal(bad, []string{"1st", "aws-x", "SSM", "a b"}) {
		t.Errorf("got %q", bad)
	}
	if _, err := w.tryPut("p", "102", overwrite); code(err) != "ParameterMaxVersionLimitExceeded" {
		t.Errorf("got %v", err)
	}
	label(5, "keep")
	w.put("p", "102", overwrite)
	if w.get("p:keep") != "5" {
		t.Errorf("the label is at %s", w.get("p:keep"))
	}
	history := []int64{}
	pages := ssm.NewGetParameterHistoryPaginator(historyClient{w}, &ssm.GetParameterHistoryInput{Name: aws.String("p"), MaxResults: aws.Int32(30)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range out.Parameters {
			history = append(history, h.Version)
			if *h.Description != "d" {
				t.Errorf("version %d is %q", h.Version, *h.Description)
			}
		}
	}
	if len(history) != 100 || history[0] != 3 || !slices.IsSorted(history) {
		t.Errorf("got %v", history)
	}
	out, err := w.UnlabelParameterVersion(t.Context(), &ssm.UnlabelParameterVersionInput{Name: aws.String("p"), ParameterVersion: aws.Int64(5), Labels: []string{"keep", "x"}})
	if err != nil || !slices.Equal(out.RemovedLabels, []string{"keep"}) || !slices.Equal(out.InvalidLabels, []string{"x"}) {
		t.Errorf("got %+v %v", out, err)
	}
}

type historyClient struct{ w *world }

func (c historyClient) GetParameterHistory(ctx context.Context, in *ssm.GetParameterHistoryInput, _ ...func(*ssm.Options)) (*ssm.GetParameterHistoryOutput, error) {
	return c.w.GetParameterHistory(ctx, in)
}

// TestSecureString: only those who ask for it get the plain value, and no file has it.
func TestSecureString(t *testing.T) {
	w := newWorld(t)
	secret := "hunter2-is-not-on-disk"
	w.put("/s", secret, secure)
	w.put("/s", secret+"!", overwrite)
	if got := w.get("/s:1"); got != secret {
		t.Errorf("got %q", got)
	}
	out, err := w.GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{"/s", "/none", "/s:9"}})
	if err != nil || len(out.Parameters) != 1 || strings.Contains(*out.Parameters[0].Value, "hunter2") ||
		!slices.Equal(out.InvalidParameters, []string{"/none", "/s:9"}) {
		t.Errorf("got %+v %v", out, err)
	}
	found := 0
	for _, path := range must(filepath.Glob(filepath.Join(w.dir, "*"))) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found += bytes.Count(b, []byte("parameter_versions"))
		if bytes.Contains(b, []byte("hunter2")) {
			t.Errorf("%s has the secret", path)
		}
	}
	if found == 0 {
		t.Error("the files that were read have no parameters")
	}
	other := vaulttest.New(t, 8)
	w.opts.Vault = other
	if got := w.get("/s"); got != "(InvalidKeyId)" {
		t.Errorf("with another key: %s", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestExpiration: an expired parameter is gone at once, and swept with its versions; its name can be used anew.
func TestExpiration(t *testing.T) {
	w := newWorld(t)
	text := `[{"Type":"Expiration","Version":"1.0","Attributes":{"Timestamp":"2026-01-02T00:00:00.000Z"}}]`
	expiring := func(in *ssm.PutParameterInput) { advanced(in); in.Policies = &text }
	w.put("a", "1", expiring)
	w.put("a", "2", overwrite)
	w.put("b", "1", expiring)
	w.put("b", "2", overwrite, func(in *ssm.PutParameterInput) { in.Policies = aws.String("[{}]") })
	w.now = w.now.Add(25 * time.Hour)
	if w.get("a") != "(ParameterNotFound)" || w.get("b") != "2" {
		t.Errorf("got %s and %s", w.get("a"), w.get("b"))
	}
	if got := w.list(nil); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %q", got)
	}
	if v := w.put("a", "new"); v != 1 || w.get("a:2") != "(ParameterVersionNotFound)" {
		t.Errorf("the new one begins with version %d", v)
	}
	w.put("c", "1", func(in *ssm.PutParameterInput) {
		advanced(in)
		in.Policies = aws.String(strings.ReplaceAll(text, "2026-01-02", "2026-01-04"))
	})
	w.now = w.now.Add(72 * time.Hour)
	if err := w.store.Sweep(t.Context(), w.now); err != nil {
		t.Fatal(err)
	}
	v := w.store.View()
	if v.Parameters.Get("c") != nil || len(slices.Collect(v.ParameterVersionsAfter("c", 0))) > 0 || len(slices.Collect(v.ParameterVersions.All())) != 3 {
		t.Error("something expired is left")
	}
}

func (w *world) list(filters []types.ParameterStringFilter) (names []string) {
	w.t.Helper()
	in := &ssm.DescribeParametersInput{MaxResults: aws.Int32(2), ParameterFilters: filters}
	for {
		out, err := w.DescribeParameters(w.t.Context(), in)
		if err != nil {
			return []string{"(" + code(err) + ")"}
		}
		for _, p := range out.Parameters {
			names = append(names, *p.Name)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return names
		}
	}
}

func TestPathsAndFilters(t *testing.T) {
	w := newWorld(t)
	w.put("/a", "1")
	w.put("/a/b", "1", func(in *ssm.PutParameterInput) { in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}} })
	w.put("/a/b/c", "1", secure)
	w.put("/a/d", "1", advanced)
	w.put("/ab", "1,2", func(in *ssm.PutParameterInput) { in.Type = types.ParameterTypeStringList })
	w.put("z", "1")
	byPath := func(path string, deep bool) (names []string) {
		in := &ssm.GetParametersByPathInput{Path: &path, Recursive: &deep, MaxResults: aws.Int32(2)}
		for {
			out, err := w.GetParametersByPath(t.Context(), in)
			if err != nil {
				return []string{"(" + code(err) + ")"}
			}
			for _, p := range out.Parameters {
				names = append(names, *p.Name)
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				return names
			}
		}
	}
	for _, c := range []struct {
		path string
		deep bool
		want string
	}{
		{"/", false, "/a /ab z"},
		{"/", true, "/a /a/b /a/b/c /a/d /ab z"},
		{"/a", false, "/a/b /a/d"},
		{"/a/", true, "/a/b /a/b/c /a/d"},
		{"/none", true, ""},
		{"a", true, "(ValidationException)"},
		{"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended", false,
			"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id /aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_name"},
	} {
		if got := strings.Join(byPath(c.path, c.deep), " "); got != c.want {
			t.Errorf("%s %v: got %s, want %s", c.path, c.deep, got, c.want)
		}
	}
	for _, c := range []struct {
		key, option, values string
		want                string
	}{
		{"Name", "", "/a", "/a"},
		{"Name", "BeginsWith", "/a/", "/a/b /a/b/c /a/d"},
		{"Name", "Contains", "b", "/a/b /a/b/c /ab"},
		{"Type", "", "SecureString,StringList", "/a/b/c /ab"},
		{"KeyId", "", "alias/aws/ssm", "/a/b/c"},
		{"Path", "", "/a", "/a/b /a/d"},
		{"Path", "Recursive", "/a", "/a/b /a/b/c /a/d"},
		{"Path", "", "/", "/a /ab z"},
		{"Path", "Recursive", "/", "/a /a/b /a/b/c /a/d /ab z"},
		{"Tier", "", "Advanced", "/a/d"},
		{"DataType", "", "text", "/a /a/b /a/b/c /a/d /ab z"},
		{"tag:k", "", "v", "/a/b"},
		{"tag:k", "", "", "/a/b"},
		{"tag:x", "", "v", ""},
		{"Label", "", "v", "(InvalidFilterKey)"},
		{"Name", "Recursive", "v", "(InvalidFilterOption)"},
		{"Path", "", "v", "(InvalidFilterValue)"},
		{"Type", "", "", "(InvalidFilterValue)"},
	} {
		f := types.ParameterStringFilter{Key: &c.key}
		if c.option != "" {
			f.Option = &c.option
		}
		if c.values != "" {
			f.Values = strings.Split(c.values, ",")
		}
		if got := strings.Join(w.list([]types.ParameterStringFilter{f}), " "); got != c.want {
			t.Errorf("%s %s %s: got %s, want %s", c.key, c.option, c.values, got, c.want)
		}
	}
}

// TestPathsByLabel: a label in a filter picks the versions that have it, whatever the latest ones are.
func TestPathsByLabel(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"/c/x", "/c/y", "/c/z"} {
		w.put(name, "1")
		w.put(name, "2", overwrite)
		w.put(name, "3", overwrite)
	}
	for name, version := range map[string]int64{"/c/x": 1, "/c/y": 2} {
		_, err := w.LabelParameterVersion(t.Context(), &ssm.LabelParameterVersionInput{Name: &name, ParameterVersion: &version, Labels: []string{"prod"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for label, want := range map[string]string{"prod": "/c/x=1 /c/y=2", "test": ""} {
		out, err := w.GetParametersByPath(t.Context(), &ssm.GetParametersByPathInput{
			Path:             aws.String("/c"),
			ParameterFilters: []types.ParameterStringFilter{{Key: aws.String("Label"), Values: []string{label}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range out.Parameters {
			got = append(got, *p.Name+"="+*p.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", label, got, want)
		}
	}
}

// TestEmptyListsAreTold: a client reads labels and policies without asking whether there are any.
func TestEmptyListsAreTold(t *testing.T) {
	w := newWorld(t)
	w.put("/a", "1")
	history, err := w.GetParameterHistory(t.Context(), &ssm.GetParameterHistoryInput{Name: aws.String("/a")})
	if err != nil || history.Parameters[0].Labels == nil || history.Parameters[0].Policies == nil {
		t.Errorf("its history is %+v, %v", history, err)
	}
	described, err := w.DescribeParameters(t.Context(), &ssm.DescribeParametersInput{})
	if err != nil || described.Parameters[0].Policies == nil {
		t.Errorf("it is %+v, %v", described, err)
	}
	tags, err := w.ListTagsForResource(t.Context(), &ssm.ListTagsForResourceInput{
		ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/a"),
	})
	if err != nil || tags.TagList == nil {
		t.Errorf("its tags are %+v, %v", tags, err)
	}
	public, err := w.GetParametersByPath(t.Context(), &ssm.GetParametersByPathInput{Path: aws.String("/aws/service/none")})
	if err != nil || public.Parameters == nil {
		t.Errorf("public ones are %+v, %v", public, err)
	}
}

func TestDeleteAndTags(t *testing.T) {
	w := newWorld(t)
	w.put("/a", "1")
	w.put("/a", "2", overwrite)
	w.put("/a-b", "1")
	add := &ssm.AddTagsToResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/a"),
		Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}
	if _, err := w.AddTagsToResource(t.Context(), add); err != nil {
		t.Fatal(err)
	}
	tags, err := w.ListTagsForResource(t.Context(), &ssm.ListTagsForResourceInput{ResourceType: add.ResourceType, ResourceId: add.ResourceId})
	if err != nil || len(tags.TagList) != 1 {
		t.Errorf("got %v %v", tags, err)
	}
	add.ResourceId = aws.String("/none")
	if _, err := w.AddTagsToResource(t.Context(), add); code(err) != "InvalidResourceId" {
		t.Errorf("got %v", err)
	}
	out, err := w.DeleteParameters(t.Context(), &ssm.DeleteParametersInput{Names: []string{"/a", "/none"}})
	if err != nil || !slices.Equal(out.DeletedParameters, []string{"/a"}) || !slices.Equal(out.InvalidParameters, []string{"/none"}) {
		t.Errorf("got %+v %v", out, err)
	}
	if got := w.list(nil); !slices.Equal(got, []string{"/a-b"}) || len(slices.Collect(w.store.View().ParameterVersions.All())) != 1 {
		t.Errorf("left are %q", got)
	}
	if _, err := w.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: aws.String("/a")}); code(err) != "ParameterNotFound" {
		t.Errorf("got %v", err)
	}
}
