package placement

import (
	"math/rand/v2"
	"strings"
)

// byStrategy takes the node that is best by the first strategy, of equals the best by the next one, and
// of those that are left one at random, as ECS does. Most nodes that fit also meet the constraints, so
// these are asked of the best alone, and of all nodes only if none of the best meets them.
func (c *Cluster) byStrategy(r *Request, rnd *rand.Rand) *Node {
	score := c.scorer(r)
	best := c.best(score, func(n *Node) bool { return n.fits(r) })
	if n := anyThat(best, r, rnd); n != nil {
		return n
	}
	best = c.best(score, func(n *Node) bool { return n.refuses(r) == "" && n.excludes(r) == "" })
	return anyThat(best, r, rnd)
}

// anyThat takes one of the nodes that take the request, at random.
func anyThat(nodes []*Node, r *Request, rnd *rand.Rand) *Node {
	for len(nodes) > 0 {
		i := rnd.IntN(len(nodes))
		if n := nodes[i]; n.refuses(r) == "" && n.excludes(r) == "" {
			return n
		}
		last := len(nodes) - 1
		nodes[i], nodes = nodes[last], nodes[:last]
	}
	return nil
}

// scorer is how a node does by each of a request's strategies; less is better.
type scorer []func(*Node) int64

// scratch is memory that is used again by each decision that counts tasks.
type scratch struct {
	best   []*Node
	counts [][]int64
}

func (c *Cluster) scorer(r *Request) scorer {
	var out scorer
	for i, s := range r.Strategy {
		switch s.Type {
		case "spread":
			out = append(out, c.spread(i, s.Field, r.Group))
		case "binpack":
			out = append(out, binpack(s.Field))
		}
	}
	return out
}

// best is the nodes that are admitted and that no admitted node beats.
func (c *Cluster) best(score scorer, admits func(*Node) bool) []*Node {
	best := c.scratch.best[:0]
	for _, n := range c.nodes {
		if !admits(n) {
			continue
		}
		order := -1
		if len(best) > 0 {
			order = score.compare(n, best[0])
		}
		if order < 0 {
			best = best[:0]
		}
		if order <= 0 {
			best = append(best, n)
		}
	}
	c.scratch.best = best
	return best
}

func (s scorer) compare(a, b *Node) int {
	for _, score := range s {
		if x, y := score(a), score(b); x < y {
			return -1
		} else if x > y {
			return 1
		}
	}
	return 0
}

// binpack is how much of a field a node has free. ECS knows cpu and memory; gpu is Pintle's.
func binpack(name string) func(*Node) int64 {
	switch strings.ToLower(name) {
	case "memory":
		return func(n *Node) int64 { return n.freeMemory }
	case "gpu":
		return (*Node).freeGPUs
	}
	return func(n *Node) int64 { return n.freeCPU }
}

func (n *Node) freeGPUs() int64 {
	free := 0
	for _, f := range n.freeGPU {
		free += f
	}
	return int64(free)
}

// spread is how many of the group's tasks there are where a node is: on it, or among the nodes that have
// its value of an attribute.
func (c *Cluster) spread(strategy int, name, group string) func(*Node) int64 {
	on := c.groups[group]
	attribute, ok := strings.CutPrefix(name, "attribute:")
	if !ok { // instanceId and host
		tasks := c.counts(strategy, len(c.nodes))
		for n, k := range on {
			tasks[n.at] = int64(k)
		}
		return func(n *Node) int64 { return tasks[n.at] }
	}
	f := c.field(attribute)
	tasks := c.counts(strategy, f.values)
	for n, k := range on {
		tasks[f.value[n.at]] += int64(k)
	}
	return func(n *Node) int64 { return tasks[f.value[n.at]] }
}

// counts is n zeroes.
func (c *Cluster) counts(strategy, n int) []int64 {
	for len(c.scratch.counts) <= strategy {
		c.scratch.counts = append(c.scratch.counts, nil)
	}
	if cap(c.scratch.counts[strategy]) < n {
		c.scratch.counts[strategy] = make([]int64, n+n/2)
	}
	counts := c.scratch.counts[strategy][:n]
	clear(counts)
	return counts
}

// field numbers the values of an attribute, so that a decision need not compare them as text. Nodes
// without the attribute count as alike.
type field struct {
	value  []int // by the node's place in Cluster.nodes
	values int
	asOf   uint64 // Cluster.attributes when it was made
}

func (c *Cluster) field(attribute string) *field {
	f := c.fields[attribute]
	if f != nil && f.asOf == c.attributes {
		return f
	}
	f = &field{asOf: c.attributes}
	numbers := map[string]int{}
	for _, n := range c.nodes {
		text := n.Attributes[attribute]
		number, known := numbers[text]
		if !known {
			number = len(numbers)
			numbers[text] = number
		}
		f.value = append(f.value, number)
	}
	f.values = len(numbers)
	c.fields[attribute] = f
	return f
}
