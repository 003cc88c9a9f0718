package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Command lets a program of the user's start and end machines. It runs the program with a verb, and JSON on its
// standard input: docs/fleet.md is its contract.
type Command struct{ Program string }

// programTimeout is how long the program may take.
const programTimeout = 10 * time.Minute

// Launch runs PROGRAM launch with the machine.
func (c Command) Launch(ctx context.Context, m Machine) error { return c.run(ctx, "launch", m, nil) }

// Terminate runs PROGRAM terminate with the instance's id.
func (c Command) Terminate(ctx context.Context, id string) error {
	return c.run(ctx, "terminate", map[string]string{"instanceId": id}, nil)
}

// List runs PROGRAM list, which writes the ids of the instances that have a machine.
func (c Command) List(ctx context.Context) ([]string, error) {
	var out listed
	if err := c.run(ctx, "list", struct{}{}, &out); err != nil {
		return nil, err
	}
	if out.InstanceIDs == nil { // an empty answer must not pass for an empty fleet
		return nil, fmt.Errorf("%s list: the answer has no instanceIds", c.Program)
	}
	return *out.InstanceIDs, nil
}

// listed is the answer to the verb list.
type listed struct {
	InstanceIDs *[]string `json:"instanceIds"`
}

func (c Command) run(ctx context.Context, verb string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	return run(ctx, c.Program+" "+verb, []string{c.Program, verb}, in, out)
}

// maxOutput is how much of a program's output we keep: enough for the ids of tens of thousands of instances.
const maxOutput = 1 << 20

// bounded keeps the first maxOutput bytes that are written to it.
type bounded struct{ b []byte }

func (o *bounded) Write(p []byte) (int, error) {
	o.b = append(o.b, p[:min(len(p), maxOutput-len(o.b))]...)
	return len(p), nil
}

// run runs a program with JSON on its standard input, and reads JSON from its standard output. in and out may be nil.
// Errors call the program by the name what. When ctx ends, the program is killed with everything that it started.
func run(ctx context.Context, what string, argv []string, in, out any) error {
	var stdout, stderr bounded
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if in != nil {
		input, err := json.Marshal(in)
		if err != nil {
			return err
		}
		cmd.Stdin = bytes.NewReader(input)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) { // processes that it leaves running may hold its output
		if said := strings.Join(strings.Fields(string(stderr.b)), " "); said != "" {
			return fmt.Errorf("%s: %w: %.500s", what, err, said)
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(stdout.b, out); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
