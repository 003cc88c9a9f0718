package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// TestRemoveImage: an image goes unless a container has it, and its bytes with it.
func TestRemoveImage(t *testing.T) {
	ref := "rootfs:" + rootfs(t, rand.Text()) // which no other image shares
	size := func() int64 {
		t.Helper()
		n, err := engine.ImagesSize(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	without := size()
	if _, err := engine.Pull(t.Context(), ref, nil); err != nil {
		t.Fatal(err)
	}
	with := size()
	spec := &runtime.Spec{ID: "keeps-" + runtimetest.Mark, Image: ref, Entrypoint: []string{"true"}, Network: runtime.Network{Mode: "none"}}
	if err := engine.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := engine.RemoveImage(t.Context(), ref); !errors.Is(err, runtime.ErrImageInUse) {
		t.Error("it is in use:", err)
	}
	if _, err := engine.Stored(t.Context(), ref); err != nil {
		t.Error("it went although a container has it:", err)
	}
	if err := engine.Remove(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once more is no error
		if err := engine.RemoveImage(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	if _, err := engine.Stored(t.Context(), ref); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Error("it is still there:", err)
	}
	if with <= without || size() != without {
		t.Errorf("images took %d bytes, %d with it, %d after it", without, with, size())
	}
}

// rootfs makes a tarball of a root file system with one file, and returns its path.
func rootfs(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	err = w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImportOnce: an image is made of a tarball once, and anew when the tarball has changed or the image is gone.
func TestImportOnce(t *testing.T) {
	path := rootfs(t, rand.Text())
	ref := "rootfs:" + path
	pull := func() string {
		t.Helper()
		if _, err := engine.Pull(t.Context(), ref, nil); err != nil {
			t.Fatal(err)
		}
		found, err := engine.api.ImageInspect(t.Context(), imageName(ref))
		if err != nil {
			t.Fatal(err)
		}
		return found.ID
	}
	t.Cleanup(func() { engine.RemoveImage(context.Background(), ref) }) //nolint:errcheck // it was pulled
	first := pull()
	if again := pull(); again != first {
		t.Errorf("the second image is %s, the first was %s", again, first)
	}
	if err := os.Rename(rootfs(t, rand.Text()+" and more"), path); err != nil {
		t.Fatal(err)
	}
	changed := pull()
	if changed == first {
		t.Error("the image of a tarball that has changed is the old one")
	}
	if err := engine.RemoveImage(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	pull()
}
