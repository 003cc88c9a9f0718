package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/pintle/pintle/internal/acs"
)

// attended are the network namespaces in which the agent serves a task's containers: each container's,
// by its name, or the whole task's, by none.
type attended struct {
	mu   sync.Mutex
	stop map[string]func()
}

// attend serves a network namespace, unless that is done already.
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

// attendContainer serves the network namespace of a container that has one of its own. Some runtimes
// make it with the container, others when that starts, so it is called before and after.
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

// leave ends what attend began.
func (t *task) leave(name string) {
	t.attended.mu.Lock()
	defer t.attended.mu.Unlock()
	if stop := t.attended.stop[name]; stop != nil {
		stop()
		delete(t.attended.stop, name)
	}
}
