package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	ggcr "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/account/accounttest"
	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/ecr/upstream"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// world is a registry that is served.
type world struct {
	*service.Service
	t        *testing.T
	server   *httptest.Server
	store    *state.Store
	upstream *upstream.Cache

	mu     sync.Mutex
	asked  []string // the operations that were asked for
	deny   string   // the operation that is refused
	failed error
}

// newWorld serves a registry to which images may come from other ones.
func newWorld(t *testing.T, upstreams ...string) *world {
	t.Helper()
	w := &world{t: t}
	store, err := blobs.Open(t.TempDir(), blobs.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewUnstartedServer(nil)
	w.server.Start()
	t.Cleanup(w.server.Close)
	w.store = statetest.Open(t)
	w.Service = service.New(w.store, service.Options{
		Account:  accounttest.New(time.Now),
		MAC:      func(text string) []byte { sum := sha256.Sum256([]byte("key" + text)); return sum[:] },
		Blobs:    store,
		Endpoint: w.server.URL,

		Upstreams:   upstreams,
		Secrets:     secrets{"good": `{"username": "me", "accessToken": "token"}`, "bad": "token"},
		TryUpstream: func(ctx context.Context, r *state.PullThroughRule) error { return w.upstream.Try(ctx, r) },
	})
	w.upstream = upstream.New(w.Service, store, slog.New(slog.DiscardHandler))
	run(t, w.upstream.Run)
	w.server.Config.Handler = New(w.Service, store, Options{
		Allow: func(_ context.Context, operation string, _ any) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, operation)
			if operation == w.deny {
				return account.Refuse("AccessDeniedException", "User: me is not authorized to perform: ecr:%s", operation)
			}
			return nil
		},
		Refusing: func(http.ResponseWriter, *http.Request) {},
		Failed:   func(err error) { w.failed = err },
		Upstream: w.upstream,
	})
	return w
}

