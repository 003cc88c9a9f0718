// Package zips keeps the zip files of functions and layers, each under the SHA-256 of its bytes. A file is durable before Put returns, and
// never changes. It knows no functions: whoever has the rows says which files are still of use.
package zips

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
)

// Store is a directory of zip files.
type Store struct {
	dir string

	mu      sync.Mutex
	held    int            // backups that need all files
	pending map[string]int // files whose calls are under way, with how many calls
	fresh   int64          // bytes of those put since the last Remove
}

// Open returns the store in a directory, which it makes.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir: dir, pending: map[string]int{}}, file.Clean(dir)
}

// name matches the SHA-256 by which a file is known.
var name = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Store) path(sha string) string { return filepath.Join(s.dir, sha) }

// Put keeps a file, and returns its SHA-256. One that is there is as good as new. It stays at least until it's released, by when a row may name it.
func (s *Store) Put(content []byte) (sha string, err error) {
	sum := sha256.Sum256(content)
	sha = hex.EncodeToString(sum[:])
	s.mu.Lock()
	s.pending[sha]++
	s.fresh += onDisk(int64(len(content)))
	s.mu.Unlock()
	if err := file.Replace(s.path(sha), content, true); err != nil {
		s.Release(sha)
		return "", err
	}
	return sha, nil
}

// Release ends the call that has put a file.
func (s *Store) Release(sha string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[sha]--; s.pending[sha] <= 0 {
		delete(s.pending, sha)
	}
}

// Fresh returns how many bytes were put since the last Remove.
func (s *Store) Fresh() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh
}

// Open opens a file. Whether it's damaged is for the reader to find out.
func (s *Store) Open(sha string) (*os.File, error) {
	if !name.MatchString(sha) {
		return nil, fmt.Errorf("%q is no SHA-256", sha)
	}
	return os.Open(s.path(sha))
}

// onDisk returns what a file of so many bytes takes on the disk, about.
func onDisk(size int64) int64 {
	const block = 4 << 10
	return (size + block - 1) / block * block
}

// Remove removes the files that nobody uses: those from before a time, and the oldest while there are more than most bytes of them. It asks which are used
// while nothing is put.
func (s *Store) Remove(used func() map[string]bool, before time.Time, most int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = 0
	if s.held > 0 {
		return nil
	}
	unused, err := s.unusedLocked(used())
	if err != nil {
		return err
	}
	for _, f := range unused {
		if most -= onDisk(f.Size()); most >= 0 && !f.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(s.path(f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// unusedLocked returns the files that aren't used, the newest first.
func (s *Store) unusedLocked(used map[string]bool) (unused []os.FileInfo, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !name.MatchString(e.Name()) || used[e.Name()] || s.pending[e.Name()] > 0 {
			continue
		}
		if info, err := e.Info(); err == nil {
			unused = append(unused, info)
		}
	}
	slices.SortFunc(unused, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return unused, nil
}

// Hold holds the store for a backup: no file is removed until it's released. Files never change, so the backup has those that it finds.
func (s *Store) Hold() (backup.Held, error) {
	s.hold(1)
	return backup.Held{
		Resume: func() {},
		Files: func(add func(backup.File) error) error {
			return backup.Tree(s.dir, func(at string) bool { return !name.MatchString(at) }, add)
		},
		Release: func() { s.hold(-1) },
	}, nil
}

func (s *Store) hold(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += more
}
