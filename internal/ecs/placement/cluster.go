package placement

import "maps"

// Cluster holds the free resources of one cluster's instances, and rankings that make it cheap to find the best of
// them. One goroutine owns it.
type Cluster struct {
	byID   map[string]*Node
	nodes  []*Node
	groups map[string]*group
	keeps  map[string]string // instances by the task that room is kept for
	shapes map[shapeKey]*shape
	ranks  ranks
	scale  scale

	demand   demand
	learns   bool
	forecast *forecast

	attributes uint64 // counts changes of any node's attributes, and of the nodes
	index      index
}

// group counts the tasks of one group by node.
type group struct {
	tasks int
	on    column
}

// New returns an empty cluster. mix is the expected work. With nil, the cluster starts with defaultMix and learns the
// mix from the tasks that it is told of.
func New(mix Mix) *Cluster {
	c := &Cluster{
		byID:   map[string]*Node{},
		groups: map[string]*group{},
		keeps:  map[string]string{},
		shapes: map[shapeKey]*shape{},
		learns: mix == nil,
	}
	if c.learns {
		mix = defaultMix()
	}
	c.forecast = newForecast(mix)
	return c
}

// Node is an instance and its free resources. Constraints read it; only the Cluster changes it.
type Node struct {
	Instance
	cluster    *Cluster
	freeCPU    int64
	freeMemory int64
	freeGPU    []int // thousandths, by index into GPUs
	largest    int   // the largest of freeGPU
	whole      int   // entirely free devices
	tcp        map[uint16]int
	udp        map[uint16]int
	tasks      map[string]Allocation
	kept       *kept
	at         int // index in Cluster.nodes
	shape      *shape
	member     int // index in shape.members
	indexed    [resources]int64
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

// Tasks returns the number of tasks on the node.
func (n *Node) Tasks() int { return len(n.tasks) }

// HasGroup reports whether a task of the group is on the node.
func (n *Node) HasGroup(group string) bool { return n.cluster.tasksOf(group).get(n.at) > 0 }

// Len returns the number of instances.
func (c *Cluster) Len() int { return len(c.nodes) }

// Active reports whether any instance takes tasks, or would if its agent were connected.
func (c *Cluster) Active() bool {
	for _, n := range c.nodes {
		if n.Active {
			return true
		}
	}
	return false
}

// Upsert adds or changes an instance. Its tasks stay.
func (c *Cluster) Upsert(i Instance) {
	n := c.node(i.ID)
	c.leaveShape(n)
	if c.scale.grow(&i) {
		c.ranks = ranks{} // every cost was measured by the old scale
	}
	if !maps.Equal(n.Attributes, i.Attributes) {
		c.attributes++
	}
	n.Instance = i
	n.recount()
	c.joinShape(n)
}

// node returns the instance's node. It adds one if there is none, because a task may be known before its instance.
func (c *Cluster) node(id string) *Node {
	if n := c.byID[id]; n != nil {
		return n
	}
	n := &Node{Instance: Instance{ID: id}, cluster: c, tasks: map[string]Allocation{}, at: len(c.nodes)}
	c.byID[id] = n
	c.nodes = append(c.nodes, n)
	c.attributes++
	n.recount()
	c.joinShape(n)
	return n
}

// Remove removes an instance with all that its tasks hold.
func (c *Cluster) Remove(id string) {
	n := c.byID[id]
	if n == nil {
		return
	}
	for _, a := range n.tasks {
		c.countGroup(n, a.Group, -1)
	}
	c.leaveShape(n)
	delete(c.byID, id)
	c.moveLast(n.at)
	c.attributes++
}

// moveLast moves the last node to the index of a node that goes.
func (c *Cluster) moveLast(to int) {
	c.index.drop(c.nodes[to])
	last := len(c.nodes) - 1
	n := c.nodes[last]
	if last != to {
		c.index.drop(n)
		for _, a := range n.tasks {
			c.countGroup(n, a.Group, -1)
		}
		n.at = to
		for _, a := range n.tasks {
			c.countGroup(n, a.Group, 1)
		}
		c.index.put(n)
	}
	c.nodes[to] = n
	c.nodes[last] = nil
	c.nodes = c.nodes[:last]
}

// Reserve gives a task its part of an instance. It replaces what the task already holds there.
func (c *Cluster) Reserve(instanceID, taskID string, a Allocation) {
	n := c.node(instanceID)
	c.leaveShape(n)
	if old, ok := n.tasks[taskID]; ok {
		n.account(old, -1)
		c.countGroup(n, old.Group, -1)
	}
	n.tasks[taskID] = a
	n.account(a, 1)
	c.countGroup(n, a.Group, 1)
	c.joinShape(n)
}

// Release gives back what a task holds of an instance.
func (c *Cluster) Release(instanceID, taskID string) {
	n := c.byID[instanceID]
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
	c.countGroup(n, a.Group, -1)
	c.joinShape(n)
}

func (c *Cluster) countGroup(n *Node, name string, sign int) {
	g := c.groups[name]
	if g == nil {
		g = &group{}
		c.groups[name] = g
	}
	on := g.on.get(n.at)
	g.on.put(n.at, on, on+int64(sign))
	if g.tasks += sign; g.tasks == 0 {
		delete(c.groups, name)
	}
}

// tasksOf returns how many tasks of a group each node has.
func (c *Cluster) tasksOf(name string) column {
	if g := c.groups[name]; g != nil {
		return g.on
	}
	return nil
}

// recount computes what is free from what is registered and held.
func (n *Node) recount() {
	n.freeCPU = n.CPU
	n.freeMemory = n.MemoryMiB
	n.freeGPU = make([]int, len(n.GPUs))
	for i, g := range n.GPUs {
		if !g.Faulty {
			n.freeGPU[i] = WholeGPU
		}
	}
	n.tcp = map[uint16]int{}
	n.udp = map[uint16]int{}
	count(n.tcp, n.PortsTCP, 1)
	count(n.udp, n.PortsUDP, 1)
	for _, a := range n.tasks {
		n.account(a, 1)
	}
	n.measureGPUs()
}

// account books an allocation (sign 1), or undoes it (sign -1).
func (n *Node) account(a Allocation, sign int) {
	n.freeCPU -= int64(sign) * a.CPU
	n.freeMemory -= int64(sign) * a.MemoryMiB
	count(n.tcp, a.PortsTCP, sign)
	count(n.udp, a.PortsUDP, sign)
	for _, g := range a.GPUs {
		for i := range n.GPUs {
			if n.GPUs[i].ID == g.ID && !n.GPUs[i].Faulty {
				n.freeGPU[i] -= sign * g.Milli
			}
		}
	}
	n.measureGPUs()
}

func (n *Node) measureGPUs() {
	n.largest = 0
	n.whole = 0
	for _, free := range n.freeGPU {
		n.largest = max(n.largest, free)
		if free == WholeGPU {
			n.whole++
		}
	}
}

func count(m map[uint16]int, ports []uint16, sign int) {
	for _, p := range ports {
		if m[p] += sign; m[p] == 0 {
			delete(m, p)
		}
	}
}
