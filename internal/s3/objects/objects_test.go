package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	if err := s.CreateBucket(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *Store, key string, content []byte) {
	t.Helper()
	f, err := s.Write(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), &Object{Bucket: "b", Key: key, ETag: "e"}, []*File{f}, Conditions{}); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s *Store, key string) []byte {
	t.Helper()
	_, r, err := s.Read(t.Context(), "b", key, func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filesIn counts the files of objects.
func filesIn(t testing.TB, s *Store) (n int) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Dir(path) != s.dir {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReopen has everything again after the store was opened again, and nothing that nobody has.
func TestReopen(t *testing.T) {
	s := newStore(t)
	large := bytes.Repeat([]byte("0123456789"), 20000)
	put(t, s, "small", []byte("x"))
	put(t, s, "large", large)
	put(t, s, "../../etc/passwd\x00", large)
	put(t, s, "large", large[1:]) // in place of the first
	if _, err := s.Write(bytes.NewReader(large)); err != nil {
		t.Fatal(err) // nobody takes it, as in a crash
	}
	if n := filesIn(t, s); n != 3 {
		t.Errorf("%d files, want 3", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.dir)
	if err := s.Collect(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if n := filesIn(t, s); n != 2 {
		t.Errorf("%d files after they were collected, want 2", n)
	}
	if !bytes.Equal(read(t, s, "large"), large[1:]) || string(read(t, s, "small")) != "x" || !bytes.Equal(read(t, s, "../../etc/passwd\x00"), large) {
		t.Error("an object is not what it was")
	}
}

// TestReadWhileReplaced reads an object to its end that is replaced and deleted meanwhile.
func TestReadWhileReplaced(t *testing.T) {
	s := newStore(t)
	u, err := s.CreateUpload(t.Context(), "b", "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for n := range 3 {
		content := bytes.Repeat([]byte{byte('a' + n)}, small+n+1)
		f, err := s.Write(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		f.Number = n + 1
		if err := s.PutPart(t.Context(), u, f); err != nil {
			t.Fatal(err)
		}
		want = append(want, content...)
	}
	all := func(parts []*File) ([]*File, error) { return parts, nil }
	if err := s.Complete(t.Context(), u, &Object{Bucket: "b", Key: "k", Parts: 3}, all, Conditions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Complete(t.Context(), u, &Object{Bucket: "b", Key: "k"}, all, Conditions{}); !errors.Is(err, ErrNoUpload) {
		t.Errorf("completed twice: %v", err)
	}
	_, r, err := s.Read(t.Context(), "b", "k", func(o *Object) (Stretch, error) { return Stretch{10, o.Size - 10}, nil })
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", []byte("other"))
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want[10:]) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := filesIn(t, s); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// TestCollectBesideOthers collects files of a store that was opened again, while one is read whose object is deleted, and
// one goes with its object.
func TestCollectBesideOthers(t *testing.T) {
	s := newStore(t)
	u, err := s.CreateUpload(t.Context(), "b", "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		f, err := s.Write(bytes.NewReader(make([]byte, small+1)))
		if err != nil {
			t.Fatal(err)
		}
		f.Number = n + 1
		if err := s.PutPart(t.Context(), u, f); err != nil {
			t.Fatal(err)
		}
	}
	all := func(parts []*File) ([]*File, error) { return parts, nil }
	if err := s.Complete(t.Context(), u, &Object{Bucket: "b", Key: "k", Parts: 2}, all, Conditions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.dir)
	o, r, err := s.Read(t.Context(), "b", "k", func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Files(t.Context(), o, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "b", "k", Conditions{}); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	if err := s.Collect(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || int64(len(b)) != o.Size {
		t.Errorf("read %d bytes of %d, %v", len(b), o.Size, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.collect(t.Context(), files[0].name, later); err != nil { // which it had listed before
		t.Errorf("a file that has gone: %v", err)
	}
}

// TestDamagedFile: an object whose file has lost its end is neither read nor copied as if it were whole.
func TestDamagedFile(t *testing.T) {
	s := newStore(t)
	put(t, s, "k", make([]byte, 2*small))
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Dir(path) != s.dir {
			err = os.Truncate(path, small/2)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := s.Read(t.Context(), "b", "k", func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f, err := s.Write(r); err == nil {
		t.Errorf("copied with %d bytes", f.Size)
	}
}

// TestConditions has changes that are refused inside: nothing is changed, and no file is left.
func TestConditions(t *testing.T) {
	s := newStore(t)
	refusal := errors.New("no")
	no := Conditions{Allow: func(*Bucket, *Object) error { return refusal }}
	f, err := s.Write(bytes.NewReader(make([]byte, small+1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), &Object{Bucket: "b", Key: "k"}, []*File{f}, no); !errors.Is(err, refusal) {
		t.Errorf("put: %v", err)
	}
	if n := filesIn(t, s); n != 0 {
		t.Errorf("%d files are left", n)
	}
	put(t, s, "k", []byte("x"))
	if err := s.Delete(t.Context(), "b", "k", no); !errors.Is(err, refusal) || string(read(t, s, "k")) != "x" {
		t.Errorf("delete: %v", err)
	}
	if err := s.DeleteBucket(t.Context(), "b"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("delete the bucket: %v", err)
	}
	if _, err := s.Object(t.Context(), "none", "k"); !errors.Is(err, ErrNoBucket) {
		t.Errorf("an object of no bucket: %v", err)
	}
}

// TestOwed has messages that live and go with their changes, also over a restart.
func TestOwed(t *testing.T) {
	s := newStore(t)
	owe := Conditions{Owe: func(_ *Bucket, o *Object) []Message { return []Message{{"q", []byte(o.Key)}} }}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			o := &Object{Bucket: "b", Key: fmt.Sprint(i)}
			if err := s.Put(t.Context(), o, []*File{{}}, owe); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, _, changed, err := s.Owed(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nothing says that something is owed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.dir)
	due, _, _, err := s.Owed(t.Context(), 100)
	if err != nil || len(due) != 50 {
		t.Fatalf("%d are owed, %v", len(due), err)
	}
	for _, d := range due[1:] {
		if err := s.Settle(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Postpone(t.Context(), due[0], time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	due, next, _, err := s.Owed(t.Context(), 100)
	if err != nil || len(due) != 0 || next.IsZero() {
		t.Errorf("%d are due, next at %s, %v", len(due), next, err)
	}
}

// TestList compares the pages of any listing with what it should be by its definition.
func TestList(t *testing.T) {
	s := newStore(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab/\u00ff")), 0, 4, -1)
		n++
		bucket := fmt.Sprint("bucket", n)
		if err := s.CreateBucket(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, k := range rapid.SliceOfN(text, 0, 12).Draw(t, "keys") {
			if k != "" && !slices.Contains(keys, k) {
				keys = append(keys, k)
				if err := s.Put(t.Context(), &Object{Bucket: bucket, Key: k}, []*File{{}}, Conditions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(keys)
		q := Query{Prefix: text.Draw(t, "prefix"), Delimiter: rapid.SampledFrom([]string{"", "/", "a", "a/"}).Draw(t, "delimiter"), Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Skip: true}
		var want []string
		for _, k := range keys {
			rest, ok := strings.CutPrefix(k, q.Prefix)
			if !ok {
				continue
			}
			if i := strings.Index(rest, q.Delimiter); q.Delimiter != "" && i >= 0 {
				k = k[:len(q.Prefix)+i+len(q.Delimiter)] + " (prefix)"
			}
			if !slices.Contains(want, k) {
				want = append(want, k)
			}
		}
		var got []string
		for {
			page, err := s.List(t.Context(), bucket, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Objects {
				got = append(got, o.Key)
			}
			for _, p := range page.Prefixes {
				got = append(got, p+" (prefix)")
			}
			if !page.More {
				break
			}
			if len(page.Objects)+len(page.Prefixes) != q.Limit {
				t.Fatalf("a page with more behind it has %d", len(page.Objects)+len(page.Prefixes))
			}
			q.After = page.Last
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("listed %q, want %q", got, want)
		}
	})
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := newStore(b)
			content := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					put(b, s, "key", content)
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := newStore(b)
			put(b, s, "key", make([]byte, size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					read(b, s, "key")
				}
			})
		})
	}
}

// TestStrangeDirectory: what a URI or a pattern would take for something else is but a part of a directory's name.
func TestStrangeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%20[d] ü")
	s, err := Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(filepath.Join(dir, "index.db")); err != nil {
		t.Error(err)
	}
}
