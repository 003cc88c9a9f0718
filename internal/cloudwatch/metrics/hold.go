package metrics

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
)

// Hold holds the store for a backup. It waits for a flush that is under way, which changes the blocks, the series and the log together.
func (s *Store) Hold() (backup.Held, error) {
	s.working.Lock()
	list, err := json.Marshal(s.manifest)
	if err != nil {
		s.working.Unlock()
		return backup.Held{}, err
	}
	s.heldMu.Lock()
	s.held++
	s.heldMu.Unlock()
	log, names, blocks := s.log.Hold(), s.names.Hold(), s.manifest.Blocks
	return backup.Held{
		Resume: func() {
			log.Resume()
			names.Resume()
			s.working.Unlock()
		},
		Files: func(add func(backup.File) error) error {
			err := add(backup.File{Name: manifestFile, Bytes: file.Seal(list)})
			for _, b := range blocks {
				err = errors.Join(err, s.addBlock(b.File, add))
			}
			return errors.Join(
				err,
				log.Files(func(f backup.File) error { return add(f.Under(logDir)) }),
				names.Files(func(f backup.File) error { return add(f.Under(namesDir)) }),
			)
		},
		Release: func() {
			log.Release()
			names.Release()
			s.release()
		},
	}, nil
}

func (s *Store) addBlock(name string, add func(backup.File) error) error {
	info, err := os.Stat(s.path(name))
	if err != nil {
		return err
	}
	return add(backup.File{Name: name, Path: s.path(name), Size: info.Size()})
}

// release removes the blocks that were needed for a backup only.
func (s *Store) release() {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if s.held--; s.held > 0 {
		return
	}
	for _, path := range s.retired {
		os.Remove(path) //nolint:errcheck // opening the store removes what no manifest names
	}
	s.retired = nil
}
