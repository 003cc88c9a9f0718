package lambda

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/lambda/zips"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// fake runs nothing: it answers as it's told to, and notes when it was asked.
type fake struct {
	mu     sync.Mutex
	answer func(environments.Work) (environments.Result, error)
	asked  []time.Time
	dead   []*sqs.SendMessageInput
	values map[string]float64 // sums of metrics, with their dimensions
}

func (f *fake) measure(_, metric, _ string, value float64, by ...[]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values == nil {
		f.values = map[string]float64{}
	}
	for _, d := range by {
		f.values[strings.Join(append([]string{metric}, d...), " ")] += value
	}
}

func (f *fake) Do(_ context.Context, w environments.Work) (environments.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Now())
	return f.answer(w)
}

func (f *fake) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = append(f.dead, in)
	return &sqs.SendMessageOutput{}, nil
}

func (f *fake) Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error) {
	return &sns.PublishOutput{}, nil
}

func succeed(environments.Work) (environments.Result, error) {
	return environments.Result{Payload: []byte(`"done"`)}, nil
}

func fail(environments.Work) (environments.Result, error) {
	return environments.Result{Payload: []byte(`{"errorMessage": "as asked"}`), Error: "Unhandled"}, nil
}

func newService(t *testing.T, store *state.Store, dir string, f *fake) *Service {
	t.Helper()
	z, err := zips.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return New(store, Options{
		Account: account.New("000000000000", "us-east-1", time.Now), Zips: z, Queues: f, Topics: f, Runner: f,
		QueueURL: func(arn string) string { return arn }, Log: slog.New(slog.DiscardHandler), Measure: f.measure,
		Endpoint: "http://here", MAC: func(text string) []byte { sum := sha256.Sum256([]byte("key" + text)); return sum[:] },
	})
}

func zipOf(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte(text)) //nolint:errcheck // into memory
	z.Close()             //nolint:errcheck // likewise
	return b.Bytes()
}

func creation(t *testing.T, name string) *lambda.CreateFunctionInput {
	t.Helper()
	return &lambda.CreateFunctionInput{
		FunctionName: &name, Role: aws.String("arn:aws:iam::000000000000:role/r"), Runtime: "python3.12", Handler: aws.String("index.handler"),
		Code: &types.FunctionCode{ZipFile: zipOf(t, "index.py", name)},
	}
}

func make1(t *testing.T, s *Service, name string, change func(*lambda.CreateFunctionInput)) {
	t.Helper()
	in := creation(t, name)
	change(in)
	if _, err := s.CreateFunction(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func asItIs(*lambda.CreateFunctionInput) {}

// TestPublishedAtOnce: a function that is created and published has a first version, and a latest one that can be changed beside it.
func TestPublishedAtOnce(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	in := creation(t, "f")
	in.Publish = true
	made, err := s.CreateFunction(t.Context(), in)
	if err != nil || *made.Version != "1" || *made.FunctionArn != s.functionARN("f", "1") {
		t.Fatalf("got %+v, %v", made, err)
	}
	got, err := s.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName})
	if err != nil || *got.Configuration.Version != state.Latest || *got.Configuration.FunctionArn != s.functionARN("f", "") {
		t.Fatalf("got %+v, %v", got, err)
	}
	all, err := s.ListVersionsByFunction(t.Context(), &lambda.ListVersionsByFunctionInput{FunctionName: in.FunctionName})
	if err != nil || len(all.Versions) != 2 || *all.Versions[0].Version != state.Latest || *all.Versions[1].Version != "1" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestVersionsStayWhatTheyAre: a version has the code of its time, an alias leads to it, and the same isn't published twice.
func TestVersionsStayWhatTheyAre(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	ctx := t.Context()
	make1(t, s, "f", asItIs)
	first, err := s.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: aws.String("f")})
	if err != nil || *first.Version != "1" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if again, err := s.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: aws.String("f")}); err != nil || *again.Version != "1" {
		t.Errorf("got %+v, %v", again, err)
	}
	live, err := s.CreateAlias(ctx, &lambda.CreateAliasInput{
		FunctionName: aws.String("f"), Name: aws.String("live"), FunctionVersion: aws.String("1"),
		RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{}},
	})
	if err != nil || live.RoutingConfig != nil { // Terraform sends one without weights, and expects none
		t.Fatalf("got %+v, %v", live, err)
	}
	code := &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: zipOf(t, "index.py", "other"), Publish: true}
	second, err := s.UpdateFunctionCode(ctx, code)
	if err != nil || *second.Version != "2" || *second.CodeSha256 == *first.CodeSha256 {
		t.Fatalf("got %+v, %v", second, err)
	}
	got, err := s.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String("f:live")})
	if err != nil || *got.CodeSha256 != *first.CodeSha256 || *got.Version != "1" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = s.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: aws.String("f"), Qualifier: aws.String("1")})
	if err == nil || !strings.Contains(err.Error(), "referenced by alias live") {
		t.Errorf("got %v", err)
	}
}

