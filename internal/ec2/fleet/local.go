package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// Local runs an agent for each instance on this machine. The agent has the instance's type and a directory of its own.
// Agents outlive the control plane, which finds them again by the locks that they hold from the first moment on. An
// agent that ends by itself is restarted, as a machine's init would do. Everything that an instance has is in its
// directory. The directory is removed with the instance, once an agent has recorded there that nothing of the instance
// runs any more.
type Local struct {
	opts LocalOptions

	mu      sync.Mutex
	stopped bool                // no more agents may be started
	ending  map[string]bool     // instances whose agents must not be restarted
	starts  map[string]attempts // of agents that ended by themselves
}

// LocalOptions configures Local.
type LocalOptions struct {
	Program string   // the pintle binary
	Dir     string   // holds the directories of all instances
	Args    []string // flags of every agent, besides those that make it the instance's
	Env     []string // environment of every agent, besides this process's
	Most    int      // the most instances on this machine
	Real    bool     // the machine stands for its instance's type with what it has; otherwise the type is simulated
	Log     *slog.Logger
}

// attempts records when an agent was last started, and how often in a row.
type attempts struct {
	at time.Time
	n  int
}

// Files in an instance's directory, which its agent uses.
const (
	// LockFile is the lock that the agent holds.
	LockFile = "agent.lock"
	// OffFile exists when the agent has ended and none of its containers runs.
	OffFile     = "off"
	machineFile = "machine.json"
	tasksDir    = "tasks" // exists once the agent can run tasks
)

const (
	// stopTimeout is how long an agent may take to stop its tasks.
	stopTimeout = 45 * time.Second
	// reactTimeout is how long an agent may take from its start until it can be told to end, and from SIGKILL to its
	// end.
	reactTimeout = 10 * time.Second
	// stopTries is how often an agent is started to stop the tasks that an earlier one has left.
	stopTries = 3
)

// NewLocal returns the fleet of this machine.
func NewLocal(o LocalOptions) *Local {
	return &Local{opts: o, ending: map[string]bool{}, starts: map[string]attempts{}}
}

func (l *Local) dir(id string) string  { return filepath.Join(l.opts.Dir, id) }
func (l *Local) lock(id string) string { return filepath.Join(l.dir(id), LockFile) }
func (l *Local) log(id string) string  { return filepath.Join(l.dir(id), "agent.log") }

// isRunning reports whether an instance's agent runs. It may still be starting.
func (l *Local) isRunning(id string) bool {
	_, runs := file.Holder(l.lock(id))
	return runs
}

// hasStarted reports whether an instance's agent runs, and has found what it needs.
func (l *Local) hasStarted(id string) bool {
	pid, _ := file.Holder(l.lock(id))
	return pid != 0
}

// errStopped says that the fleet has stopped.
var errStopped = errors.New("the fleet has stopped")

// Launch makes the instance's directory and starts its agent, unless it runs. It waits until the agent has found what
// it needs. If the agent ends instead, the last line of its log is the error. Once the fleet has stopped, Launch waits
// for ctx to end, so that the next control plane launches the instance.
func (l *Local) Launch(ctx context.Context, m Machine) error {
	ended, err := l.launch(m)
	if errors.Is(err, errStopped) {
		<-ctx.Done()
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	over := false
	until(ctx, reactTimeout, func() bool {
		select {
		case <-ended:
			over = true
		default:
		}
		return over || l.hasStarted(m.InstanceID)
	})
	switch {
	case l.hasStarted(m.InstanceID):
		return nil
	case over:
		return fmt.Errorf("the agent ends at once: %s", lastLine(l.log(m.InstanceID)))
	}
	return cmp.Or(ctx.Err(), fmt.Errorf("the agent has not started within %s: %s", reactTimeout, lastLine(l.log(m.InstanceID))))
}

// lastLine returns the last line of a log, cut to 500 bytes.
func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Sprintf("%.500s", lines[len(lines)-1])
}

func (l *Local) launch(m Machine) (ended <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return nil, errStopped
	}
	ids, err := l.ids()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ids, m.InstanceID) && len(ids) >= l.opts.Most {
		return nil, fmt.Errorf("this machine runs %d instances, which is as many as it may: --fleet-most", len(ids))
	}
	dir := l.dir(m.InstanceID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// This file lets us restart the agent, even after a power failure.
	err = errors.Join(file.WriteJSON(filepath.Join(dir, machineFile), m, true), file.SyncDir(dir), file.SyncDir(l.opts.Dir))
	if err != nil {
		return nil, err
	}
	return l.start(m)
}

