package placement

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestShortfallsAgreeWithPlace: an instance lacks nothing exactly when it can host the request, so that nobody is told of a reason that isn't one,
// or of none.
func TestShortfallsAgreeWithPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(nil)
		for i := range rapid.IntRange(1, 4).Draw(t, "instances") {
			id := string(rune('a' + i))
			n := Instance{ID: id, CPU: 1024, MemoryMiB: 512, Active: rapid.Bool().Draw(t, "active"), Connected: rapid.Bool().Draw(t, "connected"), PortsTCP: []uint16{22}}
			for range rapid.IntRange(0, 3).Draw(t, "devices") {
				n.GPUs = append(n.GPUs, GPU{ID: id + string(rune('0'+len(n.GPUs))), Faulty: rapid.Bool().Draw(t, "faulty")})
			}
			c.Upsert(n)
			held := Allocation{CPU: rapid.Int64Range(0, 1024).Draw(t, "cpu held"), MemoryMiB: 100, PortsTCP: []uint16{80}, Group: "g"}
			if len(n.GPUs) > 0 && rapid.Bool().Draw(t, "holds a device") {
				held.GPUs = []Grant{{ID: n.GPUs[0].ID, Milli: rapid.SampledFrom([]int{250, WholeGPU}).Draw(t, "milli")}}
			}
			c.Reserve(id, "task-"+id, held)
		}
		if rapid.Bool().Draw(t, "keeps") {
			c.Keep("a", "other", &Request{CPU: 512})
		}
		r := &Request{
			CPU:              rapid.Int64Range(0, 1024).Draw(t, "cpu"),
			MemoryMiB:        rapid.SampledFrom([]int64{0, 412, 413}).Draw(t, "memory"),
			PortsTCP:         rapid.SampledFrom([][]uint16{nil, {22}, {80}, {81}}).Draw(t, "ports"),
			Group:            "g",
			DistinctInstance: rapid.Bool().Draw(t, "distinct"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "wants") {
		case 1:
			r.GPUs = []ContainerGPUs{{"main", rapid.IntRange(1, 3).Draw(t, "devices")}}
		case 2:
			r.MilliGPU = 500
		}
		takers := 0
		for _, s := range c.Shortfalls(r) {
			reason := c.CanHost(s.InstanceID, r)
			if (reason == "") != (len(s.Lacks) == 0) {
				t.Fatalf("%s refuses with %q, and lacks %v", s.InstanceID, reason, s.Lacks)
			}
			if reason == "" {
				takers++
			}
		}
		if p, _ := c.Place(r, rand.New(rand.NewPCG(1, 1))); (p.InstanceID != "") != (takers > 0) {
			t.Fatalf("placed on %q, and %d instances lack nothing", p.InstanceID, takers)
		}
	})
}