// TestTaskDefinitionsGoWithFunctions: they show a function's variables. One of the same family that isn't Lambda's stays.
func TestTaskDefinitionsGoWithFunctions(t *testing.T) {
	store := statetest.Open(t)
	s := newService(t, store, t.TempDir(), &fake{answer: succeed})
	make1(t, s, "f", asItIs)
	put := func(arn, driver string) {
		t.Helper()
		td := state.TaskDefinition{TaskDefinition: ecstypes.TaskDefinition{
			TaskDefinitionArn: &arn, Family: aws.String("lambda-f"), Status: ecstypes.TaskDefinitionStatusActive,
			Volumes: []ecstypes.Volume{{DockerVolumeConfiguration: &ecstypes.DockerVolumeConfiguration{Driver: &driver}}},
		}}
		if err := store.Update(t.Context(), func(tx *state.Tx) error { tx.TaskDefinitions.Put(&td); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	put("ours", acs.FunctionDriver)
	put("another", "local")
	if _, err := s.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}); err != nil {
		t.Fatal(err)
	}
	for arn, want := range map[string]ecstypes.TaskDefinitionStatus{
		"ours": ecstypes.TaskDefinitionStatusInactive, "another": ecstypes.TaskDefinitionStatusActive,
	} {
		if got := store.View().TaskDefinitions.Get(arn); got.Status != want {
			t.Errorf("%s is %s, want %s", arn, got.Status, want)
		}
	}
}

// TestEmptyMembers: empty values that AWS's model lets through ask for nothing.
func TestEmptyMembers(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	in := creation(t, "f")
	in.Code.SourceKMSKeyArn, in.Code.ImageUri = aws.String(""), aws.String("")
	if _, err := s.CreateFunction(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{
		FunctionName: aws.String("f"), ZipFile: in.Code.ZipFile, SourceKMSKeyArn: aws.String(""), ImageUri: aws.String(""),
	}); err != nil {
		t.Error(err)
	}
	to := &types.DestinationConfig{OnFailure: &types.OnFailure{}}
	if asksDestination(to) {
		t.Error("no destination is one")
	}
	if to.OnFailure.Destination = aws.String("arn:aws:sqs:us-east-1:000000000000:q"); !asksDestination(to) {
		t.Error("a destination is none")
	}
}

// TestRefusals: what isn't supported is refused by its name, and nothing is made.
func TestRefusals(t *testing.T) {
	store := statetest.Open(t)
	s := newService(t, store, t.TempDir(), &fake{answer: succeed})
	for want, change := range map[string]func(*lambda.CreateFunctionInput){
		"VpcConfig":              func(in *lambda.CreateFunctionInput) { in.VpcConfig = &types.VpcConfig{SubnetIds: []string{"subnet-1"}} },
		"SnapStart.ApplyOn":      func(in *lambda.CreateFunctionInput) { in.SnapStart = &types.SnapStart{ApplyOn: "PublishedVersions"} },
		"not java21":             func(in *lambda.CreateFunctionInput) { in.Runtime = "java21" },
		"Could not unzip":        func(in *lambda.CreateFunctionInput) { in.Code.ZipFile = []byte("x") },
		"provide a source":       func(in *lambda.CreateFunctionInput) { in.Code = &types.FunctionCode{} },
		"don't provide ImageUri": func(in *lambda.CreateFunctionInput) { in.Code = &types.FunctionCode{ImageUri: aws.String("i")} },
		"reserved keys": func(in *lambda.CreateFunctionInput) {
			in.Environment = &types.Environment{Variables: map[string]string{"AWS_REGION": "x"}}
		},
		"exceeded the 4KB limit": func(in *lambda.CreateFunctionInput) {
			in.Environment = &types.Environment{Variables: map[string]string{"AB": strings.Repeat("x", 5000)}}
		},
		"pintle:gpu": func(in *lambda.CreateFunctionInput) { in.Tags = map[string]string{"pintle:gpu": "some"} },
		"does not exist": func(in *lambda.CreateFunctionInput) {
			in.Layers = []string{"arn:aws:lambda:us-east-1:000000000000:layer:l:1"}
		},
		"LoggingConfig.ApplicationLogLevel": func(in *lambda.CreateFunctionInput) {
			in.LoggingConfig = &types.LoggingConfig{ApplicationLogLevel: types.ApplicationLogLevelFatal}
		},
		"Runtime and Handler": func(in *lambda.CreateFunctionInput) { in.Handler = nil },
		"DeadLetterConfig.TargetArn": func(in *lambda.CreateFunctionInput) {
			in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String("arn:aws:s3:::b")}
		},
		"neither ZipFile nor S3Bucket": func(in *lambda.CreateFunctionInput) { in.PackageType = "Image" },
	} {
		in := creation(t, "f")
		if want == "neither ZipFile nor S3Bucket" {
			in.Runtime, in.Handler = "", nil
		}
		change(in)
		if _, err := s.CreateFunction(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if n := store.View().Functions.Len() + store.View().FunctionVersions.Len(); n > 0 {
		t.Errorf("refused calls left %d rows", n)
	}
}

// TestRefusedLater: what AWS refuses of a function that is there, though its model lets it pass.
func TestRefusedLater(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	ctx := t.Context()
	make1(t, s, "f", func(in *lambda.CreateFunctionInput) { in.Publish = true })
	if _, err := s.PublishLayerVersion(ctx, &lambda.PublishLayerVersionInput{
		LayerName: aws.String("l"), Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, "l.py", "l")},
	}); err != nil {
		t.Fatal(err)
	}
	f, latest, arn, layer := aws.String("f"), aws.String(state.Latest), s.functionARN("f", ""), s.layerARN("l")+":1"
	for want, call := range map[string]func() error{
		"'timeout' failed to satisfy constraint: Member must have value less than or equal to 900": func() error {
			_, err := s.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: f, Timeout: aws.Int32(901)})
			return err
		},
		"are versions of the same layer": func() error {
			_, err := s.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: f, Layers: []string{layer, layer}})
			return err
		},
		"'name' failed to satisfy constraint": func() error {
			_, err := s.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: f, Name: aws.String("12"), FunctionVersion: aws.String("1")})
			return err
		},
		"policies for $LATEST": func() error {
			_, err := s.AddPermission(ctx, &lambda.AddPermissionInput{
				FunctionName: f, Qualifier: latest, StatementId: aws.String("s"), Action: aws.String("lambda:InvokeFunction"), Principal: aws.String("*"),
			})
			return err
		},
		"Aliases and versions do not support this operation": func() error {
			_, err := s.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{
				FunctionName: aws.String(arn + ":1"), ReservedConcurrentExecutions: aws.Int32(1),
			})
			return err
		},
		"Tags on function aliases and versions": func() error {
			_, err := s.ListTags(ctx, &lambda.ListTagsInput{Resource: aws.String(arn + ":1")})
			return err
		},
		"at least one of error handling or destination": func() error {
			_, err := s.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{FunctionName: f})
			return err
		},
		"a destination for itself": func() error {
			_, err := s.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{
				FunctionName: f, DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: &arn}},
			})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMissing: what isn't there is told in Lambda's own ways.
