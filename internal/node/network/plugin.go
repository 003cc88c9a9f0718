package network

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	goruntime "runtime"
	"syscall"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// plugins runs CNI plugins as libcni has them run, but bound to this process: one that went on when the
// agent has been killed would connect what the next agent disconnects at the same time. They are kept
// out of its process group, so that ctrl-C does not end them half-way.
type plugins struct{ version.PluginDecoder }

var _ invoke.Exec = (*plugins)(nil)

// FindInPath implements invoke.Exec.
func (*plugins) FindInPath(plugin string, dirs []string) (string, error) {
	return invoke.FindInPath(plugin, dirs)
}

// ExecPlugin implements invoke.Exec.
func (*plugins) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	goruntime.LockOSThread() // a child is bound to the life of the thread that made it
	defer goruntime.UnlockOSThread()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, bytes.NewReader(stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	var said types.Error
	if json.Unmarshal(stdout.Bytes(), &said) == nil && said.Msg != "" {
		return nil, &said
	}
	return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
}
