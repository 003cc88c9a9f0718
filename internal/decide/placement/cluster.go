package placement

import (
	"slices"
	"sort"
)

// Cluster is the free resources of one cluster's instances, and the rankings that make finding the
// best of them cheap. It belongs to one goroutine.
type Cluster struct {
	nodes  map[string]*Node
	order  []string // ids of nodes, sorted
	shapes map[shapeKey]*shape
	ranks  ranks
	scale  scale
	mix    *Mix
}

// New returns an empty cluster. The mix is the work that is still to come; nil is DefaultMix.
func New(mix *Mix) *Cluster {
	if mix == nil {
		mix = DefaultMix()
	}
	return &Cluster{nodes: map[string]*Node{}, shapes: map[shapeKey]*shape{}, mix: mix}
}

// Node is an instance and what is free of it. Constraints look at it; only the Cluster changes it.
type Node struct {
	Instance
	freeCPU    int64
	freeMemory int64
	freeGPU    []int // thousandths, by the device's place in GPUs
	tcp, udp   map[uint16]int
	tasks      map[string]Allocation
	groups     map[string]int // tasks by group
	shape      *shape
	at         int // in shape.members
}

// Allocation is what a task holds of an instance.
type Allocation struct {
	CPU       int64
	MemoryMiB int64
	PortsTCP  []uint16
	PortsUDP  []uint16
	GPUs      []Grant
	Group     string
}

// Tasks is the number of tasks on the node.
func (n *Node) Tasks() int { return len(n.tasks) }

// HasGroup says whether a task of the group is on the node.
func (n *Node) HasGroup(group string) bool { return n.groups[group] > 0 }

// Len is the number of instances.
func (c *Cluster) Len() int { return len(c.nodes) }

// Active says whether any instance takes tasks, or would if its agent were connected.
func (c *Cluster) Active() bool {
	for _, n := range c.nodes {
		if n.Active {
			return true
		}
	}
	return false
}

// Upsert adds an instance, or changes one; its tasks stay.
func (c *Cluster) Upsert(i Instance) {
	n := c.nodes[i.ID]
	if n == nil {
		n = &Node{tasks: map[string]Allocation{}, groups: map[string]int{}}
		c.nodes[i.ID] = n
		at := sort.SearchStrings(c.order, i.ID)
		c.order = slices.Insert(c.order, at, i.ID)
	} else {
		c.leaveShape(n)
	}
	if c.scale.grow(&i) {
		c.ranks = ranks{} // every cost was measured by the old scale
	}
	n.Instance = i
	n.recount()
	c.joinShape(n)
}

// Remove takes an instance out.
func (c *Cluster) Remove(id string) {
	n := c.nodes[id]
	if n == nil {
		return
	}
	c.leaveShape(n)
	delete(c.nodes, id)
	at := sort.SearchStrings(c.order, id)
	c.order = slices.Delete(c.order, at, at+1)
}

// Reserve gives a task its part of an instance. A task that holds one already gives that back.
func (c *Cluster) Reserve(instanceID, taskID string, a Allocation) {
	n := c.nodes[instanceID]
	if n == nil { // a task may be known before its instance
		n = &Node{Instance: Instance{ID: instanceID}, tasks: map[string]Allocation{}, groups: map[string]int{}}
		c.nodes[instanceID] = n
		c.order = slices.Insert(c.order, sort.SearchStrings(c.order, instanceID), instanceID)
		n.recount()
		c.joinShape(n)
	}
	c.leaveShape(n)
	if old, ok := n.tasks[taskID]; ok {
		n.account(old, -1)
	}
	n.tasks[taskID] = a
	n.account(a, 1)
	c.joinShape(n)
}

// Release takes back what a task holds of an instance.
func (c *Cluster) Release(instanceID, taskID string) {
	n := c.nodes[instanceID]
	if n == nil {
		return
	}
	a, ok := n.tasks[taskID]
	if !ok {
		return
	}
	c.leaveShape(n)
	delete(n.tasks, taskID)
	n.account(a, -1)
	c.joinShape(n)
}

// recount works out what is free from what is registered and held.
func (n *Node) recount() {
	n.freeCPU, n.freeMemory = n.CPU, n.MemoryMiB
	n.freeGPU = make([]int, len(n.GPUs))
	for i := range n.freeGPU {
		n.freeGPU[i] = WholeGPU
	}
	n.tcp, n.udp, n.groups = map[uint16]int{}, map[uint16]int{}, map[string]int{}
	count(n.tcp, n.PortsTCP, 1)
	count(n.udp, n.PortsUDP, 1)
	for _, a := range n.tasks {
		n.account(a, 1)
	}
}

// account books an allocation (sign 1), or takes it back (sign -1).
func (n *Node) account(a Allocation, sign int) {
	n.freeCPU -= int64(sign) * a.CPU
	n.freeMemory -= int64(sign) * a.MemoryMiB
	count(n.tcp, a.PortsTCP, sign)
	count(n.udp, a.PortsUDP, sign)
	for _, g := range a.GPUs {
		for i := range n.GPUs {
			if n.GPUs[i].ID == g.ID {
				n.freeGPU[i] -= sign * g.Milli
			}
		}
	}
	if n.groups[a.Group] += sign; n.groups[a.Group] == 0 {
		delete(n.groups, a.Group)
	}
}

func count(m map[uint16]int, ports []uint16, sign int) {
	for _, p := range ports {
		if m[p] += sign; m[p] == 0 {
			delete(m, p)
		}
	}
}

// shapeKey is what the value of a node to a request depends on: nodes with equal keys are
// interchangeable but for constraints.
type shapeKey struct {
	cpu, memory int64 // registered
	freeCPU     int64
	freeMemory  int64
	freeGPU     string // sorted, two bytes a device
	model       string
	takes       bool
}

// shape is all nodes that are alike.
type shape struct {
	shapeKey
	free    []int // freeGPU, sorted, as numbers
	members []*Node
}

func (n *Node) key() shapeKey {
	free := slices.Clone(n.freeGPU)
	slices.Sort(free)
	packed := make([]byte, 0, 2*len(free))
	for _, f := range free {
		packed = append(packed, byte(f>>8), byte(f))
	}
	return shapeKey{n.CPU, n.MemoryMiB, n.freeCPU, n.freeMemory, string(packed), n.GPUModel, n.Active && n.Connected}
}

func (c *Cluster) joinShape(n *Node) {
	k := n.key()
	s := c.shapes[k]
	if s == nil {
		s = &shape{shapeKey: k, free: slices.Clone(n.freeGPU)}
		slices.Sort(s.free)
		c.shapes[k] = s
		c.ranks.born(s, len(c.shapes))
	}
	n.shape, n.at = s, len(s.members)
	s.members = append(s.members, n)
}

func (c *Cluster) leaveShape(n *Node) {
	s := n.shape
	last := len(s.members) - 1
	s.members[n.at] = s.members[last]
	s.members[n.at].at = n.at
	s.members[last] = nil
	s.members = s.members[:last]
	n.shape = nil
	if last == 0 {
		delete(c.shapes, s.shapeKey)
	}
}
