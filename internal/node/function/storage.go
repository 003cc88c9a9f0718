package function

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/blockvolume"
)

// An environment has a directory of its own for /tmp. Where the node makes volumes, that is one of the size that the function asks for.

// Disks makes volumes of a size: blockvolume.Volumes. Who releases a task's volumes releases these, too.
type Disks interface {
	Attach(r blockvolume.Request, name string) error
	Path(name string) string
}

// isStorage reports whether a volume is an environment's /tmp.
func isStorage(v acs.Volume) bool {
	return v.DockerVolumeConfiguration.DriverOpts[acs.FunctionStorage] != ""
}

// storageName is the name of a volume that is a task's storage.
func storageName(task string) string { return filepath.Join(idOf(task), "tmp") }

// storage returns where a task's storage is.
func (f *Functions) storage(task string) string {
	if f.opts.Disks != nil {
		return f.opts.Disks.Path(storageName(task))
	}
	return filepath.Join(f.opts.Dir, "storage", idOf(task))
}

func (f *Functions) prepareStorage(task string, v acs.Volume) error {
	path := f.storage(task)
	if f.opts.Disks == nil {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		return os.Chmod(path, 0o777|os.ModeSticky)
	}
	size, err := strconv.ParseInt(v.DockerVolumeConfiguration.DriverOpts[acs.FunctionStorage], 10, 64)
	if err != nil {
		return err
	}
	if err := f.opts.Disks.Attach(blockvolume.Request{ID: "tmp", ScratchMiB: size}, storageName(task)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, "lost+found")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Chmod(path, 0o777|os.ModeSticky)
}

// removeStorage removes directories of tasks that don't run any more.
func (f *Functions) removeStorage(running map[string]string) {
	dir := filepath.Join(f.opts.Dir, "storage")
	entries, _ := os.ReadDir(dir) //nolint:errcheck // there are none yet
	for _, e := range entries {
		if running[e.Name()] == "" {
			os.RemoveAll(filepath.Join(dir, e.Name())) //nolint:errcheck // it's tried again
		}
	}
}
