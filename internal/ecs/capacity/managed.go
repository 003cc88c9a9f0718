package capacity

import (
	"cmp"
	"slices"
)

// Size is what an instance has for tasks, or what a task needs of one.
type Size struct {
	CPU, MemoryMiB int64
	GPUs           int
}

func (s Size) holds(need Size) bool {
	return need.CPU <= s.CPU && need.MemoryMiB <= s.MemoryMiB && need.GPUs <= s.GPUs
}

// Managed is the input of managed scaling: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-auto-scaling.html
type Managed struct {
	// Registered counts the instances that take tasks.
	Registered int
	// Busy counts those of them that run a task other than a daemon's.
	Busy int
	// Waiting are the tasks that are PROVISIONING.
	Waiting []Size
	// Instance is the size of one more instance.
	Instance Size
	// MinStep and MaxStep bound how many instances are added at a time.
	MinStep, MaxStep int
}

// Needed is M, how many instances the provider needs: the busy ones, or, while tasks wait, all that are registered and enough new
// ones to hold the waiting tasks. We pack tasks largest first, by GPUs, then CPU and memory, so that one decision is enough for a
// mix. A task that no instance could hold doesn't count.
func (m Managed) Needed() int {
	extra := pack(m.Waiting, m.Instance)
	if extra == 0 {
		return m.Busy
	}
	return m.Registered + min(max(extra, m.MinStep), m.MaxStep)
}

// Reservation is the metric CapacityProviderReservation: M in percent of N, with the two values that are defined where N is 0.
func (m Managed) Reservation() float64 {
	needed := m.Needed()
	switch {
	case m.Registered > 0:
		return 100 * float64(needed) / float64(m.Registered)
	case needed > 0:
		return 200
	}
	return 100
}

// Desired is the group's capacity at which its use is the target, in percent.
func (m Managed) Desired(target int) int { return (m.Needed()*100 + target - 1) / target }

// ScaleIn is the group's capacity after one step down: at most half of it goes at a time.
func ScaleIn(from, to int) int { return max(to, from-max(1, from/2)) }

// pack counts the instances that the tasks fill, each task put into the first one with room.
func pack(tasks []Size, instance Size) int {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t Size) bool { return !instance.holds(t) })
	slices.SortFunc(tasks, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.MemoryMiB, a.MemoryMiB))
	})
	var free []Size
	for _, t := range tasks {
		i := slices.IndexFunc(free, func(f Size) bool { return f.holds(t) })
		if i < 0 {
			i, free = len(free), append(free, instance)
		}
		free[i].CPU -= t.CPU
		free[i].MemoryMiB -= t.MemoryMiB
		free[i].GPUs -= t.GPUs
	}
	return len(free)
}
