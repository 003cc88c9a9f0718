// Package blobs is the store of the registry's bytes: layers, configurations and manifests, each a file under its digest, and uploads that
// aren't complete yet. A blob is verified before it gets its name, and durable before anybody is told of it; what a killed process has left of
// an upload can be gone on with. Who has which blob are rows, which are not for this store to know: whoever adds one does so in Keep, Put or
// Finish, so that Collect doesn't take the blob meanwhile. ECR's API and its registry call it.
package blobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

// The errors of what callers ask for.
var (
	ErrNoBlob    = errors.New("there is no blob with this digest")
	ErrNoUpload  = errors.New("there is no upload with this id")
	ErrDigest    = errors.New("the digest isn't that of the bytes")
	ErrTooLarge  = errors.New("the layer is larger than a layer may be")
	ErrTooMany   = errors.New("too many uploads to the repository aren't complete")
	ErrAlgorithm = errors.New("only sha256 digests are taken")
)

// MaxBlob is the most bytes of a layer: https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
const MaxBlob = 52_000 << 20

// Options are what a store needs besides its directory.
type Options struct {
	// Room refuses writes for which the disk has no room; nil has room for all.
	Room func() error
	// Now is the clock by which uploads grow old.
	Now func() time.Time
}

// Store keeps blobs. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	opts Options
	// keeping is held for reading while a blob is given a name and then a row, and for writing while those without a row are removed.
	keeping sync.RWMutex
	held    int // backups that need all blobs; keeping is held for writing where it changes

	mu      sync.Mutex
	uploads map[string]*upload // those that this process knows, by their paths
	made    map[string]bool    // directories that are durable
}

// Open opens the store in a directory, and makes it if it isn't there.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{dir: dir, opts: opts, uploads: map[string]*upload{}, made: map[string]bool{}}
	for _, d := range []string{dir, s.blobs(), s.pending()} {
		if err := os.MkdirAll(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := file.SyncDir(filepath.Dir(d)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Store) blobs() string   { return filepath.Join(s.dir, "sha256") }
func (s *Store) pending() string { return filepath.Join(s.dir, "uploads") }

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// CheckDigest refuses what can't be a blob's digest here.
func CheckDigest(digest string) error {
	if !validDigest.MatchString(digest) {
		return ErrAlgorithm
	}
	return nil
}

// DigestOf returns the digest of bytes.
func DigestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// path returns a blob's path. The digest is a valid one.
func (s *Store) path(digest string) string {
	sum := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(s.blobs(), sum[:2], sum)
}

// Open opens a blob. Its size is told without reading it. Who reads it whole checks its digest, as all clients of registries do.
func (s *Store) Open(digest string) (*os.File, int64, error) {
	if CheckDigest(digest) != nil {
		return nil, 0, ErrNoBlob
	}
	f, err := os.Open(s.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, ErrNoBlob
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Read returns a small blob whole. Bytes that aren't what was written are a *file.Damage.
func (s *Store) Read(digest string, most int64) ([]byte, error) {
	f, size, err := s.Open(digest)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	if size > most {
		return nil, &file.Damage{Path: f.Name(), Offset: most, What: "the file is longer than what was written"}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if DigestOf(b) != digest {
		return nil, &file.Damage{Path: f.Name(), Offset: 0, What: "the bytes aren't those of the digest"}
	}
	return b, nil
}

// Keep runs keep if there is a blob, which isn't removed meanwhile. keep gets its size.
func (s *Store) Keep(digest string, keep func(size int64) error) error {
	s.keeping.RLock()
	defer s.keeping.RUnlock()
	f, size, err := s.Open(digest)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), s.makeDir(filepath.Dir(s.path(digest)))); err != nil {
		return err
	}
	return keep(size)
}

// Put stores bytes as a blob, and then runs keep.
func (s *Store) Put(b []byte, keep func() error) error {
	s.keeping.RLock()
	defer s.keeping.RUnlock()
	path := s.path(DigestOf(b))
	if err := s.makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return keep()
	}
	if err := file.Replace(path, b, true); err != nil {
		return err
	}
	if err := file.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return keep()
}

// makeDir makes a directory of blobs durably. An earlier process may have been killed before it synced a name in there, so that is done once.
func (s *Store) makeDir(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[dir] {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(file.SyncDir(filepath.Dir(dir)), file.SyncDir(dir)); err != nil {
		return err
	}
	s.made[dir] = true
	return nil
}

// room refuses writes while the disk has no room.
func (s *Store) room() error {
	if s.opts.Room == nil {
		return nil
	}
	return disk.Unwritable(s.opts.Room())
}

// Collect removes blobs of which has says that nobody has them. It returns how many there were.
func (s *Store) Collect(has func(digest string) bool) (removed int, err error) {
	err = s.each(func(path, digest string) error {
		if has(digest) {
			return nil
		}
		s.keeping.Lock()
		defer s.keeping.Unlock()
		if s.held > 0 || has(digest) { // since somebody was keeping it
			return nil
		}
		removed++
		return os.Remove(path)
	})
	return removed, err
}

// each calls visit for each blob.
func (s *Store) each(visit func(path, digest string) error) error {
	dirs, err := os.ReadDir(s.blobs())
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := eachIn(filepath.Join(s.blobs(), d.Name()), visit); err != nil {
			return err
		}
	}
	return nil
}

func eachIn(dir string, visit func(path, digest string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if digest := "sha256:" + e.Name(); CheckDigest(digest) == nil {
			if err := visit(filepath.Join(dir, e.Name()), digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// digestOfFile returns the digest of a file's bytes.
func digestOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
