package placement

import (
	"slices"
	"strconv"
)

// Lack is one thing that keeps an instance from taking a request.
type Lack struct {
	// Reason is ECS's, or one of the two below.
	Reason string
	// Needs is how much of a resource the request needs, Free what the instance has free of it, and Total what it has. They are in CPU
	// units, in MiB, or in devices; of a share of a device in thousandths.
	Needs, Free, Total int64 `json:",omitzero"`
	// Constraint is which of the request's MemberOf isn't met. The cluster doesn't know their words.
	Constraint int `json:"-"`
	// Names are the attributes, the ports or the expressions that aren't met.
	Names []string `json:",omitempty"`
	// Holders are the tasks that hold what is missing: ports, or places of a group.
	Holders []string `json:",omitempty"`
}

// The reasons that ECS has no words for: so many of an instance's devices are faulty that it could not take the request if it were empty; what is
// free on it is kept for the task in Holders.
const (
	FaultyGPU = "FAULTY:GPU"
	KeptRoom  = "KEPT"
)

// Shortfall is all that keeps an instance from taking a request. Without lacks it can take it.
type Shortfall struct {
	InstanceID string
	Lacks      []Lack
}

// Shortfalls tells of all instances how far they are from taking a request, in the order in which they came.
func (c *Cluster) Shortfalls(r *Request) (out []Shortfall) {
	for _, n := range c.nodes {
		out = append(out, Shortfall{n.ID, n.lacking(r)})
	}
	return out
}

// lacking returns everything that refusal, violated and withholds look for; they name the first.
func (n *Node) lacking(r *Request) (out []Lack) {
	if !n.Active {
		out = append(out, Lack{Reason: NotActive})
	}
	if !n.Connected {
		out = append(out, Lack{Reason: NoAgent})
	}
	var missing []string
	for _, a := range r.Attributes {
		if !n.has(a) {
			missing = append(missing, a.String())
		}
	}
	if missing != nil {
		out = append(out, Lack{Reason: NoAttribute, Names: missing})
	}
	out = append(out, n.lackingGPUs(r)...)
	if r.CPU > n.freeCPU {
		out = append(out, Lack{Reason: NoCPU, Needs: r.CPU, Free: n.freeCPU, Total: n.CPU})
	}
	if r.MemoryMiB > n.freeMemory {
		out = append(out, Lack{Reason: NoMemory, Needs: r.MemoryMiB, Free: n.freeMemory, Total: n.MemoryMiB})
	}
	out = append(out, n.lackingPorts(r)...)
	if r.DistinctInstance && n.HasGroup(r.Group) {
		out = append(out, Lack{Reason: NotDistinct, Holders: n.holders(func(a Allocation) bool { return a.Group == r.Group })})
	}
	for i, member := range r.MemberOf {
		if !member(n) {
			out = append(out, Lack{Reason: NotMember, Constraint: i})
		}
	}
	if len(out) == 0 && n.withholds(r) != "" {
		out = append(out, Lack{Reason: KeptRoom, Holders: []string{n.kept.task}})
	}
	return out
}

// lackingGPUs tells a node whose devices are busy from one that could never do.
func (n *Node) lackingGPUs(r *Request) []Lack {
	if n.fitsGPUs(r) {
		return nil
	}
	need, free, usable, total := int64(r.wholeGPUs()), int64(n.whole), int64(0), int64(len(n.GPUs))
	for _, g := range n.GPUs {
		if !g.Faulty {
			usable++
		}
	}
	if r.MilliGPU > 0 {
		need, free, usable, total = int64(r.MilliGPU), int64(n.largest), usable*WholeGPU, total*WholeGPU
	}
	if usable < need && total >= need {
		return []Lack{{Reason: FaultyGPU, Needs: need, Free: usable, Total: total}}
	}
	return []Lack{{Reason: NoGPU, Needs: need, Free: free, Total: total}}
}

func (n *Node) lackingPorts(r *Request) (out []Lack) {
	var ports []string
	tcp, udp := takenOf(n.tcp, r.PortsTCP), takenOf(n.udp, r.PortsUDP)
	for _, p := range tcp {
		ports = append(ports, strconv.Itoa(int(p))+"/tcp")
	}
	for _, p := range udp {
		ports = append(ports, strconv.Itoa(int(p))+"/udp")
	}
	if ports == nil {
		return nil
	}
	holders := n.holders(func(a Allocation) bool { return overlap(a.PortsTCP, tcp) || overlap(a.PortsUDP, udp) })
	return []Lack{{Reason: NoPorts, Names: ports, Holders: holders}}
}

func takenOf(taken map[uint16]int, ports []uint16) (out []uint16) {
	for _, p := range ports {
		if taken[p] > 0 {
			out = append(out, p)
		}
	}
	return out
}

// holders returns the node's tasks of a kind, sorted.
func (n *Node) holders(are func(Allocation) bool) (out []string) {
	for task, a := range n.tasks {
		if are(a) {
			out = append(out, task)
		}
	}
	slices.Sort(out)
	return out
}
