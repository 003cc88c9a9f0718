package engine

import (
	"cmp"
	"context"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// identifier is a runtime that has its own ids for containers and images.
type identifier interface {
	// Identify finds a container that has been created.
	Identify(ctx context.Context, id string) (runtime.Container, error)
}

// identify notes what the runtime calls a container that it has made, before the container can ask. The next update saves it, and an agent
// that finds the container asks again.
func (t *task) identify(ctx context.Context, c *acs.Container, id string) {
	rt, ok := t.engine.opts.Runtime.(identifier)
	if !ok {
		return
	}
	found, err := rt.Identify(ctx, id)
	if err != nil {
		t.engine.opts.Log.Warn("cannot learn a container's id", "container", id, "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Containers[c.Name].isNow(found)
}

// isNow notes the ids of a container that the runtime has.
func (c *Container) isNow(found runtime.Container) {
	c.RuntimeID = found.RuntimeID
	c.ImageID = found.ImageID
}

// RuntimeID returns what the runtime calls a record's container: its own id, or else the agent's.
func (r *Record) RuntimeID(name string) string {
	return cmp.Or(r.Containers[name].RuntimeID, r.ContainerID(name))
}
