// Package waltest damages files as disks and people do, for the tests of what must notice it.
package waltest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Copy copies a directory. Copied while a store has it open and nothing is under way, it is what a killed process leaves.
func Copy(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Files lists the files below a directory that a store reads: not the locks, nor what a repair or a torn end has left beside.
func Files(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, ".torn") && !strings.Contains(path, ".damaged") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s holds %d files: %v", dir, len(paths), err)
	}
	return paths
}

// Damage flips a bit of a random file below a directory, cuts it, empties it, lengthens it or removes it, and says what it did.
func Damage(t testing.TB, random *rand.Rand, dir string) string {
	t.Helper()
	paths := Files(t, dir)
	path := paths[random.IntN(len(paths))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := filepath.Rel(dir, path) //nolint:errcheck // it lies below
	at := 0
	if len(b) > 0 {
		at = random.IntN(len(b))
	}
	what := ""
	switch kind := random.IntN(10); {
	case kind < 5 && len(b) > 0:
		b[at] ^= 1 << random.IntN(8)
		what = fmt.Sprintf("flips a bit of byte %d", at)
	case kind < 7 && len(b) > 0:
		b = b[:at]
		what = fmt.Sprintf("cuts at byte %d", at)
	case kind == 7:
		more := make([]byte, 1+random.IntN(100))
		for i := range more {
			more[i] = byte(random.Uint32())
		}
		b = append(b, more...)
		what = fmt.Sprintf("adds %d bytes", len(more))
	case kind == 8:
		b = nil
		what = "empties"
	default:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return name + ": removed"
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name + ": " + what
}
