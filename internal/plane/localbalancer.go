package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// localBalancer is the process that carries load balancers out on this machine. It outlives the control plane, which finds it again by the
// lock that it holds from the first moment on.
type localBalancer struct {
	plane   *Plane
	program string // what is started; this process's own program unless a test has another

	mu       sync.Mutex
	stopped  bool // by StopBalancer; it's started no more
	replaced int  // the process that was told to end because it had other settings
	started  time.Time
	ended    chan error // how the process ended that was started here, if it wasn't told to
	failures int        // in a row
}

func newLocalBalancer(p *Plane) *localBalancer {
	return &localBalancer{plane: p, ended: make(chan error, 1)}
}

func (b *localBalancer) dir() string          { return filepath.Join(b.plane.options.Data, "balancer") }
func (b *localBalancer) lock() string         { return balancerLock(b.plane.options.Data) }
func (b *localBalancer) settingsFile() string { return filepath.Join(b.dir(), "settings.json") }
func (b *localBalancer) log() string          { return filepath.Join(b.dir(), "balancer.log") }

// run has a process while there are load balancers.
func (b *localBalancer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		v := b.plane.State.Watch()
		if v.LoadBalancers.Len() > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(b.step()):
			}
			continue
		}
		v.LoadBalancers.Watch()
		v.Changed(ctx) //nolint:errcheck // it ends with ctx
	}
	return ctx.Err()
}

const (
	// maxRestartPause is the longest time until a process that fails is started again.
	maxRestartPause = time.Minute
	// steadyAfter is how long a process must run until its failures are forgotten.
	steadyAfter = 10 * time.Second
)

// step makes sure that the process runs, and returns how long to wait until it's time to look again.
func (b *localBalancer) step() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.started) > steadyAfter {
		b.failures = 0
	}
	var err error
	select {
	case err = <-b.ended:
	default:
		err = b.ensureLocked()
	}
	if err == nil {
		return time.Second
	}
	b.failures++
	pause := min(maxRestartPause, time.Second<<min(b.failures, 6))
	b.plane.log.Error("the load balancers' process", "error", err, "retry", pause)
	return pause
}

// ensureLocked starts the process unless it runs. One with other settings is ended first; its successor has its ports.
func (b *localBalancer) ensureLocked() error {
	if b.stopped {
		return nil
	}
	if err := os.MkdirAll(b.dir(), 0o700); err != nil {
		return err
	}
	wanted, err := b.settings()
	if err != nil {
		return err
	}
	if pid, runs := file.Holder(b.lock()); runs {
		var has string
		err := file.ReadJSON(b.settingsFile(), &has)
		if err == nil && has == wanted || pid == 0 || pid == b.replaced {
			return nil
		}
		b.replaced = pid
		return syscall.Kill(pid, syscall.SIGTERM)
	}
	if err := file.WriteJSON(b.settingsFile(), wanted, true); err != nil {
		return err
	}
	return b.startLocked()
}

// settings stand for everything that a process is started with. The keys among them can't be read from it.
func (b *localBalancer) settings() (string, error) {
	o := b.plane.options
	var authority []byte
	if o.Balancer.Authority != "" {
		var err error
		if authority, err = os.ReadFile(o.Balancer.Authority); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal([]any{
		b.plane.Endpoint(), o.Region, o.AccessKeyID, o.SecretAccessKey, o.Balancer.Arguments, o.Balancer.Authority, authority,
	})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// startLocked starts the process, which inherits the lock.
func (b *localBalancer) startLocked() error {
	lock, err := file.Reserve(b.lock())
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the process has it
	log, err := os.OpenFile(b.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd, err := b.command()
	if err != nil {
		return err
	}
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{lock}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.started = time.Now()
	go b.await(cmd, from)
	return nil
}

// command is the process with its settings.
func (b *localBalancer) command() (*exec.Cmd, error) {
	o := b.plane.options
	program := b.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	args := []string{"balancer", "--endpoint", b.plane.Endpoint(), "--data", b.dir(), "--lock-fd", "3"}
	cmd := exec.Command(program, append(args, o.Balancer.Arguments...)...)
	cmd.Env = append(os.Environ(), "AWS_REGION="+o.Region)
	if o.AccessKeyID != "" {
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+o.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+o.SecretAccessKey, "AWS_SESSION_TOKEN=")
	}
	if o.Balancer.Authority != "" {
		cmd.Env = append(cmd.Env, "AWS_CA_BUNDLE="+o.Balancer.Authority)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // neither ctrl-C nor whatever ends the control plane should reach it
	return cmd, nil
}

// await waits until a process has ended, and keeps its last words for the next step unless it was told to end.
func (b *localBalancer) await(cmd *exec.Cmd, from int64) {
	err := cmd.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.replaced == cmd.Process.Pid {
		return
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	err = fmt.Errorf("process %d has ended (%w); its last words in %s: %q", cmd.Process.Pid, err, b.log(), lastWords(b.log(), from))
	select {
	case b.ended <- err:
	default: // the one before hasn't been told yet
	}
}

// maxWords is how much of a process's log is repeated.
const maxWords = 1 << 10

// lastWords returns the end of what a file has from an offset on.
func lastWords(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // nothing was written
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end < from {
		from = 0 // somebody has cut the log
	}
	from = max(from, end-maxWords)
	text, _ := io.ReadAll(io.NewSectionReader(f, from, end-from)) //nolint:errcheck // then there are fewer words
	return strings.TrimSpace(string(text))
}

// stop ends the process, which is started no more, and waits until it has ended.
func (b *localBalancer) stop(ctx context.Context) error {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	return stopBalancer(ctx, b.plane.options.Data)
}

// StopBalancer ends the process that carries load balancers out on this machine, and waits until it has ended. It's started no more.
func (p *Plane) StopBalancer(ctx context.Context) error { return p.balancer.stop(ctx) }

// BalancerProcess returns the process that carries load balancers out on this machine, or 0.
func (p *Plane) BalancerProcess() int {
	pid, _ := file.Holder(balancerLock(p.options.Data))
	return pid
}

// stopBalancer ends the process of a data directory.
func stopBalancer(ctx context.Context, data string) error {
	lock := balancerLock(data)
	told := 0
	for {
		pid, runs := file.Holder(lock)
		if !runs {
			return nil
		}
		if pid != told && pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			told = pid
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the load balancers' process %d does not end", pid)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func balancerLock(data string) string { return filepath.Join(data, "balancer", "balancer.lock") }

// runBalancer runs the process for load balancers on this machine, if there is to be one.
func (p *Plane) runBalancer(ctx context.Context) error {
	if !p.options.Balancer.Local || p.listener == nil {
		return nil
	}
	return p.balancer.run(ctx)
}
