package objects

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/damagetest"
)

var trials = flag.Int("damage.trials", 30, "how many files are damaged at random")

// fillStore makes a store with small objects, large ones, older versions, one of parts, and an upload that goes on; and returns what each
// version has.
func fillStore(t testing.TB, dir string) (*Store, map[string]string) {
	t.Helper()
	s := open(t, dir)
	content := map[string]string{}
	rnd := rand.NewChaCha8([32]byte{7})
	random := func(size int) []byte {
		b := make([]byte, size)
		rnd.Read(b)
		return b
	}
	if err := s.CreateBucket(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		size := i * 100
		if i%10 == 9 {
			size = small + i*7000
		}
		b := random(size)
		key := fmt.Sprint("key", i)
		put(t, s, key, b)
		content[key+" "+Null] = string(b)
	}
	if err := s.Set(t.Context(), "b", Versioning, json.RawMessage(`"Enabled"`)); err != nil {
		t.Fatal(err)
	}
	latest := func(key string) string {
		o, err := s.Object(t.Context(), "b", key, "")
		if err != nil {
			t.Fatal(err)
		}
		return key + " " + o.Version
	}
	for i := range 20 {
		key := fmt.Sprint("key", i*2)
		b := random(i * 5000)
		put(t, s, key, b)
		content[latest(key)] = string(b)
		if i%3 == 0 {
			if _, err := s.Delete(t.Context(), "b", key, "", Conditions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, key := range []string{"parts", "unfinished"} {
		u, err := s.CreateUpload(t.Context(), "b", key, nil)
		if err != nil {
			t.Fatal(err)
		}
		var whole []byte
		for n := range 3 {
			b := random(100_000 * n)
			whole = append(whole, b...)
			f, err := s.Write(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			f.Number = n + 1
			if err := s.PutPart(t.Context(), u, f); err != nil {
				t.Fatal(err)
			}
		}
		if key == "unfinished" {
			continue
		}
		all := func(parts []*File) ([]*File, error) { return parts, nil }
		if err := s.Complete(t.Context(), u, &Object{Bucket: "b", Key: key, Parts: 3}, all, Conditions{}); err != nil {
			t.Fatal(err)
		}
		content[latest(key)] = string(whole)
	}
	return s, content
}

// readAll returns what a store has, and the damage that it meets.
func readAll(t testing.TB, s *Store) (content map[string]string, damage []*file.Damage) {
	t.Helper()
	content = map[string]string{}
	page, err := s.List(t.Context(), "b", Query{Limit: 1000, Versions: true})
	if errors.Is(err, ErrNoBucket) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		if o.Marker {
			continue
		}
		_, r, err := s.Read(t.Context(), "b", o.Key, o.Version, func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
		var b []byte
		if err == nil {
			b, err = io.ReadAll(r)
			r.Close()
		}
		var d *file.Damage
		switch {
		case errors.As(err, &d):
			damage = append(damage, d)
		case err != nil:
			t.Fatal(err)
		default:
			content[o.Key+" "+o.Version] = string(b)
		}
	}
	return content, damage
}

// filesUnder are the files in a directory and those below.
func filesUnder(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestLostFiles repairs a store of which the index has lost what the objects' files are: neither a long object nor an empty one stays.
func TestLostFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.CreateBucket(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	put(t, s, "empty", nil)
	put(t, s, "long", []byte("text"))
	if err := s.update(t.Context(), func(tx *sql.Tx) error { return exec(tx, nil, `DELETE FROM files`) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if damage, err := Check(t.Context(), dir, true); err != nil || len(damage) != 2 {
		t.Errorf("the repair finds %v, %v", damage, err)
	}
	if got, damage := readAll(t, open(t, dir)); len(got)+len(damage) > 0 {
		t.Errorf("after the repair: %v, %v", got, damage)
	}
}

// TestDamage damages a random file again and again, of a store that was closed and of one whose process was killed: whatever is
// damaged is named when the store is opened or the object is read, and what else there was is there, also after a repair.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s, content := fillStore(t, dir)
	killed, closed := t.TempDir(), t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(closed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for i := range *trials {
		from := []string{killed, closed}[i%2]
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		files := filesUnder(t, dir)
		if i%4 < 2 {
			files = []string{filepath.Join(dir, "index.db"), filepath.Join(dir, "index.db-guard")}
			if from == killed {
				files = append(files, filepath.Join(dir, "index.db-wal"))
			}
		}
		how := fmt.Sprintf("seed %d, trial %d: %s", seed, i, damagetest.Hurt(t, files[rnd.IntN(len(files))], rnd))
		if tryDamaged(t, dir, how, content) {
			found++
		}
	}
	t.Logf("%d of %d were found; what the others did was harmless", found, *trials)
	if found < *trials/3 {
		t.Errorf("only %d of %d were found: the test shows little", found, *trials)
	}
}

// tryDamaged opens, reads and repairs a damaged store, and reports whether the damage was met.
func tryDamaged(t *testing.T, dir, how string, content map[string]string) bool {
	t.Helper()
	s, err := Open(dir, time.Now)
	var named *file.Damage
	met := errors.As(err, &named)
	if err != nil && !met {
		t.Fatalf("%s: %v", how, err)
	}
	if err == nil {
		got, damage := readAll(t, s)
		met = len(damage) > 0
		for key, want := range content {
			if have, ok := got[key]; ok && have != want || !ok && !met {
				t.Errorf("%s: a silent loss of %s", how, key)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := Check(context.Background(), dir, false)
	if err != nil || met && len(listed) == 0 {
		t.Fatalf("%s: the check finds %v, %v", how, listed, err)
	}
	repaired, err := Check(context.Background(), dir, true)
	if err != nil || len(listed) > len(repaired) {
		t.Fatalf("%s: %v; the repair finds %v, %v", how, listed, repaired, err)
	}
	if again, err := Check(context.Background(), dir, false); err != nil || len(again) > 0 {
		t.Fatalf("%s: after the repair: %v, %v", how, again, err)
	}
	got, damage := readAll(t, open(t, dir))
	if len(damage) > 0 || len(repaired) == 0 && !maps.Equal(got, content) {
		t.Errorf("%s: after the repair: %v, %d of %d objects", how, damage, len(got), len(content))
	}
	for key, have := range got {
		if have != content[key] {
			t.Errorf("%s: %s has other bytes after the repair", how, key)
		}
	}
	return len(repaired) > 0
}
