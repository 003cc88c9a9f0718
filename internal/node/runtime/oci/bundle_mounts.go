package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/pattern"
)

// shmDir is the directory of a container's shared memory, inside the container's directory.
const shmDir = "shm"

const defaultShm = 64 << 20 // bytes, as in Docker

// mounts adds everything that the container sees besides its image.
func (b *bundle) mounts(context.Context) error {
	own := []string{"nosuid", "noexec", "nodev"}
	readonly := "ro"
	if b.spec.Privileged {
		readonly = "rw"
	}
	b.mount("/proc", "proc", "proc", own...)
	b.mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k")
	b.mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")
	b.mount("/sys", "sysfs", "sysfs", append(own, readonly)...)
	b.mount("/sys/fs/cgroup", "cgroup", "cgroup", append(own, "relatime", readonly)...)
	if err := b.ipc(own); err != nil {
		return err
	}
	if err := b.checkPlaces(); err != nil {
		return err
	}
	base := len(b.out.Mounts)
	if err := b.files(); err != nil {
		return err
	}
	for _, t := range b.spec.Tmpfs {
		options := append([]string{"nosuid", "nodev", "noexec"}, t.Options...)
		if t.SizeBytes > 0 {
			options = append(options, fmt.Sprintf("size=%d", t.SizeBytes))
		}
		b.mount(t.Path, "tmpfs", "tmpfs", options...)
	}
	for _, m := range b.spec.Mounts {
		if err := b.show(m); err != nil {
			return err
		}
	}
	if err := b.imageVolumes(); err != nil {
		return err
	}
	slices.SortStableFunc(b.out.Mounts[base:], func(x, y specs.Mount) int { return cmp.Compare(depth(x), depth(y)) })
	if !b.spec.Init {
		return nil
	}
	path, err := initProgram()
	if err != nil {
		return err
	}
	b.bind(path, "/sbin/docker-init", true)
	b.out.Process.Args = append([]string{"/sbin/docker-init", "--"}, b.out.Process.Args...)
	return nil
}

// checkPlaces refuses two mounts at one path, and one in place of the whole image, as Docker does.
func (b *bundle) checkPlaces() error {
	taken := map[string]bool{}
	for _, t := range b.spec.Tmpfs {
		taken[filepath.Clean(t.Path)] = true
	}
	for _, m := range b.spec.Mounts {
		path := filepath.Clean(m.Destination)
		if path == "/" {
			return errors.New("invalid mount: destination can't be '/'")
		}
		if taken[path] {
			return fmt.Errorf("duplicate mount point: %s", path)
		}
		taken[path] = true
	}
	return nil
}

// volumesDir has the volumes that a container's image declares, inside the container's directory. They end with the container.
const volumesDir = "volumes"

