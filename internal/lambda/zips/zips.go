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
	"sync"
	"time"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
)

// Store is a directory of zip files.
type Store struct {
	dir string

	mu   sync.Mutex
	held int // backups that need all files
}

// Open returns the store in a directory, which it makes.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir: dir}, file.Clean(dir)
}

// name matches the SHA-256 by which a file is known.
var name = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Store) path(sha string) string { return filepath.Join(s.dir, sha) }

// Put keeps a file, and returns its SHA-256. One that is there is as good as new.
func (s *Store) Put(content []byte) (sha string, err error) {
	sum := sha256.Sum256(content)
	sha = hex.EncodeToString(sum[:])
	return sha, file.Replace(s.path(sha), content, true)
}

// Open opens a file. Whether it's damaged is for the reader to find out.
func (s *Store) Open(sha string) (*os.File, error) {
	if !name.MatchString(sha) {
		return nil, fmt.Errorf("%q is no SHA-256", sha)
	}
	return os.Open(s.path(sha))
}

// Remove removes the files that nobody uses and that were there before a time: a newer one may be about to be used.
func (s *Store) Remove(isUsed func(sha string) bool, before time.Time) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !name.MatchString(e.Name()) || !info.ModTime().Before(before) || isUsed(e.Name()) {
			continue
		}
		if err := s.remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file, unless a backup may need it.
func (s *Store) remove(sha string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held > 0 {
		return nil
	}
	return os.Remove(s.path(sha))
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