func TestMissing(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{})
	ctx, gone := t.Context(), aws.String("gone")
	make1(t, s, "f", asItIs)
	for want, call := range map[string]func() error{
		"ResourceNotFoundException: The resource you requested does not exist.": func() error {
			_, err := s.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: gone})
			return err
		},
		"InvalidParameterValueException: Function does not exist": func() error {
			_, err := s.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
				FunctionName: gone, EventSourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:q"),
			})
			return err
		},
		"InvalidParameterValueException: Layer Version Cannot be less than 1.": func() error {
			_, err := s.DeleteLayerVersion(ctx, &lambda.DeleteLayerVersionInput{LayerName: gone, VersionNumber: aws.Int64(0)})
			_, other := s.GetLayerVersion(ctx, &lambda.GetLayerVersionInput{LayerName: gone, VersionNumber: aws.Int64(0)})
			if err == nil || other == nil || err.Error() != other.Error() {
				t.Errorf("%v and %v", err, other)
			}
			return err
		},
		"InvalidParameterValueException: An error occurred and the request cannot be processed.": func() error {
			_, err := s.TagResource(ctx, &lambda.TagResourceInput{Resource: aws.String("arn:aws:lambda:us-east-1:000000000000:function:f")})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLayerLists pages through layers by their names, and through one's versions, the newest of which is first: scripts take that one.
func TestLayerLists(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{})
	ctx := t.Context()
	for _, name := range strings.Fields("c a b d e c c c c c c c c c c") {
		if _, err := s.PublishLayerVersion(ctx, &lambda.PublishLayerVersionInput{
			LayerName: &name, Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, "l.py", name)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	var layers, versions []string
	for in := (&lambda.ListLayersInput{MaxItems: aws.Int32(2)}); len(layers) == 0 || in.Marker != nil; {
		out, err := s.ListLayers(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range out.Layers {
			layers = append(layers, *l.LayerName)
		}
		in.Marker = out.NextMarker
	}
	for in := (&lambda.ListLayerVersionsInput{LayerName: aws.String("c"), MaxItems: aws.Int32(2)}); len(versions) == 0 || in.Marker != nil; {
		out, err := s.ListLayerVersions(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range out.LayerVersions {
			versions = append(versions, strconv.FormatInt(l.Version, 10))
		}
		in.Marker = out.NextMarker
	}
	if got := strings.Join(layers, " "); got != "a b c d e" {
		t.Errorf("the layers are %s", got)
	}
	if got := strings.Join(versions, " "); got != "11 10 9 8 7 6 5 4 3 2 1" {
		t.Errorf("the versions are %s", got)
	}
}

// TestStorage: code beyond the account's limit is refused, wherever it comes from, and what there is can be changed.
func TestStorage(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{})
	make1(t, s, "f", asItIs)
	ctx, f := t.Context(), aws.String("f")
	s.opts.Storage = stored(s.store.View())
	in := creation(t, "g")
	_, create := s.CreateFunction(ctx, in)
	_, publish := s.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: f})
	_, update := s.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: f, ZipFile: zipOf(t, "index.py", strings.Repeat("f(x, y)", 10))})
	_, layer := s.PublishLayerVersion(ctx, &lambda.PublishLayerVersionInput{
		LayerName: f, Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, "x", "x")},
	})
	for _, err := range []error{create, publish, update, layer} {
		if err == nil || !strings.Contains(err.Error(), "CodeStorageExceededException: Code storage limit exceeded.") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: f, Timeout: aws.Int32(9)}); err != nil {
		t.Error(err)
	}
	out, err := s.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil || out.AccountLimit.TotalCodeSize != out.AccountUsage.TotalCodeSize || out.AccountUsage.FunctionCount != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestReplacedCode: code that was replaced or refused stays for a while and not beyond its bound; code that's in use stays, and so does code that a call has
