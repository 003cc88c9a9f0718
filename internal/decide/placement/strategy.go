package placement

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
)

// byStrategy narrows the nodes that take the request by each strategy in turn, as ECS does, and takes
// one at random of those that are left. It walks all instances: spread counts tasks on them anyway.
func (c *Cluster) byStrategy(r *Request, rnd *rand.Rand) *Node {
	var candidates []*Node
	for _, id := range c.order {
		if n := c.nodes[id]; n.takes(r) {
			candidates = append(candidates, n)
		}
	}
	for _, s := range r.Strategy {
		candidates = c.narrow(candidates, s, r)
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[rnd.IntN(len(candidates))]
}

// narrow keeps the candidates that are equally the best by one strategy.
func (c *Cluster) narrow(candidates []*Node, s Strategy, r *Request) []*Node {
	switch s.Type {
	case "spread":
		tasks := c.groupBy(s.Field, r.Group)
		return least(candidates, func(n *Node) int64 { return tasks[n.field(s.Field)] })
	case "binpack":
		return least(candidates, func(n *Node) int64 { return n.left(s.Field) })
	}
	return candidates
}

// groupBy counts the group's tasks by the value of a field.
func (c *Cluster) groupBy(field, group string) map[string]int64 {
	tasks := map[string]int64{}
	for _, n := range c.nodes {
		if k := n.groups[group]; k > 0 {
			tasks[n.field(field)] += int64(k)
		}
	}
	return tasks
}

// field is a node's value of a spread field. Nodes without the attribute count as alike.
func (n *Node) field(name string) string {
	if attribute, ok := strings.CutPrefix(name, "attribute:"); ok {
		return n.Attributes[attribute]
	}
	return n.ID // instanceId and host
}

// left is how much of a binpack field is free.
func (n *Node) left(field string) int64 {
	switch field {
	case "memory":
		return n.freeMemory
	case "gpu":
		free := 0
		for _, f := range n.freeGPU {
			free += f
		}
		return int64(free)
	}
	return n.freeCPU
}

// least returns the candidates with the least value.
func least(candidates []*Node, value func(*Node) int64) []*Node {
	if len(candidates) == 0 {
		return nil
	}
	best := value(slices.MinFunc(candidates, func(a, b *Node) int { return cmp.Compare(value(a), value(b)) }))
	return slices.DeleteFunc(candidates, func(n *Node) bool { return value(n) != best })
}
