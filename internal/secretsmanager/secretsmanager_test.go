package secretsmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state"
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
	w := &world{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	v := vaulttest.New(t, 7)
	w.Service = New(statetest.OpenIn(t, w.dir), Options{Account: accounttest.New(func() time.Time { return w.now }), Vault: v})
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

// token returns the ClientRequestToken of a number.
func token(n int) *string { return aws.String(fmt.Sprintf("%032d", n)) }

func (w *world) create(name, value string, n int) string {
	w.t.Helper()
	return *do(w, w.CreateSecret, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &value, ClientRequestToken: token(n)}).ARN
}

func (w *world) put(id, value string, n int, stages ...string) []string {
	w.t.Helper()
	return do(w, w.PutSecretValue, &secretsmanager.PutSecretValueInput{
		SecretId: &id, SecretString: &value, ClientRequestToken: token(n), VersionStages: stages,
	}).VersionStages
}

// get returns a value, or in brackets how the call was refused.
func (w *world) get(id, version, stage string) string {
	in := &secretsmanager.GetSecretValueInput{SecretId: &id, VersionId: optional(version), VersionStage: optional(stage)}
	out, err := w.GetSecretValue(w.t.Context(), in)
	if err != nil {
		return "(" + refused(w, w.GetSecretValue, in) + ")"
	}
	return *out.SecretString
}

func (w *world) names(filters ...types.Filter) (names []string) {
	w.t.Helper()
	for _, s := range do(w, w.ListSecrets, &secretsmanager.ListSecretsInput{Filters: filters}).SecretList {
		names = append(names, *s.Name)
	}
	return names
}

const missing = "(ResourceNotFoundException: Secrets Manager can't find the specified secret.)"

func TestSecretsAreFoundByNameAndARN(t *testing.T) {
	w := newWorld(t)
	arn := w.create("app/db", "one", 1)
	tricky := w.create("app/db-abcdef", "two", 2) // looks like an ARN's end
	prefix := "arn:aws:secretsmanager:us-east-1:000000000000:secret:"
	if rest, ok := strings.CutPrefix(arn, prefix+"app/db-"); !ok || len(rest) != suffixLength {
		t.Errorf("the ARN is %s", arn)
	}
	for id, want := range map[string]string{
		"app/db":                 "one",
		arn:                      "one",
		prefix + "app/db":        "one",
		prefix + "app/db-abcdef": "two",
		tricky:                   "two",
		"app/db-abcdef":          "two",
		arn[:len(arn)-1]:         missing,
		prefix + "app/db-AAAAAA": missing,
		prefix:                   missing,
		"app":                    missing,
		strings.Replace(arn, "us-east-1", "us-west-2", 1):       missing,
		strings.Replace(arn, "000000000000", "111111111111", 1): missing,
		"a b": "(ValidationException: Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!)",
	} {
		if got := w.get(id, "", ""); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

func TestVersionsAndStages(t *testing.T) {
	w := newWorld(t)
	w.create("s", "one", 1)
	if got := w.put("s", "two", 2); !slices.Equal(got, []string{"AWSCURRENT"}) {
		t.Errorf("the second version has %v", got)
	}
	w.put("s", "three", 3, "AWSPENDING", "blue")
	for _, c := range []struct{ version, stage, want string }{
		{"", "", "two"},
		{"", "AWSPREVIOUS", "one"},
		{"", "AWSPENDING", "three"},
		{*token(1), "", "one"},
		{*token(3), "blue", "three"},
		{*token(9), "", "(ResourceNotFoundException: Secrets Manager can't find the specified secret value for VersionId: " + *token(9) + ")"},
		{"", "red", "(ResourceNotFoundException: Secrets Manager can't find the specified secret value for staging label: red)"},
		{*token(3), "AWSCURRENT", "(InvalidRequestException: You provided a VersionStage that is not associated to the provided VersionId.)"},
	} {
		if got := w.get("s", c.version, c.stage); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.version, c.stage, got, c.want)
		}
	}
	move := func(stage string, from, to *string) *secretsmanager.UpdateSecretVersionStageInput {
		return &secretsmanager.UpdateSecretVersionStageInput{
			SecretId: aws.String("s"), VersionStage: &stage, RemoveFromVersionId: from, MoveToVersionId: to,
		}
	}
	for _, c := range []struct {
		in   *secretsmanager.UpdateSecretVersionStageInput
		want string
	}{
		{move("AWSCURRENT", nil, token(3)), "InvalidParameterException: The parameter RemoveFromVersionId can't be empty. Staging label AWSCURRENT" +
			" is currently attached to version " + *token(2) + ", so you must explicitly reference that version in RemoveFromVersionId."},
		{move("AWSCURRENT", token(2), nil), "InvalidParameterException: You can only move staging label AWSCURRENT"},
		{move("AWSCURRENT", token(1), token(3)), "InvalidParameterException: Staging label AWSCURRENT isn't attached"},
		{move("blue", token(8), nil), "ResourceNotFoundException: "},
		{move("red", nil, nil), "InvalidParameterException: "},
	} {
		if got := refused(w, w.UpdateSecretVersionStage, c.in); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: got %s, want %s", c.in, got, c.want)
		}
	}
	do(w, w.UpdateSecretVersionStage, move("AWSCURRENT", token(2), token(3)))
	do(w, w.UpdateSecretVersionStage, move("blue", token(3), nil))
	do(w, w.UpdateSecretVersionStage, move("red", nil, token(2)))
	want := map[string][]string{*token(2): {"AWSPREVIOUS", "red"}, *token(3): {"AWSCURRENT", "AWSPENDING"}}
	described := do(w, w.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String("s")})
	if got := described.VersionIdsToStages; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for deprecated, want := range map[bool]int{false: 2, true: 3} {
		out := do(w, w.ListSecretVersionIds, &secretsmanager.ListSecretVersionIdsInput{SecretId: aws.String("s"), IncludeDeprecated: &deprecated})
		if len(out.Versions) != want {
			t.Errorf("%d versions are listed, not %d", len(out.Versions), want)
		}
	}
}