// just brought.
func TestReplacedCode(t *testing.T) {
	dir := t.TempDir()
	s := newService(t, statetest.Open(t), dir, &fake{})
	make1(t, s, "kept", asItIs)
	make1(t, s, "f", asItIs)
	ctx, f := t.Context(), aws.String("f")
	s.unused = 8 * 4096 // of files that are smaller than a block
	for n := range 50 {
		if _, err := s.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{
			FunctionName: f, ZipFile: zipOf(t, "index.py", strconv.Itoa(n)), DryRun: n%2 == 1,
		}); err != nil {
			t.Fatal(err)
		}
		left := len(filesIn(t, dir))
		if n > 20 && left < 8 {
			t.Fatalf("after %d updates %d files are left: those that are newest may still be fetched", n, left)
		}
		if left > 2*8+4 {
			t.Fatalf("after %d updates there are %d files", n, left)
		}
	}
	brought, err := s.bring(ctx, code{zip: zipOf(t, "index.py", "on its way")}, types.PackageTypeZip)
	if err != nil {
		t.Fatal(err)
	}
	s.unused = 0
	s.collect()
	if n := len(filesIn(t, dir)); n != 3 {
		t.Errorf("%d files are left, where two functions have one each and one is on its way", n)
	}
	s.letGo(brought)
	s.collect()
	if n := len(filesIn(t, dir)); n != 2 {
		t.Errorf("%d files are left, where two functions have one each", n)
	}
}