// imageVolumes mounts the volumes that the image declares and those of other containers' images, where nothing else is mounted.
func (b *bundle) imageVolumes() error {
	taken := map[string]bool{}
	for _, m := range b.out.Mounts {
		taken[filepath.Clean(m.Destination)] = true
	}
	show := func(dir, path string, readonly bool) {
		if path = filepath.Clean(path); !taken[path] {
			taken[path] = true
			b.bind(filepath.Join(dir, volumesDir, url.PathEscape(path)), path, readonly)
		}
	}
	for _, v := range b.spec.VolumesFrom {
		dir, err := b.runtime.containers.Find(v.ID)
		if err != nil {
			return fmt.Errorf("volumesFrom: %w", err)
		}
		entries, err := os.ReadDir(filepath.Join(dir, volumesDir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			path, err := url.PathUnescape(e.Name())
			if err != nil {
				return err
			}
			show(dir, path, v.ReadOnly)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.image.Volumes)) {
		path = filepath.Clean("/" + path)
		if taken[path] {
			continue
		}
		if err := b.fillVolume(path); err != nil {
			return fmt.Errorf("fill the volume %s from the image: %w", path, err)
		}
		show(b.dir, path, false)
	}
	return nil
}

// fillVolume makes a volume that the image declares, with what the image has there. A container that starts again keeps its own.
func (b *bundle) fillVolume(path string) error {
	if _, err := b.runtime.containers.Find(b.spec.ID); err == nil {
		return nil
	}
	dir := filepath.Join(b.dir, volumesDir, url.PathEscape(path))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return copyFromImage(filepath.Join(b.dir, "rootfs"), path, dir)
}

// depth returns how deep a mount is, so that a mount inside another comes after it.
func depth(m specs.Mount) int { return strings.Count(filepath.Clean(m.Destination), "/") }

func (b *bundle) mount(path, kind, source string, options ...string) {
	b.out.Mounts = append(b.out.Mounts, specs.Mount{Destination: path, Type: kind, Source: source, Options: options})
}

func (b *bundle) bind(source, path string, readonly bool) {
	options := []string{"rbind", "rprivate"}
	if readonly {
		options = append(options, "ro")
	}
	b.mount(path, "bind", source, options...)
}

// ipc mounts the shared memory and message queues of the container, the machine, or another container.
func (b *bundle) ipc(own []string) error {
	dir := b.dir
	if other, shared := strings.CutPrefix(b.spec.IPC, "container:"); shared {
		var err error
		if dir, err = b.runtime.containers.Find(other); err != nil {
			return err
		}
	}
	switch {
	case b.spec.IPC == "host":
		b.bind("/dev/shm", "/dev/shm", false)
		if _, err := os.Stat("/dev/mqueue"); err == nil {
			b.bind("/dev/mqueue", "/dev/mqueue", false)
		}
		return nil
	case dir == b.dir:
		if err := mountShm(dir, b.spec.ShmSizeBytes); err != nil {
			return err
		}
	}
	b.bind(filepath.Join(dir, shmDir), "/dev/shm", false)
	if _, err := os.Stat("/dev/mqueue"); err == nil || !b.spec.Privileged { // a privileged container has the machine's /dev
		b.mount("/dev/mqueue", "mqueue", "mqueue", own...)
	}
	return nil
}

// mountShm mounts a container's shared memory in its directory, so that other containers can share it.
func mountShm(dir string, size int64) error {
	if size == 0 {
		size = defaultShm
	}
	path := filepath.Join(dir, shmDir)
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return unix.Mount("shm", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("mode=1777,size=%d", size))
}

// show mounts a directory or a volume.
func (b *bundle) show(m runtime.Mount) error {
	source := b.source
	if m.Volume && m.Driver != "" && m.Driver != "local" {
		return fmt.Errorf("volume %s: the driver %q: %w", m.Source, m.Driver, runtime.ErrUnsupported)
	}
	switch isDevice := m.Volume && len(m.DriverOpts) > 0; {
	case isDevice && m.DriverOpts["type"] == "tmpfs":
		source = b.memory
	case isDevice:
		return b.mountDevice(m)
	}
	path, err := source(m)
	if err != nil {
		return err
	}
	b.bind(path, m.Destination, m.ReadOnly)
	return nil
}

// checkDriverOpts refuses what Docker's driver local doesn't know.
func checkDriverOpts(m runtime.Mount) error {
	for name := range m.DriverOpts {
		if !slices.Contains([]string{"type", "o", "device"}, name) {
			return fmt.Errorf("volume %s: driver option %q: %w", m.Source, name, runtime.ErrUnsupported)
		}
	}
	return nil
}

// mountDevice mounts a volume that the options of Docker's driver local describe. Each container mounts the device anew.
func (b *bundle) mountDevice(m runtime.Mount) error {
	if err := checkDriverOpts(m); err != nil {
		return err
	}
	kind, device := m.DriverOpts["type"], m.DriverOpts["device"]
	options := strings.FieldsFunc(m.DriverOpts["o"], func(r rune) bool { return r == ',' })
	if m.ReadOnly {
		options = append(options, "ro")
	}
	if slices.Contains(options, "bind") || slices.Contains(options, "rbind") {
		kind = "bind"
		if !filepath.IsAbs(device) {
			return fmt.Errorf("volume %s: the path of a bind mount must be absolute, not %q", m.Source, device)
		}
	}
	if kind == "" || device == "" {
		return fmt.Errorf("volume %s: its driver options need a type and a device", m.Source)
	}
	b.mount(m.Destination, kind, device, options...)
	return nil
}

// source returns the directory or file that a mount shows. A missing one becomes a directory, as in Docker.
func (b *bundle) source(m runtime.Mount) (string, error) {
	if m.Volume {
		return b.volume(m)
	}
	if !filepath.IsAbs(m.Source) {
		return "", fmt.Errorf("the path of a bind mount must be absolute, not %q", m.Source)
	}
	if _, err := os.Stat(m.Source); errors.Is(err, os.ErrNotExist) {
		return m.Source, os.MkdirAll(m.Source, 0o755)
	}
	return m.Source, nil
}

var volumeRE = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`, 255)

func checkVolumeName(name string) error {
	if !volumeRE.MatchString(name) {
		return fmt.Errorf("volume name %q is not made of letters, digits, '_', '.' and '-'", name)
	}
	return nil
}

// volume returns a named volume's directory. A new volume starts with what the image has at the mount's destination.
func (b *bundle) volume(m runtime.Mount) (string, error) {
	if err := checkVolumeName(m.Source); err != nil {
		return "", err
	}
	dir := filepath.Join(b.runtime.volumes(), m.Source)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if m.MustExist {
		return "", runtime.NoVolume(m.Source)
	}
	tmp, err := os.MkdirTemp(b.runtime.volumes(), file.Unfinished)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // does nothing after the rename
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := copyFromImage(filepath.Join(b.dir, "rootfs"), m.Destination, tmp); err != nil {
		return "", fmt.Errorf("fill volume %s from the image: %w", m.Source, err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, os.ErrExist) { // another container may have created it first
		return "", err
	}
	return dir, nil
}

// copyFromImage copies an image's directory, with owners, modes and links. If the image has none at that path, it copies nothing.
func copyFromImage(root, path, to string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close()
	from, err := r.OpenFile(strings.TrimPrefix(filepath.Clean("/"+path), "/"), os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil //nolint:nilerr // the image has no directory there, or a link that leads out of it
	}
	defer from.Close()
	// cp reads the open directory, so that no link on the path can change meanwhile.
	cmd := exec.Command("cp", "--archive", "--no-target-directory", "/dev/fd/3/.", to)
	cmd.ExtraFiles = []*os.File{from}
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}
