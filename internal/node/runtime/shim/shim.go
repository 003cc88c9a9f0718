// Package shim keeps a container alive and accounted for while agents come and go: a small process
// beside each container that is its parent, writes down its output and, when it has ended, its exit
// code. The process and oci runtimes start one for each container. A shim decides nothing.
package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// Command is what a shim runs. It lies in the container's directory as command.json.
type Command struct {
	Args []string
	Env  []string
	Dir  string

	OpenStdin bool `json:",omitempty"` // reading from it waits, instead of finding the end

	// PIDFile is set where Args does not become the container but makes it, ready to start, and leaves
	// its process to the shim: the file is where Args writes that process's ID. Then starts it.
	PIDFile string   `json:",omitempty"`
	Then    []string `json:",omitempty"`
	// Undo removes what an attempt left that was cut off.
	Undo []string `json:",omitempty"`

	Again bool `json:",omitempty"` // there was an attempt before; Start sets it
}

// State is what a shim knows of its container. It lies in the container's directory as state.json,
// written whole or not at all.
type State struct {
	PID        int    // of the container's first process, here
	StartTime  uint64 // of that process, in clock ticks since boot: a PID may be used again
	StartedAt  time.Time
	Ended      bool
	ExitCode   int
	FinishedAt time.Time
	Error      string `json:",omitempty"` // why nobody knows the exit code
}

// The files of a container's directory.
const (
	commandFile = "command.json"
	stateFile   = "state.json"
	aliveFile   = "alive" // a FIFO that the shim holds open for as long as it lives
)

// Main is the shim process: pintle shim DIR. It says on file descriptor 3 whether the command started.
func Main(args []string) int {
	goruntime.LockOSThread()  // a child is bound to the life of the thread that made it
	debug.SetGCPercent(20)    // there is one for each container: memory counts more than speed
	debug.SetMemoryLimit(8e6) // bytes; soft
	ready := os.NewFile(3, "ready")
	syscall.CloseOnExec(3)
	if len(args) != 1 || ready == nil {
		fmt.Fprintln(os.Stderr, "pintle shim is started by the agent, not by hand")
		return 2
	}
	// The agent says when the container ends, nobody else. Caught, not ignored: a signal that is
	// ignored here would be ignored by the container too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if err := run(args[0], ready); err != nil {
		fmt.Fprint(ready, err)
		return 1
	}
	return 0
}

// run starts the command, and stays until it has ended and its output is written down.
func run(dir string, ready *os.File) error {
	alive, err := os.OpenFile(filepath.Join(dir, aliveFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer alive.Close()
	lock, first, err := lockOnce(dir)
	if err != nil || !first {
		return err
	}
	defer lock.Close()
	var c Command
	if err := file.ReadJSON(filepath.Join(dir, commandFile), &c); err != nil {
		return err
	}
	log, err := openLog(dir)
	if err != nil {
		return err
	}
	defer log.Close()
	out, err := openOutput(log)
	if err != nil {
		return err
	}
	pid, err := c.create(out) // the lock is ours: no other shim is at it
	out.closeWriters()
	if err != nil {
		return err
	}
	st := State{PID: pid, StartedAt: time.Now().UTC()}
	st.StartTime, _ = startTime(st.PID) // it may have ended already
	if err := file.WriteJSON(filepath.Join(dir, stateFile), st, true); err != nil {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // what isn't written down must not run
		return err
	}
	if err := c.start(); err != nil {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		st.Error = err.Error()
		fmt.Fprint(ready, err)
	}
	ready.Close()
	st.ExitCode = c.awaitExit(pid)
	out.drain()
	log.Close()
	st.Ended, st.FinishedAt = true, time.Now().UTC()
	return file.WriteJSON(filepath.Join(dir, stateFile), st, true)
}

// lockOnce lets one shim in a container's life go on. An agent that was killed while it started a
// shim starts another when it is back, and the container must not run twice.
func lockOnce(dir string) (lock *os.File, first bool, err error) {
	lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return lock, false, lock.Close()
	}
	if _, started, err := ReadState(dir); started || err != nil {
		return lock, false, errors.Join(err, lock.Close())
	}
	return lock, true, nil
}

// Start starts a shim in the container's directory, detached from this process, and returns once the
// command runs. self is the command line that leads to Main.
func Start(ctx context.Context, dir string, self []string, c Command) error {
	path := filepath.Join(dir, commandFile)
	_, err := os.Stat(path)
	c.Again = err == nil
	if err := file.WriteJSON(path, c, true); err != nil {
		return err
	}
	if err := syscall.Mkfifo(filepath.Join(dir, aliveFile), 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	ready, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(self[0], append(self[1:len(self):len(self)], dir)...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
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

// awaitStart returns when the command runs. The shim that starts it may be one that another agent has
// started, or may have been killed.
func awaitStart(ctx context.Context, dir string) error {
	for {
		over := gone(dir) // asked first: what a shim writes before its end is seen
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

// ReadState reads a container's state; ok is false while it has never been started.
func ReadState(dir string) (st State, ok bool, err error) {
	err = file.ReadJSON(filepath.Join(dir, stateFile), &st)
	if errors.Is(err, os.ErrNotExist) {
		return st, false, nil
	}
	return st, err == nil, err
}

// openAlive opens the shim's life: reading from it ends when the shim does. Close ends the reading.
func openAlive(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, aliveFile), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// gone says whether the container's shim has ended: then nobody holds its FIFO open for writing.
func gone(dir string) bool {
	fd, err := syscall.Open(filepath.Join(dir, aliveFile), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer syscall.Close(fd)
	_, err = syscall.Read(fd, make([]byte, 1))
	return !errors.Is(err, syscall.EAGAIN)
}

// Running says whether the container's first process is still there, and still the same.
func (st State) Running() bool {
	at, err := startTime(st.PID)
	return err == nil && at == st.StartTime && !st.Ended
}

// startTime reads when a process began: field 22 of /proc/PID/stat, counted behind the name.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
