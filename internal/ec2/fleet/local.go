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

// Local runs an agent for each instance on this machine, of the instance's type, in a directory of its own. The agents
// outlive the control plane, which finds them again by the locks that they hold, from the first moment on; one that ends
// by itself is started anew, as a machine's init would. What an instance has is in its directory, and goes with it, once
// an agent has said there that nothing of its runs any more.
type Local struct {
	opts LocalOptions

	mu      sync.Mutex
	stopped bool                // no agent is to be started any more
	ending  map[string]bool     // instances whose agents are not to be started again
	starts  map[string]attempts // of agents that end by themselves
}

// LocalOptions are what Local needs.
type LocalOptions struct {
	Program string   // the pintle binary
	Dir     string   // of all instances
	Args    []string // of every agent, besides what makes it the instance's
	Env     []string // of every agent, besides this process's
	Most    int      // instances on this machine
	Real    bool     // the machine stands for its instance's type with what it has; else the type is simulated
	Log     *slog.Logger
}

// attempts are when an agent was started last, and how often in a row it was.
type attempts struct {
	at time.Time
	n  int
}

// Files of an instance's directory, which is its agent's.
const (
	// LockFile is the lock that the agent holds.
	LockFile = "agent.lock"
	// OffFile is there when the agent has ended, and none of its containers runs.
	OffFile     = "off"
	machineFile = "machine.json"
	tasksDir    = "tasks" // there once the agent has come to run tasks
)

const (
	// ends is how long an agent may take to stop its tasks.
	ends = 45 * time.Second
	// signs is how long an agent may take from its start until it can be told to end, and from SIGKILL to its end.
	signs = 10 * time.Second
	// ended is how often an agent is started to stop the tasks that one before it has left.
	ended = 3
)

// NewLocal returns the fleet of this machine.
func NewLocal(o LocalOptions) *Local {
	return &Local{opts: o, ending: map[string]bool{}, starts: map[string]attempts{}}
}

func (l *Local) dir(id string) string  { return filepath.Join(l.opts.Dir, id) }
func (l *Local) lock(id string) string { return filepath.Join(l.dir(id), LockFile) }
func (l *Local) log(id string) string  { return filepath.Join(l.dir(id), "agent.log") }

// runs reports whether an instance's agent does, be it that it is still starting.
func (l *Local) runs(id string) bool {
	_, runs := file.Holder(l.lock(id))
	return runs
}

// started reports whether an instance's agent runs, and has found what it needs.
func (l *Local) started(id string) bool {
	pid, _ := file.Holder(l.lock(id))
	return pid != 0
}

// errStopped says that the fleet has stopped.
var errStopped = errors.New("the fleet has stopped")

// Launch makes the instance's directory and starts its agent, unless it runs. It waits until the agent has found what it
// needs. One that ends instead says why in its log. Once the fleet has stopped it waits for ctx to end, so that the instance is
// the next control plane's to launch.
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
	until(ctx, signs, func() bool {
		select {
		case <-ended:
			over = true
		default:
		}
		return over || l.started(m.InstanceID)
	})
	switch {
	case l.started(m.InstanceID):
		return nil
	case over:
		return fmt.Errorf("the agent ends at once: %s", lastLine(l.log(m.InstanceID)))
	}
	return cmp.Or(ctx.Err(), fmt.Errorf("the agent has not started within %s: %s", signs, lastLine(l.log(m.InstanceID))))
}

// lastLine is the last line of a log, as far as it is not too long.
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
	// By it the agent is started again, also once the machine's power has failed.
	if err := errors.Join(file.WriteJSON(filepath.Join(dir, machineFile), m, true), file.SyncDir(dir), file.SyncDir(l.opts.Dir)); err != nil {
		return nil, err
	}
	return l.start(m)
}

