package function

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The most that one directory gets: what AWS lets a function and its layers have, and a number of files that a disk bears.
const (
	maxUnzipped = 262144000
	maxFiles    = 200_000
)

// unpacking unpacks zip files into a directory, which nothing leaves, whatever links are in it.
type unpacking struct {
	root  *os.Root
	bytes int64 // that may still be written
	files int
}

var errTooLarge = fmt.Errorf("it has more than %d bytes or %d files", maxUnzipped, maxFiles)

// unzip unpacks a zip file. Whatever the modes in it, everybody can read what it lays down: functions may run as anybody.
func (u *unpacking) unzip(content []byte) error {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	for _, file := range z.File {
		name := filepath.FromSlash(file.Name)
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is outside of the zip file's directory", file.Name)
		}
		if u.files--; u.files < 0 {
			return errTooLarge
		}
		name = filepath.Clean(name)
		switch {
		case strings.HasSuffix(file.Name, "/"):
			err = u.root.MkdirAll(name, 0o755)
		case file.Mode()&os.ModeSymlink != 0:
			err = u.link(file, name)
		default:
			err = u.lay(file, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link makes a symbolic link that stays inside.
func (u *unpacking) link(file *zip.File, name string) error {
	r, err := file.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it's only read
	to, err := io.ReadAll(io.LimitReader(r, 4096))
	if err != nil {
		return err
	}
	if target := string(to); filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
		return fmt.Errorf("%q is a link to outside of the zip file's directory", file.Name)
	}
	if err := u.makeRoom(name); err != nil {
		return err
	}
	return u.root.Symlink(string(to), name)
}

// makeRoom makes the directory of a file, and removes the file of an earlier layer, which isn't written through its link.
func (u *unpacking) makeRoom(name string) error {
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lay lays a file down. How large it is said to be isn't believed.
func (u *unpacking) lay(file *zip.File, name string) error {
	r, err := file.Open()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it's only read
	if err := u.makeRoom(name); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if file.Mode()&0o111 != 0 {
		mode = 0o755
	}
	w, err := u.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(r, u.bytes+1))
	if u.bytes -= n; u.bytes < 0 {
		err = errTooLarge
	}
	return errors.Join(err, w.Close())
}

// maxCode is how many bytes of code stay on the node once no environment shows them.
const maxCode = 4 << 30

// use notes what a task from before this process shows.
func (f *Functions) use(task string) {
	record, ok := f.tasks.Task(task)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range record.Task.Volumes {
		if IsFunction(v) {
			_, name := files(v)
			f.using[idOf(task)] = append(f.using[idOf(task)], name)
		}
	}
}

// laid is a directory of code.
type laid struct {
	name string
	used time.Time
	size int64
}

// prune removes the code that was used the longest ago, until there are at most so many bytes. What a task shows stays.
func (f *Functions) prune(most int64) {
	dir := filepath.Join(f.opts.Dir, "code")
	entries, _ := os.ReadDir(dir) //nolint:errcheck // there's none yet
	var all []laid
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), beingMade) {
			continue
		}
		size := sizeOf(filepath.Join(dir, e.Name()))
		total += size
		all = append(all, laid{e.Name(), info.ModTime(), size})
	}
	slices.SortFunc(all, func(a, b laid) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	for _, l := range all {
		if total <= most {
			return
		}
		if f.remove(dir, l.name) {
			total -= l.size
		}
	}
}

// remove removes a directory of code unless a task shows it. It has another name first, so that no task finds a part of it.
func (f *Functions) remove(dir, name string) bool {
	away := filepath.Join(dir, beingMade+name)
	f.mu.Lock()
	for _, names := range f.using {
		if slices.Contains(names, name) {
			f.mu.Unlock()
			return false
		}
	}
	err := os.Rename(filepath.Join(dir, name), away)
	delete(f.fetching, name)
	f.mu.Unlock()
	if err == nil {
		err = os.RemoveAll(away)
	}
	if err != nil {
		f.opts.Log.Warn("cannot remove functions' code that nothing uses", "directory", name, "error", err)
	}
	return err == nil
}

// block is what the smallest file, link or directory takes on a disk, about: a function may have many thousands of them, and nothing in them.
const block = 4 << 10

// sizeOf returns how many bytes a directory takes on the disk, about.
func sizeOf(dir string) (size int64) {
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { //nolint:errcheck // it returns none
		if err != nil {
			return nil //nolint:nilerr // it has just gone
		}
		if info, err := e.Info(); err == nil {
			size += max(block, (info.Size()+block-1)/block*block)
		}
		return nil
	})
	return size
}
