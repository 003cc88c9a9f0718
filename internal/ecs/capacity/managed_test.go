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
	gpu := Size{1024, 1024, 1}
	cpu := Size{2048, 1024, 0}
	p3 := Size{32_768, 249_856, 4} // a p3.8xlarge
	for _, c := range []struct {
		name        string
		m           Managed
		target      int
		needed      int
		desired     int
		reservation float64
	}{
		{"no instances, no tasks", Managed{}, 100, 0, 0, 100},
		{"no instances, one GPU a task", Managed{Waiting: tasks(3, gpu)}, 100, 3, 3, 200},
		{"no instances, half the CPU a task", Managed{Waiting: tasks(4, cpu)}, 100, 2, 2, 200},
		{"a mix shares instances", Managed{Waiting: append(tasks(2, gpu), tasks(2, cpu)...)}, 100, 2, 2, 200},
		{"all busy", Managed{Registered: 4, Busy: 4}, 100, 4, 4, 100},
		{"two are idle", Managed{Registered: 4, Busy: 2}, 100, 2, 2, 50},
		{"all are idle", Managed{Registered: 4}, 100, 0, 0, 0},
		{"more for waiting tasks", Managed{Registered: 2, Busy: 2, Waiting: tasks(2, gpu)}, 100, 4, 4, 200},
		{"room to spare", Managed{Registered: 8, Busy: 8}, 80, 8, 10, 100},
		{"at least MinStep", Managed{Waiting: tasks(1, gpu), MinStep: 2}, 100, 2, 2, 200},
		{"at most MaxStep", Managed{Waiting: tasks(9, gpu), MaxStep: 4}, 100, 4, 4, 200},
		{"a task that no instance holds does not count", Managed{Waiting: tasks(2, Size{1, 1, 4})}, 100, 0, 0, 100},
		// The cases of https://aws.amazon.com/blogs/containers/deep-dive-on-amazon-ecs-cluster-auto-scaling/
		{"M = N: no change", Managed{Registered: 1, Busy: 1}, 100, 1, 1, 100},
		{"M > N: tasks wait", Managed{Registered: 1, Busy: 1, Waiting: tasks(1, gpu)}, 100, 2, 2, 200},
		{"M < N: one is idle", Managed{Registered: 2, Busy: 1}, 100, 1, 1, 50},
		{"M and N are 0: 100", Managed{}, 100, 0, 0, 100},
		{"N is 0, M is not: 200", Managed{Waiting: tasks(1, gpu)}, 100, 1, 1, 200},
		{"N is not 0, M is: 0", Managed{Registered: 1}, 100, 0, 0, 0},
		{"a target of 50 keeps as many idle as busy", Managed{Registered: 4, Busy: 4}, 50, 4, 8, 100},
		{"at its target of 50", Managed{Registered: 8, Busy: 4}, 50, 4, 8, 50},
		// Tasks with GPUs and of several sizes.
		{"four tasks on four GPUs", Managed{Instance: p3, Waiting: tasks(10, gpu)}, 100, 3, 3, 200},
		{"two GPUs a task", Managed{Instance: p3, Waiting: tasks(3, Size{1024, 1024, 2})}, 100, 2, 2, 200},
		{
			"three GPUs leave one for another task",
			Managed{Instance: p3, Waiting: append(tasks(3, Size{1024, 1024, 3}), tasks(4, gpu)...)},
			100, 4, 4, 200,
		},
		{"memory is the limit, not GPUs", Managed{Instance: p3, Waiting: tasks(3, Size{1024, 200_000, 1})}, 100, 3, 3, 200},
	} {
		if c.m.Instance == (Size{}) {
			c.m.Instance = g4dn
		}
		if c.m.MaxStep == 0 {
			c.m.MaxStep = 10_000
		}
		if n, d, r := c.m.Needed(), c.m.Desired(c.target), c.m.Reservation(); n != c.needed || d != c.desired || r != c.reservation {
			t.Errorf("%s: needs %d, wants %d at %v %%, not %d, %d at %v %%", c.name, n, d, r, c.needed, c.desired, c.reservation)
		}
	}
}

// TestPack packs random tasks: the instances hold the sum of each resource, and there are never more instances than tasks.
func TestPack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		instance := Size{64, 64, 8}
		var all []Size
		var sum Size
		for range rapid.IntRange(0, 40).Draw(r, "tasks") {
			s := Size{
				CPU:       rapid.Int64Range(0, 64).Draw(r, "cpu"),
				MemoryMiB: rapid.Int64Range(1, 64).Draw(r, "memory"),
				GPUs:      rapid.IntRange(0, 8).Draw(r, "gpus"),
			}
			all = append(all, s)
			sum = Size{sum.CPU + s.CPU, sum.MemoryMiB + s.MemoryMiB, sum.GPUs + s.GPUs}
		}
		n := pack(all, instance)
		if !(Size{int64(n) * 64, int64(n) * 64, n * 8}).holds(sum) || n > len(all) {
			r.Fatalf("%d instances for %v", n, all)
		}
	})
}

