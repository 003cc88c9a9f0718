package sqlitefile

import (
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/backup"
)

// Hold holds the database for a backup. Whoever calls it keeps everybody from writing until Resume, which is theirs to set. Until it's
// released nothing is moved from the log into the database's file. So that stays as it was, and of the log what was committed by now counts.
func (db *DB) Hold() (backup.Held, error) {
	if err := db.Ready(); err != nil {
		return backup.Held{}, err
	}
	info, err := os.Stat(db.path)
	if err != nil {
		return backup.Held{}, err
	}
	db.held.Add(1)
	name := filepath.Base(db.path)
	files := []backup.File{
		{Name: guardPath(name), Bytes: db.guard.encode()},
		{Name: name, Path: db.path, Size: info.Size()},
	}
	if g := db.guard; g.frames > g.folded { // otherwise the next commit may begin a new log
		files = append(files, backup.File{Name: logPath(name), Path: logPath(db.path), Size: frameOffset(g.frames)})
	}
	return backup.Held{
		Files: func(add func(backup.File) error) error {
			for _, f := range files {
				if err := add(f); err != nil {
					return err
				}
			}
			return nil
		},
		Release: func() { db.held.Add(-1) },
	}, nil
}
