package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/pattern"
)

// Containers are the containers of one runtime, each in a directory of its own.
type Containers struct{ Dir string }

// specFile appears once a container is completely created.
const specFile = "spec.json"

var idRE = pattern.New(`^[A-Za-z0-9_-]+$`, 200)

// Path returns the path of a container's directory, which may not exist.
func (c Containers) Path(id string) (string, error) {
	if !idRE.MatchString(id) {
		return "", fmt.Errorf("container id %q is not made of letters, digits, - and _", id)
	}
	return filepath.Join(c.Dir, id), nil
}

// Find returns the directory of an existing container.
func (c Containers) Find(id string) (string, error) {
	dir, err := c.Path(id)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, specFile)); err != nil {
		return "", fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
	}
	return dir, nil
}

// IsRunning reports whether a container runs. One that isn't there doesn't.
func (c Containers) IsRunning(id string) (bool, error) {
	dir, err := c.Find(id)
	if errors.Is(err, runtime.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	status, _, err := Status(dir)
	return status == runtime.Running, err
}

// WriteSpec writes the spec of the container in dir. From then on the container exists.
func WriteSpec(dir string, spec *runtime.Spec) error {
	return file.WriteJSON(filepath.Join(dir, specFile), spec, true)
}

// ReadSpec reads the spec of the container in dir. The error is a *file.Damage if it isn't one.
func ReadSpec(dir string) (*runtime.Spec, error) {
	spec := new(runtime.Spec)
	return spec, readWhole(filepath.Join(dir, specFile), spec)
}

// readWhole reads a file that was written whole, so that one which isn't JSON is damaged.
func readWhole(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &file.Damage{Path: path, Offset: -1, What: "isn't what was written: " + err.Error()}
	}
	return nil
}

// isDamage reports whether a file isn't what was written.
func isDamage(err error) bool {
	_, damaged := errors.AsType[*file.Damage](err)
	return damaged
}

// List lists an owner's containers, and those whose owner nobody knows: one that runs must not be taken for gone.
func (c Containers) List(owner string) ([]runtime.Container, error) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, err
	}
	var out []runtime.Container
	for _, e := range entries {
		dir := filepath.Join(c.Dir, e.Name())
		spec, err := ReadSpec(dir)
		unknown := isDamage(err)
		if err != nil && !unknown || err == nil && spec.Owner != owner {
			continue // not completely created, or another owner's
		}
		status, st, err := Status(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, runtime.Container{
			ID:        e.Name(),
			Unknown:   unknown,
			Labels:    spec.Labels,
			Status:    status,
			PID:       st.PID,
			StartedAt: st.StartedAt,
			Exit:      st.Exit(),
		})
	}
	return out, nil
}

// Open returns an existing container's directory and spec.
func (c Containers) Open(id string) (dir string, spec *runtime.Spec, err error) {
	if dir, err = c.Find(id); err != nil {
		return "", nil, err
	}
	spec, err = ReadSpec(dir)
	return dir, spec, err
}

// Stop sends a container its stop signal, and SIGKILL after the grace period. A container that was never started needs neither. The runtime
// passes its ways to send a signal and to wait for the end.
func (c Containers) Stop(
	ctx context.Context, id string, grace time.Duration,
	signal func(State, syscall.Signal) error, wait func(context.Context, string) (runtime.Exit, error),
) error {
	dir, spec, err := c.Open(id)
	if isDamage(err) {
		spec = new(runtime.Spec) // it's stopped by the default signal
	} else if err != nil {
		return err
	}
	if _, started, err := ReadState(dir); !isDamage(err) && (err != nil || !started) {
		return err
	}
	send := func(s syscall.Signal) error {
		st, started, err := ReadState(dir)
		if err != nil || !started || !st.Running() {
			return err
		}
		if err := signal(st, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	}
	if err := send(stopSignal(spec.StopSignal)); err != nil && !isDamage(err) { // with damage its first process has ended just now
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if _, err := wait(waiting, id); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := send(syscall.SIGKILL); err != nil {
		return err
	}
	_, err = wait(ctx, id)
	return err
}

// firstRealTime is the C library's SIGRTMIN. The library keeps the first two real-time signals for itself.
const firstRealTime = 34

// stopSignal parses forms such as SIGINT, INT, 2 and SIGRTMIN+3. Anything else is SIGTERM.
func stopSignal(name string) syscall.Signal {
	name = "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if s := unix.SignalNum(name); s != 0 {
		return s
	}
	if number, ok := strings.CutPrefix(name, "SIGRTMIN+"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n <= 30 {
			return syscall.Signal(firstRealTime + n)
		}
	}
	name = strings.TrimPrefix(name, "SIG")
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n)
	}
	return syscall.SIGTERM
}

// Logs streams a container's output.
func (c Containers) Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error {
	dir, err := c.Find(id)
	if err != nil {
		return err
	}
	done := func() bool {
		if _, err := c.Find(id); err != nil {
			return true // it was removed
		}
		status, _, err := Status(dir)
		return err != nil || status == runtime.Exited
	}
	return readLog(ctx, dir, cursor, follow, done, func(l Line) error {
		return emit(runtime.Line{At: l.At, Stderr: l.Stream == "stderr", Text: l.Log, Cursor: l.Cursor})
	})
}