// TestStagesAreWhole: whatever is put and moved, each label is on a version that is there, and one version is current.
func TestStagesAreWhole(t *testing.T) {
	w := newWorld(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		name := fmt.Sprint("s", n)
		in := &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String("0"), ClientRequestToken: token(0)}
		if _, err := w.CreateSecret(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		stage := rapid.SampledFrom([]string{"AWSCURRENT", "AWSPREVIOUS", "AWSPENDING", "blue"})
		version := rapid.Ptr(rapid.Map(rapid.IntRange(0, 3), func(n int) string { return *token(n) }), true)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				_, _ = w.PutSecretValue(context.Background(), &secretsmanager.PutSecretValueInput{
					SecretId: &name, SecretString: aws.String("x"), ClientRequestToken: token(rapid.IntRange(0, 3).Draw(t, "token")),
					VersionStages: rapid.SliceOfN(stage, 0, 3).Draw(t, "stages"),
				})
			} else {
				_, _ = w.UpdateSecretVersionStage(context.Background(), &secretsmanager.UpdateSecretVersionStageInput{
					SecretId: &name, VersionStage: aws.String(stage.Draw(t, "stage")),
					RemoveFromVersionId: version.Draw(t, "from"), MoveToVersionId: version.Draw(t, "to"),
				})
			}
			v := w.store.View()
			secret := v.Secrets.Get(name)
			if secret.Stages[current] == "" {
				t.Fatalf("the labels are %v", secret.Stages)
			}
			for stage, id := range secret.Stages {
				if v.SecretVersions.Get(state.SecretVersionKey(name, id)) == nil {
					t.Fatalf("%s is on %s, which isn't there", stage, id)
				}
			}
		}
	})
}

func TestOldVersionsGo(t *testing.T) {
	w := newWorld(t)
	w.create("s", "0", 0)
	w.put("s", "1", 1, "kept")
	for n := 2; n < maxVersions+10; n++ {
		w.now = w.now.Add(time.Second)
		w.put("s", fmt.Sprint(n), n)
	}
	if n := len(slices.Collect(w.store.View().VersionsOfSecret("s"))); n != maxVersions {
		t.Errorf("there are %d versions", n)
	}
	if got := w.get("s", "", "kept") + w.get("s", "", "") + w.get("s", *token(0), ""); !strings.HasPrefix(got, "1109(ResourceNotFound") {
		t.Errorf("got %s", got)
	}
}

