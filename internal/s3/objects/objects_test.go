package objects

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/filetest"
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
	_, r, err := s.Read(t.Context(), "b", key, "", func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
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
	if !bytes.Equal(read(t, s, "large"), large[1:]) || string(read(t, s, "small")) != "x" ||
		!bytes.Equal(read(t, s, "../../etc/passwd\x00"), large) {
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
	_, r, err := s.Read(t.Context(), "b", "k", "", func(o *Object) (Stretch, error) { return Stretch{10, o.Size - 10}, nil })
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
	o, r, err := s.Read(t.Context(), "b", "k", "", func(o *Object) (Stretch, error) { return Stretch{0, o.Size}, nil })
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Files(t.Context(), o, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), "b", "k", "", Conditions{}); err != nil {
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

// objectFile is the one file of an object.
func objectFile(t testing.TB, s *Store) string {
	t.Helper()
	paths, err := file.Glob(s.dir, "*/*")
	if err != nil || len(paths) != 1 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	return paths[0]
}

// flip changes a bit of a file.
func flip(at int64) func(path string) error {
	return func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[at] ^= 1
		return os.WriteFile(path, b, 0o600)
	}
}

// resize cuts a file, or makes it longer.
func resize(size int64) func(path string) error {
	return func(path string) error { return os.Truncate(path, size) }
}

// TestDamagedFile: a file that isn't what was written is never read as if it were, and what is read of it before is right.
func TestDamagedFile(t *testing.T) {
	content := make([]byte, 3*blockSize+7)
	rand.NewChaCha8([32]byte{1}).Read(content)
	for _, test := range []struct {
		name   string
		damage func(path string) error
		offset int64 // that the error names
		before int64 // how many bytes may be read
	}{
		{"first block", flip(5), 0, 0},
		{"third block", flip(2*blockSize + 100), 2 * blockSize, 2 * blockSize},
		{"last byte", flip(3*blockSize + 6), 3 * blockSize, 3 * blockSize},
		{"cut", resize(small / 2), small / 2, 0},
		{"longer", resize(4 * blockSize), int64(len(content)), 0},
		{"removed", os.Remove, -1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			put(t, s, "k", content)
			path := objectFile(t, s)
			if err := test.damage(path); err != nil {
				t.Fatal(err)
			}
			got, err := tryRead(t, s, 0, int64(len(content)))
			var damage *file.Damage
			if !errors.As(err, &damage) || damage.Path != path || damage.Offset != test.offset {
				t.Errorf("got %v, want damage of %s at %d", err, path, test.offset)
			}
			if !bytes.Equal(got, content[:test.before]) {
				t.Errorf("read %d bytes, want the %d before the damage", len(got), test.before)
			}
			for from := int64(0); from < int64(len(content)); from += blockSize / 2 {
				length := min(100, int64(len(content))-from)
				got, err := tryRead(t, s, from, length)
				hurt := test.before == 0 && test.offset != 0 || from/blockSize == test.offset/blockSize
				if hurt != errors.As(err, &damage) || !hurt && !bytes.Equal(got, content[from:from+length]) {
					t.Errorf("range from %d: %d bytes, %v", from, len(got), err)
				}
			}
			if _, err := s.Write(&failing{s: s, t: t, length: int64(len(content))}); !errors.As(err, &damage) {
				t.Errorf("a copy of it: %v", err)
			}
		})
	}
}

// failing reads the object k as a copy does.
type failing struct {
	s      *Store
	t      *testing.T
	length int64
	r      io.ReadCloser
}

func (f *failing) Read(p []byte) (n int, err error) {
	if f.r == nil {
		_, f.r, err = f.s.Read(f.t.Context(), "b", "k", "", func(*Object) (Stretch, error) { return Stretch{0, f.length}, nil })
		if err != nil {
			return 0, err
		}
	}
	if n, err = f.r.Read(p); err != nil {
		f.r.Close()
	}
	return n, err
}

// tryRead reads a stretch of the object k, as far as it can be read.
func tryRead(t testing.TB, s *Store, from, length int64) ([]byte, error) {
	_, r, err := s.Read(t.Context(), "b", "k", "", func(*Object) (Stretch, error) { return Stretch{from, length}, nil })
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, r)
	return b.Bytes(), err
}

// TestDamagedPart: a part that has lost its end doesn't get the next one's bytes.
func TestDamagedPart(t *testing.T) {
	s := newStore(t)
	u, err := s.CreateUpload(t.Context(), "b", "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	const size = 2 * small
	for n := range 2 {
		f, err := s.Write(bytes.NewReader(bytes.Repeat([]byte{byte(n)}, size)))
		if err != nil {
			t.Fatal(err)
		}
		f.Number = n + 1
		if err := s.PutPart(t.Context(), u, f); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if err := os.Truncate(objectFile(t, s), size-1); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(parts []*File) ([]*File, error) { return parts, nil }
	if err := s.Complete(t.Context(), u, &Object{Bucket: "b", Key: "k", Parts: 2}, all, Conditions{}); err != nil {
		t.Fatal(err)
	}
	var damage *file.Damage
	if got, err := tryRead(t, s, 10, size); !errors.As(err, &damage) || len(got) > 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := tryRead(t, s, size, size); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{1}, size)) {
		t.Errorf("the whole part: %d bytes, %v", len(got), err)
	}
}

