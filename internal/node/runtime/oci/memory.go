package oci

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
	"github.com/pintle/pintle/internal/node/runtime"
)

// usersOf returns the directory that has a file for each container that uses a volume of memory.
func (r *Runtime) usersOf(volume string) string { return filepath.Join(r.opts.Dir, "memory", volume) }

// lockVolume keeps others from a volume that comes or goes. No container's id has a blank.
func (r *Runtime) lockVolume(name string) (unlock func()) { return r.settling.lock("volume " + name) }

// memory returns the directory of a volume that is memory. It's mounted there for as long as containers use it, and they share it.
func (b *bundle) memory(m runtime.Mount) (string, error) {
	if err := errors.Join(checkVolumeName(m.Source), checkDriverOpts(m)); err != nil {
		return "", err
	}
	defer b.runtime.lockVolume(m.Source)()
	dir, users := filepath.Join(b.runtime.volumes(), m.Source), b.runtime.usersOf(m.Source)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(users, 0o755)); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(users, b.spec.ID), nil, 0o600); err != nil {
		return "", err
	}
	if is, err := isMountPoint(dir); is || err != nil {
		return dir, err
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", cmp.Or(m.DriverOpts["o"], "defaults"), "tmpfs", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("volume %s: %w: %s", m.Source, err, bytes.TrimSpace(out))
	}
	return dir, nil
}

// releaseMemory ends a container's use of volumes that are memory. The last one's end takes the files along, as with Docker's driver local.
func (r *Runtime) releaseMemory(id string) error {
	volumes, err := os.ReadDir(r.usersOf(""))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, v := range volumes {
		err = errors.Join(err, r.releaseVolume(v.Name(), id))
	}
	return err
}

func (r *Runtime) releaseVolume(name, id string) error {
	defer r.lockVolume(name)()
	users := r.usersOf(name)
	if err := os.Remove(filepath.Join(users, id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	left, err := os.ReadDir(users)
	if errors.Is(err, os.ErrNotExist) { // the last of others has ended meanwhile
		return nil
	}
	if err != nil || len(left) > 0 {
		return err
	}
	if err := kernel.Unmount(filepath.Join(r.volumes(), name)); err != nil {
		return err
	}
	return os.Remove(users)
}

// isMountPoint reports whether another file system is mounted at a directory.
func isMountPoint(dir string) (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &here), unix.Stat(filepath.Dir(dir), &above)); err != nil {
		return false, err
	}
	return here.Dev != above.Dev, nil
}
