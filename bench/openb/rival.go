package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pintle/pintle/internal/ecs/placement"
)

// rival places tasks by a score computed for every node, as the policies that Pintle is compared with do. Scores are cached
// until their node changes.
type rival struct {
	score  score
	byName bool // ties go to the first node by name, otherwise to a random one
	rnd    *rand.Rand
	nodes  []*node
	mix    placement.Mix
	scores map[*task][]scored
}

// score returns the cost of a task on a node that would have after left. Less is better.
type score func(r *rival, n *node, t *task, after room) float64

type node struct {
	room
	model string
	size  room // when it's empty
	age   int  // counts its tasks
}

// room is what is free on a node. Its devices are in thousandths.
type room struct {
	cpu, memory float64
	gpus        []int
}

type scored struct {
	cost   float64
	device int
	age    int // of the node, plus one
}

// How ties between nodes are broken.
const (
	randomTies = false
	tiesByName = true
)

func rivalPolicy(name string, s score, byName bool) policy {
	return policy{name, func(nodes []placement.Instance, tasks []task, rnd *rand.Rand) placer {
		r := &rival{score: s, byName: byName, rnd: rnd, mix: mixOf(tasks), scores: map[*task][]scored{}}
		for _, i := range nodes {
			gpus := slices.Repeat([]int{placement.WholeGPU}, len(i.GPUs))
			size := room{float64(i.CPU), float64(i.MemoryMiB), gpus}
			r.nodes = append(r.nodes, &node{size.clone(), i.GPUModel, size, 0})
		}
		return r
	}}
}

func (r room) clone() room {
	r.gpus = slices.Clone(r.gpus)
	return r
}

func (r room) free() float64 {
	sum := 0
	for _, f := range r.gpus {
		sum += f
	}
	return float64(sum)
}

func (r *rival) place(t *task) bool {
	scores := r.scores[t.alike]
	if scores == nil {
		scores = make([]scored, len(r.nodes))
		r.scores[t.alike] = scores
	}
	best := -1
	ties := 0
	for i, n := range r.nodes {
		s := &scores[i]
		if s.age != n.age+1 {
			*s = r.rate(n, t)
		}
		switch {
		case math.IsInf(s.cost, 1):
		case best < 0 || s.cost < scores[best].cost:
			best = i
			ties = 1
		case s.cost == scores[best].cost && !r.byName:
			if ties++; r.rnd.IntN(ties) == 0 {
				best = i
			}
		}
	}
	if best < 0 {
		return false
	}
	n := r.nodes[best]
	n.room = n.without(t, scores[best].device)
	n.age++
	return true
}

// rate returns the best score of the task on the node, over the devices that can hold a share.
func (r *rival) rate(n *node, t *task) scored {
	best := scored{math.Inf(1), 0, n.age + 1}
	q := &t.request
	if float64(q.CPU) > n.cpu || float64(q.MemoryMiB) > n.memory || !t.takesModel(n.model) {
		return best
	}
	if q.MilliGPU == 0 {
		if t.gpus() <= n.whole() {
			best.cost = r.score(r, n, t, n.without(t, 0))
		}
		return best
	}
	for d := range n.fitting(q.MilliGPU) {
		if cost := r.score(r, n, t, n.without(t, d)); cost < best.cost {
			best.cost = cost
			best.device = d
		}
	}
	return best
}

// fitting returns the devices that a share fits on, the fullest first. A score that treats devices alike thus takes the
// fullest.
func (r room) fitting(share int) func(func(int) bool) {
	var devices []int
	for d, f := range r.gpus {
		if f >= share {
			devices = append(devices, d)
		}
	}
	slices.SortStableFunc(devices, func(a, b int) int { return r.gpus[a] - r.gpus[b] })
	return slices.Values(devices)
}

func (r room) whole() int {
	n := 0
	for _, f := range r.gpus {
		if f == placement.WholeGPU {
			n++
		}
	}
	return n
}

// without returns what is left after the task takes its part. A share is taken of the given device.
func (r room) without(t *task, device int) room {
	left := r.clone()
	left.cpu -= float64(t.request.CPU)
	left.memory -= float64(t.request.MemoryMiB)
	if t.request.MilliGPU > 0 {
		left.gpus[device] -= t.request.MilliGPU
		return left
	}
	need := t.gpus()
	for d, f := range left.gpus {
		if need > 0 && f == placement.WholeGPU {
			left.gpus[d] = 0
			need--
		}
	}
	return left
}

// The largest node of the trace, by which BestFit measures.
const (
	largestCPU  = 128000
	largestGPUs = 8 * placement.WholeGPU
)

func random(*rival, *node, *task, room) float64 { return 0 }

// bestFit leaves the least CPU and GPU free. The paper's version ignores memory, and does better that way.
func bestFit(_ *rival, _ *node, _ *task, after room) float64 {
	return after.cpu/largestCPU + after.free()/largestGPUs
}

// dotProduct prefers the node of whose free resources the task takes the largest part, each weighted by how much of it the task
// wants.
func dotProduct(_ *rival, n *node, t *task, _ room) float64 {
	return n.cpu/largestCPU*float64(t.request.CPU)/largestCPU + n.free()/largestGPUs*float64(t.milli())/largestGPUs
}

// fragmentation is fragmentation-gradient descent. It rounds its score as the paper does, which is one of the reasons why it
// does well.
func fragmentation(r *rival, n *node, _ *task, after room) float64 {
	gradient := (r.fragments(n.room, n.model) - r.fragments(after, n.model)) / placement.WholeGPU
	return -math.Floor(100 / (1 + math.Exp(-gradient)))
}

// fragments returns the thousandths of free GPUs that a task of the mix is expected to find unusable.
func (r *rival) fragments(left room, model string) float64 {
	total := left.free()
	sum := 0.0
	for i := range r.mix {
		sum += r.mix[i].Weight * (total - usable(left, &r.mix[i], model))
	}
	return sum
}

func usable(left room, c *placement.Class, model string) float64 {
	wants := c.GPUs > 0 || c.MilliGPU > 0
	if !wants || float64(c.CPU) > left.cpu || float64(c.MemoryMiB) > left.memory || len(c.Models) > 0 && !slices.Contains(c.Models, model) {
		return 0
	}
	if whole := left.whole(); c.GPUs > 0 {
		if whole < c.GPUs {
			return 0
		}
		return float64(whole * placement.WholeGPU)
	}
	sum := 0
	for _, f := range left.gpus {
		if f >= c.MilliGPU {
			sum += f
		}
	}
	return float64(sum)
}
