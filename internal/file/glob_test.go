package file

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGlob checks that a directory's own name is no pattern.
func TestGlob(t *testing.T) {
	for _, name := range []string{"plain", "[m]", "a*", "b?", `c\d`} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"2.log", "1.log", "1.block"} {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Glob(dir, "*.log")
		if want := []string{filepath.Join(dir, "1.log"), filepath.Join(dir, "2.log")}; err != nil || !slices.Equal(got, want) {
			t.Errorf("in %s: %v, %v; want %v", name, got, err, want)
		}
	}
	if got, err := Glob(filepath.Join(t.TempDir(), "missing"), "*"); err != nil || len(got) > 0 {
		t.Errorf("in a directory that is not there: %v, %v", got, err)
	}
}
