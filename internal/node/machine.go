package node

import (
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/imds"
	"github.com/pintle/pintle/internal/node/network"
)

// machine is the node's machine as an EC2 instance, as far as its tasks are told.
type machine struct {
	told    atomic.Pointer[acs.PintleInstance] // by the control plane
	service *imds.Server                       // nil on a machine that Pintle didn't launch, which may have a service of its own
	block   bool                               // for tasks in mode awsvpc
}

func newMachine(c Config, log *slog.Logger) *machine {
	m := &machine{block: c.BlockInstanceMetadata}
	if c.InstanceID != "" {
		m.service = imds.New(m.told.Load, log)
	}
	return m
}

// ownService returns the instance metadata service for tasks that share the machine's network, or nil if the machine has none.
func (m *machine) ownService() http.Handler {
	if m.service == nil {
		return nil
	}
	return m.service.From(1)
}

// listen opens the instance metadata service in a task's network namespace. It returns nil if the task has none.
func (m *machine) listen(netns string, task *acs.Task) (net.Listener, error) {
	switch {
	case m.block && task.NetworkMode == "awsvpc":
		return nil, network.BlockInstance(netns)
	case m.service == nil:
		return nil, nil
	}
	return network.ListenInstance(netns)
}

// serves reports whether a task finds the instance metadata service.
func (m *machine) serves(task *acs.Task) bool {
	return m.service != nil && !(m.block && task.NetworkMode == "awsvpc")
}

// hasRole reports whether the instance has a role whose credentials tasks get.
func (m *machine) hasRole() bool {
	i := m.told.Load()
	return i != nil && !i.Disabled && i.Profile != nil && i.Profile.Credentials != nil
}

// hopsOf returns how far a task's containers are from the instance metadata service of EC2, which an instance's own programs and
// interfaces are one hop away from.
func hopsOf(task *acs.Task) int {
	if task.NetworkMode == "awsvpc" {
		return 1
	}
	return 2
}

// gated is a listener that hangs up on callers unless they are allowed at that time.
type gated struct {
	net.Listener
	allowed func() bool
}

// Accept implements net.Listener.
func (g gated) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || g.allowed() {
			return c, err
		}
		c.Close()
	}
}
