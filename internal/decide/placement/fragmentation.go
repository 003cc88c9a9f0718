package placement

// Fragmentation-gradient descent (Weng et al., USENIX ATC 2023) with best fit. A GPU is a fragment to
// a class of tasks that cannot use it where it is: too little of it is free, or too little CPU or
// memory beside it. A placement costs the fragments that it adds, over the classes that are expected,
// and what it leaves unused of the node: the first term keeps GPUs usable, the second breaks the ties
// that the first alone leaves to luck.

// Mix is the work that is still to come.
type Mix struct {
	Classes []Class
	// Gradient weighs added fragments, in whole GPUs, and BestFit what is left unused of the node.
	Gradient, BestFit float64
}

// Class is a kind of task, and how common it is.
type Class struct {
	CPU       int64 // units
	MemoryMiB int64
	GPUs      int // whole devices
	MilliGPU  int // or a share of one
	Models    []string
	Weight    float64 // of all classes' sum
}

// defaultGradient was picked on the openb trace's default list: see bench/openb.
const defaultGradient = 40

// DefaultMix is the mix of a cluster of which nothing is known: mostly one GPU, some whole machines.
func DefaultMix() *Mix {
	return &Mix{Gradient: defaultGradient, BestFit: 1, Classes: []Class{
		{CPU: 1024, MemoryMiB: 4096, Weight: 0.10},
		{CPU: 4096, MemoryMiB: 16384, GPUs: 1, Weight: 0.55},
		{CPU: 8192, MemoryMiB: 32768, GPUs: 2, Weight: 0.15},
		{CPU: 16384, MemoryMiB: 65536, GPUs: 4, Weight: 0.10},
		{CPU: 32768, MemoryMiB: 131072, GPUs: 8, Weight: 0.10},
	}}
}

// cost is what placing the request on a node of the shape costs, and whether it fits at all. For a share
// of a device it also says which: the one with that much free.
func (m *Mix) cost(sc *scale, s *shape, r *Request) (cost float64, device int, fits bool) {
	if !s.takes || r.CPU > s.freeCPU || r.MemoryMiB > s.freeMemory {
		return 0, 0, false
	}
	before := state{s.freeCPU, s.freeMemory, s.free}
	after := state{s.freeCPU - r.CPU, s.freeMemory - r.MemoryMiB, nil}
	need := r.wholeGPUs()
	if (need > 0 || r.MilliGPU > 0) && !modelFits(r.GPUModels, s.model) {
		return 0, 0, false
	}
	if r.MilliGPU == 0 {
		whole := len(s.free)
		for whole > 0 && s.free[whole-1] == WholeGPU {
			whole--
		}
		if len(s.free)-whole < need {
			return 0, 0, false
		}
		free := append([]int(nil), s.free...)
		for i := range need {
			free[len(free)-1-i] = 0
		}
		after.free = free
		return m.added(sc, before, after, s), WholeGPU, true
	}
	found := false
	for i, f := range s.free {
		if f < r.MilliGPU || i > 0 && s.free[i-1] == f {
			continue
		}
		free := append([]int(nil), s.free...)
		free[i] -= r.MilliGPU
		after.free = free
		if c := m.added(sc, before, after, s); !found || c < cost {
			cost, device, found = c, f, true
		}
	}
	return cost, device, found
}

// state is what is free of a node.
type state struct {
	cpu, memory int64
	free        []int
}

// added is the cost of going from before to after.
func (m *Mix) added(sc *scale, before, after state, s *shape) float64 {
	gradient := 0.0
	if len(s.free) > 0 {
		gradient = (m.fragments(after, s.model) - m.fragments(before, s.model)) / WholeGPU
	}
	return m.Gradient*gradient + m.BestFit*sc.unused(after)
}

// fragments is the thousandths of GPUs that the classes are expected to find useless.
func (m *Mix) fragments(st state, model string) float64 {
	total, whole := 0, 0
	for _, f := range st.free {
		total += f
		if f == WholeGPU {
			whole++
		}
	}
	if total == 0 {
		return 0
	}
	sum := 0.0
	for i := range m.Classes {
		c := &m.Classes[i]
		sum += c.Weight * float64(c.useless(st, total, whole, model))
	}
	return sum
}

// useless is the thousandths of free GPUs that a class cannot use.
func (c *Class) useless(st state, total, whole int, model string) int {
	if c.GPUs == 0 && c.MilliGPU == 0 || c.CPU > st.cpu || c.MemoryMiB > st.memory || !modelFits(c.Models, model) {
		return total
	}
	if c.GPUs > 0 {
		if whole < c.GPUs {
			return total
		}
		return total - whole*WholeGPU
	}
	sum, usable := 0, false
	for _, f := range st.free {
		if f < c.MilliGPU {
			sum += f
		} else {
			usable = true
		}
	}
	if !usable {
		return total
	}
	return sum
}

// scale is the largest instance that a cluster has had, resource by resource. What a node has left is
// measured by it, so that best fit fills small machines before it opens large ones.
type scale struct {
	cpu, memory int64
	gpus        int
}

// grow says whether the instance is larger in any way than all before it.
func (s *scale) grow(i *Instance) bool {
	old := *s
	s.cpu, s.memory, s.gpus = max(s.cpu, i.CPU), max(s.memory, i.MemoryMiB), max(s.gpus, len(i.GPUs))
	return *s != old
}

// unused is what stays free of a node: CPU, memory and GPUs, each as a share of the largest instance's.
func (s *scale) unused(st state) float64 {
	u := 0.0
	if s.cpu > 0 {
		u += float64(st.cpu) / float64(s.cpu)
	}
	if s.memory > 0 {
		u += float64(st.memory) / float64(s.memory)
	}
	if s.gpus > 0 {
		free := 0
		for _, f := range st.free {
			free += f
		}
		u += float64(free) / float64(s.gpus*WholeGPU)
	}
	return u
}

func modelFits(models []string, model string) bool {
	if len(models) == 0 {
		return true
	}
	for _, m := range models {
		if m == model {
			return true
		}
	}
	return false
}
