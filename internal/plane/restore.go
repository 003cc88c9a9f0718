package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
)

// partial is the folder in which a restore is until all of it was checked. A directory that has one is no data directory.
const partial = "restore.partial"

// refusePartial refuses a directory into which a restore was cut off.
func refusePartial(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, partial)); err != nil {
		return nil //nolint:nilerr // there is none
	}
	return fmt.Errorf("a restore into %s was cut off: run it again with an empty directory", dir)
}

// Restore makes a data directory of an archive. Nothing is in its place before all of the archive was read and all stores were checked.
// Damage that the stores had when the backup was made is returned, and the directory stays empty unless keepDamaged is set.
func Restore(ctx context.Context, from io.Reader, dir string, keepDamaged bool) (backup.About, []file.Damage, error) {
	if err := checkEmpty(dir); err != nil {
		return backup.About{}, nil, err
	}
	lock, err := lockData(dir)
	if err != nil {
		return backup.About{}, nil, err
	}
	about, damage, err := restore(ctx, from, dir, keepDamaged)
	return about, damage, errors.Join(err, lock.Close())
}

// checkEmpty refuses a directory with files, but for those that an earlier restore has left before it had put anything in place.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains([]string{"lost+found", "pintle.lock", partial}, e.Name()) {
			return fmt.Errorf("%s is not empty (it has %s): restore into an empty or a new directory", dir, e.Name())
		}
	}
	return err
}

func restore(ctx context.Context, from io.Reader, dir string, keepDamaged bool) (about backup.About, damage []file.Damage, err error) {
	within := filepath.Join(dir, partial)
	if err := os.RemoveAll(within); err != nil {
		return about, nil, err
	}
	defer func() {
		if err != nil && !errors.Is(err, errInPlace) {
			err = errors.Join(err, os.RemoveAll(within))
		}
	}()
	about, err = backup.Read(from, func(name string, _ int64, content io.Reader) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains(kept, top) {
			return fmt.Errorf("the archive has %s, which isn't of a data directory", name)
		}
		return unpack(filepath.Join(within, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return about, nil, err
	}
	if damage, err = Check(ctx, within, false); err != nil {
		return about, damage, err
	}
	if len(damage) > 0 && !keepDamaged {
		return about, damage, errors.New("the archive is as it was written, but the directory that it was made of was damaged; nothing was restored")
	}
	return about, damage, putInPlace(within, dir)
}

// unpack writes a file of an archive.
func unpack(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

// errInPlace marks the error of a restore of which something is in place.
var errInPlace = errors.New("something is in place already")

// putInPlace moves what was restored into the directory, durably. As long as the folder is there, no control plane starts.
func putInPlace(within, dir string) error {
	if err := syncAll(within); err != nil {
		return err
	}
	entries, err := os.ReadDir(within)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "pintle.lock" { // of the check
			continue
		}
		if err := os.Rename(filepath.Join(within, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return errors.Join(errInPlace, err)
		}
	}
	if err := errors.Join(file.SyncDir(dir), os.RemoveAll(within), file.SyncDir(dir)); err != nil {
		return errors.Join(errInPlace, err)
	}
	return nil
}

// syncAll makes all files of the file system durable that a directory is in: one call for millions of them.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
