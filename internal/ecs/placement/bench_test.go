package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// load keeps a cluster about equally full: one task ends for each that starts.
type load struct {
	cluster *Cluster
	rnd     *rand.Rand
	kinds   []Request
	tasks   []startedTask
	last    Plan
}

type startedTask struct {
	on string
	id string
}

// fill adds instances with eight GPUs each, and three tasks for each.
func (l *load) fill(nodes int) {
	for i := range nodes {
		n := node(fmt.Sprintf("i%d", i), 8)
		n.CPU = 65536
		n.MemoryMiB = 499712
		n.Attributes = map[string]string{"zone": string(rune('a' + i%3))}
		l.cluster.Upsert(n)
	}
	for i := range 3 * nodes {
		l.start(-i)
	}
}

func (l *load) start(i int) {
	r := &l.kinds[l.rnd.IntN(len(l.kinds))]
	plan, _ := l.cluster.Place(r, l.rnd)
	l.last = plan
	if plan.InstanceID == "" {
		return
	}
	l.cluster.Learn(r)
	t := startedTask{plan.InstanceID, fmt.Sprint(i)}
	l.cluster.Reserve(t.on, t.id, Allocation{CPU: r.CPU, MemoryMiB: r.MemoryMiB, GPUs: plan.GPUs, Group: r.Group})
	l.tasks = append(l.tasks, t)
}

// step starts a task and ends another.
func (l *load) step(i int) {
	l.start(i + 1)
	k := l.rnd.IntN(len(l.tasks))
	l.cluster.Release(l.tasks[k].on, l.tasks[k].id)
	l.tasks[k] = l.tasks[len(l.tasks)-1]
	l.tasks = l.tasks[:len(l.tasks)-1]
}

func fewKinds() []Request {
	return []Request{
		{CPU: 2048, MemoryMiB: 8192, GPUs: gpus(1)}, {CPU: 4096, MemoryMiB: 30000, GPUs: gpus(2)},
		{CPU: 8192, MemoryMiB: 60000, GPUs: gpus(4)}, {CPU: 1024, MemoryMiB: 2048}, {CPU: 1024, MemoryMiB: 4096, MilliGPU: 300},
	}
}

// manyKinds returns requests of so many sizes that hardly any two instances stay alike.
func manyKinds(rnd *rand.Rand, n int) []Request {
	out := make([]Request, n)
	for i := range out {
		out[i] = Request{CPU: 512 + int64(rnd.IntN(8000)), MemoryMiB: 1024 + int64(rnd.IntN(60000))}
		switch i % 4 {
		case 0, 1:
			out[i].GPUs = gpus(1 << rnd.IntN(3))
		case 2:
			out[i].MilliGPU = 50 + 10*rnd.IntN(90)
		}
	}
	return out
}

func withStrategy(s ...Strategy) []Request {
	kinds := fewKinds()
	for i := range kinds {
		kinds[i].Strategy = s
		kinds[i].Group = fmt.Sprint("service:", i)
	}
	return kinds
}

// BenchmarkPlace measures one decision on a cluster that is two thirds full, with the bookkeeping for it and for a task
// that ends, so that the cluster changes as a real one does.
func BenchmarkPlace(b *testing.B) {
	loads := []struct {
		name  string
		kinds []Request
	}{
		{"kinds=5", fewKinds()},
		{"kinds=100", manyKinds(random(), 100)},
		{"spread", withStrategy(Strategy{"spread", "attribute:zone"}, Strategy{"spread", "instanceId"})},
		{"binpack", withStrategy(Strategy{"binpack", "memory"})},
	}
	for _, of := range loads {
		for _, nodes := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", of.name, nodes), func(b *testing.B) {
				l := load{cluster: New(nil), rnd: random(), kinds: of.kinds}
				l.fill(nodes)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					l.step(i)
				}
			})
		}
	}
}
