package blobs

import (
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/backup"
)

// Hold holds the store for a backup: no blob is removed until it's released. Blobs never change, so the backup has those that it finds, and
// rows that are read after Hold have their blobs in it. Uploads that aren't complete are not in it.
func (s *Store) Hold() (backup.Held, error) {
	s.hold(1)
	return backup.Held{
		Resume: func() {},
		Files: func(add func(backup.File) error) error {
			return s.each(func(path, _ string) error {
				info, err := os.Stat(path)
				if err != nil {
					return err
				}
				name, err := filepath.Rel(s.dir, path)
				if err != nil {
					return err
				}
				return add(backup.File{Name: filepath.ToSlash(name), Path: path, Size: info.Size()})
			})
		},
		Release: func() { s.hold(-1) },
	}, nil
}

func (s *Store) hold(more int) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.held += more
}
