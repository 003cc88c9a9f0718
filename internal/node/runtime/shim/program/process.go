package program

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// prSetChildSubreaper is prctl's PR_SET_CHILD_SUBREAPER.
const prSetChildSubreaper = 36

// An interrupted attempt's command dies with its shim, but a moment after that's known: by then it may have made the container that was undone.
const (
	lateTries = 5
	lateTime  = 100 * time.Millisecond
)

// create runs Args, and returns the ID of the container's first process.
func (c *Command) create(out *output) (pid int, err error) {
	if c.Again {
		if err := c.run(c.Undo); err != nil {
			return 0, err
		}
	}
	// What the command leaves behind becomes the shim's child.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return 0, os.NewSyscallError("prctl", errno)
	}
	stdin, err := c.openStdin()
	if err != nil {
		return 0, err
	}
	defer syscall.Close(stdin) //nolint:errcheck // the container has its own
	files := []uintptr{uintptr(stdin), uintptr(out.writers[0]), uintptr(out.writers[1])}
	if c.PIDFile == "" {
		// The process dies with the shim. Otherwise, before its state is on disk, it would be started a second time.
		return c.fork(c.Args, files, &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL})
	}
	err = c.make(files, out)
	for try := 0; err != nil && c.Again && try < lateTries; try++ {
		time.Sleep(lateTime)
		if err = c.run(c.Undo); err == nil {
			err = c.make(files, out)
		}
	}
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile(c.PIDFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// make runs Args to the end, and takes over the terminal of the container that it has created, if that has one.
func (c *Command) make(files []uintptr, out *output) error {
	var socket *console
	if c.Console != "" {
		var err error
		if socket, err = openConsole(c.Dir, c.Console); err != nil {
			return err
		}
		defer socket.close()
	}
	// The command dies with the shim too, and the next shim undoes what it did.
	maker, err := c.fork(c.Args, files, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	if err != nil {
		return err
	}
	if err := c.await(maker, c.Args); err != nil || socket == nil {
		return err
	}
	terminal, err := socket.receive()
	if err != nil {
		return err
	}
	return out.read(terminal, "stdout")
}

// openStdin opens the container's standard input: /dev/null, or a pipe that nobody writes to. The shim holds the pipe's other end as long
// as it lives.
func (c *Command) openStdin() (fd int, err error) {
	if !c.OpenStdin {
		return syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
	var ends [2]int
	err = syscall.Pipe2(ends[:], syscall.O_CLOEXEC)
	return ends[0], err
}

// start starts the container if create only made it ready.
func (c *Command) start() error { return c.run(c.Then) }

// run runs one of the runtime's command lines to its end. An empty one does nothing.
func (c *Command) run(args []string) error {
	if len(args) == 0 {
		return nil
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(null) //nolint:errcheck // nothing was written
	pid, err := c.fork(args, []uintptr{uintptr(null), uintptr(null), uintptr(null)}, nil)
	if err != nil {
		return err
	}
	return c.await(pid, args)
}

// fork starts a process. We don't use os.StartProcess, because it would first fork another process to test for pidfds.
func (c *Command) fork(args []string, files []uintptr, sys *syscall.SysProcAttr) (pid int, err error) {
	pid, err = syscall.ForkExec(args[0], args, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files, Sys: sys})
	if err != nil {
		return 0, &os.PathError{Op: "fork/exec", Path: args[0], Err: err}
	}
	return pid, nil
}

// await waits for a command line to succeed.
func (c *Command) await(pid int, args []string) error {
	ws, err := wait(pid)
	switch {
	case err != nil:
		return errors.New(args[0] + ": " + err.Error())
	case ws.Signaled():
		return errors.New(args[0] + ": signal: " + ws.Signal().String())
	case ws.ExitStatus() != 0:
		return errors.New(args[0] + ": exit status " + strconv.Itoa(ws.ExitStatus()))
	}
	return nil
}

// wait waits for a child.
func wait(pid int) (ws syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			return ws, err
		}
	}
}

// awaitExit blocks until the container's first process has ended, and returns its exit code. As in a shell, that's 128 plus the signal if a
// signal ended it.
func (c *Command) awaitExit(pid int) int {
	code := reap(pid)
	if c.PIDFile == "" {
		killRest()
	}
	return code
}

// reap waits for a child, and reaps other processes that became the shim's children.
func reap(pid int) int {
	for {
		var ws syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR || err == nil && ended != pid:
			continue
		case err != nil:
			return LostCode
		case ws.Signaled():
			return 128 + int(ws.Signal())
		}
		return ws.ExitStatus()
	}
}

// killRest kills all processes that the command left behind, in whatever session, as happens in a container. They're the shim's children
// now. Their own children become the shim's in the next round.
func killRest() {
	for range maxGenerations {
		children := ChildrenOf(os.Getpid())
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			syscall.Wait4(pid, nil, 0, nil)    //nolint:errcheck // the next round looks again
		}
	}
}

// maxGenerations limits killRest if something starts processes faster than we kill them.
const maxGenerations = 1000

// ChildrenOf lists a process's children. Each of its threads lists those that it created.
func ChildrenOf(pid int) (pids []int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(tasks) // the process may have ended
	for _, thread := range threads {
		children, _ := os.ReadFile(tasks + thread.Name() + "/children") // the thread may have ended
		for _, c := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(c); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// StartTime returns when a process started, in clock ticks since boot: field 22 of /proc/PID/stat, counted after the name.
func StartTime(pid int) (uint64, error) {
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