func filesIn(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestLocation: code is fetched from the URL that GetFunction tells, for ten minutes, and from no other one.
func TestLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, statetest.Open(t), t.TempDir(), &fake{})
		make1(t, s, "f", asItIs)
		out, err := s.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("f")})
		if err != nil || out.Code.Location == nil {
			t.Fatal(out, err)
		}
		fetch := func(method, url string) (int, []byte) {
			w := httptest.NewRecorder()
			s.ServeCode(w, httptest.NewRequest(method, url, nil))
			return w.Code, w.Body.Bytes()
		}
		url := *out.Code.Location
		code, content := fetch(http.MethodGet, url)
		sum := sha256.Sum256(content)
		if code != 200 || base64.StdEncoding.EncodeToString(sum[:]) != *out.Configuration.CodeSha256 {
			t.Errorf("got %d: %s", code, content)
		}
		for _, other := range []string{
			strings.Replace(url, "expires=", "expires=1", 1), strings.Replace(url, CodePath, CodePath+"0", 1), url[:len(url)-1], CodePath + "x",
		} {
			if code, _ := fetch(http.MethodGet, other); code != http.StatusForbidden {
				t.Errorf("%s: %d", other, code)
			}
		}
		if code, _ := fetch(http.MethodPut, url); code != http.StatusMethodNotAllowed {
			t.Errorf("a PUT: %d", code)
		}
		time.Sleep(locationLasts)
		if code, _ := fetch(http.MethodGet, url); code != http.StatusForbidden {
			t.Errorf("after ten minutes: %d", code)
		}
	})
}

// TestDirectoryIsBounded: of a zip file with very many files no more is read than its limit.
func TestDirectoryIsBounded(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 5000 {
		if _, err := z.Create(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := openZip(b.Bytes(), maxDirectory); err != nil || len(r.File) != 5000 {
		t.Errorf("within the limit: %v", err)
	}
	if _, err := openZip(b.Bytes(), 100_000); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("beyond it: %v", err)
	}
}

// queue runs the loop of asynchronous invocations as long as do takes.
func queue(t *testing.T, s *Service, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunQueue(ctx) }()
	do()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func event(t *testing.T, s *Service) {
	t.Helper()
	out, err := s.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), InvocationType: "Event", Payload: []byte(`{"n": 1}`)})
	if err != nil || out.StatusCode != 202 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// TestAsynchronousInvocationsAreRetried: twice, after one minute and two, and then the event is a dead letter that says why.
func TestAsynchronousInvocationsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: fail}
		store := statetest.Open(t)
		s := newService(t, store, t.TempDir(), f)
		make1(t, s, "f", func(in *lambda.CreateFunctionInput) {
			in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String("arn:aws:sqs:us-east-1:000000000000:dead")}
		})
		began := time.Now()
		queue(t, s, func() {
			event(t, s)
			time.Sleep(time.Hour)
		})
		var after []time.Duration
		for _, at := range f.asked {
			after = append(after, at.Sub(began).Round(time.Second))
		}
		if len(after) != 3 || after[0] != 0 || after[1] != time.Minute || after[2] != 3*time.Minute {
			t.Errorf("it was tried after %v", after)
		}
		if len(f.dead) != 1 || *f.dead[0].MessageBody != `{"n": 1}` || *f.dead[0].MessageAttributes["ErrorMessage"].StringValue != "as asked" {
			t.Errorf("dead letters: %+v", f.dead)
		}
		for metric, want := range map[string]float64{"AsyncEventsReceived": 1, "AsyncEventsDropped": 1, "AsyncEventAge": 240_000} {
			if of, all := f.values[metric+" FunctionName f"], f.values[metric]; of != want || all != want {
				t.Errorf("%s is %v, and %v of all, want %v", metric, of, all, want)
			}
		}
		if n := store.View().Invocations.Len(); n != 0 {
			t.Errorf("%d invocations are left", n)
		}
	})
}