func TestScaleIn(t *testing.T) {
	for _, c := range []struct{ from, to, want int }{
		{10, 0, 5},
		{5, 0, 3},
		{3, 0, 2},
		{2, 0, 1},
		{1, 0, 0},
		{0, 0, 0},
		{10, 8, 8},
		{10, 5, 5},
		{10, 4, 5},
	} {
		if got := ScaleIn(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %d, want %d", c.from, c.to, got, c.want)
		}
	}
}

// size draws a size of up to most of each resource.
func size(r *rapid.T, what string, most int) Size {
	return Size{
		CPU:       rapid.Int64Range(0, int64(most)).Draw(r, what+" cpu"),
		MemoryMiB: rapid.Int64Range(1, int64(most)).Draw(r, what+" memory"),
		GPUs:      rapid.IntRange(0, most).Draw(r, what+" gpus"),
	}
}

// TestEqualTasks: equal tasks need as many instances as ECS's binpack of a group of them gives.
func TestEqualTasks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		instance := size(r, "instance", 16)
		task := size(r, "task", 16)
		n := rapid.IntRange(0, 50).Draw(r, "n")
		fit := instance.MemoryMiB / task.MemoryMiB
		if task.CPU > 0 {
			fit = min(fit, instance.CPU/task.CPU)
		}
		if task.GPUs > 0 {
			fit = min(fit, int64(instance.GPUs/task.GPUs))
		}
		want := 0
		if fit > 0 {
			want = (n + int(fit) - 1) / int(fit)
		}
		if got := pack(tasks(n, task), instance); got != want {
			r.Fatalf("%d instances, want %d", got, want)
		}
	})
}

// fewest returns the fewest instances that hold the tasks, by trying all ways.
func fewest(tasks []Size, instance Size, free []Size) int {
	if len(tasks) == 0 {
		return len(free)
	}
	t := tasks[0]
	least := len(free) + len(tasks)
	for i, f := range append(free, instance) {
		if !f.holds(t) {
			continue
		}
		next := append([]Size{}, append(free, instance)...)
		next[i] = Size{f.CPU - t.CPU, f.MemoryMiB - t.MemoryMiB, f.GPUs - t.GPUs}
		if i < len(free) {
			next = next[:len(free)]
		}
		least = min(least, fewest(tasks[1:], instance, next))
	}
	return least
}

// TestNearlyTheFewest: a few tasks of any size take at most one instance more than the fewest that hold them.
func TestNearlyTheFewest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		instance := Size{8, 8, 4}
		var waiting []Size
		for range rapid.IntRange(0, 6).Draw(r, "tasks") {
			s := size(r, "task", 8)
			s.GPUs /= 2
			waiting = append(waiting, s)
		}
		if got, want := pack(waiting, instance), fewest(waiting, instance, nil); got < want || got > want+1 {
			r.Fatalf("%d instances for %v, and %d hold them", got, waiting, want)
		}
	})
}

// TestManagedScalingDecides decides for random providers:
//   - Without tasks no instance is needed.
//   - Instances with tasks are never given up.
//   - The desired capacity has the slack that the target asks for, and no whole instance more.
//   - The metric is above the target exactly if more instances are desired than there are.
//   - The decision, once carried out, stays the same.
func TestManagedScalingDecides(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := Managed{
			Registered: rapid.IntRange(0, 40).Draw(r, "registered"),
			Instance:   g4dn,
			MinStep:    rapid.IntRange(1, 5).Draw(r, "least step"),
		}
		m.Busy = rapid.IntRange(0, m.Registered).Draw(r, "busy")
		m.MaxStep = rapid.IntRange(m.MinStep, 10_000).Draw(r, "most step")
		m.Waiting = tasks(rapid.IntRange(0, 20).Draw(r, "waiting"), Size{1024, 1024, 1})
		target := rapid.IntRange(1, 100).Draw(r, "target")
		needed, desired := m.Needed(), m.Desired(target)
		if m.Busy == 0 && len(m.Waiting) == 0 && desired != 0 {
			r.Fatalf("%d are desired for nothing", desired)
		}
		if desired < m.Busy || len(m.Waiting) > 0 && desired <= m.Registered {
			r.Fatalf("%d are desired of %d, %d with tasks and %d tasks waiting", desired, m.Registered, m.Busy, len(m.Waiting))
		}
		if len(m.Waiting) > 0 && needed > m.Registered+max(len(m.Waiting), m.MinStep) {
			r.Fatalf("%d are needed for %d tasks beside %d", needed, len(m.Waiting), m.Registered)
		}
		if desired*target < needed*100 || desired > 0 && (desired-1)*target >= needed*100 {
			r.Fatalf("%d are desired for %d at %d %%", desired, needed, target)
		}
		if m.Registered > 0 && (m.Reservation() > float64(target)) != (desired > m.Registered) {
			r.Fatalf("%v %% of a target of %d %%, and %d are desired of %d", m.Reservation(), target, desired, m.Registered)
		}
		if len(m.Waiting) == 0 {
			after := m
			if after.Registered = desired; after.Desired(target) != desired {
				r.Fatalf("%d, and then %d are desired", desired, after.Desired(target))
			}
		}
	})
}
