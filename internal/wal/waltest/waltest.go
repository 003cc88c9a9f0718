// Package waltest damages files as disks and people do, for tests that a store notices.
package waltest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/file"
)

// Copy copies a directory. A copy of an open store looks as a killed process would leave it.
func Copy(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	if err := CopyTo(to, from); err != nil {
		t.Fatal(err)
	}
	return to
}

// CopyTo copies a directory's files, markers first: then a log that is still being written is ahead of its marker, never behind.
func CopyTo(to, from string) error {
	var paths []string
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	for _, path := range paths {
		name, _ := filepath.Rel(from, path) //nolint:errcheck // it lies below
		b, readErr := os.ReadFile(path)
		target := filepath.Join(to, name)
		err = errors.Join(err, readErr, os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, b, 0o600))
	}
	return err
}

func rank(path string) int {
	if filepath.Base(path) == "marker" {
		return 0
	}
	return 1
}

// Files lists the files below a directory that a store reads: no locks, and nothing set aside by a repair or as a torn tail.
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

// Trials damages a store's files again and again, and checks that every loss is reported.
type Trials struct {
	// Images are directories of a store with the same content, one after a clean end and one after a kill.
	Images []string
	// Read opens the store in a directory and returns everything in it.
	Read func(t testing.TB, dir string) (map[string]bool, error)
	// Check is the store's own.
	Check func(dir string, repair bool) ([]file.Damage, error)
	// Removed may come back if the damage hit the record of its removal.
	Removed map[string]bool
	// Sums is the prefix of names that stand for sums of several things, which may differ after a repair; "" if there are none.
	Sums string
	// FlipLoses and FileLoses are the most that one flipped bit may damage, and any other damage to a file.
	FlipLoses, FileLoses int
}

var trials = flag.Int("trials", 100, "how often a store's files are damaged; make soak does it 2,000 times")

// Run runs as many trials as the flag says.
func (tr *Trials) Run(t *testing.T) {
	want, err := tr.Read(t, Copy(t, tr.Images[0]))
	if err != nil || len(want) == 0 {
		t.Fatalf("the store holds %d things, %v", len(want), err)
	}
	random := rand.New(rand.NewPCG(1, uint64(*trials)))
	named := 0
	for i := range *trials {
		if tr.one(t, random, tr.Images[i%len(tr.Images)], want) {
			named++
		}
		if t.Failed() {
			t.Fatalf("that was trial %d", i)
		}
	}
	if t.Logf("%d of %d were named", named, *trials); named < *trials/2 {
		t.Errorf("only %d of %d were named: the test shows nothing", named, *trials)
	}
}

// one damages a file, and reports whether the store named the damage.
func (tr *Trials) one(t *testing.T, random *rand.Rand, image string, want map[string]bool) bool {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err = errors.Join(err, CopyTo(dir, image)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the test's directory goes anyway
	path, what := damage(t, random, dir)
	got, err := tr.Read(t, dir)
	if err == nil {
		if !maps.Equal(got, want) {
			t.Errorf("%s: %d of %d things, and no word", what, len(got), len(want))
		}
		return false
	}
	if is := new(file.Damage); !errors.As(err, &is) || is.Path != path {
		t.Errorf("%s: it says %v", what, err)
	}
	found, err := tr.Check(dir, false)
	if err != nil || !slices.ContainsFunc(found, func(d file.Damage) bool { return d.Path == path && d.Repair != "" }) {
		t.Errorf("%s: found is %v, %v", what, found, err)
	}
	if again, err := tr.Check(dir, true); err != nil || len(again) != len(found) {
		t.Errorf("%s: the repair found %v and not %v, %v", what, again, found, err)
	}
	if got, err = tr.Read(t, dir); err != nil {
		t.Errorf("%s: after the repair: %v", what, err)
	}
	tr.compare(t, what, got, want)
	if found, err := tr.Check(dir, false); err != nil || len(found) > 0 {
		t.Errorf("%s: after the repair there is still %v, %v", what, found, err)
	}
	return true
}

// compare checks that a repair kept everything that wasn't damaged.
func (tr *Trials) compare(t *testing.T, what string, got, want map[string]bool) {
	lost, most := 0, tr.FileLoses
	if strings.Contains(what, "flips") {
		most = tr.FlipLoses
	}
	sums := func(thing string, _ bool) bool { return tr.Sums != "" && strings.HasPrefix(thing, tr.Sums) }
	want = maps.Clone(want)
	maps.DeleteFunc(want, sums)
	maps.DeleteFunc(got, sums)
	for thing := range want {
		if !got[thing] {
			lost++
		}
	}
	if lost > most {
		t.Errorf("%s: after the repair %d of %d things are lost, and not %d at most", what, lost, len(want), most)
	}
	for thing := range got {
		if !want[thing] && !tr.Removed[thing] {
			t.Errorf("%s: after the repair there is %q", what, thing)
		}
	}
}

// damage flips a bit of a random file below a directory, cuts, empties, lengthens or removes it, and says what it did.
func damage(t testing.TB, random *rand.Rand, dir string) (path, what string) {
	t.Helper()
	paths := Files(t, dir)
	path = paths[random.IntN(len(paths))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	if len(b) > 0 {
		at = random.IntN(len(b))
	}
	switch kind := random.IntN(10); {
	case kind < 5 && len(b) > 0:
		b[at] ^= 1 << random.IntN(8)
		what = fmt.Sprintf("flips a bit of byte %d", at)
	case kind < 7 && len(b) > 0:
		b = b[:at]
		what = fmt.Sprintf("cuts at byte %d", at)
	case kind == 7:
		for range 1 + random.IntN(100) {
			b = append(b, byte(random.Uint32()))
		}
		what = "lengthens"
	case kind == 8:
		b, what = nil, "empties"
	default:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return path, "removes " + path
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, what + " " + path
}
