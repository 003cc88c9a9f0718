package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// create runs Args, and returns the ID of the container's first process.
func (c *Command) create(out *output) (pid int, err error) {
	if c.Again {
		if err := c.run(c.Undo); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, out.writers[0], out.writers[1]
	if c.OpenStdin {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		cmd.Stdin, out.stdin = r, w
	}
	// What the command leaves behind becomes the shim's child.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	if c.PIDFile == "" {
		// Before its state is on disk, a process without its shim would be started once more.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}
	// The command itself ends with the shim: the next one undoes what it has done.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", c.Args[0], err)
	}
	b, err := os.ReadFile(c.PIDFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// start starts a container that create has made ready, where it did no more than that.
func (c *Command) start() error { return c.run(c.Then) }

// run runs a command line of the engine's to its end, if there is one.
func (c *Command) run(args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// awaitExit blocks until the container's first process has ended, and returns its exit code as a shell
// shows it: 128 more than the signal that ended it.
func (c *Command) awaitExit(pid int) int {
	code := reap(pid)
	if c.PIDFile == "" {
		killRest()
	}
	return code
}

// reap waits for a child, and for other processes that were left to the shim.
func reap(pid int) int {
	for {
		var ws syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || err == nil && ended != pid:
			continue
		case err != nil:
			return LostCode
		case ws.Signaled():
			return 128 + int(ws.Signal())
		}
		return ws.ExitStatus()
	}
}

// killRest ends what the command has left behind, as in a container, whatever session it is in: it is the shim's now. The
// children of what is killed are the next.
func killRest() {
	for range maxGenerations {
		children := ChildrenOf(os.Getpid())
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			syscall.Wait4(pid, nil, 0, nil)    //nolint:errcheck // it is looked for again
		}
	}
}

// maxGenerations bounds how long the shim is at what starts processes faster than they are ended.
const maxGenerations = 1000

// ChildrenOf are a process's children: each of its threads knows those that it made.
func ChildrenOf(pid int) (pids []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, path := range threads {
		children, _ := os.ReadFile(path) // the thread may have ended
		for _, c := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(c); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// output carries what a container writes to its log.
type output struct {
	stdin   *os.File    // nobody writes to it; it is open for as long as the container runs
	writers [2]*os.File // the ends that the container writes to: stdout, stderr
	readers [2]*os.File
	copying sync.WaitGroup
}

func openOutput(log *logWriter) (*output, error) {
	o := new(output)
	for i, name := range []string{"stdout", "stderr"} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		o.writers[i], o.readers[i] = w, r
		to := log.stream(name)
		o.copying.Go(func() { io.Copy(to, r) }) //nolint:errcheck // it ends when the container's side is closed, or drain does
	}
	return o, nil
}

// closeWriters leaves the pipes to the container.
func (o *output) closeWriters() {
	for _, f := range o.writers {
		f.Close()
	}
}

// drainTime is how long the end of a container's output may take to come: a process that has left its
// container and keeps the pipes must not keep the shim.
const drainTime = 2 * time.Second

// drain waits until what the container has written is in the log.
func (o *output) drain() {
	late := time.AfterFunc(drainTime, func() {
		for _, f := range o.readers {
			f.Close()
		}
	})
	defer late.Stop()
	o.copying.Wait()
}
