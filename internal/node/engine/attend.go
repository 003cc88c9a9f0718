package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/pintle/pintle/internal/acs"
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
	stop, err := t.engine.opts.Attend(netns, new(t.payload()))
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
	return t.attend(c.Name, netns)
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
