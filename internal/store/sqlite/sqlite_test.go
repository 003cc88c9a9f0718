package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStrangeDirectory: what a URI would take for something else is but a part of a directory's name.
func TestStrangeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%20[d] ü")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		t.Error(err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if second, err := Open(t.Context(), dir); err == nil {
		second.Close()
		t.Fatal("two journals opened one file")
	}
}
