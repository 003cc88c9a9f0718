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

// plugins runs CNI plugins for libcni. A plugin dies with this process: otherwise, after the agent was killed, it could connect what the
// next agent disconnects at the same time. Plugins run outside the agent's process group, so that ctrl-C doesn't stop them half-way.
type plugins struct{ version.PluginDecoder }

var _ invoke.Exec = (*plugins)(nil)

// FindInPath implements invoke.Exec.
func (*plugins) FindInPath(plugin string, dirs []string) (string, error) {
	return invoke.FindInPath(plugin, dirs)
}

// ExecPlugin implements invoke.Exec.
func (*plugins) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	goruntime.LockOSThread() // Pdeathsig kills the child when the thread that created it ends
	defer goruntime.UnlockOSThread()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = environ
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	var reported types.Error
	if json.Unmarshal(stdout.Bytes(), &reported) == nil && reported.Msg != "" {
		return nil, &reported
	}
	return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
}
