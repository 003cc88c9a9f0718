// Package placement decides which container instance a task goes to, and which of its GPUs. It is
// pure: a Cluster is a picture of free resources that its owner keeps up to date, and Place looks at
// it and returns a plan. It reads no clock, file or store, and draws only on the random source that
// it is handed, so that the same calls give the same plans. The scheduler calls it inside transactions;
// the simulator and benchmarks alike.
package placement

import "math/rand/v2"

// WholeGPU is one device in thousandths, the unit of shares.
const WholeGPU = 1000

// Instance is one container instance as it registered.
type Instance struct {
	ID         string
	Attributes map[string]string
	CPU        int64 // units, 1,024 a core
	MemoryMiB  int64
	GPUs       []GPU
	GPUModel   string   // "" where it is not known
	PortsTCP   []uint16 // that the instance keeps for itself
	PortsUDP   []uint16
	Active     bool // not DRAINING
	Connected  bool // its agent is
}

// GPU is one device and how it is connected to the instance's others.
type GPU struct {
	ID     string
	NUMA   int
	Links  []int // NVLinks to each of the instance's devices, by their place
	Faulty bool  // nothing of it is given out
}

// Request is what a task needs, and where it may go.
type Request struct {
	CPU       int64
	MemoryMiB int64
	PortsTCP  []uint16
	PortsUDP  []uint16
	GPUs      []ContainerGPUs // whole devices, by container
	MilliGPU  int             // or a share of one device for the first of GPUs, in thousandths below 1,000
	GPUModels []string        // nil takes any model

	Group            string   // the task's group, for distinctInstance and spread
	Attributes       []string // that the instance must have, by name
	DistinctInstance bool
	MemberOf         []func(*Node) bool
	Strategy         []Strategy // in this order; none is Pintle's own, which keeps GPUs usable
}

// ContainerGPUs is how many whole devices a container needs.
type ContainerGPUs struct {
	Container string
	Count     int
}

// Strategy is one placement strategy of ECS: spread by a field, binpack on a resource, or random.
type Strategy struct {
	Type  string // spread, binpack, random
	Field string // instanceId, host, attribute:NAME; cpu, memory, gpu
}

// Plan is where a task goes.
type Plan struct {
	InstanceID string
	GPUs       []Grant
}

// Grant is a device, or a share of one, for a container.
type Grant struct {
	Container string
	ID        string
	Milli     int
}

// Reason is why an instance did not take a task, in ECS's words.
type Reason struct {
	InstanceID string
	Reason     string
}

// The reasons of ECS: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
const (
	Missing     = "MISSING"
	NoAgent     = "AGENT"
	NotActive   = "INACTIVE"
	NoAttribute = "ATTRIBUTE"
	NoGPU       = "RESOURCE:GPU"
	NoCPU       = "RESOURCE:CPU"
	NoMemory    = "RESOURCE:MEMORY"
	NoPorts     = "RESOURCE:PORTS"
	NotMember   = "MemberOf placement constraint unsatisfied."
	NotDistinct = "DistinctInstance placement constraint unsatisfied."
)

// maxReasons bounds the reasons of one Place.
const maxReasons = 100

// wholeGPUs is the number of whole devices that the request's containers need together.
func (r *Request) wholeGPUs() int {
	if r.MilliGPU > 0 {
		return 0
	}
	n := 0
	for _, c := range r.GPUs {
		n += c.Count
	}
	return n
}

// Place finds the best instance for the request. Where there is none, it returns the reasons of up
// to a hundred instances that did not take it; no reasons at all means that there are no instances.
func (c *Cluster) Place(r *Request, rnd *rand.Rand) (Plan, []Reason) {
	var n *Node
	if len(r.Strategy) > 0 {
		n = c.byStrategy(r, rnd)
	} else {
		n = c.cheapest(r, rnd)
	}
	if n == nil {
		return Plan{}, c.reasons(r)
	}
	return c.plan(n, r), nil
}

// PlaceOn plans the request on one instance that the caller has chosen. Constraints and strategies
// do not count then, only whether it fits.
func (c *Cluster) PlaceOn(instanceID string, r *Request) (Plan, string) {
	n := c.byID[instanceID]
	if n == nil {
		return Plan{}, Missing
	}
	if reason := n.refuses(r); reason != "" {
		return Plan{}, reason
	}
	return c.plan(n, r), ""
}

// CanHost says why an instance does not take the request, its constraints included; "" if it does.
func (c *Cluster) CanHost(instanceID string, r *Request) string {
	n := c.byID[instanceID]
	if n == nil {
		return Missing
	}
	if reason := n.refuses(r); reason != "" {
		return reason
	}
	return n.excludes(r)
}

// Eligible says whether an instance may host the request at all, whatever is free on it now: its attributes
// and the constraints, other tasks' groups aside.
func (c *Cluster) Eligible(instanceID string, r *Request) bool {
	n := c.byID[instanceID]
	if n == nil || !n.hasAttributes(r.Attributes) {
		return false
	}
	alone := *r
	alone.DistinctInstance = false
	return n.excludes(&alone) == ""
}

func (c *Cluster) reasons(r *Request) []Reason {
	var out []Reason
	for _, n := range c.nodes {
		if !n.Active {
			continue
		}
		reason := n.refuses(r)
		if reason == "" {
			reason = n.excludes(r)
		}
		if out = append(out, Reason{n.ID, reason}); len(out) == maxReasons {
			break
		}
	}
	return out
}

// accepts says whether the node can take the request, and no constraint stands against it.
func (n *Node) accepts(r *Request) bool { return n.refuses(r) == "" && n.excludes(r) == "" }

// refuses says why a node cannot take the request at all.
func (n *Node) refuses(r *Request) string {
	switch {
	case !n.Active:
		return NotActive
	case !n.Connected:
		return NoAgent
	case !n.hasAttributes(r.Attributes):
		return NoAttribute
	case !n.fitsGPUs(r):
		return NoGPU
	case r.CPU > n.freeCPU:
		return NoCPU
	case r.MemoryMiB > n.freeMemory:
		return NoMemory
	case anyTaken(n.tcp, r.PortsTCP) || anyTaken(n.udp, r.PortsUDP):
		return NoPorts
	}
	return ""
}

// excludes says which constraint of the request stands against a node.
func (n *Node) excludes(r *Request) string {
	if r.DistinctInstance && n.HasGroup(r.Group) {
		return NotDistinct
	}
	for _, member := range r.MemberOf {
		if !member(n) {
			return NotMember
		}
	}
	return ""
}

func (n *Node) hasAttributes(names []string) bool {
	for _, name := range names {
		if _, ok := n.Attributes[name]; !ok {
			return false
		}
	}
	return true
}

func (n *Node) fitsGPUs(r *Request) bool {
	need := r.wholeGPUs()
	if need == 0 && r.MilliGPU == 0 {
		return true
	}
	return need <= n.whole && r.MilliGPU <= n.largest && takesModel(r.GPUModels, n.GPUModel)
}

func anyTaken(taken map[uint16]int, ports []uint16) bool {
	for _, p := range ports {
		if taken[p] > 0 {
			return true
		}
	}
	return false
}