// TestSlowFunctionsLeaveRoom: a function whose invocations don't end has half of the places, and another one is run at once.
func TestSlowFunctionsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := statetest.Open(t)
		r := &hanging{began: map[string]int{}, slow: map[string]bool{"slow": true, "slower": true}}
		s := newService(t, store, t.TempDir(), &fake{})
		s.opts.Runner = r
		for _, name := range []string{"slow", "slower", "quick"} {
			make1(t, s, name, asItIs)
		}
		invoke := func(name string, times int) {
			statetest.Update(t, store, func(tx *state.Tx) {
				for range times {
					tx.Invocations.Put(&state.Invocation{ID: state.NewUUID(), Function: name, At: time.Now(), Due: time.Now()})
				}
			})
			synctest.Wait()
		}
		queue(t, s, func() {
			for _, c := range []struct {
				name        string
				times, runs int
			}{{"slow", 1000, maxTries / 2}, {"slower", 1000, maxTries / 4}, {"quick", 100, 100}} {
				if invoke(c.name, c.times); r.began[c.name] != c.runs {
					t.Errorf("of %s %d run, want %d", c.name, r.began[c.name], c.runs)
				}
			}
		})
	})
}

// hanging runs what isn't slow at once, and never ends what is.
type hanging struct {
	mu    sync.Mutex
	began map[string]int
	slow  map[string]bool
}

func (h *hanging) Do(ctx context.Context, w environments.Work) (environments.Result, error) {
	name := *w.Version.FunctionName
	h.mu.Lock()
	h.began[name]++
	h.mu.Unlock()
	if h.slow[name] {
		<-ctx.Done()
	}
	return environments.Result{}, ctx.Err()
}

// TestThrottledInvocationsWait: one that finds no room is tried until it's too old, and counts as no try. Its end is told.
func TestThrottledInvocationsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(environments.Work) (environments.Result, error) {
			return environments.Result{}, &types.TooManyRequestsException{}
		}}
		store := statetest.Open(t)
		s := newService(t, store, t.TempDir(), f)
		make1(t, s, "f", asItIs)
		_, err := s.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
			FunctionName: aws.String("f"), MaximumEventAgeInSeconds: aws.Int32(60), MaximumRetryAttempts: aws.Int32(0),
			DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String("arn:aws:sqs:us-east-1:000000000000:q")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		queue(t, s, func() {
			event(t, s)
			time.Sleep(time.Hour)
		})
		var told record
		n := 0
		for d := range store.View().Deliveries.All() {
			n++
			if err := json.Unmarshal([]byte(d.Body), &told); err != nil {
				t.Error(err)
			}
		}
		if n != 1 || told.RequestContext.Condition != "EventAgeExceeded" || len(f.asked) < 5 {
			t.Errorf("%d were told: %+v, after %d tries", n, told, len(f.asked))
		}
	})
}

