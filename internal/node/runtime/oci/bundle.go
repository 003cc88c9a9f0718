package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/profiles/seccomp"
	"github.com/moby/sys/user"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// bundle turns a Spec into a bundle for runc.
type bundle struct {
	runtime *Runtime
	dir     string
	spec    *runtime.Spec
	image   v1.Config
	netns   string // in bridge mode
	ip      string // "" if the container has no address of its own

	out *specs.Spec
}

// write writes config.json and the files that are mounted into the container.
func (b *bundle) write(ctx context.Context) error {
	b.out = &specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: "rootfs", Readonly: b.spec.ReadonlyRootfs},
		Process: &specs.Process{},
		Linux:   &specs.Linux{Sysctl: sysctls(b.spec), CgroupsPath: cgroupOf(b.spec)},
	}
	for _, step := range []func(context.Context) error{b.process, b.namespaces, b.resources, b.mounts, b.devices, b.confine, b.gpus} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	j, err := json.Marshal(b.out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "config.json"), j, 0o600)
}

// sysctls returns the spec's kernel parameters. Those of the container's own network let every user listen on all ports and send pings, as
// in Docker.
func sysctls(s *runtime.Spec) map[string]string {
	out := map[string]string{}
	if s.Network.Mode != "host" {
		out["net.ipv4.ip_unprivileged_port_start"] = "0"
		out["net.ipv4.ping_group_range"] = "0 2147483647"
	}
	maps.Copy(out, s.Sysctls)
	return out
}

// process sets what runs, as which user, and with what environment.
func (b *bundle) process(context.Context) error {
	p := b.out.Process
	p.Terminal = b.spec.Tty
	if p.Args = b.args(); len(p.Args) == 0 {
		return errors.New("neither the image nor the container definition says what to run")
	}
	p.Cwd = "/"
	for _, dir := range []string{b.image.WorkingDir, b.spec.WorkingDir} {
		if dir != "" {
			p.Cwd = dir
		}
	}
	if !filepath.IsAbs(p.Cwd) {
		return fmt.Errorf("the working directory %q is not an absolute path", p.Cwd)
	}
	path := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	links, err := b.linkVariables()
	if err != nil {
		return err
	}
	var terminal []string
	if b.spec.Tty {
		terminal = []string{"TERM=xterm"}
	}
	p.Env = runtime.Environment(path, b.image.Env, []string{"HOSTNAME=" + b.hostname()}, terminal, links, b.spec.Env)
	name := b.image.User
	if b.spec.User != "" {
		name = b.spec.User
	}
	if err := checkUsers(filepath.Join(b.dir, "rootfs")); err != nil {
		return err
	}
	u, err := userIn(b.dir, name)
	if err != nil {
		return err
	}
	p.User = specs.User{UID: uint32(u.Uid), GID: uint32(u.Gid)}
	for _, g := range u.Sgids {
		p.User.AdditionalGids = append(p.User.AdditionalGids, uint32(g))
	}
	for _, l := range b.spec.Ulimits {
		p.Rlimits = append(p.Rlimits, specs.POSIXRlimit{
			Type: "RLIMIT_" + strings.ToUpper(l.Name),
			Soft: uint64(l.Soft), // -1 becomes the maximum
			Hard: uint64(l.Hard),
		})
	}
	return nil
}

// args returns the image's entry point and command, unless the spec overrides them. As in Docker, the spec's entry point drops the image's
// command.
func (b *bundle) args() []string {
	entrypoint, command := b.image.Entrypoint, b.image.Cmd
	if b.spec.Entrypoint != nil {
		entrypoint, command = b.spec.Entrypoint, nil
	}
	if b.spec.Command != nil {
		command = b.spec.Command
	}
	if slices.Equal(entrypoint, []string{""}) {
		return command
	}
	return slices.Concat(entrypoint, command)
}

// checkUsers refuses an image in which /etc/passwd or /etc/group is a pipe: runc opens both, and would wait for ever for who writes there.
func checkUsers(rootfs string) error {
	root, err := os.Open(rootfs)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{"etc/passwd", "etc/group"} {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
		fd, err := unix.Openat2(int(root.Fd()), name, &how)
		if err != nil {
			continue // it has none
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		unix.Close(fd) //nolint:errcheck // it was only looked at
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
			return fmt.Errorf("%w: the image's /%s is a pipe", runtime.ErrCannotStart, name)
		}
	}
	return nil
}

