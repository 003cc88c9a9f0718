package placement

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestStrategiesMatchPlainWalk fills clusters with several words' worth of nodes, and compares the columns' best nodes
// with those that a walk over all nodes finds.
func TestStrategiesMatchPlainWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c := New(nil)
		fillAtRandom(c, rnd, rapid.IntRange(1, 200).Draw(t, "nodes"))
		for range 20 {
			r := requestAtRandom(rnd)
			var got []*Node
			best := c.best(c.fitting(r), r)
			for i := best.next(0); i >= 0; i = best.next(i + 1) {
				got = append(got, c.nodes[i])
			}
			if want := bestByWalk(c, r); !slices.Equal(got, want) {
				t.Fatalf("%+v: best are %s, by a walk %s", r, names(got), names(want))
			}
		}
	})
}

// TestSpreadBeyondTheLastThatTakes checks a spread when the last word of nodes takes nothing.
func TestSpreadBeyondTheLastThatTakes(t *testing.T) {
	c := New(nil)
	for i := range 70 {
		n := node(fmt.Sprint("i", i), 0)
		n.Active = i == 7
		c.Upsert(n)
	}
	r := &Request{Strategy: []Strategy{{"spread", "attribute:zone"}}}
	if plan, reasons := c.Place(r, random()); plan.InstanceID != "i7" {
		t.Errorf("placed on %q: %v", plan.InstanceID, reasons)
	}
}

func fillAtRandom(c *Cluster, rnd *rand.Rand, nodes int) {
	for i := range nodes {
		n := node(fmt.Sprint("i", i), rnd.IntN(5))
		n.Active = rnd.IntN(9) > 0
		n.Connected = rnd.IntN(9) > 0
		n.Attributes = map[string]string{"zone": fmt.Sprint(rnd.IntN(3)), "rack": fmt.Sprint(rnd.IntN(1 + nodes/2))}
		if i%7 == 0 {
			n.Attributes = nil
		}
		c.Upsert(n)
	}
	for i := range nodes * rnd.IntN(4) {
		on := c.nodes[rnd.IntN(nodes)]
		a := Allocation{CPU: 512 * rnd.Int64N(4), MemoryMiB: 4096 * rnd.Int64N(3), Group: fmt.Sprint(rnd.IntN(3))}
		if len(on.GPUs) > 0 {
			g := rnd.IntN(len(on.GPUs))
			a.GPUs = []Grant{{"", on.GPUs[g].ID, min(on.freeGPU[g], 250*rnd.IntN(5))}}
		}
		c.Reserve(on.ID, fmt.Sprint("t", i), a)
	}
	for range rnd.IntN(1 + nodes/4) {
		c.Remove(fmt.Sprint("i", rnd.IntN(nodes)))
	}
}

func requestAtRandom(rnd *rand.Rand) *Request {
	r := &Request{CPU: 512 * rnd.Int64N(4), MemoryMiB: 4096 * rnd.Int64N(4), Group: fmt.Sprint(rnd.IntN(4))}
	switch rnd.IntN(4) {
	case 0:
		r.GPUs = gpus(1 + rnd.IntN(4))
	case 1:
		r.MilliGPU = 250 * (1 + rnd.IntN(3))
	}
	for range rnd.IntN(4) {
		r.Strategy = append(r.Strategy, []Strategy{
			{"spread", "instanceId"}, {"spread", "host"}, {"spread", "attribute:zone"}, {"spread", "attribute:rack"},
			{"spread", "attribute:none"}, {"binpack", "cpu"}, {"binpack", "MEMORY"}, {"binpack", "gpu"}, {"random", ""},
		}[rnd.IntN(9)])
	}
	return r
}

// bestByWalk walks all nodes for each strategy, and counts tasks from scratch.
func bestByWalk(c *Cluster, r *Request) []*Node {
	var best []*Node
	for _, n := range c.nodes {
		if n.Active && n.Connected && r.CPU <= n.freeCPU && r.MemoryMiB <= n.freeMemory && n.fitsGPUs(r) {
			best = append(best, n)
		}
	}
	for _, s := range r.Strategy {
		if len(best) == 0 {
			return nil
		}
		score := scoreByWalk(c, s, r.Group)
		least := score(slices.MinFunc(best, func(a, b *Node) int { return cmp.Compare(score(a), score(b)) }))
		best = slices.DeleteFunc(best, func(n *Node) bool { return score(n) > least })
	}
	return best
}

func scoreByWalk(c *Cluster, s Strategy, group string) func(*Node) int64 {
	tasks := func(n *Node) (count int64) {
		for _, a := range n.tasks {
			if a.Group == group {
				count++
			}
		}
		return count
	}
	attribute, isAttribute := strings.CutPrefix(s.Field, "attribute:")
	switch {
	case isAttribute:
		by := map[string]int64{}
		for _, n := range c.nodes {
			by[n.Attributes[attribute]] += tasks(n)
		}
		return func(n *Node) int64 { return by[n.Attributes[attribute]] }
	case s.Type == "spread":
		return tasks
	case s.Type == "random":
		return func(*Node) int64 { return 0 }
	case s.Field == "cpu":
		return func(n *Node) int64 { return n.freeCPU }
	case s.Field == "gpu":
		return (*Node).freeGPUs
	}
	return func(n *Node) int64 { return n.freeMemory }
}

func names(nodes []*Node) string {
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return strings.Join(ids, " ")
}