// start starts an instance's agent, unless it runs, and gives a channel that is closed when it ends. The agent gets the
// lock with it, so that it can be found at once.
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
	args := []string{"agent", "--ephemeral", "--endpoint", m.Endpoint, "--cluster", m.Cluster, "--data", dir, "--name", m.InstanceID, "--instance-id", m.InstanceID, "--lock-fd", "3"}
	if l.opts.Real {
		args = append(args, "--stands-for", m.InstanceType)
	} else {
		args = append(args, "--instance-type", m.InstanceType, "--metrics=") // of all instances one could serve them
	}
	if m.Zone != "" {
		args = append(args, "--availability-zone", m.Zone)
	}
	for name, value := range m.Attributes {
		args = append(args, "--attribute", name+"="+value)
	}
	cmd := exec.Command(l.opts.Program, append(args, l.opts.Args...)...)
	cmd.Env = append(os.Environ(), append(l.opts.Env, "AWS_REGION="+m.Region)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it is not for ctrl-C, nor for whatever ends the control plane
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() { // it ends with the agent
		defer close(over)
		cmd.Wait() //nolint:errcheck // the lock tells how it is, and the log
	}()
	return over, nil
}

// Terminate has the instance's agent stop its tasks and end, and removes its directory.
func (l *Local) Terminate(ctx context.Context, id string) error {
	l.setEnding(id, true)
	defer l.setEnding(id, false)
	if _, err := os.Stat(l.dir(id)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := l.stop(ctx, id); err != nil {
		return err
	}
	return os.RemoveAll(l.dir(id))
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

// stop ends an instance's agent and its tasks. An agent that is not there, or is killed meanwhile, leaves them to it: so
// one is started to stop them.
func (l *Local) stop(ctx context.Context, id string) error {
	for range ended {
		if !l.runs(id) {
			m, err := l.machine(id)
			if err != nil || l.off(id) {
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
	if !l.runs(id) && l.off(id) {
		return nil
	}
	return fmt.Errorf("the agent of %s ends without having stopped its tasks; %s says why", id, l.log(id))
}

// off reports whether nothing of an instance runs that has no agent.
func (l *Local) off(id string) bool {
	_, off := os.Stat(filepath.Join(l.dir(id), OffFile))
	_, tasks := os.Stat(filepath.Join(l.dir(id), tasksDir))
	return off == nil || errors.Is(tasks, os.ErrNotExist)
}

// end has an instance's agent end, if it runs.
func (l *Local) end(ctx context.Context, id string) error {
	gone := func() bool { return !l.runs(id) }
	until(ctx, signs, func() bool { return l.started(id) || gone() })
	for _, e := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, ends}, {syscall.SIGKILL, signs}} {
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

// until waits until something is so, and reports whether it came to that.
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

// List are the instances that have a directory. Agents of theirs that have ended are started again.
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
			continue // Launch was cut off before it wrote it; it is called again, or the instance is ended
		}
		if err := l.revive(m); err != nil {
			l.opts.Log.Warn("cannot start an instance's agent again", "instance", id, "error", err)
		}
	}
	return ids, nil
}

// revive starts an agent again that does not run, less often the more often it has ended.
func (l *Local) revive(m Machine) error {
	a := l.starts[m.InstanceID]
	if l.runs(m.InstanceID) {
		if a.n > 0 && time.Since(a.at) > time.Minute {
			delete(l.starts, m.InstanceID)
		}
		return nil
	}
	if time.Since(a.at) < min(time.Minute, time.Second<<min(a.n, 6)) {
		return nil
	}
	if a.n > 0 {
		l.opts.Log.Warn("an instance's agent ends again and again; it is started once more", "instance", m.InstanceID, "said", lastLine(l.log(m.InstanceID)))
	}
	l.starts[m.InstanceID] = attempts{time.Now(), a.n + 1}
	_, err := l.start(m)
	return err
}

// Stop ends all agents and their tasks, and has no more be started. The instances are kept: the next control plane brings them
// back as it lists them.
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

func (l *Local) machine(id string) (m Machine, err error) {
	err = file.ReadJSON(filepath.Join(l.dir(id), machineFile), &m)
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
