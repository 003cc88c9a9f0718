package placement

import "slices"

// shape groups the nodes that are alike: the same free resources and GPU model. A request costs the same on each of
// them, so a decision compares shapes first.
type shape struct {
	room
	model   string
	takes   bool // ACTIVE, with a connected agent
	key     shapeKey
	members []*Node

	worth  float64 // of the room, by the forecast in valued
	valued *forecast
}

type shapeKey struct {
	cpu    int64
	memory int64
	gpus   string // sorted, two bytes a device
	model  string
	takes  bool
}

// fits reports whether the request fits nodes of the shape.
func (s *shape) fits(r *Request) bool {
	if !s.takes || r.CPU > s.cpu || r.MemoryMiB > s.memory {
		return false
	}
	need := r.wholeGPUs()
	if need == 0 && r.MilliGPU == 0 {
		return true
	}
	if need > len(s.gpus) || len(s.gpus) == 0 || !takesModel(r.GPUModels, s.model) {
		return false
	}
	if r.MilliGPU > 0 {
		return s.gpus[len(s.gpus)-1] >= r.MilliGPU
	}
	return s.gpus[len(s.gpus)-need] == WholeGPU
}

func (c *Cluster) joinShape(n *Node) {
	var buf [16]int
	gpus := append(buf[:0], n.freeGPU...)
	for i := range gpus {
		gpus[i] = min(max(gpus[i], 0), WholeGPU) // in case the books ever claim more than there is
	}
	slices.Sort(gpus)
	key := shapeKey{n.freeCPU, n.freeMemory, packGPUs(gpus), n.GPUModel, n.Active && n.Connected}
	s := c.shapes[key]
	if s == nil {
		s = &shape{
			room:  room{n.freeCPU, n.freeMemory, slices.Clone(gpus)},
			model: n.GPUModel,
			takes: key.takes,
			key:   key,
		}
		c.shapes[key] = s
		c.ranks.born(s, len(c.shapes))
	}
	n.shape = s
	n.member = len(s.members)
	s.members = append(s.members, n)
	c.index.put(n)
}

func packGPUs(gpus []int) string {
	var buf [32]byte
	b := buf[:0]
	for _, free := range gpus {
		b = append(b, byte(free>>8), byte(free))
	}
	return string(b)
}

func (c *Cluster) leaveShape(n *Node) {
	s := n.shape
	last := len(s.members) - 1
	s.members[n.member] = s.members[last]
	s.members[n.member].member = n.member
	s.members[last] = nil
	s.members = s.members[:last]
	n.shape = nil
	if last == 0 {
		delete(c.shapes, s.key)
	}
}