func (w *world) create(name string, mutability types.ImageTagMutability) {
	w.t.Helper()
	if _, err := w.CreateRepository(w.t.Context(), &ecr.CreateRepositoryInput{RepositoryName: &name, ImageTagMutability: mutability}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ref(name string) ggcr.Reference {
	w.t.Helper()
	r, err := ggcr.ParseReference(strings.TrimPrefix(w.server.URL, "http://") + "/" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func image(t *testing.T, size int64) v1.Image {
	t.Helper()
	i, err := random.Image(size, 3)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func digest(t *testing.T, i interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// TestPushAndPull: images and lists of them are pushed, found, pulled as they were, and described by ECR's API.
func TestPushAndPull(t *testing.T) {
	w := newWorld(t)
	w.create("team/app", "")
	one := image(t, 1<<20)
	if err := remote.Write(w.ref("team/app:v1"), one, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	index, err := random.Index(10_000, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(w.ref("team/app:all"), index, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(w.ref("team/app:v1"), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Error(err)
	}
	if digest(t, got) != digest(t, one) {
		t.Error("another image was pulled")
	}
	list, err := remote.Index(w.ref("team/app@"+digest(t, index)), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(list); err != nil {
		t.Error(err)
	}
	tags, err := remote.List(w.ref("team/app").Context(), remote.WithContext(t.Context()), remote.WithPageSize(1))
	if err != nil || strings.Join(tags, " ") != "all v1" {
		t.Errorf("the tags are %v: %v", tags, err)
	}
	out, err := w.DescribeImages(t.Context(), &ecr.DescribeImagesInput{RepositoryName: aws.String("team/app"), ImageIds: []types.ImageIdentifier{{ImageTag: aws.String("v1")}}})
	if err != nil {
		t.Fatal(err)
	}
	if is := out.ImageDetails[0]; *is.ImageDigest != digest(t, one) || *is.ImageSizeInBytes < 3<<20 || is.LastRecordedPullTime == nil || is.ImageTags[0] != "v1" {
		t.Errorf("it is %+v", is)
	}
	if w.failed != nil {
		t.Error(w.failed)
	}
}

// TestPushedTwice: what is there needn't be uploaded again, and layers of another repository are mounted.
func TestPushedTwice(t *testing.T) {
	w := newWorld(t)
	w.create("a1", "")
	w.create("b1", "")
	i := image(t, 100_000)
	for _, name := range []string{"a1:v1", "a1:v1", "a1:v2"} {
		if err := remote.Write(w.ref(name), i, remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	pulled, err := remote.Image(w.ref("a1:v1"), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	w.asked = nil
	if err := remote.Write(w.ref("b1:v1"), pulled, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(w.asked, " "); strings.Contains(all, "UploadLayerPart") {
		t.Errorf("layers were uploaded that could be mounted: %s", all)
	}
	w.deny = "GetDownloadUrlForLayer"
	w.create("c1", "")
	w.asked = nil
	if err := remote.Write(w.ref("c1:v1"), i, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestOthersLayers: who may not pull from a repository gets none of its layers by mounting them, nor goes on with its uploads elsewhere.
func TestOthersLayers(t *testing.T) {
	w := newWorld(t)
	w.create("theirs", "")
	w.create("mine", "")
	b := []byte("a secret layer")
	secret := blobs.DigestOf(b)
	w.ask("POST", "/v2/theirs/blobs/uploads/?digest="+secret, b)
	w.deny = "GetDownloadUrlForLayer"
	status, _, _ := w.ask("POST", "/v2/mine/blobs/uploads/?mount="+secret+"&from=theirs", nil)
	w.expect("mounted without permission", status, "", 202, "")
	w.deny = ""
	status, _, is := w.ask("GET", "/v2/mine/blobs/"+secret, nil)
	w.expect("then there", status, is, 404, "BLOB_UNKNOWN")
	for _, from := range []string{"none", "..", "theirs/../theirs", "mine", ""} {
		status, _, _ = w.ask("POST", "/v2/mine/blobs/uploads/?mount="+secret+"&from="+from, nil)
		w.expect("mounted from "+from, status, "", 202, "")
	}
	_, h, _ := w.ask("POST", "/v2/theirs/blobs/uploads/", nil)
	at := strings.Replace(h.Get("Location"), "/theirs/", "/mine/", 1)
	for _, method := range []string{"GET", "PATCH", "PUT", "DELETE"} {
		status, _, is = w.ask(method, at+"?digest="+secret, b)
		w.expect(method+" in another repository", status, is, 404, "BLOB_UPLOAD_UNKNOWN")
	}
}

// TestTagsThatStay: an immutable tag isn't given to another image, unless it's excluded.
func TestTagsThatStay(t *testing.T) {
	w := newWorld(t)
	w.create("app", types.ImageTagMutabilityImmutable)
	first := image(t, 1000)
	write := func(tag string, i v1.Image) error {
		return remote.Write(w.ref("app:"+tag), i, remote.WithContext(t.Context()))
	}
	for range 2 {
		if err := write("v1", first); err != nil {
			t.Fatal(err)
		}
	}
	err := write("v1", image(t, 1000))
	if err == nil || !strings.Contains(err.Error(), "TAG_INVALID: The image tag 'v1' already exists in the 'app' repository and cannot be overwritten because the tag is immutable.") {
		t.Errorf("another image: %v", err)
	}
	dev := []types.ImageTagMutabilityExclusionFilter{{Filter: aws.String("dev-*"), FilterType: types.ImageTagMutabilityExclusionFilterTypeWildcard}}
	_, err = w.PutImageTagMutability(t.Context(), &ecr.PutImageTagMutabilityInput{
		RepositoryName: aws.String("app"), ImageTagMutability: types.ImageTagMutabilityImmutableWithExclusion, ImageTagMutabilityExclusionFilters: dev,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := write("dev-1", image(t, 1000)); err != nil {
			t.Error(err)
		}
	}
	if err := write("v1", image(t, 1000)); err == nil {
		t.Error("the tag was moved")
	}
}

const ociImage = "application/vnd.oci.image.manifest.v1+json"

// TestReferrers: what is about an image is found by it.
func TestReferrers(t *testing.T) {
	w := newWorld(t)
	w.create("app", "")
	i := image(t, 1000)
	if err := remote.Write(w.ref("app:v1"), i, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	empty := blobs.DigestOf([]byte("{}"))
	w.ask("POST", "/v2/app/blobs/uploads/?digest="+empty, []byte("{}"))
	about := fmt.Appendf(nil, `{"schemaVersion": 2, "mediaType": %q, "artifactType": "application/x.sbom", "layers": [],
		"config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": %q, "size": 2}, "annotations": {"by": "me"},
		"subject": {"mediaType": %q, "digest": %q, "size": 1}}`, ociImage, empty, ociImage, digest(t, i))
	status, h, _ := w.ask("PUT", "/v2/app/manifests/"+blobs.DigestOf(about), about, "Content-Type", ociImage)
	w.expect("pushed", status, h.Get("Oci-Subject"), 201, digest(t, i))
	found, err := remote.Referrers(w.ref("app").Context().Digest(digest(t, i)), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := found.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 || list.Manifests[0].Digest.String() != blobs.DigestOf(about) || list.Manifests[0].ArtifactType != "application/x.sbom" {
		t.Errorf("it finds %+v", list.Manifests)
	}
}

// ask makes a request. It returns the answer's status, headers and body, of an error the first one's code.
func (w *world) ask(method, path string, body []byte, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	out, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var faults struct{ Errors []struct{ Code string } }
	if out.StatusCode >= 400 && json.Unmarshal(text, &faults) == nil && len(faults.Errors) == 1 {
		return out.StatusCode, out.Header, faults.Errors[0].Code
	}
	return out.StatusCode, out.Header, string(text)
}

func (w *world) expect(what string, status int, is string, wantStatus int, want string) {
	w.t.Helper()
	if status != wantStatus || want != "" && is != want {
		w.t.Errorf("%s: %d %q, want %d %q", what, status, is, wantStatus, want)
	}
}

// TestUploads: layers come whole or in chunks, which must follow each other.
func TestUploads(t *testing.T) {
	w := newWorld(t)
	w.create("app", "")
	b := []byte("the bytes of a layer")
	whole := blobs.DigestOf(b)
	status, h, _ := w.ask("POST", "/v2/app/blobs/uploads/?digest="+whole, b)
	w.expect("a whole layer", status, h.Get("Location"), 201, "/v2/app/blobs/"+whole)
	begin := func() string {
		status, h, _ := w.ask("POST", "/v2/app/blobs/uploads/", nil)
		w.expect("begun", status, h.Get("Range"), 202, "0-0")
		return h.Get("Location")
	}
	at := begin()
	status, h, _ = w.ask("PATCH", at, b[:5], "Content-Range", "0-4")
	w.expect("a chunk", status, h.Get("Range"), 202, "0-4")
	status, _, _ = w.ask("PATCH", at, b[7:], "Content-Range", "7-19")
	w.expect("a gap", status, "", 416, "")
	status, _, is := w.ask("PATCH", at, b[5:7], "Content-Range", "5-19")
	w.expect("another length", status, is, 400, "SIZE_INVALID")
	status, h, _ = w.ask("GET", at, nil)
	w.expect("progress", status, h.Get("Range"), 204, "0-4")
	status, h, _ = w.ask("PATCH", at, b[5:10])
	w.expect("a chunk without a range", status, h.Get("Range"), 202, "0-9")
	status, _, is = w.ask("PUT", at+"?digest="+blobs.DigestOf([]byte("other")), b[10:])
	w.expect("another digest", status, is, 400, "DIGEST_INVALID")
	status, _, is = w.ask("PUT", at+"?digest=sha512:00", nil)
	w.expect("another algorithm", status, is, 400, "DIGEST_INVALID")
	status, h, _ = w.ask("PUT", at+"?digest="+whole, nil)
	w.expect("finished", status, h.Get("Docker-Content-Digest"), 201, whole)
	status, _, is = w.ask("PUT", at+"?digest="+whole, nil)
	w.expect("finished again", status, is, 404, "BLOB_UPLOAD_UNKNOWN")
	status, h, is = w.ask("GET", "/v2/app/blobs/"+whole, nil, "Range", "bytes=4-8")
	w.expect("a range", status, is, 206, "bytes")
	if h.Get("Content-Range") != "bytes 4-8/20" {
		t.Errorf("the range is %s", h.Get("Content-Range"))
	}
	at = begin()
	status, _, _ = w.ask("DELETE", at, nil)
	w.expect("given up", status, "", 204, "")
	status, _, is = w.ask("GET", at, nil)
	w.expect("then", status, is, 404, "BLOB_UPLOAD_UNKNOWN")
}

// TestRefusals: errors have the codes of the distribution specification.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.create("app", "")
	none := "sha256:" + strings.Repeat("0", 64)
	manifest := fmt.Sprintf(`{"schemaVersion": 2, "config": {"mediaType": "x", "digest": %q, "size": 1}, "layers": []}`, none)
	for _, c := range []struct {
		what, method, path, body, mediaType string
		status                              int
		code                                string
	}{
		{"the base", "GET", "/v2/", "", "", 200, "{}"},
		{"no repository", "GET", "/v2/none/manifests/v1", "", "", 404, "NAME_UNKNOWN"},
		{"an upload to none", "POST", "/v2/none/blobs/uploads/", "", "", 404, "NAME_UNKNOWN"},
		{"a manifest for none", "PUT", "/v2/none/manifests/v1", manifest, ociImage, 404, "NAME_UNKNOWN"},
		{"no image", "GET", "/v2/app/manifests/v1", "", "", 404, "MANIFEST_UNKNOWN"},
		{"no image of a digest", "DELETE", "/v2/app/manifests/" + none, "", "", 404, "MANIFEST_UNKNOWN"},
		{"no layer", "GET", "/v2/app/blobs/" + none, "", "", 404, "BLOB_UNKNOWN"},
		{"a bad digest", "GET", "/v2/app/blobs/sha256:x", "", "", 404, "BLOB_UNKNOWN"},
		{"layers can't be deleted", "DELETE", "/v2/app/blobs/" + none, "", "", 405, "UNSUPPORTED"},
		{"no such path", "GET", "/v2/_catalog", "", "", 404, "UNSUPPORTED"},
		{"outside", "GET", "/v2/app/blobs/..%2f..%2f" + none, "", "", 404, ""},
		{"missing layers", "PUT", "/v2/app/manifests/v1", manifest, ociImage, 400, "MANIFEST_BLOB_UNKNOWN"},
		{"no JSON", "PUT", "/v2/app/manifests/v1", "{", ociImage, 400, "MANIFEST_INVALID"},
		{"no schema", "PUT", "/v2/app/manifests/v1", "{}", ociImage, 400, "MANIFEST_INVALID"},
		{"the first schema", "PUT", "/v2/app/manifests/v1", manifest, "application/vnd.docker.distribution.manifest.v1+json", 400, "MANIFEST_INVALID"},
		{"missing images", "PUT", "/v2/app/manifests/v1", `{"schemaVersion": 2, "manifests": [{"digest": "` + none + `"}]}`, "application/vnd.oci.image.index.v1+json", 400, "MANIFEST_BLOB_UNKNOWN"},
		{"another digest", "PUT", "/v2/app/manifests/" + none, manifest, ociImage, 400, "DIGEST_INVALID"},
		{"a bad tag", "PUT", "/v2/app/manifests/" + strings.Repeat("a", 129), manifest, ociImage, 400, "TAG_INVALID"},
		{"a large manifest", "PUT", "/v2/app/manifests/v1", manifest + strings.Repeat(" ", 4<<20), ociImage, 413, "MANIFEST_INVALID"},
		{"a bad number", "GET", "/v2/app/tags/list?n=x", "", "", 400, "PAGINATION_NUMBER_INVALID"},
	} {
		var headers []string
		if c.mediaType != "" {
			headers = []string{"Content-Type", c.mediaType}
		}
		status, _, is := w.ask(c.method, c.path, []byte(c.body), headers...)
		w.expect(c.what, status, is, c.status, c.code)
	}
	w.deny = "BatchGetImage"
	status, _, is := w.ask("GET", "/v2/app/manifests/v1", nil)
	w.expect("a denied caller", status, is, 403, "DENIED")
	status, _, is = w.ask("GET", "/v2/none/manifests/v1", nil)
	w.expect("a denied caller doesn't hear what isn't there", status, is, 403, "DENIED")
	if w.failed != nil {
		t.Error(w.failed)
	}
}

// TestSignedURLs: a layer's URL needs no token, for that layer and an hour.
func TestSignedURLs(t *testing.T) {
	w := newWorld(t)
	w.create("app", "")
	b := []byte("layer")
	w.ask("POST", "/v2/app/blobs/uploads/?digest="+blobs.DigestOf(b), b)
	out, err := w.GetDownloadUrlForLayer(t.Context(), &ecr.GetDownloadUrlForLayerInput{RepositoryName: aws.String("app"), LayerDigest: aws.String(blobs.DigestOf(b))})
	if err != nil {
		t.Fatal(err)
	}
	w.deny = "GetDownloadUrlForLayer"
	path := strings.TrimPrefix(*out.DownloadUrl, w.server.URL)
	status, _, is := w.ask("GET", path, nil)
	w.expect("signed", status, is, 200, "layer")
	for _, bad := range []string{strings.Replace(path, "Expires=1", "Expires=2", 1), path[:len(path)-1], strings.Replace(path, "app", "other", 1)} {
		status, _, _ := w.ask("GET", bad, nil)
		w.expect(bad, status, "", 403, "")
	}
	if _, err := w.GetDownloadUrlForLayer(t.Context(), &ecr.GetDownloadUrlForLayerInput{RepositoryName: aws.String("app"), LayerDigest: aws.String("sha256:00")}); !errors.As(err, new(*types.LayersNotFoundException)) {
		t.Errorf("no layer: %v", err)
	}
}

// FuzzRequest: no request fails inside.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"app/blobs/uploads/", "app/blobs/uploads/x?digest=sha256:", "app/manifests/v1", "../../x", "a b/tags/list?n=-1&last=%00", "app/referrers/x"} {
		for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
			f.Add(method, path, "0-4", []byte("hello"))
		}
	}
	store, err := blobs.Open(f.TempDir(), blobs.Options{Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	images := service.New(statetest.Open(f), service.Options{
		Account: accounttest.New(time.Now), MAC: func(string) []byte { return []byte("mac") }, Blobs: store,
	})
	if _, err := images.CreateRepository(f.Context(), &ecr.CreateRepositoryInput{RepositoryName: aws.String("app")}); err != nil {
		f.Fatal(err)
	}
	var failed error
	g := New(images, store, Options{
		Allow:    func(context.Context, string, any) error { return nil },
		Refusing: func(http.ResponseWriter, *http.Request) {},
		Failed:   func(err error) { failed = err },
	})
	f.Fuzz(func(t *testing.T, method, path, contentRange string, body []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, "/v2/"+path, bytes.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Range", contentRange)
		r.Header.Set("Content-Type", ociImage)
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, r)
		if answer.Code >= 500 || failed != nil {
			t.Errorf("%s %s: %d, %v", method, path, answer.Code, failed)
		}
	})
}
