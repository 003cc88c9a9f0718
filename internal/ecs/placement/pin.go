package placement

import (
	"math/bits"
	"slices"
)

// plan picks the devices for a request that fits the node.
func (c *Cluster) plan(n *Node, r *Request) Plan {
	p := Plan{InstanceID: n.ID}
	if r.MilliGPU > 0 {
		p.GPUs = []Grant{{r.shareContainer(), n.GPUs[c.sharedDevice(n, r)].ID, r.MilliGPU}}
		return p
	}
	if r.wholeGPUs() == 0 {
		return p
	}
	devices := n.bestConnected(n.wholeDevices(), r.wholeGPUs())
	for _, g := range r.GPUs {
		own := n.bestConnected(devices, g.Count)
		for _, d := range own {
			p.GPUs = append(p.GPUs, Grant{g.Container, n.GPUs[d].ID, WholeGPU})
		}
		devices = slices.DeleteFunc(devices, func(d int) bool { return slices.Contains(own, d) })
	}
	return p
}

func (r *Request) shareContainer() string {
	if len(r.GPUs) == 0 {
		return ""
	}
	return r.GPUs[0].Container
}

// sharedDevice returns the device on which the request's share costs least.
func (c *Cluster) sharedDevice(n *Node, r *Request) int {
	p, _ := c.price(n.shape, r)
	return slices.Index(n.freeGPU, p.device)
}

func (n *Node) wholeDevices() []int {
	devices := make([]int, 0, n.whole)
	for i, free := range n.freeGPU {
		if free == WholeGPU {
			devices = append(devices, i)
		}
	}
	return devices
}

// maxExact is the most devices for which every subset is tried. For more, devices are added one by one.
const maxExact = 8

// bestConnected picks as many of the devices as are needed. It prefers those with the most NVLinks, then with common
// NUMA nodes, then those that leave the rest best connected.
func (n *Node) bestConnected(free []int, need int) []int {
	if need == len(free) {
		return slices.Clone(free)
	}
	if len(free) > maxExact {
		return n.greedy(free, need)
	}
	best, bestIn, bestOut := uint(0), -1, -1
	for set := range uint(1) << len(free) {
		if bits.OnesCount(set) != need {
			continue
		}
		in, out := n.connection(free, set), n.connection(free, ^set&(1<<len(free)-1))
		if in > bestIn || in == bestIn && out > bestOut {
			best, bestIn, bestOut = set, in, out
		}
	}
	return pick(free, best)
}

// connection returns how well the devices of a set are connected to each other.
func (n *Node) connection(free []int, set uint) int {
	sum := 0
	for i := range free {
		if set>>i&1 == 0 {
			continue
		}
		for j := range i {
			if set>>j&1 == 1 {
				sum += n.linkStrength(free[i], free[j])
			}
		}
	}
	return sum
}

// linkStrength returns how well two devices are connected. An NVLink counts more than a common NUMA node.
func (n *Node) linkStrength(i, j int) int {
	w := 0
	if links := n.GPUs[i].Links; j < len(links) {
		w = 16 * links[j]
	}
	if n.GPUs[i].NUMA == n.GPUs[j].NUMA {
		w++
	}
	return w
}

// greedy starts from each device in turn, adds the best connected ones, and keeps the best set.
func (n *Node) greedy(free []int, need int) []int {
	var best []int
	bestSum := -1
	for first := range free {
		set, sum := []int{free[first]}, 0
		rest := append(append([]int(nil), free[:first]...), free[first+1:]...)
		for len(set) < need {
			at, gain := 0, -1
			for i, d := range rest {
				g := 0
				for _, s := range set {
					g += n.linkStrength(d, s)
				}
				if g > gain {
					at, gain = i, g
				}
			}
			set, sum = append(set, rest[at]), sum+gain
			rest = append(rest[:at], rest[at+1:]...)
		}
		if sum > bestSum {
			best, bestSum = set, sum
		}
	}
	return best
}

func pick(free []int, set uint) []int {
	var out []int
	for i, d := range free {
		if set>>i&1 == 1 {
			out = append(out, d)
		}
	}
	return out
}
