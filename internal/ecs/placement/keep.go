package placement

import (
	"cmp"
	"slices"
)

// kept is room that an instance keeps for one task, which goes there once all of it is free. Until then nobody else gets what the task
// would need, or tasks that need less would take it piece by piece.
type kept struct {
	task      string
	cpu       int64
	memoryMiB int64
	devices   int
	tcp, udp  []uint16
}

// Keep keeps room on an instance for a task. What was kept for it elsewhere, and on the instance for others, is given up.
func (c *Cluster) Keep(instanceID, taskID string, r *Request) {
	c.Unkeep(taskID)
	n := c.byID[instanceID]
	if n == nil {
		return
	}
	if n.kept != nil {
		c.Unkeep(n.kept.task)
	}
	n.kept = &kept{taskID, r.CPU, r.MemoryMiB, r.devices(), r.PortsTCP, r.PortsUDP}
	c.keeps[taskID] = instanceID
}

// Unkeep gives up the room that is kept for a task, and reports whether there was any.
func (c *Cluster) Unkeep(taskID string) bool {
	instanceID, ok := c.keeps[taskID]
	delete(c.keeps, taskID)
	if n := c.byID[instanceID]; n != nil && n.kept != nil && n.kept.task == taskID {
		n.kept = nil
	}
	return ok
}

// Keeps reports whether room is kept for a task.
func (c *Cluster) Keeps(taskID string) bool { return c.keeps[taskID] != "" }

// Nearest returns the instance on which room should be kept for a task: the one that lacks fewest GPUs, of those that have some free and
// pass the filter. Room that was kept and is now enough stays kept until the task is there. Nearest returns "" if there is no such
// instance, or if one has room without that.
func (c *Cluster) Nearest(r *Request, filter func(instanceID string) bool) string {
	own := c.byID[c.keeps[r.Task]]
	if own != nil && own.accepts(r) {
		return own.ID
	}
	var near []*Node
	for _, n := range c.nodes {
		switch {
		case n.accepts(r):
			return ""
		case n.mayFit(r) && n.whole > 0 && (n.kept == nil || n == own):
			near = append(near, n)
		}
	}
	slices.SortFunc(near, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.lacks(r), b.lacks(r)), cmp.Compare(a.ID, b.ID)) })
	for _, n := range near {
		if filter(n.ID) {
			return n.ID
		}
	}
	return ""
}

// mayFit reports whether the node would take the request if none of its tasks were there.
func (n *Node) mayFit(r *Request) bool {
	usable := 0
	for _, g := range n.GPUs {
		if !g.Faulty {
			usable++
		}
	}
	return n.Active && n.Connected && n.hasAttributes(r.Attributes) && takesModel(r.GPUModels, n.GPUModel) &&
		r.devices() <= usable && r.CPU <= n.CPU && r.MemoryMiB <= n.MemoryMiB && n.violated(r) == ""
}

// lacks returns how many more devices the request needs.
func (n *Node) lacks(r *Request) int { return max(0, r.devices()-n.whole) }

// devices returns how many devices the request uses, with a share counted as one: it keeps the others from using the device as a whole.
func (r *Request) devices() int {
	if r.MilliGPU > 0 {
		return 1
	}
	return r.wholeGPUs()
}

// withholds returns why a request can't have what is free on a node, because it's kept for another task, or "".
func (n *Node) withholds(r *Request) string {
	k := n.kept
	switch {
	case k == nil || k.task == r.Task:
		return ""
	case r.devices() > 0 && r.devices() > n.whole-k.devices:
		return NoGPU
	case r.CPU > 0 && r.CPU > n.freeCPU-k.cpu:
		return NoCPU
	case r.MemoryMiB > 0 && r.MemoryMiB > n.freeMemory-k.memoryMiB:
		return NoMemory
	case overlap(r.PortsTCP, k.tcp) || overlap(r.PortsUDP, k.udp):
		return NoPorts
	}
	return ""
}

func overlap(a, b []uint16) bool {
	return slices.ContainsFunc(a, func(port uint16) bool { return slices.Contains(b, port) })
}
