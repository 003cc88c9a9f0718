// Package process runs containers as plain child processes, without images, isolation or limits. It's for machines without a container
// engine, and must be chosen by name; listings show it.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
)

// Runtime is a runtime.Runtime of child processes.
type Runtime struct {
	containers shim.Containers
	shim       shim.Program
	images     map[string]string
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a runtime that keeps each container in a directory under dir, and runs the shim p beside it. images has the shell commands
// that stand in for images' own, by name with or without tag.
func New(dir string, p shim.Program, images map[string]string) (*Runtime, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Runtime{containers: shim.Containers{Dir: dir}, shim: p, images: images}, nil
}

// Name implements runtime.Runtime.
func (*Runtime) Name() string { return "process" }

// Pull does nothing, since there are no images.
func (*Runtime) Pull(context.Context, string, *runtime.RegistryAuth) (string, error) { return "", nil }

// Stored implements runtime.Runtime. As with Pull, any image will do.
func (*Runtime) Stored(context.Context, string) (string, error) { return "", nil }

// Create implements runtime.Runtime.
func (r *Runtime) Create(_ context.Context, spec *runtime.Spec) error {
	dir, err := r.containers.Path(spec.ID)
	if err != nil {
		return err
	}
	if len(argsOf(spec)) == 0 {
		command := r.standIn(spec.Image)
		if command == "" {
			return fmt.Errorf("the process runtime has no images: give the container a command, or the node one for its image (--image '%s=COMMAND')",
				spec.Image)
		}
		spec.Command = []string{"/bin/sh", "-c", command}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return shim.WriteSpec(dir, spec)
}

// argsOf returns a container's entry point, unless that is one empty word, and its command.
func argsOf(spec *runtime.Spec) []string {
	if slices.Equal(spec.Entrypoint, []string{""}) {
		return spec.Command
	}
	return slices.Concat(spec.Entrypoint, spec.Command)
}

// Ignored lists what a container is asked to have that a plain process doesn't get, in a container definition's words. Limits on CPU and memory
// aren't among it: every definition has some, and no process any.
func (*Runtime) Ignored(spec *runtime.Spec) (names []string) {
	elsewhere := func(m runtime.Mount) bool { return m.Volume || m.Source != m.Destination }
	own := spec.User == "" || os.Geteuid() == 0 && (spec.User == "0" || spec.User == "root")
	for _, f := range []struct {
		name  string
		asked bool
	}{
		{"user", !own},
		{"mountPoints", slices.ContainsFunc(spec.Mounts, elsewhere)},
		{"volumesFrom", len(spec.VolumesFrom) > 0},
		{"ulimits", len(spec.Ulimits) > 0},
		{"privileged", spec.Privileged},
		{"readonlyRootFilesystem", spec.ReadonlyRootfs},
		{"pseudoTerminal", spec.Tty},
		{"hostname", spec.Hostname != ""},
		{"extraHosts", len(spec.ExtraHosts) > 0},
		{"dnsServers", len(spec.DNS) > 0},
		{"dnsSearchDomains", len(spec.DNSSearch) > 0},
		{"dockerSecurityOptions", len(spec.SecurityOpt) > 0},
		{"systemControls", len(spec.Sysctls) > 0},
		{"pidMode", strings.HasPrefix(spec.Pid, "container:")},
		{"ipcMode", strings.HasPrefix(spec.IPC, "container:")},
		{"linuxParameters.capabilities", len(spec.CapAdd)+len(spec.CapDrop) > 0},
		{"linuxParameters.devices", len(spec.Devices) > 0},
		{"linuxParameters.initProcessEnabled", spec.Init},
		{"linuxParameters.maxSwap", spec.MemorySwap != 0},
		{"linuxParameters.sharedMemorySize", spec.ShmSizeBytes > 0},
		{"linuxParameters.swappiness", spec.Swappiness != nil},
		{"linuxParameters.tmpfs", len(spec.Tmpfs) > 0},
	} {
		if f.asked {
			names = append(names, f.name)
		}
	}
	return names
}

// standIn returns the command that stands in for an image's own, or "".
func (r *Runtime) standIn(image string) string {
	if command := r.images[image]; command != "" {
		return command
	}
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return r.images[name]
}

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, id string) error {
	dir, spec, err := r.containers.Open(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err != nil || status != runtime.Created {
		return err
	}
	args := argsOf(spec)
	if args[0], err = lookPath(args[0], spec.WorkingDir); err != nil {
		return err
	}
	return shim.Start(ctx, dir, r.shim, shim.Command{Args: args, Env: environment(spec), Dir: spec.WorkingDir, OpenStdin: spec.OpenStdin})
}

// Revive implements runtime.Runtime.
func (r *Runtime) Revive(_ context.Context, id string, ended time.Time) error {
	dir, err := r.containers.Find(id)
	if err != nil {
		return err
	}
	return shim.Revive(dir, ended, func() error { return nil })
}

func lookPath(name, dir string) (string, error) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return filepath.Join(dir, name), nil
	}
	return exec.LookPath(name)
}