// start starts an instance's agent, unless it runs, and returns a channel that is closed when it ends. The agent
// inherits the lock, so it can be found at once.
func (l *Local) start(m Machine) (ended <-chan struct{}, err error) {
	dir := l.dir(m.InstanceID)
	lock, err := file.Reserve(l.lock(m.InstanceID))
	if errors.Is(err, file.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // the agent has it
	if err := os.Remove(filepath.Join(dir, OffFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	log, err := os.OpenFile(l.log(m.InstanceID), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the agent has its own
	args := []string{
		"agent", "--ephemeral", "--endpoint", m.Endpoint, "--cluster", m.Cluster, "--data", dir,
		"--name", m.InstanceID, "--instance-id", m.InstanceID, "--lock-fd", "3",
	}
	if l.opts.Real {
		args = append(args, "--stands-for", m.InstanceType)
	} else {
		args = append(args, "--instance-type", m.InstanceType, "--metrics=") // only one of the instances could serve them
	}
	if m.Zone != "" {
		args = append(args, "--availability-zone", m.Zone)
	}
	if m.BlockIMDS {
		args = append(args, "--awsvpc-block-imds")
	}
	for name, value := range m.Attributes {
		args = append(args, "--attribute", name+"="+value)
	}
	cmd := exec.Command(l.opts.Program, append(args, l.opts.Args...)...)
	cmd.Env = append(os.Environ(), append(l.opts.Env, "AWS_REGION="+m.Region)...)
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // neither ctrl-C nor whatever ends the control plane should reach it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() { // it ends with the agent
		defer close(over)
		cmd.Wait() //nolint:errcheck // the lock and the log tell how it went
	}()
	return over, nil
}

// Terminate makes the instance's agent stop its tasks and end, and removes its directory.
func (l *Local) Terminate(ctx context.Context, id string) error {
	l.setEnding(id, true)
	defer l.setEnding(id, false)
	if _, err := os.Stat(l.dir(id)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := l.stop(ctx, id); err != nil {
		return err
	}
	return removeAll(l.dir(id))
}

func (l *Local) setEnding(id string, ending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending[id] = ending
	if !ending {
		delete(l.ending, id)
		delete(l.starts, id)
	}
}

// stop ends an instance's agent and its tasks. If the agent is gone, or is killed meanwhile, its tasks go on running,
// so another agent is started to stop them.
func (l *Local) stop(ctx context.Context, id string) error {
	for range stopTries {
		if !l.isRunning(id) {
			m, err := l.machine(id)
			if err != nil || l.isOff(id) {
				return nil
			}
			if _, err := l.start(m); err != nil {
				return err
			}
		}
		if err := l.end(ctx, id); err != nil {
			return err
		}
	}
	if !l.isRunning(id) && l.isOff(id) {
		return nil
	}
	return fmt.Errorf("the agent of %s ends without having stopped its tasks; %s says why", id, l.log(id))
}

// isOff reports whether an instance without an agent has nothing running.
func (l *Local) isOff(id string) bool {
	_, off := os.Stat(filepath.Join(l.dir(id), OffFile))
	_, tasks := os.Stat(filepath.Join(l.dir(id), tasksDir))
	return off == nil || errors.Is(tasks, os.ErrNotExist)
}

// end makes an instance's agent end, if it runs.
func (l *Local) end(ctx context.Context, id string) error {
	gone := func() bool { return !l.isRunning(id) }
	until(ctx, reactTimeout, func() bool { return l.hasStarted(id) || gone() })
	for _, e := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, stopTimeout}, {syscall.SIGKILL, reactTimeout}} {
		pid, _ := file.Holder(l.lock(id))
		if pid == 0 {
			break
		}
		if err := syscall.Kill(pid, e.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if until(ctx, e.wait, gone) {
			return nil
		}
	}
	if !gone() {
		return errors.Join(fmt.Errorf("the agent of %s does not end", id), ctx.Err())
	}
	return ctx.Err()
}

// until waits at most a while until ok holds, and reports whether it does.
func until(ctx context.Context, most time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return ok()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// List returns the instances that have a directory. It restarts their agents if they have ended.
func (l *Local) List(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, err := l.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if l.stopped || l.ending[id] {
			continue
		}
		m, err := l.machine(id)
		if err != nil {
			continue // Launch was cut off before it wrote the file; it will be called again, or the instance is ended
		}
		if err := l.revive(m); err != nil {
			l.opts.Log.Warn("cannot start an instance's agent again", "instance", id, "error", err)
		}
	}
	return ids, nil
}

// revive restarts an agent that doesn't run. The more often it has ended, the longer revive waits.
func (l *Local) revive(m Machine) error {
	a := l.starts[m.InstanceID]
	if l.isRunning(m.InstanceID) {
		if a.n > 0 && time.Since(a.at) > time.Minute {
			delete(l.starts, m.InstanceID)
		}
		return nil
	}
	if time.Since(a.at) < min(time.Minute, time.Second<<min(a.n, 6)) {
		return nil
	}
	if a.n > 0 {
		l.opts.Log.Warn("an instance's agent ends again and again; it is started once more",
			"instance", m.InstanceID, "said", lastLine(l.log(m.InstanceID)))
	}
	l.starts[m.InstanceID] = attempts{time.Now(), a.n + 1}
	_, err := l.start(m)
	return err
}

// Stop ends all agents and their tasks, and lets no more be started. The instances are kept: the next control plane
// restarts them when it lists them.
func (l *Local) Stop(ctx context.Context) error {
	l.mu.Lock()
	l.stopped = true
	ids, err := l.ids()
	l.mu.Unlock()
	var wait sync.WaitGroup
	failed := make([]error, len(ids))
	for i, id := range ids {
		wait.Go(func() { failed[i] = l.stop(ctx, id) })
	}
	wait.Wait()
	return errors.Join(append(failed, err)...)
}

// Running returns the processes of the agents that run, by instance id.
func (l *Local) Running() map[string]int {
	ids, err := l.ids()
	if err != nil {
		l.opts.Log.Warn("cannot list the instances", "error", err)
	}
	running := map[string]int{}
	for _, id := range ids {
		if pid, locked := file.Holder(l.lock(id)); locked {
			running[id] = pid
		}
	}
	return running
}

func (l *Local) machine(id string) (Machine, error) { return ReadMachine(l.dir(id)) }

// ReadMachine returns the machine that an instance's directory is of.
func ReadMachine(dir string) (m Machine, err error) {
	err = file.ReadJSON(filepath.Join(dir, machineFile), &m)
	return m, err
}

func (l *Local) ids() (ids []string, err error) {
	entries, err := os.ReadDir(l.opts.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "i-") && e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}
