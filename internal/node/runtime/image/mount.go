package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
)

// Mount mounts an image's stacked layers at dir/rootfs; writes go to dir/upper. If it's mounted already, Mount does nothing.
func (s *Store) Mount(img *Image, dir string) error {
	mounted, err := Mounted(dir)
	if err != nil || mounted {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	upper, work, root := filepath.Join(dir, "upper"), filepath.Join(dir, "work"), filepath.Join(dir, rootDir)
	for _, d := range []string{upper, work, root} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := file.WriteJSON(filepath.Join(dir, layersFile), img.Layers, false); err != nil { // before the mount, for Prune
		return err
	}
	lower := slices.Clone(img.Layers)
	slices.Reverse(lower)
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lower, ":"), upper, work)
	if len(options) >= os.Getpagesize() {
		return fmt.Errorf("%s has more layers (%d) than one mount takes", img.Ref, len(lower))
	}
	// The layers' names are relative to their directory, since full paths wouldn't fit.
	if err := inDirectory(s.layers(), func() error { return unix.Mount("overlay", root, "overlay", 0, options) }); err != nil {
		return fmt.Errorf("mount the image with overlayfs: %w", err)
	}
	return nil
}

const rootDir = "rootfs"

// Mounted reports whether dir/rootfs is a mount.
func Mounted(dir string) (bool, error) {
	var root, parent unix.Stat_t
	err := unix.Stat(filepath.Join(dir, rootDir), &root)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := unix.Stat(dir, &parent); err != nil {
		return false, err
	}
	return root.Dev != parent.Dev, nil
}

// Unmount undoes Mount. What was written stays in dir/upper.
func Unmount(dir string) error { return kernel.Unmount(filepath.Join(dir, rootDir)) }

// inDirectory calls do on a thread whose working directory is dir. The process's own stays as it is.
func inDirectory(dir string, do func() error) error {
	return kernel.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Chdir(dir); err != nil {
			return err
		}
		return do()
	})
}
