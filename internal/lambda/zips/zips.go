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
	"time"

	"github.com/pintle/pintle/internal/file"
)

// Store is a directory of zip files.
type Store struct{ dir string }

// Open returns the store in a directory, which it makes.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir}, file.Clean(dir)
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

// Get returns a file. Damage is an error.
func (s *Store) Get(sha string) ([]byte, error) {
	if !name.MatchString(sha) {
		return nil, fmt.Errorf("%q is no SHA-256", sha)
	}
	content, err := os.ReadFile(s.path(sha))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != sha {
		return nil, fmt.Errorf("%s is damaged: its bytes don't have the SHA-256 that is its name", s.path(sha))
	}
	return content, nil
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
		if err := os.Remove(s.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}
