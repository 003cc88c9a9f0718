package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killAfter is how long a command has to end after SIGTERM.
const killAfter = 2 * time.Second

// Command is a runner that starts the command anew for each input.
type Command struct {
	Args []string
	// Stdin hands the input to it on standard input, instead of its path as the last argument.
	Stdin bool
	// Stdout is where the command writes if its output is no result, and Stderr where it complains.
	Stdout, Stderr io.Writer
}

// Ready is Runner's.
func (c *Command) Ready(context.Context) error { return nil }

// Batches is Runner's.
func (c *Command) Batches() bool { return false }

// Close is Runner's.
func (c *Command) Close() {}

// Run is Runner's.
func (c *Command) Run(ctx context.Context, inputs []*Input) []error {
	errs := make([]error, len(inputs))
	for i, in := range inputs {
		errs[i] = c.run(ctx, in)
	}
	return errs
}

func (c *Command) run(ctx context.Context, in *Input) (err error) {
	args := c.Args
	if !c.Stdin {
		args = append(args[:len(args):len(args)], in.Path)
	}
	said := &tail{}
	cmd := start(ctx, args, io.MultiWriter(c.Stderr, said))
	cmd.Stdout = c.Stdout
	cmd.Env = append(os.Environ(), in.env()...)
	if c.Stdin {
		f, err := os.Open(in.Path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was read
		cmd.Stdin = f
	}
	if in.Output != "" {
		f, err := os.Create(in.Output)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cmd.Stdout = f
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	defer killGroup(cmd)
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) { // it has succeeded, and something that it left behind holds its output
		err = nil
	}
	return said.explain(args[0], err)
}

// start prepares a command in a process group of its own, which gets SIGTERM when ctx ends: neither a
// signal to the worker's group nor an orphan of the command comes between. It does not outlive a worker that is killed.
func start(ctx context.Context, args []string, stderr io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	return cmd
}

// killGroup kills what a command has left behind.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } //nolint:errcheck // mostly there is none

// env is what the command finds in its environment.
func (in *Input) env() []string {
	return []string{
		"PINTLE_MESSAGE_ID=" + in.MessageID, "PINTLE_RECEIVE_COUNT=" + strconv.Itoa(in.ReceiveCount),
		"PINTLE_BUCKET=" + in.Bucket, "PINTLE_KEY=" + in.Key, "PINTLE_RESULT_DIR=" + in.ResultDir,
	}
}

// tail keeps the end of what a command complained of.
type tail struct{ b []byte }

const maxTail = 500

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	t.b = bytes.Clone(t.b[max(0, len(t.b)-maxTail):])
	return len(p), nil
}

// explain adds it to an error.
func (t *tail) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(string(t.b)); said != "" {
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return fmt.Errorf("%s: %w", name, err)
}
