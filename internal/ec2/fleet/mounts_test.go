package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRemoveAllSparesMounts: what an agent has left mounted isn't removed with its directory. It needs root.
func TestRemoveAllSparesMounts(t *testing.T) {
	shared, dir := t.TempDir(), filepath.Join(t.TempDir(), "an instance")
	model := filepath.Join(shared, "model")
	outer := filepath.Join(dir, `file systems\1`)
	inner := filepath.Join(outer, "inner")
	err := errors.Join(
		os.WriteFile(model, []byte("weights"), 0o600), os.Mkdir(filepath.Join(shared, "inner"), 0o700), os.MkdirAll(outer, 0o700),
		syscall.Mount(shared, outer, "", syscall.MS_BIND, ""), syscall.Mount(shared, inner, "", syscall.MS_BIND, ""),
	)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeAll(dir); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(model); string(b) != "weights" || err != nil {
		t.Errorf("the shared file is %q, %v", b, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}
