package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// attended are the network namespaces in which the agent serves a task's containers. The key is a container's name, or "" for the whole
// task's namespace.
type attended struct {
	mu   sync.Mutex
	stop map[string]func()
}

// attend serves a network namespace, unless it is served already.
func (t *task) attend(name, netns string) error {
	t.attended.mu.Lock()
	defer t.attended.mu.Unlock()
	if t.engine.opts.Attend == nil || netns == "" || t.attended.stop[name] != nil {
		return nil
	}
	stop, err := t.engine.opts.Attend(netns, new(t.payload()), name)
	if err != nil {
		return fmt.Errorf("serve the container's metadata and credentials: %w", err)
	}
	if t.attended.stop == nil {
		t.attended.stop = map[string]func(){}
	}
	t.attended.stop[name] = stop
	return nil
}

// attendContainer serves the namespace of a container that has its own. Some runtimes make it when they create the container, others
// when they start it, so it's called before and after the start.
func (t *task) attendContainer(ctx context.Context, c *acs.Container, id string) error {
	if t.engine.opts.Attend == nil || t.rec.Task.NetworkMode != "bridge" {
		return nil
	}
	netns, err := t.engine.opts.Runtime.NetNS(ctx, id)
	if err != nil {
		return err
	}
	if netns != "" {
		if err := t.guardNew(netns, c.Name); err != nil {
			return fmt.Errorf("apply the rules of security groups: %w", err)
		}
		t.tellBridge(ctx, c.Name, id)
	}
	return t.attend(c.Name, netns)
}

// hasNetwork reports whether a container still has a namespace, and so hasn't ended.
func (t *task) hasNetwork(ctx context.Context, id string) bool {
	netns, err := t.engine.opts.Runtime.NetNS(ctx, id)
	return netns != "" || err != nil && !errors.Is(err, runtime.ErrNotFound)
}

// tellBridge tells of a container's address in mode bridge, which members of its instance's security groups are known by.
func (t *task) tellBridge(ctx context.Context, name, id string) {
	if t.engine.opts.Bridged == nil || t.payload().NetworkRules == nil {
		return
	}
	rt, ok := t.engine.opts.Runtime.(addressed)
	if !ok {
		return
	}
	ip, err := rt.Address(ctx, id)
	if c, _ := t.container(name); err != nil || ip == c.IP {
		return // Docker's containers have one once they run; this is called again then
	}
	t.update(func(r *Record) { r.Containers[name].IP = ip })
	t.engine.opts.Bridged(t.arn(), t.bridgeAddresses())
}

// bridgeAddresses returns the addresses of the task's containers in mode bridge that haven't ended.
func (t *task) bridgeAddresses() (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.rec.Containers {
		if c.IP != "" && c.Status != Stopped {
			all = append(all, c.IP)
		}
	}
	slices.Sort(all)
	return all
}

// leave stops what attend started.
func (t *task) leave(name string) {
	t.attended.mu.Lock()
	defer t.attended.mu.Unlock()
	if stop := t.attended.stop[name]; stop != nil {
		stop()
		delete(t.attended.stop, name)
	}
}