// userIn finds a user by name or number in the container's own /etc/passwd and /etc/group.
func userIn(dir, name string) (*user.ExecUser, error) {
	root, err := os.OpenRoot(filepath.Join(dir, "rootfs"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u, err := user.GetExecUser(name, &user.ExecUser{Home: "/"}, readUsers(root, "etc/passwd"), readUsers(root, "etc/group"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrCannotStart, err)
	}
	if !slices.Contains(u.Sgids, u.Gid) {
		u.Sgids = append([]int{u.Gid}, u.Sgids...) // or a process could drop its own group, and pass files that it forbids
	}
	return u, nil
}

// maxUsers is how many bytes readUsers reads.
const maxUsers = 1 << 20

// readUsers reads /etc/passwd or /etc/group. The image could contain anything there, even a pipe that never ends. Without a regular file,
// users and groups have only numbers.
func readUsers(root *os.Root, path string) *bytes.Reader {
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return bytes.NewReader(nil)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return bytes.NewReader(nil)
	}
	b, _ := io.ReadAll(io.LimitReader(f, maxUsers))
	return bytes.NewReader(b)
}

// namespaces sets which namespaces the container shares, and with whom.
func (b *bundle) namespaces(ctx context.Context) error {
	add := func(kind specs.LinuxNamespaceType, path string) {
		b.out.Linux.Namespaces = append(b.out.Linux.Namespaces, specs.LinuxNamespace{Type: kind, Path: path})
	}
	add(specs.MountNamespace, "")
	switch mode := b.spec.Network.Mode; mode {
	case "bridge":
		add(specs.NetworkNamespace, b.netns)
	case "netns":
		add(specs.NetworkNamespace, b.spec.Network.NetNS)
	case "none":
		add(specs.NetworkNamespace, "")
	case "host":
	default:
		return fmt.Errorf("network mode %q: %w", mode, runtime.ErrUnsupported)
	}
	if b.spec.Network.Mode != "host" || b.spec.Hostname != "" {
		add(specs.UTSNamespace, "")
		b.out.Hostname = b.hostname()
	}
	if unifiedCgroups() && !b.spec.Privileged {
		add(specs.CgroupNamespace, "")
	}
	for kind, mode := range map[specs.LinuxNamespaceType]string{specs.PIDNamespace: b.spec.Pid, specs.IPCNamespace: b.spec.IPC} {
		other, shared := strings.CutPrefix(mode, "container:")
		switch {
		case mode == "host":
		case shared:
			pid, err := b.runtime.pid(other)
			if err != nil {
				return err
			}
			add(kind, fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		default:
			add(kind, "")
		}
	}
	return nil
}

// pid returns the first process of a running container.
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

// hostname returns the spec's host name, or else the machine's in mode host, or else the start of the container's ID.
func (b *bundle) hostname() string {
	if b.spec.Hostname != "" {
		return b.spec.Hostname
	}
	if b.spec.Network.Mode == "host" {
		name, _ := os.Hostname()
		return name
	}
	return b.spec.ID[:min(len(b.spec.ID), 12)]
}

// confine sets what the container's processes may do.
func (b *bundle) confine(context.Context) error {
	p := b.out.Process
	all, err := capabilities(b.spec)
	if err != nil {
		return err
	}
	p.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
	unconfined := b.spec.Privileged
	for _, o := range b.spec.SecurityOpt {
		key, value, ok := strings.Cut(o, "=")
		if !ok {
			key, value, _ = strings.Cut(o, ":")
		}
		switch {
		case key == "no-new-privileges" && value != "false":
			p.NoNewPrivileges = true
		case key == "apparmor":
			p.ApparmorProfile = value
		case key == "seccomp" && value == "unconfined":
			unconfined = true
		default:
			return fmt.Errorf("security option %q: %w", o, runtime.ErrUnsupported)
		}
	}
	if b.spec.Privileged {
		return nil
	}
	b.out.Linux.MaskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	}
	b.out.Linux.ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	if unconfined {
		return nil
	}
	b.out.Linux.Seccomp, err = seccomp.GetDefaultProfile(b.out)
	return err
}

// initProgram finds a static init program for containers that run one as their first process.
func initProgram() (string, error) {
	for _, name := range []string{"tini-static", "docker-init"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("initProcessEnabled needs tini on the node (apt-get install tini)")
}
