package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/agent/runtime"
	"github.com/pintle/pintle/internal/agent/runtime/shim"
	"github.com/pintle/pintle/internal/pattern"
)

// shmDir is where a container's directory has its shared memory.
const shmDir = "shm"

const defaultShm = 64 << 20 // bytes, as Docker's

// mounts says what the container sees besides its image.
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
		source, err := b.source(m)
		if err != nil {
			return err
		}
		b.bind(source, m.Destination, m.ReadOnly)
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

// depth is how deep a mount lies: one that lies in another comes after it.
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

// ipc mounts shared memory and message queues: the container's own, the machine's, or another
// container's.
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
	if _, err := os.Stat("/dev/mqueue"); err == nil || !b.spec.Privileged { // a privileged one's /dev is the machine's
		b.mount("/dev/mqueue", "mqueue", "mqueue", own...)
	}
	return nil
}

// mountShm makes a container's shared memory, in its directory, so that others can be given it too.
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

// pid is the first process of a container that runs.
func (r *Runtime) pid(id string) (int, error) {
	dir, err := r.containers.Find(id)
	if err != nil {
		return 0, err
	}
	st, started, err := shim.ReadState(dir)
	if err != nil || !started || !st.Running() {
		return 0, errors.Join(err, fmt.Errorf("container %s, whose namespaces are to be shared, is not running", id))
	}
	return st.PID, nil
}

// source is the directory or file that a mount shows; one that is missing is made, as Docker does.
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

// unfinishedVolume begins the names of volumes that are being filled.
const unfinishedVolume = ".new-"

// volume is a named volume's directory. A new one begins with what the image has at its place.
func (b *bundle) volume(m runtime.Mount) (string, error) {
	if !volumeRE.MatchString(m.Source) {
		return "", fmt.Errorf("volume name %q is not made of letters, digits, '_', '.' and '-'", m.Source)
	}
	dir := filepath.Join(b.runtime.volumes(), m.Source)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(b.runtime.volumes(), unfinishedVolume)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // gone already when all went well
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := copyFromImage(filepath.Join(b.dir, "rootfs"), m.Destination, tmp); err != nil {
		return "", fmt.Errorf("fill volume %s from the image: %w", m.Source, err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, os.ErrExist) { // another container's came first
		return "", err
	}
	return dir, nil
}

// files are /etc/hosts, hostname and resolv.conf, which are the container's own.
func (b *bundle) files() error {
	resolv, err := b.resolvConf()
	if err != nil {
		return err
	}
	hosts, err := b.hosts()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"hosts": hosts, "hostname": b.hostname() + "\n", "resolv.conf": resolv} {
		path := filepath.Join(b.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		b.bind(path, "/etc/"+name, false)
	}
	return nil
}

func (b *bundle) hosts() (string, error) {
	var out strings.Builder
	if b.spec.Network.Mode == "host" {
		machines, _ := os.ReadFile("/etc/hosts")
		out.Write(machines)
	} else {
		out.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	}
	if b.ip != "" {
		fmt.Fprintf(&out, "%s\t%s\n", b.ip, b.hostname())
	}
	for _, l := range b.spec.Network.Links {
		id, alias, _ := strings.Cut(l, ":")
		a, err := b.runtime.opts.Networks.Find(id)
		if err != nil {
			return "", fmt.Errorf("link to %s: %w", alias, err)
		}
		fmt.Fprintf(&out, "%s\t%s\n", a.IP, alias)
	}
	for _, h := range b.spec.ExtraHosts {
		name, ip, ok := strings.Cut(h, ":")
		if !ok {
			return "", fmt.Errorf("extra host %q is not name:address", h)
		}
		fmt.Fprintf(&out, "%s\t%s\n", ip, name)
	}
	return out.String(), nil
}

// resolvConf is the machine's, with what the spec says in its stead. Servers on the machine's loopback
// cannot be reached from another network; systemd keeps the true ones in a file of its own.
func (b *bundle) resolvConf() (string, error) {
	machines, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if strings.Contains(string(machines), "nameserver 127.0.0.53") && b.spec.Network.Mode != "host" {
		if behind, err := os.ReadFile("/run/systemd/resolve/resolv.conf"); err == nil {
			machines = behind
		}
	}
	var out strings.Builder
	if len(b.spec.DNSSearch) > 0 {
		fmt.Fprintf(&out, "search %s\n", strings.Join(b.spec.DNSSearch, " "))
	}
	for _, ip := range b.spec.DNS {
		fmt.Fprintf(&out, "nameserver %s\n", ip)
	}
	for line := range strings.Lines(string(machines)) {
		if b.keeps(strings.Fields(line)) {
			out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return out.String(), nil
}

// keeps says whether a line of the machine's resolv.conf is the container's too.
func (b *bundle) keeps(line []string) bool {
	if len(line) < 2 {
		return false
	}
	switch line[0] {
	case "nameserver":
		loopback := net.ParseIP(line[1]).IsLoopback() && b.spec.Network.Mode != "host"
		return len(b.spec.DNS) == 0 && !loopback
	case "search", "domain":
		return len(b.spec.DNSSearch) == 0
	}
	return line[0] == "options" || line[0] == "sortlist"
}

// devices gives the container devices of the machine's, and denies it all others but the harmless ones
// that runc adds.
func (b *bundle) devices(context.Context) error {
	if b.spec.Privileged {
		b.out.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		// In the place of the container's own, so that what comes on top of it stays on top.
		i := slices.IndexFunc(b.out.Mounts, func(m specs.Mount) bool { return m.Destination == "/dev" })
		b.out.Mounts[i] = specs.Mount{Destination: "/dev", Type: "bind", Source: "/dev", Options: []string{"rbind", "rprivate"}}
		return nil
	}
	b.out.Linux.Resources.Devices = append(b.out.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: false, Access: "rwm"})
	for _, d := range b.spec.Devices {
		if err := b.device(d); err != nil {
			return err
		}
	}
	return nil
}

func (b *bundle) device(d runtime.Device) error {
	var st unix.Stat_t
	if err := unix.Stat(d.HostPath, &st); err != nil {
		return fmt.Errorf("device %s: %w", d.HostPath, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return b.devicesIn(d)
	}
	kind := map[uint32]string{unix.S_IFCHR: "c", unix.S_IFBLK: "b"}[st.Mode&unix.S_IFMT]
	if kind == "" {
		return fmt.Errorf("%s is no device", d.HostPath)
	}
	path, access := d.ContainerPath, d.Permissions
	if path == "" {
		path = d.HostPath
	}
	if access == "" {
		access = "rwm"
	}
	major, minor := int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	mode := os.FileMode(st.Mode & 0o777)
	b.out.Linux.Devices = append(b.out.Linux.Devices, specs.LinuxDevice{Path: path, Type: kind, Major: major, Minor: minor, FileMode: &mode, UID: &st.Uid, GID: &st.Gid})
	b.out.Linux.Resources.Devices = append(b.out.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: kind, Major: &major, Minor: &minor, Access: access})
	return nil
}

// devicesIn gives the container every device of a directory, such as /dev/infiniband.
func (b *bundle) devicesIn(d runtime.Device) error {
	return filepath.WalkDir(d.HostPath, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.Type()&os.ModeDevice == 0 {
			return err
		}
		inside, err := filepath.Rel(d.HostPath, path)
		if err != nil {
			return err
		}
		one := runtime.Device{HostPath: path, Permissions: d.Permissions}
		if d.ContainerPath != "" {
			one.ContainerPath = filepath.Join(d.ContainerPath, inside)
		}
		return b.device(one)
	})
}
