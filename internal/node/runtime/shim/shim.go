// Package shim keeps containers alive and accounted for while agents come and go. It starts a small process beside each container (package
// program), finds out what that does and how the container ends, and reads the output that it writes. The process and oci runtimes use
// it.
package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// Command is what a shim runs. An empty Env is the agent's.
type Command = program.Command

// State is a container's state as its shim writes it. It's in the container's directory as state.json, which is replaced atomically.
type State struct {
	PID        int    // of the container's first process, here
	StartTime  uint64 // of that process, in clock ticks since boot, because PIDs are reused
	StartedAt  time.Time
	Ended      bool
	ExitCode   int
	FinishedAt time.Time
	Error      string `json:",omitempty"` // why the exit code is unknown
}

// Program is the command line of the process beside each container.
type Program []string

// Find looks for pintle-shim beside the agent's own program. Without a matching one the agent's program is the shim, and reason says why.
func Find(ctx context.Context, agent string) (p Program, reason error) {
	path := filepath.Join(filepath.Dir(agent), "pintle-shim")
	out, err := exec.CommandContext(ctx, path, "--format").Output()
	if err != nil {
		return Program{agent, "shim"}, err
	}
	if format := strings.TrimSpace(string(out)); format != program.Format {
		return Program{agent, "shim"}, fmt.Errorf(
			"%s is of another version: it reads and writes format %s, not %s", path, format, program.Format,
		)
	}
	return Program{path}, nil
}

// Start starts a shim in the container's directory, detached from this process. It returns once the command runs.
func Start(ctx context.Context, dir string, p Program, c Command) error {
	if err := checkRoom("/proc"); err != nil {
		return err
	}
	if err := writeCommand(dir, c); err != nil {
		return err
	}
	if err := syscall.Mkfifo(filepath.Join(dir, program.AliveFile), 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	ready, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(p[0], append(p[1:len(p):len(p)], dir)...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=20", "GOMEMLIMIT=8MiB") // there are many: memory counts more than speed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start a shim: %w", err)
	}
	go cmd.Wait() //nolint:errcheck // only to reap it; its outcome is in state.json
	defer context.AfterFunc(ctx, func() { ready.Close() })()
	message := make([]byte, 4096)
	if n, _ := ready.Read(message); n > 0 {
		return errors.New(string(message[:n]))
	}
	return awaitStart(ctx, dir)
}

// writeCommand writes the shim's command. It has the whole environment, with the last value of each variable.
func writeCommand(dir string, c Command) error {
	path := filepath.Join(dir, program.CommandFile)
	_, err := os.Stat(path)
	c.Again = err == nil
	c.Env = (&exec.Cmd{Env: c.Env, Dir: c.Dir}).Environ()
	b, err := c.Encode()
	if err != nil {
		return err
	}
	return file.Replace(path, b, true)
}

// awaitStart returns once the command runs. Its shim may have been started by another agent, or killed.
func awaitStart(ctx context.Context, dir string) error {
	for {
		over := isGone(dir) // checked first, so that we see what a shim writes before its end
		if _, started, err := ReadState(dir); started || err != nil {
			return err
		}
		if over {
			return errors.New("the process that was to watch over the container was killed before it started")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(minPoll):
		}
	}
}

// ReadState reads a container's state; ok is false if it was never started. The error is a *file.Damage if the file isn't what was written, and
// the container doesn't run: one that does is found all the same, so that it can be stopped.
func ReadState(dir string) (st State, ok bool, err error) {
	err = readWhole(filepath.Join(dir, program.StateFile), &st)
	if errors.Is(err, os.ErrNotExist) {
		return st, false, nil
	}
	if isDamage(err) {
		if st, ok := found(dir); ok {
			return st, true, nil
		}
		return State{}, false, err
	}
	return st, err == nil, err
}

// openAlive opens the shim's FIFO, which ends when the shim does. Closing it ends a pending read.
func openAlive(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, program.AliveFile), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// isGone reports whether the container's shim has ended, and so nobody holds its FIFO open for writing.
func isGone(dir string) bool {
	fd, err := syscall.Open(filepath.Join(dir, program.AliveFile), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer syscall.Close(fd)
	_, err = syscall.Read(fd, make([]byte, 1))
	return !errors.Is(err, syscall.EAGAIN)
}

// Running reports whether the container's first process still exists, and its PID wasn't reused.
func (st State) Running() bool {
	at, err := program.StartTime(st.PID)
	return err == nil && at == st.StartTime && !st.Ended
}