// TestCutOffBody: a body that ends early is refused, however short it is.
func TestCutOffBody(t *testing.T) {
	s := newStore(t)
	for _, size := range []int64{1, small, small + 1, blockSize + 1} {
		r := io.MultiReader(io.LimitReader(zeros{}, size), iotest.ErrReader(io.ErrUnexpectedEOF))
		if f, err := s.Write(r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v, %v", size, f, err)
		}
	}
	if n := filesIn(t, s); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestFailedCommit: what a commit that failed would have changed is not there, the rest is read, and the store goes on.
func TestFailedCommit(t *testing.T) {
	s := newStore(t)
	put(t, s, "before", []byte("x"))
	failure := errors.New("the disk is gone")
	commit := s.flush
	s.flush = func(tx *sql.Tx) error { return errors.Join(failure, tx.Rollback()) }
	o := &Object{Bucket: "b", Key: "k"}
	if err := s.Put(t.Context(), o, []*File{{}}, Conditions{}); !errors.Is(err, failure) {
		t.Errorf("the put that failed: %v", err)
	}
	if string(read(t, s, "before")) != "x" {
		t.Error("what was there cannot be read")
	}
	if _, err := s.Object(t.Context(), "b", "k", ""); !errors.Is(err, ErrNoObject) {
		t.Errorf("what failed is there: %v", err)
	}
	s.flush = commit
	put(t, s, "after", []byte("y"))
	dir := s.dir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = open(t, dir); string(read(t, s, "before")) != "x" || string(read(t, s, "after")) != "y" {
		t.Error("what was there is not, after a restart")
	}
}

// TestFullDisk: on a full disk puts are refused and leave no file, and objects are read. Puts succeed once there is room.
func TestFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	s := newStore(t)
	put(t, s, "before", []byte("x"))
	acknowledged := []string{"before"}
	refused := 0
	for i := range 60 {
		free := filetest.Fill(t, uint64(i*5000))
		var done sync.WaitGroup
		results := make(chan string, 4)
		for j := range cap(results) {
			done.Go(func() {
				key := fmt.Sprint(i, "-", j)
				f, err := s.Write(bytes.NewReader(make([]byte, []int{10, small, 2 * small, 4 * small}[j])))
				if err == nil {
					err = s.Put(context.Background(), &Object{Bucket: "b", Key: key}, []*File{f}, Conditions{})
				}
				if err == nil {
					results <- key
				} else if !disk.IsUnwritable(err) {
					t.Errorf("refused with %v", err)
				}
			})
		}
		done.Wait()
		close(results)
		refused += cap(results) - len(results)
		for key := range results {
			acknowledged = append(acknowledged, key)
		}
		if string(read(t, s, "before")) != "x" {
			t.Error("what was there cannot be read")
		}
		free()
		key := fmt.Sprint(i, "-after")
		put(t, s, key, []byte("y"))
		acknowledged = append(acknowledged, key)
	}
	dir := s.dir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for _, key := range acknowledged {
		if _, err := s.Object(t.Context(), "b", key, ""); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	all, err := s.List(t.Context(), "b", Query{Limit: 1000})
	if err != nil || len(all.Objects) != len(acknowledged) || refused == 0 {
		t.Errorf("%d objects of %d, with %d refused: %v", len(all.Objects), len(acknowledged), refused, err)
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
	if _, err := s.Delete(t.Context(), "b", "k", "", no); !errors.Is(err, refusal) || string(read(t, s, "k")) != "x" {
		t.Errorf("delete: %v", err)
	}
	if err := s.DeleteBucket(t.Context(), "b"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("delete the bucket: %v", err)
	}
	if _, err := s.Object(t.Context(), "none", "k", ""); !errors.Is(err, ErrNoBucket) {
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
	_, _, changed, err := s.Owed(t.Context(), 1, delivery.All)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed(t.Context()):
	default:
		t.Error("nothing says that something is owed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.dir)
	due, _, _, err := s.Owed(t.Context(), 100, delivery.All)
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
	due, next, _, err := s.Owed(t.Context(), 100, delivery.All)
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
		q := Query{
			Prefix:    text.Draw(t, "prefix"),
			Delimiter: rapid.SampledFrom([]string{"", "/", "a", "a/"}).Draw(t, "delimiter"),
			Limit:     rapid.IntRange(1, 4).Draw(t, "limit"),
			Skip:      true,
		}
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
