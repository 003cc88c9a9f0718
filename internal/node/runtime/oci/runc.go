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

// runc runs the runc program.
type runc struct {
	path string // of the program
	root string // directory of its state
}

// ownProcessGroup keeps a program out of the agent's process group, so that ctrl-C doesn't stop it half-way.
var ownProcessGroup = &syscall.SysProcAttr{Setpgid: true}

func (r runc) command(args ...string) []string {
	return append([]string{r.path, "--root", r.root}, args...)
}

// delete kills what is left of a container and deletes it in runc. A container that runc doesn't know is no error.
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

// explain returns the last error that runc logged, or else err.
func explain(log string, err error) error {
	b, readErr := os.ReadFile(log)
	if readErr != nil {
		return err
	}
	var last string
	for line := range bytes.Lines(b) {
		var l struct{ Level, Msg string }
		if json.Unmarshal(line, &l) == nil && l.Level == "error" {
			last = l.Msg
		}
	}
	if last == "" {
		return err
	}
	return errors.New(last)
}