func TestRepeatedCalls(t *testing.T) {
	w := newWorld(t)
	arn := w.create("s", "one", 1)
	if again := w.create("s", "one", 1); again != arn {
		t.Errorf("the repeated call made %s", again)
	}
	w.put("s", "two", 2)
	if got := w.put("s", "two", 2); !slices.Equal(got, []string{"AWSCURRENT"}) {
		t.Errorf("a repeated put answers %v", got)
	}
	before := *w.store.View().Secrets.Get("s")
	w.now = w.now.Add(time.Minute)
	if got := w.put("s", "one", 1, "AWSCURRENT", "blue"); !slices.Equal(got, []string{"AWSPREVIOUS"}) {
		t.Errorf("a repeated put with other labels answers %v", got)
	}
	if after := *w.store.View().Secrets.Get("s"); !reflect.DeepEqual(after, before) {
		t.Errorf("a repeated put has made %+v of %+v", after, before)
	}
	create := func(value string, n int) *secretsmanager.CreateSecretInput {
		return &secretsmanager.CreateSecretInput{Name: aws.String("s"), SecretString: &value, ClientRequestToken: token(n)}
	}
	const there = "ResourceExistsException: The operation failed because the secret s already exists."
	for _, c := range []struct{ got, want string }{
		{refused(w, w.CreateSecret, create("one", 3)), there},
		{refused(w, w.CreateSecret, create("else", 1)), there},
		{refused(w, w.PutSecretValue, &secretsmanager.PutSecretValueInput{
			SecretId: aws.String("s"), SecretString: aws.String("else"), ClientRequestToken: token(2),
		}), "ResourceExistsException: You can't use ClientRequestToken " + *token(2) + " because that value is already in use for a version of secret " + arn + "."},
		{refused(w, w.UpdateSecret, &secretsmanager.UpdateSecretInput{
			SecretId: aws.String("s"), SecretString: aws.String("two"), ClientRequestToken: token(2),
		}), "ResourceExistsException: You can't use ClientRequestToken " + *token(2) + " because that value is already in use for a version of secret " + arn + "."},
		{refused(w, w.PutSecretValue, &secretsmanager.PutSecretValueInput{SecretId: aws.String("s"), SecretString: aws.String("else")}),
			"InvalidRequestException: You must provide a ClientRequestToken value. We recommend a UUID-type value."},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// TestRotation goes the way of a rotation function: a pending version becomes the current one, and is rolled back.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	w.create("s", "one", 1)
	w.put("s", "two", 2, "AWSPENDING")
	w.put("s", "three", 3, "AWSPENDING") // takes the label from the version before
	stages := func() map[string][]string {
		return do(w, w.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String("s")}).VersionIdsToStages
	}
	move := func(stage string, from, to *string) {
		do(w, w.UpdateSecretVersionStage, &secretsmanager.UpdateSecretVersionStageInput{
			SecretId: aws.String("s"), VersionStage: &stage, RemoveFromVersionId: from, MoveToVersionId: to,
		})
	}
	move("AWSCURRENT", token(1), token(3))
	want := map[string][]string{*token(1): {"AWSPREVIOUS"}, *token(3): {"AWSCURRENT", "AWSPENDING"}}
	if got := stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("after the rotation %v, want %v", got, want)
	}
	w.put("s", "four", 4)
	want = map[string][]string{*token(3): {"AWSPREVIOUS"}, *token(4): {"AWSCURRENT"}}
	if got := stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("after a value put by hand %v, want %v", got, want)
	}
	move("AWSCURRENT", token(4), token(3))
	move("AWSCURRENT", token(3), token(1))
	want = map[string][]string{*token(1): {"AWSCURRENT"}, *token(3): {"AWSPREVIOUS"}}
	if got := stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("after the way back %v, want %v", got, want)
	}
	for n := range maxStages - 2 { // on several versions
		move(fmt.Sprint("label", n), nil, token(1+n%3))
	}
	got := refused(w, w.UpdateSecretVersionStage, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: aws.String("s"), VersionStage: aws.String("more"), MoveToVersionId: token(2),
	})
	if !strings.HasPrefix(got, "LimitExceededException: ") {
		t.Errorf("a label too many: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.create("s", "hunter2", 1)
	with := func(change func(*secretsmanager.CreateSecretInput)) string {
		in := &secretsmanager.CreateSecretInput{Name: aws.String("new"), SecretString: aws.String("hunter2"), ClientRequestToken: token(1)}
		change(in)
		return refused(w, w.CreateSecret, in)
	}
	for want, got := range map[string]string{
		"ValidationException: Invalid name.": with(func(in *secretsmanager.CreateSecretInput) { in.Name = aws.String("a b") }),
		"ValidationException: 1 validation error": with(func(in *secretsmanager.CreateSecretInput) {
			in.SecretString = aws.String(strings.Repeat("hunter2", 10_000))
		}),
		"InvalidParameterException: You can't spec": with(func(in *secretsmanager.CreateSecretInput) { in.SecretBinary = []byte("hunter2") }),
		"EncryptionFailure: Pintle has no KMS":      with(func(in *secretsmanager.CreateSecretInput) { in.KmsKeyId = aws.String("alias/own") }),
		"InvalidParameterException: AddReplica": with(func(in *secretsmanager.CreateSecretInput) {
			in.AddReplicaRegions = []types.ReplicaRegionType{{Region: aws.String("us-west-2")}}
		}),
		"InvalidParameterException: Type is for":     with(func(in *secretsmanager.CreateSecretInput) { in.Type = aws.String("x") }),
		"InvalidParameterException: The tag key \"a": with(func(in *secretsmanager.CreateSecretInput) { in.Tags = []types.Tag{{Key: aws.String("aws:x")}} }),
		"InvalidRequestException: No Lambda rotation function ARN is associated with this secret.": refused(w, w.RotateSecret,
			&secretsmanager.RotateSecretInput{SecretId: aws.String("s")}),
		"InvalidRequestException: Pintle invokes no functions for": refused(w, w.RotateSecret,
			&secretsmanager.RotateSecretInput{SecretId: aws.String("s"), RotationLambdaARN: aws.String("arn:aws:lambda:x")}),
		"InvalidRequestException: You must provide either": refused(w, w.PutSecretValue,
			&secretsmanager.PutSecretValueInput{SecretId: aws.String("s"), ClientRequestToken: token(5)}),
	} {
		if !strings.HasPrefix(got, want) || strings.Contains(got, "hunter") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := w.names(); !slices.Equal(got, []string{"s"}) {
		t.Errorf("refused calls made %v", got)
	}
}

func TestDeletedSecrets(t *testing.T) {
	w := newWorld(t)
	w.create("s", "one", 1)
	id := aws.String("s")
	remove := func(days int64) *secretsmanager.DeleteSecretInput {
		return &secretsmanager.DeleteSecretInput{SecretId: id, RecoveryWindowInDays: &days}
	}
	for _, days := range []int64{6, 31, -1} {
		if got := refused(w, w.DeleteSecret, remove(days)); !strings.HasPrefix(got, "InvalidParameterException: The RecoveryWindowInDays") {
			t.Errorf("%d days: %s", days, got)
		}
	}
	both := remove(7)
	both.ForceDeleteWithoutRecovery = aws.Bool(true)
	if got := refused(w, w.DeleteSecret, both); !strings.HasPrefix(got, "InvalidParameterException: You can't use Force") {
		t.Errorf("both: %s", got)
	}
	at := *do(w, w.DeleteSecret, remove(7)).DeletionDate
	if want := w.now.AddDate(0, 0, 7); !at.Equal(want) {
		t.Errorf("it goes at %v, not %v", at, want)
	}
	const marked = "InvalidRequestException: You can't perform this operation on the secret because it was marked for deletion."
	for _, got := range []string{
		strings.Trim(w.get("s", "", ""), "()"),
		refused(w, w.DeleteSecret, remove(7)),
		refused(w, w.TagResource, &secretsmanager.TagResourceInput{SecretId: id, Tags: []types.Tag{}}),
		refused(w, w.UpdateSecret, &secretsmanager.UpdateSecretInput{SecretId: id, ClientRequestToken: token(2)}),
	} {
		if got != marked {
			t.Errorf("got %s", got)
		}
	}
	if got := refused(w, w.CreateSecret, &secretsmanager.CreateSecretInput{Name: id, ClientRequestToken: token(3)}); got !=
		"InvalidRequestException: You can't create this secret because a secret with this name is already scheduled for deletion." {
		t.Errorf("got %s", got)
	}
	if described := do(w, w.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: id}); !described.DeletedDate.Equal(at) {
		t.Errorf("it is described with %v", described.DeletedDate)
	}
	all := do(w, w.ListSecrets, &secretsmanager.ListSecretsInput{IncludePlannedDeletion: aws.Bool(true)}).SecretList
	if names := w.names(); len(names) != 0 || len(all) != 1 {
		t.Errorf("%v is listed, and %d that are to be deleted", names, len(all))
	}
	do(w, w.RestoreSecret, &secretsmanager.RestoreSecretInput{SecretId: id})
	if got := w.get("s", "", ""); got != "one" {
		t.Errorf("restored: %s", got)
	}
	do(w, w.DeleteSecret, remove(7))
	w.now = at
	if got := w.get("s", "", ""); got != missing {
		t.Errorf("when its time is over: %s", got)
	}
	w.create("s", "two", 1) // before a sweep
	if err := w.store.Sweep(t.Context(), at.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := w.get("s", "", ""); got != "two" {
		t.Errorf("created anew: %s", got)
	}
	force := &secretsmanager.DeleteSecretInput{SecretId: id, ForceDeleteWithoutRecovery: aws.Bool(true)}
	do(w, w.DeleteSecret, force)
	do(w, w.DeleteSecret, force) // one that isn't there
	v := w.store.View()
	if got := w.get("s", "", ""); got != missing || v.Secrets.Len()+v.SecretVersions.Len() > 0 {
		t.Errorf("forced: %s, and %d rows are left", got, v.Secrets.Len()+v.SecretVersions.Len())
	}
}

// TestSweptSecrets: the sweep takes a secret whose time is over, and its versions.
func TestSweptSecrets(t *testing.T) {
	w := newWorld(t)
	w.create("s", "one", 1)
	do(w, w.DeleteSecret, &secretsmanager.DeleteSecretInput{SecretId: aws.String("s")})
	for _, c := range []struct{ days, left int }{{29, 2}, {31, 0}} {
		for range 2 { // the versions go with the sweep after their secret's at the latest
			if err := w.store.Sweep(t.Context(), w.now.AddDate(0, 0, c.days)); err != nil {
				t.Fatal(err)
			}
		}
		if v := w.store.View(); v.Secrets.Len()+v.SecretVersions.Len() != c.left {
			t.Errorf("after %d days, %d rows are left", c.days, v.Secrets.Len()+v.SecretVersions.Len())
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		" /_ ":                 "",
		"creds":                "creds",
		"credsDatabase#892":    "creds database 892",
		"prod/AppBeta/x1":      "prod app beta x 1",
		"COMPANY":              "company",
		"COMPANYThings":        "company things",
		"My basic_DESCRIPTION": "my basic description",
		"Straße":               "straße",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	for n, s := range []struct{ name, description, key, value string }{
		{"testing1/one", "a secret", "team", "Blue"},
		{"/testing2/two", "an secret", "Team", "red"},
		{"testing3/three", "asecret", "", ""},
		{"/testing4/four", "thesecret", "", ""},
	} {
		w.now = w.now.Add(time.Second)
		in := &secretsmanager.CreateSecretInput{Name: &s.name, Description: &s.description, ClientRequestToken: token(n)}
		if s.key != "" {
			in.Tags = []types.Tag{{Key: &s.key, Value: &s.value}}
		}
		do(w, w.CreateSecret, in)
	}
	for _, c := range []struct{ key, values, want string }{ // what AWS answered, but for tags and all
		{"name", "/", "24"},
		{"name", "!/", "13"},
		{"name", "testing1 one", ""},
		{"name", "/,testing1", "124"},
		{"description", "a", "123"},
		{"description", "!a", "4"},
		{"description", "a secret", "12"},
		{"description", "A SECRET", "12"},
		{"description", "!c", "1234"},
		{"tag-key", "team", "1"},
		{"tag-value", "re", "2"},
		{"all", "blue", "1"},
		{"all", "two secret", ""}, // not in one attribute
		{"all", "two testing", "2"},
		{"all", "testing3", "3"},
		{"all", "secret", "12"},
		{"primary-region", "us-east-1", ""},
	} {
		got := ""
		for _, name := range w.names(types.Filter{Key: types.FilterNameStringType(c.key), Values: strings.Split(c.values, ",")}) {
			got += strings.Trim(name, "/")[7:8]
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.key, c.values, got, c.want)
		}
	}
	both := w.names(types.Filter{Key: "name", Values: []string{"/"}}, types.Filter{Key: "description", Values: []string{"an"}})
	if !slices.Equal(both, []string{"/testing2/two"}) {
		t.Errorf("two filters find %v", both)
	}
}

func TestPagesAreSorted(t *testing.T) {
	w := newWorld(t)
	for n, name := range []string{"b", "c", "a"} {
		w.now = w.now.Add(time.Second)
		w.create(name, "x", n)
	}
	for _, c := range []struct {
		by    types.SortByType
		order types.SortOrderType
		want  string
	}{{"", "", "bca"}, {"", "desc", "acb"}, {"name", "asc", "abc"}, {"name", "desc", "cba"}, {"last-changed-date", "desc", "acb"}} {
		got := ""
		in := &secretsmanager.ListSecretsInput{SortBy: c.by, SortOrder: c.order, MaxResults: aws.Int32(1)}
		for range 3 {
			out := do(w, w.ListSecrets, in)
			got += *out.SecretList[0].Name
			in.NextToken = out.NextToken
		}
		if got != c.want || in.NextToken != nil {
			t.Errorf("%s %s: got %s, want %s", c.by, c.order, got, c.want)
		}
	}
}

func TestBatches(t *testing.T) {
	w := newWorld(t)
	for n, name := range []string{"a", "b", "c"} {
		w.create(name, "value of "+name, n)
	}
	out := do(w, w.BatchGetSecretValue, &secretsmanager.BatchGetSecretValueInput{SecretIdList: []string{"b", "none", "a"}})
	if len(out.SecretValues) != 2 || *out.SecretValues[0].SecretString != "value of b" || len(out.Errors) != 1 ||
		*out.Errors[0].SecretId != "none" || *out.Errors[0].ErrorCode != "ResourceNotFoundException" {
		t.Errorf("got %+v", out.Errors)
	}
	in := &secretsmanager.BatchGetSecretValueInput{Filters: []types.Filter{{Key: "name", Values: []string{"!b"}}}, MaxResults: aws.Int32(1)}
	got := ""
	for range 2 {
		out := do(w, w.BatchGetSecretValue, in)
		got += *out.SecretValues[0].Name
		in.NextToken = out.NextToken
	}
	if got != "ac" || in.NextToken != nil {
		t.Errorf("got %s", got)
	}
}

func TestPasswords(t *testing.T) {
	w := newWorld(t)
	password := func(in *secretsmanager.GetRandomPasswordInput) string {
		return *do(w, w.GetRandomPassword, in).RandomPassword
	}
	if a, b := password(&secretsmanager.GetRandomPasswordInput{}), password(&secretsmanager.GetRandomPasswordInput{}); len(a) != 32 || a == b {
		t.Errorf("%s and %s", a, b)
	}
	for range 50 {
		p := password(&secretsmanager.GetRandomPasswordInput{
			PasswordLength: aws.Int64(4), ExcludePunctuation: aws.Bool(true), IncludeSpace: aws.Bool(true), ExcludeCharacters: aws.String("abcABC"),
		})
		for _, kind := range []string{lowercase[3:], uppercase[3:], numbers, " "} {
			if !strings.ContainsAny(p, kind) {
				t.Fatalf("%q has none of %q", p, kind)
			}
		}
	}
	for want, in := range map[string]*secretsmanager.GetRandomPasswordInput{
		"InvalidParameterException: Password length is too short": {PasswordLength: aws.Int64(3)},
		"InvalidParameterException: All characters are excluded": {
			ExcludeCharacters: aws.String(punctuation), ExcludeLowercase: aws.Bool(true), ExcludeUppercase: aws.Bool(true), ExcludeNumbers: aws.Bool(true),
		},
	} {
		if got := refused(w, w.GetRandomPassword, in); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	w := newWorld(t)
	w.create("s", "x", 1)
	const public = `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "secretsmanager:*", "Resource": "*"}}`
	for policy, want := range map[string]string{
		public: "<nil>",
		`{"Statement": [{"Effect": "Deny", "NotPrincipal": "*", "NotAction": ["x"], "Resource": "*"}]}`: "<nil>",
		`[`:                "MalformedPolicyDocumentException: ",
		`{}`:               "MalformedPolicyDocumentException: ",
		`{"Statement": 1}`: "MalformedPolicyDocumentException: ",
		`{"Statement": {"Effect": "Maybe", "Principal": "*", "Action": "*", "Resource": "*"}}`: "MalformedPolicyDocumentException: ",
		`{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`:                   "MalformedPolicyDocumentException: ",
	} {
		if got := refused(w, w.PutResourcePolicy, &secretsmanager.PutResourcePolicyInput{SecretId: aws.String("s"), ResourcePolicy: &policy}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", policy, got, want)
		}
		checked := do(w, w.ValidateResourcePolicy, &secretsmanager.ValidateResourcePolicyInput{ResourcePolicy: &policy})
		if wrong := want != "<nil>" || policy == public; checked.PolicyValidationPassed == wrong {
			t.Errorf("%s: %+v", policy, checked)
		}
	}
	do(w, w.PutResourcePolicy, &secretsmanager.PutResourcePolicyInput{SecretId: aws.String("s"), ResourcePolicy: aws.String(public)})
	if got := refused(w, w.PutResourcePolicy, &secretsmanager.PutResourcePolicyInput{
		SecretId: aws.String("s"), ResourcePolicy: aws.String(public), BlockPublicPolicy: aws.Bool(true),
	}); !strings.HasPrefix(got, "PublicPolicyException: ") {
		t.Errorf("got %s", got)
	}
	get := func() string {
		return aws.ToString(do(w, w.GetResourcePolicy, &secretsmanager.GetResourcePolicyInput{SecretId: aws.String("s")}).ResourcePolicy)
	}
	if got := get(); got != public {
		t.Errorf("got %s", got)
	}
	do(w, w.DeleteResourcePolicy, &secretsmanager.DeleteResourcePolicyInput{SecretId: aws.String("s")})
	if got := get(); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestAccessIsNotedByDay(t *testing.T) {
	w := newWorld(t)
	w.create("s", "x", 1)
	for _, c := range []struct {
		later time.Duration
		want  string
	}{{0, "2026-01-01"}, {time.Hour, "2026-01-01"}, {24 * time.Hour, "2026-01-02"}} {
		w.now = w.now.Add(c.later)
		w.get("s", "", "")
		described := do(w, w.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String("s")})
		if got := described.LastAccessedDate.Format(time.DateOnly); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestNothingReadableIsKept: no value is in a file of the store, nor shows when what holds it is printed.
func TestNothingReadableIsKept(t *testing.T) {
	w := newWorld(t)
	w.create("s", "hunter2", 1)
	do(w, w.UpdateSecret, &secretsmanager.UpdateSecretInput{SecretId: aws.String("s"), SecretBinary: []byte("hunter3"), ClientRequestToken: token(2)})
	got := do(w, w.GetSecretValue, &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
	if string(got.SecretBinary) != "hunter3" || got.SecretString != nil {
		t.Error("the value is another one")
	}
	given := value{text: aws.String("hunter2"), binary: []byte("hunter3")}
	if printed := fmt.Sprintf("%v %+v %#v %s", given, given, given, given); strings.Contains(printed, "hunter") || strings.Contains(printed, "104") {
		t.Errorf("printed: %s", printed)
	}
	read := 0
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		read += len(b)
		if bytes.Contains(b, []byte("hunter")) {
			t.Errorf("%s has a value", path)
		}
		return err
	})
	if err != nil || read < 1000 {
		t.Errorf("%d bytes were read: %v", read, err)
	}
}
