// Package placement decides which container instance a task goes to, and which of its GPUs it gets. It is pure: a
// Cluster is a picture of free resources that its owner keeps up to date, and Place looks at it and returns a plan. It
// reads no clock, file or store, and draws only on the random source that it is handed, so the same calls give the same
// plans. The scheduler calls it inside transactions. The simulator and the benchmarks call it the same way.
package placement

import (
	"math/rand/v2"
	"slices"
)

// WholeGPU is one device in thousandths, the unit of shares.
const WholeGPU = 1000

// Instance is one container instance as it registered.
type Instance struct {
	ID         string
	Attributes map[string]string
	CPU        int64 // CPU units, 1,024 a core
	MemoryMiB  int64
	GPUs       []GPU
	GPUModel   string   // "" if unknown
	PortsTCP   []uint16 // ports that the instance keeps for itself
	PortsUDP   []uint16
	Active     bool // not DRAINING
	Connected  bool // its agent is connected
}

// GPU is one device and how it is connected to the instance's others.
type GPU struct {
	ID     string
	NUMA   int
	Links  []int // NVLinks to each of the instance's devices, by index
	Faulty bool  // it's never given out
}

// Request says what a task needs, and where it may go.
type Request struct {
	CPU       int64
	MemoryMiB int64
	PortsTCP  []uint16
	PortsUDP  []uint16
	GPUs      []ContainerGPUs // whole devices, by container
	MilliGPU  int             // or a share of one device for the first of GPUs, in thousandths, below 1,000
	GPUModels []string        // nil accepts any model

	Task             string // the task's id, if room may be kept for it
	Group            string // the task's group, for distinctInstance and spread
	Attributes       []Attribute
	DistinctInstance bool
	MemberOf         []func(*Node) bool
	Strategy         []Strategy // applied in order; empty means Pintle's own strategy, which keeps GPUs usable
}

// Attribute is one that the instance must have, with this value unless that is "".
type Attribute struct {
	Name  string
	Value string
}

// String returns the name, and the value if there is one.
func (a Attribute) String() string {
	if a.Value == "" {
		return a.Name
	}
	return a.Name + "=" + a.Value
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

// Plan says where a task goes.
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

// Reason says why an instance can't take a task, in ECS's words.
type Reason struct {
	InstanceID string
	Reason     string
}

// ECS's reasons: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
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

// maxReasons bounds the reasons that one Place returns.
const maxReasons = 100

// wholeGPUs returns how many whole devices the request's containers need together.
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

// Place finds the best instance for the request. If there is none, it returns the reasons of up to a hundred instances.
// No reasons at all means that there are no instances.
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

// PlaceOn plans the request on one instance that the caller has chosen. It ignores constraints, strategies and what is kept for
// other tasks, and checks only whether the request fits.
func (c *Cluster) PlaceOn(instanceID string, r *Request) (Plan, string) {
	n := c.byID[instanceID]
	if n == nil {
		return Plan{}, Missing
	}
	if reason := n.refusal(r); reason != "" {
		return Plan{}, reason
	}
	return c.plan(n, r), ""
}

// CanHost returns why an instance can't take the request, constraints included, or "" if it can.
func (c *Cluster) CanHost(instanceID string, r *Request) string {
	n := c.byID[instanceID]
	if n == nil {
		return Missing
	}
	return n.rejection(r)
}

// Eligible reports whether an instance may ever host the request, whatever is free on it now. It checks attributes and
// constraints, but not the groups of other tasks.
func (c *Cluster) Eligible(instanceID string, r *Request) bool {
	n := c.byID[instanceID]
	if n == nil || !n.hasAttributes(r.Attributes) {
		return false
	}
	alone := *r
	alone.DistinctInstance = false
	return n.violated(&alone) == ""
}

// Missing returns the attributes that the request needs and an instance hasn't.
func (c *Cluster) Missing(instanceID string, r *Request) []Attribute {
	n := c.byID[instanceID]
	if n == nil {
		return r.Attributes
	}
	return slices.DeleteFunc(slices.Clone(r.Attributes), n.has)
}

func (c *Cluster) reasons(r *Request) []Reason {
	var out []Reason
	for _, n := range c.nodes {
		if !n.Active {
			continue
		}
		if out = append(out, Reason{n.ID, n.rejection(r)}); len(out) == maxReasons {
			break
		}
	}
	return out
}

// accepts reports whether the node can take the request and meets all its constraints.
func (n *Node) accepts(r *Request) bool { return n.rejection(r) == "" }

// rejection returns why a node can't take the request, or "" if it can.
func (n *Node) rejection(r *Request) string {
	if reason := n.refusal(r); reason != "" {
		return reason
	}
	if reason := n.violated(r); reason != "" {
		return reason
	}
	return n.withholds(r)
}

// refusal returns why a node has no room for the request, or "" if it has.
func (n *Node) refusal(r *Request) string {
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

// violated returns the reason for the first of the request's constraints that the node violates, or "".
func (n *Node) violated(r *Request) string {
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

func (n *Node) hasAttributes(attributes []Attribute) bool {
	for _, a := range attributes {
		if !n.has(a) {
			return false
		}
	}
	return true
}

func (n *Node) has(a Attribute) bool {
	value, ok := n.Attributes[a.Name]
	return ok && (a.Value == "" || a.Value == value)
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