// TestAcknowledgedInvocationsSurvive: a process that ends at once after it has acknowledged an invocation leaves it to the next one.
func TestAcknowledgedInvocationsSurvive(t *testing.T) {
	dir, code := t.TempDir(), t.TempDir()
	store := statetest.OpenIn(t, dir)
	s := newService(t, store, code, &fake{answer: succeed})
	make1(t, s, "f", asItIs)
	event(t, s)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	ran := make(chan environments.Work, 1)
	next := statetest.OpenIn(t, dir)
	s = newService(t, next, code, &fake{answer: func(w environments.Work) (environments.Result, error) {
		ran <- w
		return succeed(w)
	}})
	queue(t, s, func() {
		if w := <-ran; string(w.Payload) != `{"n": 1}` {
			t.Errorf("got %s", w.Payload)
		}
		for v := next.Watch(); v.Invocations.Len() > 0; v = next.Watch() {
			for range v.Invocations.All() { // watches them
			}
			if err := v.Changed(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestCodeThatNothingUsesGoes: not before it's old, and not while a version has it.
func TestCodeThatNothingUsesGoes(t *testing.T) {
	z, err := zips.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	used, _ := z.Put([]byte("used"))     //nolint:errcheck // reading tells
	unused, _ := z.Put([]byte("unused")) //nolint:errcheck // likewise
	z.Release(used)
	z.Release(unused)
	inUse := func() map[string]bool { return map[string]bool{used: true} }
	if err := z.Remove(inUse, time.Now().Add(-time.Hour), 1<<20); err != nil {
		t.Fatal(err)
	}
	read := func(sha string) (string, error) {
		f, err := z.Open(sha)
		if err != nil {
			return "", err
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		return string(text), err
	}
	if _, err := read(unused); err != nil {
		t.Errorf("a new file is gone: %v", err)
	}
	if err := z.Remove(inUse, time.Now().Add(time.Hour), 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := read(unused); err == nil {
		t.Error("an unused file stays")
	}
	if got, err := read(used); err != nil || got != "used" {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestClientContext: a function gets a client's context or the call is refused, as on AWS.
func TestClientContext(t *testing.T) {
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	make1(t, s, "f", asItIs)
	for text, good := range map[string]bool{"": true, `{"custom":{"a":"b"}}`: true, " {}\n": true, "string": false, "[1]": false, `{"custom"`: false} {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if _, err := s.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), ClientContext: &encoded}); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := s.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), ClientContext: aws.String("string")})
	if refused, is := errors.AsType[smithy.APIError](err); !is || refused.ErrorCode() != "InvalidRequestContentException" {
		t.Errorf("got %v", err)
	}
}

// TestSizes: what a zip file says of its files isn't believed if it can't be, and a function and its layers share AWS's limit.
func TestSizes(t *testing.T) {
	t.Run("of what waits", func(t *testing.T) {
		store := statetest.Open(t)
		s := newService(t, store, t.TempDir(), &fake{answer: succeed})
		make1(t, s, "f", asItIs)
		statetest.Update(t, store, func(*state.Tx) { store.Undelivered.Change(nil, &state.Invocation{Payload: make([]byte, state.Room)}) })
		_, err := s.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent})
		if _, many := errors.AsType[*types.TooManyRequestsException](err); !many {
			t.Errorf("got %v", err)
		}
	})
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	lying := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, h := range []*zip.FileHeader{{Name: "a", UncompressedSize64: 100}, {Name: "b", UncompressedSize64: 1<<64 - 50}} {
			if _, err := z.CreateRaw(h); err != nil {
				t.Fatal(err)
			}
		}
		z.Close() //nolint:errcheck // into memory
		return b.Bytes()
	}()
	half := zipOf(t, "f", strings.Repeat("0", maxUnzipped/2+1))
	in := creation(t, "f")
	in.Code.ZipFile = lying
	if _, err := s.CreateFunction(t.Context(), in); err == nil || !strings.Contains(err.Error(), "Unzipped size must be smaller than 262144000 bytes") {
		t.Errorf("got %v", err)
	}
	layer, err := s.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
		LayerName: aws.String("l"), Content: &types.LayerVersionContentInput{ZipFile: half},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Function code combined with layers exceeds the maximum allowed size of 262144000 bytes. The actual size is 262144002 bytes."
	in.Code.ZipFile, in.Layers = half, []string{*layer.LayerVersionArn}
	if _, err := s.CreateFunction(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	make1(t, s, "f", func(in *lambda.CreateFunctionInput) { in.Layers = []string{*layer.LayerVersionArn} })
	_, err = s.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: half})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// crowd counts who reads of a bucket at once.
type crowd struct {
	mu        sync.Mutex
	now, most int
}

func (c *crowd) GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	c.count(1)
	defer c.count(-1)
	time.Sleep(time.Second) // of the test's own clock
	return nil, errors.New("nothing is there")
}

func (c *crowd) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += more
	c.most = max(c.most, c.now)
}

// TestLargeCodeWaits: zip files of buckets, which may be large, are read a few at a time, however many calls bring some.
func TestLargeCodeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := &crowd{}
		s := New(nil, Options{Buckets: bucket})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				c := code{bucket: aws.String("b"), key: aws.String("k")}
				if _, err := s.bring(t.Context(), c, types.PackageTypeZip); err == nil || !strings.Contains(err.Error(), "nothing is there") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if bucket.most != maxLarge {
			t.Errorf("%d were read at once", bucket.most)
		}
	})
}
