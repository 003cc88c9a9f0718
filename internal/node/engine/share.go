package engine

import (
	"slices"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Namespaces that a task's containers share (pidMode and ipcMode "task"). Amazon's agent has a container of its own hold them, which does nothing
// else. Here one of the task's holds them; the others start after it and join, and their processes end with it.

// share sets a container's process and IPC namespaces: its own, the node's, or the task's.
func (t *task) share(s *runtime.Spec, c *acs.Container) {
	s.Pid, s.IPC = t.namespace(c, t.rec.Task.PidMode), t.namespace(c, t.rec.Task.IpcMode)
}

func (t *task) namespace(c *acs.Container, mode string) string {
	h := holderOf(&t.rec.Task)
	switch {
	case mode == "host":
		return "host"
	case mode == "task" && joins(&t.rec.Task, c, h):
		_, id := t.container(h.Name)
		return "container:" + id
	}
	return ""
}

// holderOf returns the container that holds the namespaces, or nil if none are shared. It's the first essential one, since the task ends with
// it; if that one runs beside others that start before it, it's the first of these.
func holderOf(t *acs.Task) *acs.Container {
	if t.PidMode != "task" && t.IpcMode != "task" {
		return nil
	}
	i := slices.IndexFunc(t.Containers, func(c acs.Container) bool { return c.Essential })
	if i < 0 {
		return nil
	}
	h := &t.Containers[i]
	for range t.Containers { // in a circle, which is refused, there would be no end
		before := beside(t, h)
		if before == nil {
			break
		}
		h = before
	}
	return h
}

// beside returns a container that starts before c and isn't to end before it, or nil.
func beside(t *acs.Task, c *acs.Container) *acs.Container {
	for _, d := range asked(t, c) {
		if d.Condition == "COMPLETE" || d.Condition == "SUCCESS" {
			continue
		}
		if other := find(t, d.ContainerName); other != nil {
			return other
		}
	}
	return nil
}

// joins reports whether a container joins the holder's namespaces. What the holder waits for has its own.
func joins(t *acs.Task, c, holder *acs.Container) bool {
	return holder != nil && c.Name != holder.Name && !waitsFor(t, holder, c.Name, map[string]bool{})
}

// waitsFor reports whether a container waits for another one, or for one that does.
func waitsFor(t *acs.Task, c *acs.Container, name string, seen map[string]bool) bool {
	if seen[c.Name] {
		return false
	}
	seen[c.Name] = true
	return slices.ContainsFunc(asked(t, c), func(d acs.ContainerDependency) bool {
		other := find(t, d.ContainerName)
		return d.ContainerName == name || other != nil && waitsFor(t, other, name, seen)
	})
}

// find returns a container of a task by its name, or nil.
func find(t *acs.Task, name string) *acs.Container {
	i := slices.IndexFunc(t.Containers, func(c acs.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Containers[i]
}
