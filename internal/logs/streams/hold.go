package streams

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
)

// Hold holds the store for a backup: nothing is acknowledged until it's resumed, and no file is removed until it's released.
func (s *Store) Hold() (backup.Held, error) {
	s.mu.Lock()
	list, err := json.Marshal(s.catalog)
	if err != nil {
		s.mu.Unlock()
		return backup.Held{}, err
	}
	s.held++
	var groups []backup.Held
	for _, g := range s.groups {
		held, failed := g.hold()
		err = errors.Join(err, failed)
		groups = append(groups, held)
	}
	each := func(do func(backup.Held)) {
		for _, g := range groups {
			do(g)
		}
	}
	held := backup.Held{
		Resume: func() {
			each(func(g backup.Held) { g.Resume() })
			s.mu.Unlock()
		},
		Files: func(add func(backup.File) error) error {
			err := add(backup.File{Name: catalogFile, Bytes: file.Seal(list)})
			each(func(g backup.Held) { err = errors.Join(err, g.Files(add)) })
			return err
		},
		Release: func() {
			each(func(g backup.Held) { g.Release() })
			s.release()
		},
	}
	if err != nil {
		held.Resume()
		held.Release()
	}
	return held, err
}

// hold holds a group's log, with the group's description.
func (g *group) hold() (backup.Held, error) {
	g.mu.RLock()
	description, err := json.Marshal(g.meta)
	g.mu.RUnlock()
	log := g.log.Hold()
	files := log.Files
	log.Files = func(add func(backup.File) error) error {
		folder := strconv.Itoa(g.id)
		if err := add(backup.File{Name: metaFile, Bytes: file.Seal(description)}.Under(folder)); err != nil {
			return err
		}
		return files(func(f backup.File) error { return add(f.Under(folder)) })
	}
	return log, err
}

// release removes the groups that were needed for a backup only.
func (s *Store) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held--; s.held > 0 {
		return
	}
	for _, id := range s.doomed {
		removeGroup(s.dir, id) //nolint:errcheck // the next opening removes what isn't in the catalog
	}
	s.doomed = nil
}
