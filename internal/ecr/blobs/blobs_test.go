package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func nothing(int64) error { return nil }

func begin(t *testing.T, s *Store, repository string) string {
	t.Helper()
	id, err := s.Begin(repository)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func add(t *testing.T, s *Store, repository, id string, at int64, b []byte) int64 {
	t.Helper()
	size, err := s.Append(repository, id, at, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func read(t *testing.T, s *Store, digest string) []byte {
	t.Helper()
	f, _, err := s.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// random returns bytes of some blocks and a bit.
func random() []byte {
	b := make([]byte, 600_001)
	for i := range b {
		b[i] = byte(rand.Uint32()) //nolint:gosec // any byte will do
	}
	return b
}

// TestUploads: what comes in parts is a blob once it has its digest, also if the process is another one by then.
func TestUploads(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	b := random()
	id := begin(t, s, "a")
	add(t, s, "a", id, 0, b[:300_000])
	var gap *OutOfOrder
	if size, err := s.Append("a", id, 5, strings.NewReader("x")); !errors.As(err, &gap) || gap.Size != 300_000 || size != 300_000 {
		t.Errorf("a gap: %d, %v", size, err)
	}
	if size, err := s.Append("a", id, -1, io.MultiReader(bytes.NewReader(b[300_000:400_000]), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, io.ErrUnexpectedEOF) || size != 400_000 {
		t.Errorf("a torn connection: %d, %v", size, err)
	}
	s = open(t, dir)
	if size, err := s.Size("a", id); size != 400_000 || err != nil {
		t.Errorf("after a restart there are %d: %v", size, err)
	}
	if err := s.Finish("a", id, DigestOf(b), nothing); !errors.Is(err, ErrDigest) {
		t.Errorf("too early: %v", err)
	}
	if size := add(t, s, "a", id, -1, b[400_000:]); size != int64(len(b)) {
		t.Errorf("there are %d", size)
	}
	if _, err := s.Size("b", id); !errors.Is(err, ErrNoUpload) {
		t.Errorf("another repository's: %v", err)
	}
	kept := int64(0)
	if err := s.Finish("a", id, DigestOf(b), func(size int64) error { kept = size; return nil }); err != nil || kept != int64(len(b)) {
		t.Errorf("finished with %d: %v", kept, err)
	}
	if got := read(t, s, DigestOf(b)); !bytes.Equal(got, b) {
		t.Error("it has other bytes")
	}
	for what, err := range map[string]error{
		"finished again": s.Finish("a", id, DigestOf(b), nothing), "cancelled": s.Cancel("a", id), "a bad id": s.Cancel("a", "../x"),
	} {
		if !errors.Is(err, ErrNoUpload) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, digest := range []string{"", "sha512:" + strings.Repeat("0", 128), "sha256:../../x", "sha256:" + strings.Repeat("A", 64)} {
		if err := s.Finish("a", begin(t, s, "a"), digest, nothing); !errors.Is(err, ErrAlgorithm) {
			t.Errorf("%q: %v", digest, err)
		}
		if _, _, err := s.Open(digest); !errors.Is(err, ErrNoBlob) {
			t.Errorf("%q: %v", digest, err)
		}
	}
}

// TestFullDisk: a write without room is refused, and the upload goes on once there is some.
func TestFullDisk(t *testing.T) {
	full := false
	s, err := Open(t.TempDir(), Options{Now: time.Now, Room: func() error {
		if full {
			return syscall.ENOSPC
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	id := begin(t, s, "a")
	add(t, s, "a", id, -1, []byte("one "))
	full = true
	if _, err := s.Append("a", id, -1, strings.NewReader("two")); !disk.IsUnwritable(err) {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := s.Begin("a"); !disk.IsUnwritable(err) {
		t.Errorf("a full disk: %v", err)
	}
	full = false
	add(t, s, "a", id, 4, []byte("two"))
	if err := s.Finish("a", id, DigestOf([]byte("one two")), nothing); err != nil {
		t.Error(err)
	}
}

// TestOldUploads: uploads that nobody goes on with end, and there can't be any number of them.
func TestOldUploads(t *testing.T) {
	now := time.Now()
	s, err := Open(t.TempDir(), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	id := begin(t, s, "a")
	for range maxUploads - 1 {
		begin(t, s, "a")
	}
	if _, err := s.Begin("a"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	other := begin(t, s, "b")
	if err := s.CancelOld(time.Hour); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", id, 0, []byte("x"))
	now = now.Add(2 * time.Hour)
	if err := s.CancelOld(time.Hour); err != nil {
		t.Fatal(err)
	}
	for repository, id := range map[string]string{"a": id, "b": other} {
		if _, err := s.Size(repository, id); !errors.Is(err, ErrNoUpload) {
			t.Errorf("%s: %v", repository, err)
		}
	}
	if left, err := os.ReadDir(s.pending()); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestCollect: blobs that somebody gets while others are removed stay.
func TestCollect(t *testing.T) {
	s := open(t, t.TempDir())
	var rows sync.Map
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !stop.Load() {
			if _, err := s.Collect(func(digest string) bool { _, has := rows.Load(digest); return has }); err != nil {
				t.Error(err)
			}
		}
	})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for n := range 100 {
				b := fmt.Appendf(nil, "blob %d", n)
				digest := DigestOf(b)
				keep := func() error { rows.Store(digest, true); return nil }
				err := s.Keep(digest, func(int64) error { return keep() })
				if errors.Is(err, ErrNoBlob) {
					err = s.Put(b, keep)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	all.Wait()
	for n := range 100 {
		b := fmt.Appendf(nil, "blob %d", n)
		if got, err := s.Read(DigestOf(b), 100); err != nil || !bytes.Equal(got, b) {
			t.Errorf("blob %d: %q, %v", n, got, err)
		}
	}
	if removed, err := s.Collect(func(string) bool { return false }); removed != 100 || err != nil {
		t.Errorf("%d were removed: %v", removed, err)
	}
}

// TestDamage: a blob with any byte changed, cut or added is damage, for who reads it and for a check.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	b := []byte("the bytes of a manifest")
	digest := DigestOf(b)
	for n, bad := range [][]byte{append([]byte("T"), b[1:]...), b[:5], append(b[:len(b):len(b)], 'x'), {}} {
		if err := s.Put(b, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(digest), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *file.Damage
		if _, err := s.Read(digest, 100); !errors.As(err, &damage) {
			t.Errorf("%q is read: %v", bad, err)
		}
		found, err := Check(t.Context(), dir, n%2 == 1)
		if err != nil || len(found) != 1 {
			t.Errorf("%q: a check finds %v: %v", bad, found, err)
		}
		if _, _, err := s.Open(digest); n%2 == 1 && !errors.Is(err, ErrNoBlob) {
			t.Errorf("after the repair: %v", err)
		}
	}
}
