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

// Command is a runner that starts the command once for each input.
type Command struct {
	Args []string
	// Stdin passes the input on standard input, instead of passing its path as the last argument.
	Stdin bool
	// Stdout gets the command's output if that isn't a result, and Stderr its errors.
	Stdout io.Writer
	Stderr io.Writer
}

// Ready implements Runner.
func (c *Command) Ready(context.Context) error { return nil }

// Batches implements Runner.
func (c *Command) Batches() bool { return false }

// Close implements Runner.
func (c *Command) Close() {}

// Run implements Runner.
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
	stderr := &tail{}
	cmd := newCommand(ctx, args, io.MultiWriter(c.Stderr, stderr))
	cmd.Stdout = c.Stdout
	cmd.Env = append(os.Environ(), in.env()...)
	if c.Stdin {
		f, err := os.Open(in.Path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
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
	if errors.Is(err, exec.ErrWaitDelay) { // the command succeeded, but a child of it still holds its output
		err = nil
	}
	return stderr.explain(args[0], err)
}

// newCommand prepares a command in its own process group, which gets SIGTERM when ctx ends. So signals to the worker's group don't reach
// the command, and its own children don't outlive it. It's killed if the worker is.
func newCommand(ctx context.Context, args []string, stderr io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	return cmd
}

// killGroup kills any children that a command has left behind.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } //nolint:errcheck // usually there are none

// env returns the variables that describe the input to the command.
func (in *Input) env() []string {
	return []string{
		"PINTLE_MESSAGE_ID=" + in.MessageID,
		"PINTLE_RECEIVE_COUNT=" + strconv.Itoa(in.ReceiveCount),
		"PINTLE_BUCKET=" + in.Bucket,
		"PINTLE_KEY=" + in.Key,
		"PINTLE_RESULT_DIR=" + in.ResultDir,
	}
}

// tail keeps the end of a command's error output.
type tail struct{ b []byte }

const maxTail = 500

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	t.b = bytes.Clone(t.b[max(0, len(t.b)-maxTail):])
	return len(p), nil
}

// explain adds the tail to an error.
func (t *tail) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(string(t.b)); text != "" {
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return fmt.Errorf("%s: %w", name, err)
}
