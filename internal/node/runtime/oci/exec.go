package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
)

// Exec implements runtime.Runtime.
func (r *Runtime) Exec(ctx context.Context, id string, e runtime.Exec) (int, error) {
	dir, err := r.containers.Find(id)
	if err != nil {
		return 0, err
	}
	if status, _, err := shim.Status(dir); err != nil || status != runtime.Running {
		return 0, errors.Join(err, fmt.Errorf("container %s is not running", id))
	}
	scratch, err := os.MkdirTemp(dir, "exec-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	pidFile, log := filepath.Join(scratch, "pid"), filepath.Join(scratch, "log")
	args := r.runc.command("--log", log, "--log-format", "json", "exec", "--pid-file", pidFile)
	if e.User != "" {
		u, err := userIn(dir, e.User)
		if err != nil {
			return 0, err
		}
		args = append(args, "--user", fmt.Sprintf("%d:%d", u.Uid, u.Gid))
	}
	if e.Tty {
		args = append(args, "--tty")
	}
	for _, v := range e.Env {
		args = append(args, "--env", v)
	}
	args = append(append(args, id), e.Command...)
	if e.Tty { // runc passes on what its own terminal gets, sizes too
		err = terminal.Run(ctx, exec.Command(args[0], args[1:]...), e, true)
	} else {
		err = run(ctx, args, pidFile, e)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, err
	}
	if _, err := os.Stat(pidFile); err != nil { // the command never ran
		return 0, explain(log, exit)
	}
	return exit.ExitCode(), nil
}

// run runs runc without a terminal.
func run(ctx context.Context, args []string, pidFile string, e runtime.Exec) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = e.Stdin
	cmd.Stdout = e.Stdout
	cmd.Stderr = e.Stderr
	cmd.SysProcAttr = ownProcessGroup
	cmd.Cancel = func() error { // killing only runc would leave the command behind
		if b, err := os.ReadFile(pidFile); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && pid > 1 {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = 2 * time.Second
	return cmd.Run()
}
