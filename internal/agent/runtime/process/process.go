// Package process runs containers as plain child processes: no image, no isolation, no limits. It is
// for machines that have no container engine, and only when it is asked for by name; listings say so.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/agent/runtime"
	"github.com/pintle/pintle/internal/agent/runtime/shim"
)

// Runtime is a runtime.Runtime of child processes. Each has a directory under dir.
type Runtime struct {
	dir  string
	self []string
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns the runtime that keeps its containers under dir. self is the command line that leads to
// shim.Main in this very program.
func New(dir string, self []string) (*Runtime, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Runtime{dir: dir, self: self}, nil
}

// Name is runtime.Runtime's.
func (*Runtime) Name() string { return "process" }

// Pull does nothing: there are no images.
func (*Runtime) Pull(context.Context, string, *runtime.RegistryAuth) (string, error) { return "", nil }

const specFile = "spec.json"

var idRE = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// path is a container's directory.
func (r *Runtime) path(id string) (string, error) {
	if !idRE.MatchString(id) {
		return "", fmt.Errorf("container id %q is not made of letters, digits, - and _", id)
	}
	return filepath.Join(r.dir, id), nil
}

// existing is the directory of a container that there is.
func (r *Runtime) existing(id string) (string, error) {
	dir, err := r.path(id)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, specFile)); err != nil {
		return "", fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
	}
	return dir, nil
}

// Create is runtime.Runtime's.
func (r *Runtime) Create(_ context.Context, spec *runtime.Spec) error {
	dir, err := r.path(spec.ID)
	if err != nil {
		return err
	}
	if len(spec.Entrypoint)+len(spec.Command) == 0 {
		return errors.New("the process runtime has no images: the container definition must have a command")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, ".spec")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, specFile))
}

func readSpec(dir string) (*runtime.Spec, error) {
	b, err := os.ReadFile(filepath.Join(dir, specFile))
	if err != nil {
		return nil, err
	}
	spec := new(runtime.Spec)
	return spec, json.Unmarshal(b, spec)
}

// Start is runtime.Runtime's.
func (r *Runtime) Start(_ context.Context, id string) error {
	dir, err := r.existing(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err != nil || status != runtime.Created {
		return err
	}
	spec, err := readSpec(dir)
	if err != nil {
		return err
	}
	args := slices.Concat(spec.Entrypoint, spec.Command)
	if args[0], err = lookPath(args[0], spec.WorkingDir); err != nil {
		return err
	}
	return shim.Start(dir, r.self, shim.Command{Args: args, Env: environment(spec), Dir: spec.WorkingDir})
}

func lookPath(name, dir string) (string, error) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return filepath.Join(dir, name), nil
	}
	return exec.LookPath(name)
}

// environment is the spec's, on top of what a program cannot do without.
func environment(spec *runtime.Spec) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=" + os.Getenv("LANG")}
	gpus := strings.Join(spec.GPUs, ",")
	if gpus == "" {
		gpus = "void" // none, in the NVIDIA runtime's word
	}
	return slices.Concat(env, spec.Env, []string{"NVIDIA_VISIBLE_DEVICES=" + gpus})
}

// Wait is runtime.Runtime's.
func (r *Runtime) Wait(ctx context.Context, id string) (runtime.Exit, error) {
	dir, err := r.existing(id)
	if err != nil {
		return runtime.Exit{}, err
	}
	return shim.Wait(ctx, dir, func(st shim.State) {
		if st.Running() {
			syscall.Kill(-st.PID, syscall.SIGKILL) //nolint:errcheck // it may have ended by now
		}
	})
}

// Stop is runtime.Runtime's. The signals go to the container's whole process group.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	dir, err := r.existing(id)
	if err != nil {
		return err
	}
	spec, err := readSpec(dir)
	if err != nil {
		return err
	}
	if err := signalGroup(dir, stopSignal(spec.StopSignal)); err != nil {
		return err
	}
	gentle, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if _, err := r.Wait(gentle, id); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := signalGroup(dir, syscall.SIGKILL); err != nil {
		return err
	}
	_, err = r.Wait(ctx, id)
	return err
}

func signalGroup(dir string, s syscall.Signal) error {
	st, started, err := shim.ReadState(dir)
	if err != nil || !started || !st.Running() {
		return err
	}
	if err := syscall.Kill(-st.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// stopSignal reads SIGINT, INT or 2.
func stopSignal(name string) syscall.Signal {
	known := map[string]syscall.Signal{"INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "HUP": syscall.SIGHUP}
	if s, ok := known[strings.TrimPrefix(strings.ToUpper(name), "SIG")]; ok {
		return s
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n)
	}
	return syscall.SIGTERM
}

// Remove is runtime.Runtime's.
func (r *Runtime) Remove(_ context.Context, id string) error {
	dir, err := r.path(id)
	if err != nil {
		return err
	}
	if status, _, err := shim.Status(dir); err == nil && status == runtime.Running {
		return fmt.Errorf("container %s is running", id)
	}
	return os.RemoveAll(dir)
}

// List is runtime.Runtime's.
func (r *Runtime) List(_ context.Context, owner string) ([]runtime.Container, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var out []runtime.Container
	for _, e := range entries {
		dir := filepath.Join(r.dir, e.Name())
		spec, err := readSpec(dir)
		if err != nil || spec.Owner != owner {
			continue // one that was never wholly created
		}
		status, st, err := shim.Status(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, runtime.Container{
			ID: spec.ID, Labels: spec.Labels, Status: status, PID: st.PID, StartedAt: st.StartedAt, Exit: st.Exit(),
		})
	}
	return out, nil
}

// Exec is runtime.Runtime's: the command runs beside the container's processes, as they do.
func (r *Runtime) Exec(ctx context.Context, id string, e runtime.Exec) (int, error) {
	dir, err := r.existing(id)
	if err != nil {
		return 0, err
	}
	spec, err := readSpec(dir)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	cmd.Env, cmd.Dir = append(environment(spec), e.Env...), spec.WorkingDir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Stdin, e.Stdout, e.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Stats is runtime.Runtime's: summed over the container's processes that are there now.
func (r *Runtime) Stats(_ context.Context, id string) (runtime.Stats, error) {
	dir, err := r.existing(id)
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

// addProcess adds a process and its children.
func addProcess(s *runtime.Stats, pid int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 22 {
		return
	}
	for _, f := range fields[11:15] { // user and system time, its own and that of children that ended
		n, _ := strconv.ParseInt(f, 10, 64)
		s.CPU += time.Duration(n) * clockTick
	}
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	s.MemoryBytes += pages * int64(os.Getpagesize())
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, c := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(c); err == nil {
			addProcess(s, n)
		}
	}
}

// Logs is runtime.Runtime's.
func (r *Runtime) Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error {
	dir, err := r.existing(id)
	if err != nil {
		return err
	}
	done := func() bool {
		status, _, err := shim.Status(dir)
		return err != nil || status == runtime.Exited
	}
	return shim.ReadLog(ctx, dir, cursor, follow, done, func(l shim.Line) error {
		return emit(runtime.Line{At: l.At, Stderr: l.Stream == "stderr", Text: l.Log, Cursor: l.Cursor})
	})
}
