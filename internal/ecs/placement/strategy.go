package placement

import (
	"math"
	"math/rand/v2"
	"strings"
)

// ECS's strategies narrow down the nodes that fit, one strategy after the other, each to the nodes that are best by it.
// Columns hold which nodes fit and how good they are. So a decision looks at 64 nodes at a time and at each resource's
// bits, whatever the kinds of requests are: see set.go.

// index holds the columns that strategies read, by index in Cluster.nodes.
type index struct {
	takes set // ACTIVE, with a connected agent
	free  [resources]column

	fields  map[string]*field
	scratch [3]set
}

// The resources with a column.
const (
	freeCPU = iota
	freeMemory
	freeGPU    // thousandths, of all devices together
	largestGPU // thousandths of the device with the most free
	wholeGPUs  // entirely free devices
	resources
)

// put records what is free on a node. If the books ever claim more than there is, the node takes nothing.
func (x *index) put(n *Node) {
	x.note(n, n.Active && n.Connected && n.freeCPU >= 0 && n.freeMemory >= 0, [resources]int64{
		freeCPU:    max(n.freeCPU, 0),
		freeMemory: max(n.freeMemory, 0),
		freeGPU:    max(n.freeGPUs(), 0),
		largestGPU: int64(n.largest),
		wholeGPUs:  int64(n.whole),
	})
}

// drop forgets a node.
func (x *index) drop(n *Node) { x.note(n, false, [resources]int64{}) }

func (x *index) note(n *Node, takes bool, free [resources]int64) {
	if x.takes.remove(n.at); takes {
		x.takes.add(n.at)
	}
	for i := range x.free {
		x.free[i].put(n.at, n.indexed[i], free[i])
	}
	n.indexed = free
}

func (n *Node) freeGPUs() int64 {
	free := 0
	for _, f := range n.freeGPU {
		free += f
	}
	return int64(free)
}

// byStrategy picks the node that is best by the first strategy, among equals the best by the next one, and among the
// rest one at random, as ECS does. Most nodes that fit also meet the constraints. So it checks constraints on the best
// nodes first, and on all nodes only if none of the best meets them.
func (c *Cluster) byStrategy(r *Request, rnd *rand.Rand) *Node {
	fitting := c.fitting(r)
	if n := c.anyOf(c.best(fitting, r), r, rnd); n != nil {
		return n
	}
	for i := fitting.next(0); i >= 0; i = fitting.next(i + 1) {
		if !c.nodes[i].accepts(r) {
			fitting.remove(i)
		}
	}
	return c.anyOf(c.best(fitting, r), r, rnd)
}

// fitting returns the nodes that have the CPU, memory and GPUs that the request needs. The caller checks everything
// else.
func (c *Cluster) fitting(r *Request) set {
	x := &c.index
	fitting := x.copyTo(0, x.takes)
	x.free[freeCPU].keepAtLeast(r.CPU, fitting)
	x.free[freeMemory].keepAtLeast(r.MemoryMiB, fitting)
	if n := r.wholeGPUs(); n > 0 {
		x.free[wholeGPUs].keepAtLeast(int64(n), fitting)
	}
	if r.MilliGPU > 0 {
		x.free[largestGPU].keepAtLeast(int64(r.MilliGPU), fitting)
	}
	return fitting
}

// best returns the nodes of a set that no other node of the set beats.
func (c *Cluster) best(of set, r *Request) set {
	x := &c.index
	best := x.copyTo(1, of)
	for _, s := range r.Strategy {
		attribute, isAttribute := strings.CutPrefix(s.Field, "attribute:")
		switch {
		case s.Type == "binpack":
			x.resource(s.Field).keepLeast(best)
		case s.Type == "spread" && isAttribute:
			c.field(attribute).keepLeast(best, c.tasksOf(r.Group), x.copyTo(2, best))
		case s.Type == "spread": // instanceId and host
			c.tasksOf(r.Group).keepLeast(best)
		}
	}
	return best
}

// copyTo copies a set to memory that the next decision reuses.
func (x *index) copyTo(to int, s set) set {
	x.scratch[to] = append(x.scratch[to][:0], s...)
	return x.scratch[to]
}

// resource returns the column that binpack goes by. ECS has cpu and memory; gpu is Pintle's.
func (x *index) resource(name string) column {
	switch strings.ToLower(name) {
	case "memory":
		return x.free[freeMemory]
	case "gpu":
		return x.free[freeGPU]
	}
	return x.free[freeCPU]
}

// anyOf returns one of the nodes that accept the request, starting at a random one.
func (c *Cluster) anyOf(nodes set, r *Request, rnd *rand.Rand) *Node {
	size := nodes.size()
	if size == 0 {
		return nil
	}
	i := nodes.nth(rnd.IntN(size))
	for range size {
		if n := c.nodes[i]; n.accepts(r) {
			return n
		}
		if i = nodes.next(i + 1); i < 0 {
			i = nodes.next(0)
		}
	}
	return nil
}

// field groups the nodes by their value of an attribute. Nodes without the attribute form one group.
type field struct {
	values []sparseSet
	asOf   uint64 // Cluster.attributes when it was built
}

func (c *Cluster) field(attribute string) *field {
	f := c.index.fields[attribute]
	if f != nil && f.asOf == c.attributes {
		return f
	}
	f = &field{asOf: c.attributes}
	numbers := map[string]int{}
	for i, n := range c.nodes {
		text := n.Attributes[attribute]
		number, known := numbers[text]
		if !known {
			number = len(numbers)
			numbers[text] = number
			f.values = append(f.values, nil)
		}
		f.values[number].add(i)
	}
	if c.index.fields == nil {
		c.index.fields = map[string]*field{}
	}
	c.index.fields[attribute] = f
	return f
}

// keepLeast keeps only the nodes of a set whose value of the field has the fewest tasks, among the values in the set.
// from is a copy of the set.
func (f *field) keepLeast(of set, tasks column, from set) {
	fewest := int64(math.MaxInt64)
	for _, nodes := range f.values {
		n := tasks.sum(nodes)
		if n > fewest || !nodes.intersects(from) {
			continue
		}
		if n < fewest {
			fewest = n
			clear(of)
		}
		nodes.addTo(of, from)
	}
}
