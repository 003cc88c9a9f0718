package capacity

import (
	"cmp"
	"slices"
	"sort"
)

// Size is what an instance has for tasks, or what a task needs of one.
type Size struct {
	CPU       int64 // in CPU units, 1024 to a vCPU
	MemoryMiB int64
	GPUs      int
}

// holds reports whether s has room for need.
func (s Size) holds(need Size) bool {
	return need.CPU <= s.CPU && need.MemoryMiB <= s.MemoryMiB && need.GPUs <= s.GPUs
}

// Managed is the input of managed scaling: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-auto-scaling.html
type Managed struct {
	// Registered counts the instances that accept tasks.
	Registered int
	// Busy counts those that run a task other than a daemon's.
	Busy int
	// Waiting are the tasks that are PROVISIONING.
	Waiting []Size
	// Trial means that further tasks wait of which only an instance can tell whether one would take them: one is tried.
	Trial bool
	// Instance is the size of one more instance.
	Instance Size
	// MinStep and MaxStep bound how many instances are added at a time.
	MinStep, MaxStep int
}

// Needed returns M, how many instances the provider needs. Without waiting tasks these are the busy ones. Otherwise they are all
// registered ones and enough new ones to hold the waiting tasks. We pack tasks largest first, by GPUs, then CPU and memory, so that
// one decision is enough for a mix. A task that no instance could hold doesn't count.
func (m Managed) Needed() int {
	extra := pack(m.Waiting, m.Instance)
	switch {
	case extra > 0:
		return m.Registered + min(max(extra, m.MinStep), m.MaxStep)
	case m.Trial:
		return m.Registered + 1
	}
	return m.Busy
}

// Reservation returns the metric CapacityProviderReservation: M in percent of N, the registered instances. For an N of 0, ECS
// defines it as 200 if M is above 0, and as 100 otherwise.
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

// Desired returns the capacity at which the group's use is target percent, rounded up.
func (m Managed) Desired(target int) int { return (m.Needed()*100 + target - 1) / target }

// ScaleIn returns the group's capacity after one step down. A step removes at most half of it, or
// one instance if that is more.
func ScaleIn(from, to int) int { return max(to, from-max(1, from/2)) }

// pack counts the instances that the tasks fill if each goes to the first one with room. It skips tasks too large for any.
func pack(tasks []Size, instance Size) int {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t Size) bool { return !instance.holds(t) })
	sort.Slice(tasks, func(i, j int) bool {
		a, b := &tasks[i], &tasks[j]
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.MemoryMiB, a.MemoryMiB)) < 0
	})
	var free []Size
	for _, t := range tasks {
		i := slices.IndexFunc(free, func(f Size) bool { return f.holds(t) })
		if i < 0 {
			i = len(free)
			free = append(free, instance)
		}
		free[i].CPU -= t.CPU
		free[i].MemoryMiB -= t.MemoryMiB
		free[i].GPUs -= t.GPUs
	}
	return len(free)
}
