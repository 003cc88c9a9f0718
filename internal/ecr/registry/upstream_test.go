package registry

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	ggcr "github.com/google/go-containerregistry/pkg/name"
	upstreamregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// other is another registry, which counts how often each path is asked for, and holds the second half of blobs back until it's told.
type other struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	gets  map[string]int
	hold  chan struct{} // nil lets blobs through
	hang  chan struct{} // nil answers
	login string        // the password, or "" for none
}

func newOther(t *testing.T) *other {
	o := &other{t: t, gets: map[string]int{}}
	stored := upstreamregistry.New(upstreamregistry.Logger(log.New(io.Discard, "", 0)))
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		if r.Method == http.MethodGet {
			o.gets[r.URL.Path]++
		}
		hold, hang, login := o.hold, o.hang, o.login
		o.mu.Unlock()
		if hang != nil {
			<-hang
		}
		if _, password, _ := r.BasicAuth(); r.Method == http.MethodGet && password != login {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if hold == nil || !strings.Contains(r.URL.Path, "/blobs/sha256:") {
			stored.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		stored.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		w.Write(body[:len(body)/2]) //nolint:errcheck // a test
		w.(http.Flusher).Flush()
		<-hold
		w.Write(body[len(body)/2:]) //nolint:errcheck // a test
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *other) host() string { return strings.TrimPrefix(o.URL, "http://") }

func (o *other) write(name string, i v1.Image) {
	o.t.Helper()
	ref, err := ggcr.ParseReference(o.host() + "/" + name)
	if err == nil {
		err = remote.Write(ref, i, remote.WithContext(o.t.Context()))
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// most returns how often the blob was asked for that was asked for most often.
func (o *other) most() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, times := range o.gets {
		if strings.Contains(path, "/blobs/") {
			n = max(n, times)
		}
	}
	return n
}

// rule has repositories with a prefix come from the other registry.
func (w *world) rule(prefix string, o *other, change func(*ecr.CreatePullThroughCacheRuleInput)) {
	w.t.Helper()
	in := &ecr.CreatePullThroughCacheRuleInput{EcrRepositoryPrefix: &prefix, UpstreamRegistryUrl: aws.String(o.host())}
	if change != nil {
		change(in)
	}
	if _, err := w.CreatePullThroughCacheRule(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pull(name string) (v1.Image, error) {
	i, err := remote.Image(w.ref(name), remote.WithContext(w.t.Context()), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return nil, err
	}
	return i, validate.Image(i)
}

// TestPullThrough: images come from the other registry when they are pulled, each layer once, and stay when that is gone.
func TestPullThrough(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	first := image(t, 300_000)
	o.write("library/app:1", first)
	w.rule("hub", o, nil)
	var pulls sync.WaitGroup
	for range 10 {
		pulls.Go(func() {
			got, err := w.pull("hub/library/app:1")
			if err != nil || digest(t, got) != digest(t, first) {
				t.Error("pulled", got, err)
			}
		})
	}
	pulls.Wait()
	if n := o.most(); n != 1 {
		t.Errorf("a layer came %d times", n)
	}
	w.settle("hub/library/app", "1")
	o.write("library/app:1", image(t, 1000)) // which is asked for once a day
	o.Close()
	for _, name := range []string{"hub/library/app:1", "hub/library/app@" + digest(t, first)} {
		if got, err := w.pull(name); err != nil || digest(t, got) != digest(t, first) {
			t.Errorf("%s from the cache: %v", name, err)
		}
	}
	if _, err := w.pull("hub/library/app:2"); !isRefused(err, http.StatusBadGateway) {
		t.Errorf("what isn't here while the registry is gone: %v", err)
	}
}

// expire has a repository's tags looked up anew.
func (w *world) expire(repository string) {
	w.t.Helper()
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		for t := range tx.ImageTags.All() {
			if row := *t; row.Repository == repository && row.Checked != nil {
				row.Checked = new(time.Now().Add(-2 * checkEvery))
				tx.ImageTags.Put(&row)
			}
		}
	})
}

// TestStaleTags: a tag that is here doesn't wait long for a registry that hangs, and not at all soon after that. What the registry answers in
// the end counts.
func TestStaleTags(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	old, next := image(t, 1000), image(t, 1000)
	o.write("app:1", old)
	o.write("app:2", old)
	w.rule("hub", o, nil)
	for _, tag := range []string{"1", "2"} {
		if _, err := w.pull("hub/app:" + tag); err != nil {
			t.Fatal(err)
		}
		w.settle("hub/app", tag)
	}
	o.write("app:1", next)
	w.expire("hub/app")
	asked := o.manifests()
	o.mu.Lock()
	o.hang = make(chan struct{})
	o.mu.Unlock()
	for _, tag := range []string{"1", "1", "2"} {
		if got, err := w.pull("hub/app:" + tag); err != nil || digest(t, got) != digest(t, old) {
			t.Errorf("%s while the registry hangs: %v", tag, err)
		}
	}
	if n := o.manifests() - asked; n > 1 {
		t.Errorf("a registry that hangs was asked %d times", n)
	}
	close(o.hang)
	await(t, func() bool {
		got, err := w.pull("hub/app:1")
		return err == nil && digest(t, got) == digest(t, next)
	})
}

// manifests returns how often manifests were asked for.
func (o *other) manifests() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, times := range o.gets {
		if strings.Contains(path, "/manifests/") || path == "/v2/" {
			n += times
		}
	}
	return n
}

// TestFixedTags: what another registry has under a tag takes neither the place of an image that was pushed, nor that of any in a repository
// whose tags are immutable.
func TestFixedTags(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	first, second := image(t, 1000), image(t, 1000)
	w.rule("hub", o, nil)
	for _, mutability := range []types.ImageTagMutability{types.ImageTagMutabilityImmutable, types.ImageTagMutabilityMutable} {
		name := "hub/" + strings.ToLower(string(mutability))
		w.create(name, mutability)
		push := func(tag string, i v1.Image) {
			t.Helper()
			if err := remote.Write(w.ref(name+":"+tag), i, remote.WithContext(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		come := func(tag string, i v1.Image) {
			t.Helper()
			manifest, err := i.RawManifest()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.Push(t.Context(), service.Pushed{Repository: name, Manifest: manifest, Tag: tag, IsCached: true}); err != nil {
				t.Fatal(err)
			}
		}
		push("layers", second)
		push("pushed", first)
		come("pushed", second)
		come("cached", first)
		w.expire(name)
		come("cached", second)
		want := map[string]v1.Image{"pushed": first, "cached": first}
		if mutability == types.ImageTagMutabilityMutable {
			want["cached"] = second
		}
		for tag, i := range want {
			if got, err := w.pull(name + ":" + tag); err != nil || digest(t, got) != digest(t, i) {
				t.Errorf("%s, %s: it isn't what it should be, or %v", mutability, tag, err)
			}
		}
	}
}

// settle waits until an image has come whole.
func (w *world) settle(repository, tag string) {
	w.t.Helper()
	await(w.t, func() bool {
		out, err := w.DescribeImages(w.t.Context(), &ecr.DescribeImagesInput{
			RepositoryName: &repository,
			ImageIds:       []types.ImageIdentifier{{ImageTag: &tag}},
		})
		return err == nil && len(out.ImageDetails) == 1
	})
}

// TestLayersArePassedOn: whoever pulls gets a layer's first bytes while the rest is still to come, and no whole layer if it doesn't.
func TestLayersArePassedOn(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		o := newOther(t)
		w := newWorld(t, o.host())
		i := image(t, 1<<20)
		o.write("app:1", i)
		o.hold = make(chan struct{})
		w.rule("other", o, nil)
		got, err := remote.Image(w.ref("other/app:1"), remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := got.Layers()
		if err != nil {
			t.Fatal(err)
		}
		r, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		half := make([]byte, 256<<10)
		if _, err := io.ReadFull(r, half); err != nil {
			t.Fatal(err)
		}
		if breaks {
			o.CloseClientConnections()
		}
		close(o.hold)
		rest, err := io.ReadAll(r)
		if breaks != (err != nil) || !breaks && len(rest)+len(half) < 1<<20 {
			t.Errorf("breaks %v: %d bytes more, %v", breaks, len(rest), err)
		}
		r.Close() //nolint:errcheck // a test
	}
}

// TestListsComeInParts: of an image for many platforms only that comes which is pulled.
func TestListsComeInParts(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	index, err := random.Index(1000, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := ggcr.ParseReference(o.host() + "/deep/app:all")
	if err := remote.WriteIndex(ref, index, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.rule("ROOT", o, func(in *ecr.CreatePullThroughCacheRuleInput) { in.UpstreamRepositoryPrefix = aws.String("deep") })
	list, err := remote.Index(w.ref("app:all"), remote.WithContext(t.Context()))
	if err != nil || digest(t, list) != digest(t, index) {
		t.Fatal(list, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pull("app@" + m.Manifests[3].Digest.String()); err != nil {
		t.Error(err)
	}
	await(t, func() bool { return w.View().Images.Len() == 2 })
}

// TestPullThroughIsAsked: whoever may not import an image or make a repository doesn't, and nothing is made for what isn't there.
func TestPullThroughIsAsked(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	o.write("app:1", image(t, 1000))
	w.rule("other", o, nil)
	for _, w.deny = range []string{"BatchGetImage", "BatchImportUpstreamImage", "CreateRepository"} {
		if _, err := w.pull("other/app:1"); !isRefused(err, http.StatusForbidden) {
			t.Errorf("without %s: %v", w.deny, err)
		}
	}
	w.deny = ""
	for _, name := range []string{"other/app:2", "other/none:1", "elsewhere/app:1"} {
		if _, err := w.pull(name); !isRefused(err, http.StatusNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.View().Repositories.Len(); n != 0 {
		t.Errorf("%d repositories were made", n)
	}
}

// TestPullThroughWithAPassword: the rule's secret has it, and a rule can be tried.
func TestPullThroughWithAPassword(t *testing.T) {
	o := newOther(t)
	w := newWorld(t, o.host())
	o.write("app:1", image(t, 1000))
	o.login = "token"
	w.rule("open", o, nil)
	w.rule("closed", o, func(in *ecr.CreatePullThroughCacheRuleInput) { in.CredentialArn = aws.String("good") })
	for prefix, want := range map[string]bool{"open": false, "closed": true} {
		if _, err := w.pull(prefix + "/app:1"); (err == nil) != want {
			t.Errorf("%s: %v", prefix, err)
		}
		out, err := w.ValidatePullThroughCacheRule(t.Context(), &ecr.ValidatePullThroughCacheRuleInput{EcrRepositoryPrefix: &prefix})
		if err != nil || out.IsValid != want || (out.Failure == nil) != want {
			t.Errorf("%s: %+v, %v", prefix, out, err)
		}
	}
	for _, secret := range []string{"bad", "none"} {
		_, err := w.UpdatePullThroughCacheRule(t.Context(), &ecr.UpdatePullThroughCacheRuleInput{
			EcrRepositoryPrefix: aws.String("open"),
			CredentialArn:       &secret,
		})
		if err == nil {
			t.Errorf("a rule got the secret %s", secret)
		}
	}
}

// TestRules: they are made once, listed, and deleted, and name registries that AWS or the operator lets in.
func TestRules(t *testing.T) {
	w := newWorld(t)
	for _, url := range []string{"registry.example.com", "127.0.0.1:5000", "registry-1.docker.io.example.com", "public.ecr.aws/x"} {
		_, err := w.CreatePullThroughCacheRule(t.Context(), &ecr.CreatePullThroughCacheRuleInput{
			EcrRepositoryPrefix: aws.String("other"),
			UpstreamRegistryUrl: &url,
		})
		if unsupported := new(types.UnsupportedUpstreamRegistryException); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", url, err)
		}
	}
	make := func() error {
		_, err := w.CreatePullThroughCacheRule(t.Context(), &ecr.CreatePullThroughCacheRuleInput{
			EcrRepositoryPrefix: aws.String("quay/"),
			UpstreamRegistryUrl: aws.String("quay.io"),
		})
		return err
	}
	if err := make(); err != nil {
		t.Fatal(err)
	}
	if taken := new(types.PullThroughCacheRuleAlreadyExistsException); !errors.As(make(), &taken) {
		t.Error("it was made twice")
	}
	out, err := w.DescribePullThroughCacheRules(t.Context(), &ecr.DescribePullThroughCacheRulesInput{EcrRepositoryPrefixes: []string{"quay"}})
	if err != nil || len(out.PullThroughCacheRules) != 1 || out.PullThroughCacheRules[0].UpstreamRegistry != types.UpstreamRegistryQuay {
		t.Errorf("got %+v, %v", out, err)
	}
	in := &ecr.DeletePullThroughCacheRuleInput{EcrRepositoryPrefix: aws.String("quay")}
	if _, err := w.DeletePullThroughCacheRule(t.Context(), in); err != nil {
		t.Error(err)
	}
	if gone := new(types.PullThroughCacheRuleNotFoundException); !errors.As(second(w.DeletePullThroughCacheRule(t.Context(), in)), &gone) {
		t.Error("it was deleted twice")
	}
}

func second[T any](_ T, err error) error { return err }

// secrets are those of Secrets Manager, by name.
type secrets map[string]string

func (s secrets) GetSecretValue(
	_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options),
) (*secretsmanager.GetSecretValueOutput, error) {
	value, ok := s[*in.SecretId]
	if !ok {
		return nil, &smtypes.ResourceNotFoundException{Message: aws.String("Secrets Manager can't find the specified secret.")}
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: &value}, nil
}

// isRefused reports whether a registry has answered with a status.
func isRefused(err error, status int) bool {
	var refused *transport.Error
	return errors.As(err, &refused) && refused.StatusCode == status
}

// await waits until something is so.
func await(t *testing.T, is func() bool) {
	t.Helper()
	for range 3000 { // half a minute
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it doesn't come true")
}

// run runs a loop for as long as the test.
func run(t *testing.T, loop func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		loop(ctx) //nolint:errcheck // it ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
}
