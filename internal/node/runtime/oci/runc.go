package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// runc is the program, and where it keeps its state.
type runc struct{ path, root string }

// ownProcessGroup keeps a program out of the agent's process group, so that ctrl-C does not end it half-way.
var ownProcessGroup = &syscall.SysProcAttr{Setpgid: true}

func (r runc) command(args ...string) []string {
	return append([]string{r.path, "--root", r.root}, args...)
}

// delete ends whatever is left of a container, and has runc forget it. One that runc does not know is
// no error.
func (r runc) delete(ctx context.Context, id string) error {
	if _, err := os.Stat(r.root + "/" + id); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	args := r.command("delete", "--force", id)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = ownProcessGroup
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("runc delete: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// explain puts what runc has logged last into an error.
func explain(log string, err error) error {
	b, readErr := os.ReadFile(log)
	if readErr != nil {
		return err
	}
	var said string
	for line := range bytes.Lines(b) {
		var l struct{ Level, Msg string }
		if json.Unmarshal(line, &l) == nil && l.Level == "error" {
			said = l.Msg
		}
	}
	if said == "" {
		return err
	}
	return errors.New(said)
}
