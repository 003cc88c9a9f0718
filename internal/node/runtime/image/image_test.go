package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pintle/pintle/internal/node/runtime"
)

// These tests mount file systems, so they need root.

func store(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pack makes a tarball of files. A name that ends in / is a directory.
func pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		path, content, _ := strings.Cut(f, "=")
		h := &tar.Header{Name: path, Mode: 0o755, Size: int64(len(content))}
		if strings.HasSuffix(path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if target, link := strings.CutPrefix(content, "->"); link {
			h.Typeflag = tar.TypeSymlink
			h.Linkname = target
			h.Size = 0
			content = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, content) //nolint:errcheck // Close returns it
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func layer(t *testing.T, files ...string) v1.Layer {
	t.Helper()
	content := pack(t, files...)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{Cmd: []string{"hello"}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// push serves an image from a registry on loopback, and returns its reference.
func push(t *testing.T, img v1.Image) (ref string, server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	ref = strings.TrimPrefix(server.URL, "http://") + "/team/app:1"
	write(t, ref, img)
	return ref, server
}

func write(t *testing.T, ref string, img v1.Image) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, img); err != nil {
		t.Fatal(err)
	}
}

func pull(t *testing.T, s *Store, ref string) *Image {
	t.Helper()
	img, err := s.Pull(t.Context(), ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// mount mounts an image for the duration of the test, and returns its root directory.
func mount(t *testing.T, s *Store, img *Image) string {
	t.Helper()
	dir := t.TempDir()
	for range 2 { // Mount is idempotent
		if err := s.Mount(img, dir); err != nil {
			t.Fatal("these tests need root: ", err)
		}
	}
	t.Cleanup(func() {
		for range 2 {
			if err := Unmount(dir); err != nil {
				t.Error(err)
			}
		}
	})
	return filepath.Join(dir, "rootfs")
}

func content(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "(none)"
	}
	return string(b)
}

func TestLayersAreStacked(t *testing.T) {
	img := imageOf(t,
		layer(t, "a=1", "b=1", "d/", "d/x=1", "e/", "e/old=1"),
		layer(t, "b=2", ".wh.a=", "e/", "e/.wh..wh..opq=", "e/new=2"))
	ref, _ := push(t, img)
	s := store(t)
	got := pull(t, s, ref)
	if want, _ := img.Digest(); got.Digest != want.String() || got.Config.Cmd[0] != "hello" || len(got.Layers) != 2 {
		t.Errorf("got %+v", got)
	}
	root := mount(t, s, got)
	for path, want := range map[string]string{"a": "(none)", "b": "2", "d/x": "1", "e/old": "(none)", "e/new": "2"} {
		if got := content(filepath.Join(root, path)); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "b"), []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := content(filepath.Join(mount(t, s, got), "b")); got != "2" {
		t.Errorf("what one container writes, another reads: %q", got)
	}
}

func TestImagesShareTheirLayers(t *testing.T) {
	base := layer(t, "base=1")
	s := store(t)
	for i := range 3 {
		ref, _ := push(t, imageOf(t, base, layer(t, fmt.Sprintf("own=%d", i))))
		pull(t, s, ref)
	}
	if entries, _ := os.ReadDir(s.layers()); len(entries) != 4 {
		t.Errorf("there are %d layers, want 4", len(entries))
	}
}

func TestMaxLayers(t *testing.T) {
	var layers []v1.Layer
	for i := range 127 {
		layers = append(layers, layer(t, fmt.Sprintf("f%d=%d", i, i)))
	}
	ref, _ := push(t, imageOf(t, layers...))
	s := store(t)
	root := mount(t, s, pull(t, s, ref))
	if content(filepath.Join(root, "f0")) != "0" || content(filepath.Join(root, "f126")) != "126" {
		t.Error("a layer is missing")
	}
}

func TestMovedTagIsPulledAgain(t *testing.T) {
	ref, server := push(t, imageOf(t, layer(t, "a=1")))
	s := store(t)
	pull(t, s, ref)
	write(t, ref, imageOf(t, layer(t, "a=2")))
	if got := content(filepath.Join(mount(t, s, pull(t, s, ref)), "a")); got != "2" {
		t.Errorf("got %q", got)
	}
	server.Close()
	if _, err := s.Pull(t.Context(), ref, nil); err == nil {
		t.Error("pulled from a registry that is gone")
	}
	img, err := s.Stored(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(filepath.Join(mount(t, s, img), "a")); got != "2" {
		t.Errorf("with the registry gone: %q", got)
	}
}

// TestDigestOfAStoredTag: an image that was pulled by its tag is here under its digest, too, while the registry is gone.
func TestDigestOfAStoredTag(t *testing.T) {
	ref, server := push(t, imageOf(t, layer(t, "a=1")))
	s := store(t)
	pinned := ref + "@" + pull(t, s, ref).Digest
	if got := pull(t, s, pinned).Ref; got != pinned {
		t.Errorf("with the registry it's %s", got)
	}
	server.Close()
	s = store(t)
	if _, err := s.Stored(pinned); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("in an empty store: %v", err)
	}
	for stored, want := range map[string]error{"sha256:1": nil, "sha256:2": runtime.ErrImageNotFound} {
		if err := s.put(&Image{Ref: "registry.example.com/app:1", Digest: "sha256:1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stored("registry.example.com/app:1@" + stored); !errors.Is(err, want) {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

func TestFailedPulls(t *testing.T) {
	_, server := push(t, imageOf(t, layer(t, "a=1")))
	host := strings.TrimPrefix(server.URL, "http://")
	for _, ref := range []string{host + "/team/none:1", "127.0.0.1:1/none:1", "rootfs:/none.tar", "oci-layout:/none", "UPPER CASE"} {
		s := store(t)
		if _, err := s.Pull(t.Context(), ref, nil); err == nil {
			t.Errorf("%s was pulled", ref)
		}
		if _, err := s.Stored(ref); !errors.Is(err, runtime.ErrImageNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store(t).Pull(cancelled, host+"/team/app:1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}

// TestHungRegistry: a registry that never answers, or stops in the middle of a layer, is given up.
func TestHungRegistry(t *testing.T) {
	ref, open := push(t, imageOf(t, layer(t, "a=1")))
	for _, silent := range []string{"/manifests/", "/blobs/"} {
		over := make(chan bool)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, silent) {
				if silent == "/blobs/" {
					w.WriteHeader(http.StatusOK)
					w.(http.Flusher).Flush()
				}
				<-over
				return
			}
			open.Config.Handler.ServeHTTP(w, r)
		}))
		s := store(t)
		s.stall = 50 * time.Millisecond
		_, err := s.Pull(t.Context(), strings.Replace(ref, strings.TrimPrefix(open.URL, "http://"), strings.TrimPrefix(server.URL, "http://"), 1), nil)
		if err == nil || !strings.Contains(err.Error(), "the registry sent nothing for 50ms") {
			t.Errorf("%s: %v", silent, err)
		}
		close(over)
		server.Close()
	}
}

// TestCredentials pulls from a registry that requires a password: the task's, or the one that docker login stored.
func TestCredentials(t *testing.T) {
	open := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); r.Method != http.MethodPut && (user != "me" || password != "secret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	parsed, err := name.ParseReference(host + "/team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	auth := remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"})
	if err := remote.Write(parsed, imageOf(t, layer(t, "a=1")), auth); err != nil {
		t.Fatal(err)
	}
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	if _, err := store(t).Pull(t.Context(), parsed.Name(), nil); err == nil {
		t.Error("pulled without a password")
	}
	if _, err := store(t).Pull(t.Context(), parsed.Name(), &runtime.RegistryAuth{Username: "me", Password: "secret"}); err != nil {
		t.Errorf("with the task's: %v", err)
	}
	login := fmt.Sprintf(`{"auths":{%q:{"username":"me","password":"secret"}}}`, host)
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store(t).Pull(t.Context(), parsed.Name(), nil); err != nil {
		t.Errorf("with docker login's: %v", err)
	}
}

// lying is a layer whose content doesn't match its digest.
type lying struct{ v1.Layer }

func (l lying) Uncompressed() (io.ReadCloser, error) {
	return static.NewLayer([]byte("not a tarball, and not the content"), types.OCILayer).Uncompressed()
}

func TestWrongDigestIsRefused(t *testing.T) {
	s := store(t)
	true1 := layer(t, "a=1")
	id, err := true1.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	err = s.addLayer(layerName(id.Hex), func(dir string) error { return unpack(lying{true1}, id, dir) })
	if err == nil || s.has(layerName(id.Hex)) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(s.layers()); len(entries) != 0 {
		t.Errorf("it leaves %v", entries)
	}
}

func TestLinksDoNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	b := pack(t, "out=->"+outside, "out/planted=1", "../planted=1")
	untar(bytes.NewReader(b), dir) //nolint:errcheck // the link may be refused or kept inside
	for _, path := range []string{filepath.Join(outside, "planted"), filepath.Join(filepath.Dir(dir), "planted")} {
		if content(path) != "(none)" {
			t.Errorf("%s was written", path)
		}
	}
}

func TestRootfsIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	s := store(t)
	for i, want := range []string{"1", "2", "2"} {
		if i < 2 {
			if err := os.WriteFile(path, pack(t, "a="+want), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(int64(i), 0)); err != nil {
				t.Fatal(err)
			}
		}
		if got := content(filepath.Join(mount(t, s, pull(t, s, "rootfs:"+path)), "a")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLayoutWithSeveralPlatforms(t *testing.T) {
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for arch, text := range map[string]string{"s390x": "a=other", goruntime.GOARCH: "a=ours"} {
		platform := layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})
		if err := path.AppendImage(imageOf(t, layer(t, text)), platform); err != nil {
			t.Fatal(err)
		}
	}
	s := store(t)
	if got := content(filepath.Join(mount(t, s, pull(t, s, "oci-layout:"+dir)), "a")); got != "ours" {
		t.Errorf("got %q", got)
	}
}

func TestOpenRemovesUnfinishedLayers(t *testing.T) {
	s := store(t)
	if err := os.MkdirAll(filepath.Join(s.layers(), unfinished+"1", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.dir); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(s.layers()); len(entries) != 0 {
		t.Errorf("still there: %v", entries)
	}
}

// TestPrune: layers go that no image and no container has, and don't count as long as they are here.
func TestPrune(t *testing.T) {
	s := store(t)
	base := layer(t, "base="+strings.Repeat("b", 100_000))
	var refs []string
	for i := range 3 {
		ref, _ := push(t, imageOf(t, base, layer(t, fmt.Sprintf("own=%d%s", i, strings.Repeat("o", 20_000)))))
		refs = append(refs, ref)
		pull(t, s, ref)
	}
	moved, err := s.Get(refs[2]) // a container still has its layers, under no image
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := s.Mount(moved, dir); err != nil {
		t.Fatal(err)
	}
	defer Unmount(dir) //nolint:errcheck // a test
	names, err := LayersOf(dir)
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	mounted := map[string]bool{names[0]: true, names[1]: true}
	check := func(when string, mounted map[string]bool, layers int, kB int64) {
		t.Helper()
		if err := s.Prune(mounted); err != nil {
			t.Fatal(err)
		}
		size, err := s.Size(mounted)
		if left, _ := os.ReadDir(s.layers()); err != nil || len(left) != layers || size/1000 < kB || size/1000 > kB+30 {
			t.Errorf("%s: %d layers and %d bytes are left, want %d and some %d kB: %v", when, len(left), size, layers, kB, err)
		}
	}
	remove := func(ref string) {
		t.Helper()
		if err := s.Remove(ref); !errors.Is(err, runtime.ErrImageInUse) {
			t.Fatal(err)
		}
		if _, err := s.Get(ref); err != nil {
			t.Error("it went right after its pull:", err)
		}
		if err := os.Chtimes(s.path(ref), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // once more is no error
			if err := s.Remove(ref); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("with all", mounted, 4, 160)
	remove(refs[1])
	remove(refs[2])
	check("with one image and one container", mounted, 3, 140)
	s.pulling.RLock()
	remove(refs[0])
	check("during a pull", nil, 3, 0)
	s.pulling.RUnlock()
	check("with none", nil, 0, 0)
}
