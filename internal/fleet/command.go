package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Command has a program of the user's start and end machines. It is run with a verb, and reads JSON from its standard input:
// docs/fleet.md is its contract.
type Command struct{ Program string }

// takes is how long the program may take.
const takes = 10 * time.Minute

// Launch runs PROGRAM launch with the machine.
func (c Command) Launch(ctx context.Context, m Machine) error { return c.run(ctx, "launch", m, nil) }

// Terminate runs PROGRAM terminate with the instance's id.
func (c Command) Terminate(ctx context.Context, id string) error {
	return c.run(ctx, "terminate", map[string]string{"instanceId": id}, nil)
}

// List runs PROGRAM list, which writes the ids of the instances that have a machine.
func (c Command) List(ctx context.Context) ([]string, error) {
	var out struct {
		InstanceIDs *[]string `json:"instanceIds"`
	}
	if err := c.run(ctx, "list", struct{}{}, &out); err != nil {
		return nil, err
	}
	if out.InstanceIDs == nil { // an empty answer must not pass for an empty fleet
		return nil, fmt.Errorf("%s list: the answer has no instanceIds", c.Program)
	}
	return *out.InstanceIDs, nil
}

func (c Command) run(ctx context.Context, verb string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, takes)
	defer cancel()
	input, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Program, verb)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return fmt.Errorf("%s %s: %w: %.500s", c.Program, verb, err, said)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		return fmt.Errorf("%s %s: %w", c.Program, verb, err)
	}
	return nil
}
