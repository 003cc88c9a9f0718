package objects

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pintle/pintle/internal/backup"
)

// Hold holds the store for a backup: nothing is committed until it's resumed, and no file is removed until it's released. Files that were made
// since then are in the backup, too, and nothing in it refers to them: Collect removes them where it's restored.
func (s *Store) Hold() (backup.Held, error) {
	s.turn.Lock()
	index, err := s.db.Hold()
	if err != nil {
		s.turn.Unlock()
		return index, err
	}
	s.mu.Lock()
	s.held++
	s.mu.Unlock()
	releaseIndex := sync.OnceFunc(index.Release)
	return backup.Held{
		Resume: s.turn.Unlock,
		Files: func(add func(backup.File) error) error {
			err := index.Files(add)
			releaseIndex() // the files of objects may take hours
			if err != nil {
				return err
			}
			return s.files(add)
		},
		Release: func() {
			releaseIndex()
			s.release()
		},
	}, nil
}

// files passes the files of objects that there are. One may be gone whose upload has failed.
func (s *Store) files(add func(backup.File) error) error {
	for i := range 256 {
		folder := fmt.Sprintf("%02x", i)
		err := backup.Tree(filepath.Join(s.dir, folder), nil, func(f backup.File) error { return add(f.Under(folder)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// release removes the files that were needed for a backup only.
func (s *Store) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held--; s.held > 0 {
		return
	}
	for name := range s.doomed {
		if s.pinned[name] == 0 {
			delete(s.doomed, name)
			os.Remove(s.path(name)) //nolint:errcheck // Collect takes it
		}
	}
}