// environment returns the spec's environment on top of the variables that every program needs. CUDA itself keeps to CUDA_VISIBLE_DEVICES,
// and to none where that is empty; nothing else keeps a process from the machine's other GPUs. What a task definition says of the two doesn't
// count.
func environment(spec *runtime.Spec) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=" + os.Getenv("LANG")}
	ids := spec.GPUs
	if len(ids) == 0 {
		ids = spec.MachineGPUs
	}
	gpus := strings.Join(ids, ",")
	visible := gpus
	if gpus == "" {
		visible = "void" // the NVIDIA runtime's word for none
	}
	return runtime.Environment(env, spec.Env, []string{"NVIDIA_VISIBLE_DEVICES=" + visible, "CUDA_VISIBLE_DEVICES=" + gpus})
}

// Wait implements runtime.Runtime.
func (r *Runtime) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	dir, err := r.containers.Find(id)
	if err != nil {
		return runtime.Exit{}, err
	}
	return shim.Wait(ctx, dir, func(st shim.State) {
		if st.Running() {
			syscall.Kill(-st.PID, syscall.SIGKILL) //nolint:errcheck // it may have ended by now
		}
	})
}

// Stop implements runtime.Runtime. It signals the container's whole process group.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	signal := func(st shim.State, s syscall.Signal) error { return syscall.Kill(-st.PID, s) }
	return r.containers.Stop(ctx, id, grace, signal, r.Wait)
}

// Remove implements runtime.Runtime.
func (r *Runtime) Remove(_ context.Context, id string) error {
	dir, err := r.containers.Path(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err == nil && status == runtime.Running {
		return fmt.Errorf("container %s is running", id)
	}
	return os.RemoveAll(dir)
}

// RemoveVolume does nothing, since there are no volumes.
func (*Runtime) RemoveVolume(context.Context, string) error { return nil }

// List implements runtime.Runtime.
func (r *Runtime) List(_ context.Context, owner string) ([]runtime.Container, error) {
	return r.containers.List(owner)
}

// NetNS returns "", since processes share the machine's network.
func (*Runtime) NetNS(context.Context, string) (string, error) { return "", nil }

// IsRunning reports whether a container runs. One that isn't there doesn't.
func (r *Runtime) IsRunning(_ context.Context, id string) (bool, error) {
	return r.containers.IsRunning(id)
}

// Exec implements runtime.Runtime. The command runs beside the container's processes.
func (r *Runtime) Exec(ctx context.Context, id string, e runtime.Exec) (int, error) {
	_, spec, err := r.containers.Open(id)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	if e.Tty {
		cmd = exec.Command(e.Command[0], e.Command[1:]...) // terminal hangs up first
	}
	cmd.Env = append(environment(spec), e.Env...)
	cmd.Dir = spec.WorkingDir
	if e.Tty {
		err = terminal.Run(ctx, cmd, e, false)
	} else {
		cmd.Stdin = e.Stdin
		cmd.Stdout = e.Stdout
		cmd.Stderr = e.Stderr
		err = cmd.Run()
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), ctx.Err() // as shells and runc count
	}
	return exit.ExitCode(), nil
}

// Stats implements runtime.Runtime. It sums over the container's current processes.
func (r *Runtime) Stats(_ context.Context, id string) (runtime.Stats, error) {
	dir, err := r.containers.Find(id)
	if err != nil {
		return runtime.Stats{}, err
	}
	st, started, err := shim.ReadState(dir)
	if err != nil || !started || !st.Running() {
		return runtime.Stats{At: time.Now()}, err
	}
	s := runtime.Stats{At: time.Now()}
	addProcess(&s, st.PID)
	return s, nil
}

const clockTick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on

// addProcess adds a process and its descendants.
func addProcess(s *runtime.Stats, pid int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 22 {
		return
	}
	for _, f := range fields[11:15] { // user and system time, its own and that of its ended children
		n, _ := strconv.ParseInt(f, 10, 64)
		s.CPU += time.Duration(n) * clockTick
	}
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	s.MemoryBytes += pages * int64(os.Getpagesize())
	for _, child := range program.ChildrenOf(pid) {
		addProcess(s, child)
	}
}

// Logs implements runtime.Runtime.
func (r *Runtime) Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error {
	return r.containers.Logs(ctx, id, cursor, follow, emit)
}
