// Package program is the shim itself: the small process that is each container's parent, and writes down its output and exit code. It
// decides nothing. Package shim, in the agent, starts one for each container and reads what it writes. A machine runs hundreds of them, so
// this package imports nothing that costs memory: no fmt, no encoding/json, no os/exec, and nothing of ours.
package program

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Format is the version of the commands that an agent writes and of the files that it reads. Raise it with each change that the other side
// doesn't understand. pintle-shim --format prints it, so that an agent notices a program of another version.
const Format = "2"

// The files of a container's directory.
const (
	CommandFile = "command"
	StateFile   = "state.json"
	AliveFile   = "alive" // a FIFO that the shim holds open for as long as it lives
	LockFile    = "lock"
)

// LostCode is the exit code of a container whose real one nobody knows.
const LostCode = 137

// Main is the process: pintle-shim DIR, or pintle shim DIR. It says on file descriptor 3 whether the command started.
func Main(args []string) int {
	runtime.LockOSThread() // Pdeathsig kills a child when the thread that created it ends
	if len(args) == 1 && args[0] == "--format" {
		os.Stdout.WriteString(Format + "\n") //nolint:errcheck // who reads it sees that it isn't there
		return 0
	}
	ready := os.NewFile(3, "ready")
	syscall.CloseOnExec(3)
	if len(args) != 1 || ready == nil {
		os.Stderr.WriteString("pintle-shim is started by the agent, not by hand\n") //nolint:errcheck // there is nobody else to tell
		return 2
	}
	// Only the agent decides when the container ends. We catch these signals instead of ignoring them, because the container would inherit
	// ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if err := run(args[0], ready); err != nil {
		ready.WriteString(err.Error()) //nolint:errcheck // an agent that has gone finds no state
		return 1
	}
	return 0
}

// run starts the command, and stays until it has ended and its output is written down.
func run(dir string, ready *os.File) error {
	if _, err := openAlive(dir); err != nil {
		return err
	}
	if first, err := lockOnce(dir); err != nil || !first {
		return err
	}
	b, err := os.ReadFile(dir + "/" + CommandFile)
	if err != nil {
		return err
	}
	c, err := parse(b)
	if err != nil {
		return err
	}
	log, err := openLog(dir)
	if err != nil {
		return err
	}
	out, err := openOutput(log)
	if err != nil {
		return err
	}
	pid, err := c.create(out) // we hold the lock, so no other shim does the same
	out.closeWriters()
	if err != nil {
		return err
	}
	st := state{pid: pid, startedAt: time.Now().UTC()}
	st.startTime, _ = StartTime(pid) // it may have ended already
	if err := st.write(dir); err != nil {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // what isn't written down must not run
		return err
	}
	if err := c.start(); err != nil {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		st.reason = err.Error()
		ready.WriteString(st.reason) //nolint:errcheck // an agent that has gone reads the state
	}
	ready.Close()
	st.exitCode = c.awaitExit(pid)
	out.drain()
	log.Close()
	st.ended = true
	st.finishedAt = time.Now().UTC()
	return st.writeEnd(dir)
}

// openAlive opens the FIFO that shows agents that this process is alive. It stays open until the process ends.
func openAlive(dir string) (fd int, err error) {
	return syscall.Open(dir+"/"+AliveFile, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
}

// lockOnce returns true for only one shim in a container's life, or since the agent removed the state to have it started again. An agent that was killed while it started a shim starts another when it's
// back, but the container must not run twice. The lock is held until the process ends.
func lockOnce(dir string) (first bool, err error) {
	lock, err := syscall.Open(dir+"/"+LockFile, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: dir + "/lock", Err: err}
	}
	if syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, nil
	}
	_, err = os.Lstat(dir + "/" + StateFile)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// state is the content of StateFile.
type state struct {
	pid        int
	startTime  uint64
	startedAt  time.Time
	ended      bool
	exitCode   int
	finishedAt time.Time
	reason     string // why nobody knows the exit code
}

// write replaces the container's state, whole or not at all.
func (st state) write(dir string) error { return replace(dir+"/"+StateFile, st.encode()) }

// encode returns the state as JSON.
func (st state) encode() []byte {
	b := []byte(`{"PID":`)
	b = strconv.AppendInt(b, int64(st.pid), 10)
	b = append(b, `,"StartTime":`...)
	b = strconv.AppendUint(b, st.startTime, 10)
	b = append(b, `,"StartedAt":`...)
	b = appendTime(b, st.startedAt)
	b = append(b, `,"Ended":`...)
	b = strconv.AppendBool(b, st.ended)
	b = append(b, `,"ExitCode":`...)
	b = strconv.AppendInt(b, int64(st.exitCode), 10)
	b = append(b, `,"FinishedAt":`...)
	b = appendTime(b, st.finishedAt)
	if st.reason != "" {
		b = append(b, `,"Error":`...)
		b = appendString(b, st.reason)
	}
	return append(b, '}')
}

// writeEnd writes the container's end. Where a new file can't be written, as on a full disk, it overwrites the old one, which has its room. Nobody
// else knows the exit code, so it tries until it can.
func (st state) writeEnd(dir string) error {
	for {
		err := st.write(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) { // then the container has been removed
			return err
		}
		if overwrite(dir+"/"+StateFile, st.encode()) == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// overwrite changes a file in its place.
func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Truncate(int64(len(b)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replace is file.Replace, which would bring encoding/json with it. Nobody else writes the state while the shim has the lock.
func replace(path string, b []byte) error {
	unfinished := path + ".new"
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
