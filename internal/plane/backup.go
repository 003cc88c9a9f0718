package plane

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/backup"
)

// ErrBackupRuns refuses a second backup at a time.
var ErrBackupRuns = errors.New("another backup is being made: wait until it's done")

// holder is a store that can be held for a backup.
type holder interface {
	Hold() (backup.Held, error)
}

// stores are the folders of the stores, in the order in which they are held. What rows refer to is held before the rows are.
func (p *Plane) stores() []heldStore {
	all := []heldStore{{folder: "images", store: p.images}, {folder: "functions", store: p.zips}, {folder: "metrics", store: p.Metrics}, {folder: "logs", store: p.streams},
		{folder: "queues", store: p.Queues}, {folder: "objects", store: p.objects}}
	if journal, ok := p.journal.(holder); ok {
		all = append(all, heldStore{folder: "", store: journal})
	}
	return all
}

type heldStore struct {
	folder string
	store  holder
	held   backup.Held
}

// plain are the files that no store keeps, and the folders of such files. They never change once they are there, but for the pool's.
var plain = []string{"task.key", "secrets.key", "tls", "pool"}

// Backup writes an archive of the data directory. It has all that any store had acknowledged at one moment, at which none acknowledged
// anything: so nothing that was done because of something else is in it without that. The stores go on meanwhile, and remove no file that the
// archive may need.
func (p *Plane) Backup(to io.Writer) error {
	if !p.backingUp.CompareAndSwap(false, true) {
		return ErrBackupRuns
	}
	defer p.backingUp.Store(false)
	stores, err := hold(p.stores())
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range stores {
			s.held.Release()
		}
	}()
	w, err := backup.NewWriter(to, p.about())
	if err != nil {
		return err
	}
	for _, name := range plain {
		if err := addPlain(p.options.Data, name, w.Add); err != nil {
			return err
		}
	}
	slices.Reverse(stores) // the databases' logs grow until they are in the archive
	for _, s := range stores {
		if err := s.held.Files(func(f backup.File) error { return w.Add(f.Under(s.folder)) }); err != nil {
			return err
		}
	}
	return w.Close()
}

func (p *Plane) about() backup.About {
	return backup.About{Version: p.options.Version, Made: p.now().UTC(), Region: p.options.Region, Account: p.options.Account}
}

// hold holds all stores, has them go on together, and returns them for their files.
func hold(stores []heldStore) (_ []heldStore, err error) {
	for i := range stores {
		if stores[i].held, err = stores[i].store.Hold(); err != nil {
			stores = stores[:i]
			break
		}
	}
	for _, s := range stores {
		s.held.Resume()
	}
	if err == nil {
		return stores, nil
	}
	for _, s := range stores {
		s.held.Release()
	}
	return nil, err
}

// addPlain adds a file that no store keeps, or those of a folder.
func addPlain(dir, name string, add func(backup.File) error) error {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return backup.Tree(path, isPassing, func(f backup.File) error { return add(f.Under(name)) })
	}
	return add(backup.File{Name: name, Path: path, Size: info.Size()})
}

// isPassing reports whether a file is of a process's life only, or was put aside.
func isPassing(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".new-") || strings.HasSuffix(base, ".lock") || strings.HasSuffix(base, "-shm") ||
		strings.Contains(base, ".damaged") || strings.Contains(base, ".torn") || name == "images/uploads"
}

// BackupDirectory writes an archive of a data directory that no process uses.
func BackupDirectory(dir string, to io.Writer, about backup.About) error {
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		return fmt.Errorf("%s has no control plane's data: %w", dir, err)
	}
	if err := refusePartial(dir); err != nil {
		return err
	}
	lock, err := lockData(dir)
	if err != nil {
		return err
	}
	w, err := backup.NewWriter(to, about)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	err = backup.Tree(dir, func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		return !slices.Contains(kept, top) || isPassing(name)
	}, w.Add)
	if err == nil {
		err = w.Close()
	}
	return errors.Join(err, lock.Close())
}

// kept is what a backup has of a data directory. The rest is of this machine: its nodes and their machines, the load balancers' process, and
// room for a full disk.
var kept = append([]string{"state.db", "state.db-wal", "state.db-guard", "objects", "functions", "images", "queues", "logs", "metrics"}, plain...)
