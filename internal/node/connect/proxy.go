package connect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/connect/traffic"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// proxy is the agent's end of one proxy.
type proxy struct {
	proxies *Proxies
	netns   string
	task    *acs.Task
	// container is whose network namespace it is, or "" if it's the task's.
	container string
	dir       string
	plan      *plan
}

// Start is what a proxy is started with.
type Start struct {
	NetNS   string
	Command []string
	Sockets []*os.File // the one by which it's asked, and then those of its listeners
	Input   []byte     // what it reads: an Instruction
	Output  *os.File   // its log
}

// Instruction is what a proxy is told when it begins.
type Instruction struct {
	Container string // whose it is, if each container of the task has one
	Listeners []traffic.Listener
	Targets   map[string][]traffic.Target
}

// The files of a proxy's directory: the socket by which it's asked, its log, which network namespace it's in, and which process it is.
const (
	socketFile  = "socket"
	logFile     = "log"
	netnsFile   = "netns"
	processFile = "process"
	cursorFile  = "cursor" // how far the log is shipped
)

// How long a proxy may take to answer the agent, on a machine that is busy, and to end. One that takes longer is killed.
const (
	patience = 30 * time.Second
	endTime  = 5 * time.Second
)

// begin finds the proxy of an earlier agent, or starts one.
func (x *proxy) begin() error {
	ctx := context.Background()
	here, err := identity(x.netns)
	if err != nil {
		return err
	}
	before, _ := os.ReadFile(filepath.Join(x.dir, netnsFile)) //nolint:errcheck // without it there is none
	targets, _ := x.proxies.targets(x.plan)
	if string(before) == here && x.tell(ctx, targets) == nil {
		return nil
	}
	x.stop() // it's in the namespace of a container that was made anew
	return x.start()
}

// identity tells a network namespace from others, as long as a process is in it.
func identity(netns string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(netns, &s); err != nil {
		return "", fmt.Errorf("%s: %w", netns, err)
	}
	return fmt.Sprint(s.Dev, " ", s.Ino), nil
}

// start starts a process. Connections to its sockets wait until it's ready. What an earlier one has said stays in the log.
func (x *proxy) start() error {
	x.kill()
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(x.dir, socketFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	here, err := identity(x.netns)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(x.dir, netnsFile), []byte(here), 0o600); err != nil {
		return err
	}
	targets, _ := x.proxies.targets(x.plan)
	input, err := json.Marshal(Instruction{x.container, x.plan.listeners, targets})
	if err != nil {
		return err
	}
	output, err := os.OpenFile(filepath.Join(x.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	sockets, err := network.ListenAliases(x.netns, x.plan.aliases, x.plan.ports)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range sockets {
			s.Close()
		}
	}()
	control, err := x.listen()
	if err != nil {
		return err
	}
	sockets = append([]*os.File{control}, sockets...)
	do := x.proxies.opts.Start
	if do == nil {
		do = x.startProcess
	}
	return do(&Start{
		NetNS:   x.netns,
		Command: append(x.proxies.opts.Program[:len(x.proxies.opts.Program):len(x.proxies.opts.Program)], filepath.Base(x.dir)),
		Sockets: sockets,
		Input:   input,
		Output:  output,
	})
}

// startProcess starts a proxy's process, detached from this one.
func (x *proxy) startProcess(s *Start) error {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Args[0] = "pintle"
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.Stdin = bytes.NewReader(s.Input)
	cmd.Stdout, cmd.Stderr = s.Output, s.Output
	cmd.ExtraFiles = s.Sockets
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := network.StartIn(s.NetNS, cmd); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // only to reap it; the socket tells of its end
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		return nil // it has ended, as the socket tells
	}
	return file.WriteJSON(filepath.Join(x.dir, processFile), p, false)
}

// process is a process, told from others that had its id before.
type process struct {
	PID       int
	StartTime uint64
}

func identify(pid int) (process, error) {
	at, err := program.StartTime(pid)
	return process{pid, at}, err
}

// kill ends the process that may still be there, and doesn't answer: it holds its connections, and what memory they take.
func (x *proxy) kill() {
	var was process
	if file.ReadJSON(filepath.Join(x.dir, processFile), &was) != nil || was.PID <= 1 {
		return
	}
	p, err := os.FindProcess(was.PID) // from now on this is one process, whatever becomes of its id
	if err != nil {
		return
	}
	defer p.Release() //nolint:errcheck // it's only forgotten
	if now, err := identify(was.PID); err == nil && now == was {
		p.Kill() //nolint:errcheck // it may have ended by itself
	}
}

// at calls do with a path of the control socket that is short enough for one, however long the directory's is.
func (x *proxy) at(do func(path string) error) error {
	dir, err := os.Open(x.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + socketFile)
}

func (x *proxy) listen() (f *os.File, err error) {
	err = x.at(func(path string) error {
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		defer l.Close()
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		f, err = l.(*net.UnixListener).File()
		return err
	})
	return f, err
}

func (x *proxy) dial(ctx context.Context) (c net.Conn, err error) {
	err = x.at(func(path string) error {
		c, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// ask asks the proxy, over a connection for this question.
func (x *proxy) ask(ctx context.Context, method, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.proxies.opts.Patience, patience))
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://proxy"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return x.dial(ctx) },
		DisableKeepAlives: true,
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

func (x *proxy) tell(ctx context.Context, targets map[string][]traffic.Target) error {
	return x.ask(ctx, http.MethodPut, targetsPath, targets, nil)
}

func (x *proxy) counts(ctx context.Context) (counts []traffic.Count, err error) {
	return counts, x.ask(ctx, http.MethodPost, countsPath, nil, &counts)
}

// stop ends the process.
func (x *proxy) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if err := x.ask(ctx, http.MethodPost, endPath, nil, nil); err != nil {
		x.kill() // it doesn't answer, unless it has ended
	}
}

// end ends the process, and removes its directory once its log was shipped.
func (x *proxy) end(shipped func()) {
	x.stop()
	shipped()
	if err := os.RemoveAll(x.dir); err != nil {
		x.proxies.opts.Log.Error("cannot remove a proxy's files", "error", err)
	}
}

// restartPause is how long a proxy that has ended stays so, at least.
const restartPause = time.Second

// follow tells the proxy where the endpoints' tasks are, until ctx ends. It starts it again when it has ended.
func (x *proxy) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := x.accompany(ctx)
		if ctx.Err() != nil {
			return
		}
		x.proxies.opts.Log.Error("a proxy of Service Connect is started again", "proxy", filepath.Base(x.dir), "reason", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartPause):
		}
		if err := x.start(); err != nil && ctx.Err() == nil {
			x.proxies.opts.Log.Error("cannot start a proxy of Service Connect", "proxy", filepath.Base(x.dir), "error", err)
		}
	}
}

// accompany tells one process until it has ended, or doesn't answer.
func (x *proxy) accompany(ctx context.Context) error {
	alive, err := x.dial(ctx)
	if err != nil {
		return err
	}
	defer alive.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		alive.Read(make([]byte, 1)) //nolint:errcheck // it ends with the process
	}()
	for {
		targets, changed := x.proxies.targets(x.plan)
		if err := x.tell(ctx, targets); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return io.EOF
		case <-changed:
		}
	}
}
