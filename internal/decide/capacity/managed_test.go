package capacity

import (
	"testing"

	"pgregory.net/rapid"
)

// g4dn is a g4dn.xlarge.
var g4dn = Size{4096, 16384, 1}

func tasks(n int, s Size) (out []Size) {
	for range n {
		out = append(out, s)
	}
	return out
}

func TestManaged(t *testing.T) {
	gpu, cpu := Size{1024, 1024, 1}, Size{2048, 1024, 0}
	for _, c := range []struct {
		name            string
		m               Managed
		target          int
		needed, desired int
		reservation     float64
	}{
		{"nothing of nothing", Managed{}, 100, 0, 0, 100},
		{"from nothing, one GPU each", Managed{Waiting: tasks(3, gpu)}, 100, 3, 3, 200},
		{"by what they need most", Managed{Waiting: tasks(4, cpu)}, 100, 2, 2, 200},
		{"a mix shares instances", Managed{Waiting: append(tasks(2, gpu), tasks(2, cpu)...)}, 100, 2, 2, 200},
		{"all busy", Managed{Registered: 4, Busy: 4}, 100, 4, 4, 100},
		{"two are idle", Managed{Registered: 4, Busy: 2}, 100, 2, 2, 50},
		{"to nothing", Managed{Registered: 4}, 100, 0, 0, 0},
		{"more for those that wait", Managed{Registered: 2, Busy: 2, Waiting: tasks(2, gpu)}, 100, 4, 4, 200},
		{"room to spare", Managed{Registered: 8, Busy: 8}, 80, 8, 10, 100},
		{"at least a step", Managed{Waiting: tasks(1, gpu), MinStep: 2}, 100, 2, 2, 200},
		{"at most a step", Managed{Waiting: tasks(9, gpu), MaxStep: 4}, 100, 4, 4, 200},
		{"what no instance holds does not count", Managed{Waiting: tasks(2, Size{1, 1, 4})}, 100, 0, 0, 100},
	} {
		c.m.Instance = g4dn
		if c.m.MaxStep == 0 {
			c.m.MaxStep = 10_000
		}
		if n, d, r := c.m.Needed(), c.m.Desired(c.target), c.m.Reservation(); n != c.needed || d != c.desired || r != c.reservation {
			t.Errorf("%s: needs %d, wants %d at %v %%, not %d, %d at %v %%", c.name, n, d, r, c.needed, c.desired, c.reservation)
		}
	}
}

// TestPack packs any tasks: there are enough instances for each resource's sum, and never more than tasks.
func TestPack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		instance := Size{64, 64, 8}
		var all []Size
		var sum Size
		for range rapid.IntRange(0, 40).Draw(r, "tasks") {
			s := Size{rapid.Int64Range(0, 64).Draw(r, "cpu"), rapid.Int64Range(1, 64).Draw(r, "memory"), rapid.IntRange(0, 8).Draw(r, "gpus")}
			all, sum = append(all, s), Size{sum.CPU + s.CPU, sum.MemoryMiB + s.MemoryMiB, sum.GPUs + s.GPUs}
		}
		n := pack(all, instance)
		if !(Size{int64(n) * 64, int64(n) * 64, n * 8}).holds(sum) || n > len(all) {
			r.Fatalf("%d instances for %v", n, all)
		}
	})
}
