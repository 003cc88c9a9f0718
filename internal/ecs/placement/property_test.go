package placement

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// world is a cluster beside a model of it that is as plain as possible: what each task holds.
type world struct {
	*rapid.T
	cluster   *Cluster
	instances map[string]Instance
	tasks     map[string]held
	next      int
}

type held struct {
	on string
	Allocation
}

// TestPlaceKeepsItsPromises drives a cluster with random instances and tasks, and checks each decision against the
// model.
func TestPlaceKeepsItsPromises(t *testing.T) { rapid.Check(t, placeKeepsItsPromises) }

// FuzzPlace starts with inputs that are long enough for whole runs. Short ones end before the first task.
func FuzzPlace(f *testing.F) {
	for seed := range byte(8) {
		input := make([]byte, 16<<10)
		rand.NewChaCha8([32]byte{seed}).Read(input)
		f.Add(input)
	}
	f.Fuzz(rapid.MakeFuzz(placeKeepsItsPromises))
}

func placeKeepsItsPromises(t *rapid.T) {
	w := &world{T: t, cluster: New(nil), instances: map[string]Instance{}, tasks: map[string]held{}}
	seed := rapid.Uint64().Draw(t, "seed")
	for range rapid.IntRange(1, 5).Draw(t, "instances") {
		w.upsert()
	}
	for step := range uint64(rapid.IntRange(0, 50).Draw(t, "steps")) {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			w.upsert()
		case 1:
			w.remove()
		case 2, 3:
			w.release()
		default:
			w.place(rand.New(rand.NewPCG(seed, step)))
		}
		w.check()
	}
	for id, h := range w.tasks {
		w.cluster.Release(h.on, id)
		delete(w.tasks, id)
	}
	w.check()
}

func (w *world) upsert() {
	id := fmt.Sprintf("i%d", rapid.IntRange(0, 7).Draw(w.T, "instance"))
	i := node(id, 0)
	if old, known := w.instances[id]; known {
		i = old // resources never change, but the agent's and operator's state and a device's health do
		i.GPUs = slices.Clone(i.GPUs)
		for g := range i.GPUs {
			i.GPUs[g].Faulty = rapid.IntRange(0, 4).Draw(w.T, "faulty") == 0
		}
	} else {
		for g := range rapid.IntRange(0, 5).Draw(w.T, "gpus") {
			i.GPUs = append(i.GPUs, GPU{ID: fmt.Sprintf("%s-gpu%d", id, g), NUMA: g / 2})
		}
		i.CPU = rapid.Int64Range(1, 4).Draw(w.T, "cpu") * 1024
		i.GPUModel = rapid.SampledFrom([]string{"", "A", "B"}).Draw(w.T, "model")
	}
	i.Attributes = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.T, "zone")}
	i.Connected = rapid.IntRange(0, 9).Draw(w.T, "connected") > 0
	i.Active = rapid.IntRange(0, 9).Draw(w.T, "active") > 0
	w.instances[id] = i
	w.cluster.Upsert(i)
}

func (w *world) remove() {
	if len(w.instances) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(w.instances))).Draw(w.T, "removed")
	delete(w.instances, id)
	maps.DeleteFunc(w.tasks, func(_ string, h held) bool { return h.on == id })
	w.cluster.Remove(id)
}

func (w *world) release() {
	if len(w.tasks) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(w.tasks))).Draw(w.T, "task")
	w.cluster.Release(w.tasks[id].on, id)
	delete(w.tasks, id)
}

func (w *world) request() *Request {
	r := &Request{
		CPU:              rapid.Int64Range(0, 6).Draw(w.T, "cpu") * 300,
		MemoryMiB:        rapid.Int64Range(0, 3).Draw(w.T, "memory") * 2048,
		Group:            rapid.SampledFrom([]string{"g", "h"}).Draw(w.T, "group"),
		DistinctInstance: rapid.IntRange(0, 5).Draw(w.T, "distinct") == 0,
		PortsTCP:         rapid.SampledFrom([][]uint16{nil, nil, {80}}).Draw(w.T, "ports"),
	}
	switch rapid.IntRange(0, 3).Draw(w.T, "kind") {
	case 0:
		r.GPUs = []ContainerGPUs{{"x", rapid.IntRange(0, 3).Draw(w.T, "x")}, {"y", rapid.IntRange(0, 2).Draw(w.T, "y")}}
	case 1, 2:
		r.MilliGPU = rapid.SampledFrom([]int{100, 330, 500, 810, 999}).Draw(w.T, "milli")
	}
	if rapid.IntRange(0, 4).Draw(w.T, "models") == 0 {
		r.GPUModels = []string{"A"}
	}
	if rapid.IntRange(0, 4).Draw(w.T, "memberOf") == 0 {
		r.MemberOf = []func(*Node) bool{func(n *Node) bool { return n.Attributes["zone"] != "a" }}
	}
	for range rapid.IntRange(0, 2).Draw(w.T, "strategies") {
		r.Strategy = append(r.Strategy, rapid.SampledFrom([]Strategy{
			{"spread", "instanceId"}, {"spread", "attribute:zone"}, {"binpack", "cpu"}, {"binpack", "memory"}, {"binpack", "gpu"},
			{"random", ""},
		}).Draw(w.T, "strategy"))
	}
	return r
}

func (w *world) place(rnd *rand.Rand) {
	r := w.request()
	plan, reasons := w.cluster.Place(r, rnd)
	best := w.best(r)
	if plan.InstanceID == "" {
		if len(best) > 0 {
			w.Fatalf("%+v was refused with %v, and %v take it", r, reasons, best)
		}
		w.checkReasons(reasons)
		return
	}
	if !slices.Contains(best, plan.InstanceID) {
		w.Fatalf("%+v was placed on %s, best are %v", r, plan.InstanceID, best)
	}
	if reason := w.cluster.CanHost(plan.InstanceID, r); reason != "" {
		w.Fatalf("%s was chosen, and says %s", plan.InstanceID, reason)
	}
	w.checkGrants(r, plan)
	id := fmt.Sprintf("t%d", w.next)
	w.next++
	a := Allocation{CPU: r.CPU, MemoryMiB: r.MemoryMiB, PortsTCP: r.PortsTCP, GPUs: plan.GPUs, Group: r.Group}
	w.tasks[id] = held{plan.InstanceID, a}
	w.cluster.Reserve(plan.InstanceID, id, a)
	w.cluster.Learn(r)
}

func (w *world) checkReasons(reasons []Reason) {
	active := 0
	for _, i := range w.instances {
		if i.Active {
			active++
		}
	}
	if len(reasons) != active {
		w.Fatalf("%d active instances gave the reasons %v", active, reasons)
	}
	for _, r := range reasons {
		if r.Reason == "" {
			w.Fatalf("%s gives no reason", r.InstanceID)
		}
	}
}

// checkGrants checks that each container got what it asked for.
func (w *world) checkGrants(r *Request, p Plan) {
	got := map[string]int{}
	for _, g := range p.GPUs {
		got[g.Container] += g.Milli
	}
	want := map[string]int{}
	if r.MilliGPU > 0 {
		want[""] = r.MilliGPU
	}
	for _, c := range r.GPUs {
		want[c.Container] = c.Count * WholeGPU
	}
	for c, milli := range want {
		if got[c] != milli {
			w.Fatalf("container %q got %d thousandths, asked for %d", c, got[c], milli)
		}
	}
}

// left is what is free of an instance: all of it, less what its tasks hold.
type left struct {
	cpu    int64
	memory int64
	gpus   []int
	port80 bool
	groups map[string]int64
}

func (w *world) left(id string) left {
	i := w.instances[id]
	l := left{cpu: i.CPU, memory: i.MemoryMiB, groups: map[string]int64{}, port80: true}
	for _, g := range i.GPUs {
		free := WholeGPU
		for _, h := range w.tasks {
			for _, grant := range h.GPUs {
				if grant.ID == g.ID {
					free -= grant.Milli
				}
			}
		}
		if g.Faulty {
			free = 0
		}
		l.gpus = append(l.gpus, free)
	}
	for _, h := range w.tasks {
		if h.on == id {
			l.cpu -= h.CPU
			l.memory -= h.MemoryMiB
			l.port80 = l.port80 && len(h.PortsTCP) == 0
			l.groups[h.Group]++
		}
	}
	return l
}

// takes reports whether an instance takes a request.
func (w *world) takes(id string, r *Request) bool {
	i, l := w.instances[id], w.left(id)
	if !i.Active || !i.Connected || r.CPU > l.cpu || r.MemoryMiB > l.memory || len(r.PortsTCP) > 0 && !l.port80 {
		return false
	}
	if r.DistinctInstance && l.groups[r.Group] > 0 || len(r.MemberOf) > 0 && i.Attributes["zone"] == "a" {
		return false
	}
	whole, share := 0, r.MilliGPU == 0
	for _, free := range l.gpus {
		share = share || free >= r.MilliGPU
		if free == WholeGPU {
			whole++
		}
	}
	need := 0
	for _, c := range r.GPUs {
		need += c.Count
	}
	if need == 0 && r.MilliGPU == 0 {
		return true
	}
	return whole >= need && share && (r.GPUModels == nil || i.GPUModel == "A")
}

// best returns the instances that may be chosen, by the plainest reading of the strategies.
func (w *world) best(r *Request) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		if w.takes(id, r) {
			ids = append(ids, id)
		}
	}
	if len(r.Strategy) == 0 {
		return least(ids, func(id string) float64 { return w.cost(id, r) })
	}
	for _, s := range r.Strategy {
		ids = least(ids, func(id string) float64 { return w.score(id, s, r.Group) })
	}
	return ids
}

func (w *world) score(id string, s Strategy, group string) float64 {
	l := w.left(id)
	switch s {
	case Strategy{"binpack", "cpu"}:
		return float64(l.cpu)
	case Strategy{"binpack", "memory"}:
		return float64(l.memory)
	case Strategy{"binpack", "gpu"}:
		sum := 0
		for _, free := range l.gpus {
			sum += free
		}
		return float64(sum)
	case Strategy{"spread", "instanceId"}:
		return float64(l.groups[group])
	case Strategy{"spread", "attribute:zone"}:
		sum := int64(0)
		for other, i := range w.instances {
			if i.Attributes["zone"] == w.instances[id].Attributes["zone"] {
				sum += w.left(other).groups[group]
			}
		}
		return float64(sum)
	}
	return 0
}

// cost is worth.go's formula, written out.
func (w *world) cost(id string, r *Request) float64 {
	i, l := w.instances[id], w.left(id)
	need := 0
	for _, c := range r.GPUs {
		need += c.Count
	}
	after := left{cpu: l.cpu - r.CPU, memory: l.memory - r.MemoryMiB, gpus: slices.Clone(l.gpus)}
	for d := range after.gpus {
		if need > 0 && after.gpus[d] == WholeGPU {
			after.gpus[d] = 0
			need--
		}
	}
	if r.MilliGPU == 0 {
		return w.lost(i, l, after)
	}
	cheapest := math.Inf(1)
	for d := range after.gpus {
		if after.gpus[d] >= r.MilliGPU {
			after.gpus[d] -= r.MilliGPU
			cheapest = min(cheapest, w.lost(i, l, after))
			after.gpus[d] += r.MilliGPU
		}
	}
	return cheapest
}

func (w *world) lost(i Instance, before, after left) float64 {
	free := 0
	for _, f := range after.gpus {
		free += f
	}
	largest := w.cluster.scale
	cost := float64(after.cpu)/float64(largest.cpu) + float64(after.memory)/float64(largest.memory)
	if largest.gpus > 0 {
		cost += float64(free) / float64(largest.gpus*WholeGPU)
	}
	return cost + worthWeight*(w.usable(i, before)-w.usable(i, after))/WholeGPU
}

func (w *world) usable(i Instance, l left) float64 {
	sum := 0.0
	for _, c := range w.cluster.forecast.mix {
		if c.Models != nil && !slices.Contains(c.Models, i.GPUModel) || c.CPU > l.cpu || c.MemoryMiB > l.memory {
			continue
		}
		reach, whole := 0, 0
		for _, f := range l.gpus {
			if c.MilliGPU > 0 && f >= c.MilliGPU {
				reach += f
			}
			if f == WholeGPU {
				whole++
			}
		}
		if c.GPUs > 0 && whole >= c.GPUs {
			reach = whole * WholeGPU
		}
		tasks := min(ratioOrInf(l.cpu, c.CPU), ratioOrInf(l.memory, c.MemoryMiB))
		sum += c.Weight * min(float64(reach), tasks*float64(max(c.GPUs, 1))*WholeGPU)
	}
	for _, f := range l.gpus {
		sum -= float64(f - w.filled(f))
	}
	return sum
}

// filled returns the most of a device's free thousandths that shares of the mix can fill.
func (w *world) filled(free int) int {
	if free == WholeGPU {
		return free
	}
	fills := map[int]bool{0: true}
	for f := 1; f <= free; f++ {
		for _, c := range w.cluster.forecast.mix {
			fills[f] = fills[f] || c.MilliGPU > 0 && f >= c.MilliGPU && fills[f-c.MilliGPU]
		}
	}
	for f := free; ; f-- {
		if fills[f] {
			return f
		}
	}
}

func ratioOrInf(a, b int64) float64 {
	if b == 0 {
		return math.Inf(1)
	}
	return float64(a) / float64(b)
}

func least(ids []string, value func(string) float64) []string {
	best := math.Inf(1)
	for _, id := range ids {
		best = min(best, value(id))
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return value(id) > best+1e-6 })
}

// check compares the cluster with the model, and its indexes with itself.
func (w *world) check() {
	if len(w.cluster.nodes) != len(w.instances) {
		w.Fatalf("%d nodes for %d instances", len(w.cluster.nodes), len(w.instances))
	}
	for id := range w.instances {
		n, l := w.cluster.byID[id], w.left(id)
		if n.freeCPU != l.cpu || n.freeMemory != l.memory || !slices.Equal(n.freeGPU, l.gpus) {
			w.Fatalf("%s has %d, %d, %v free; want %+v", id, n.freeCPU, n.freeMemory, n.freeGPU, l)
		}
		if l.cpu < 0 || l.memory < 0 || slices.ContainsFunc(l.gpus, func(f int) bool { return f < 0 }) {
			w.Fatalf("%s has given away more than it has: %+v", id, l)
		}
		for _, group := range []string{"g", "h"} {
			if got := w.cluster.tasksOf(group).get(n.at); got != l.groups[group] {
				w.Fatalf("%s has %d tasks of %s, want %d", id, got, group, l.groups[group])
			}
		}
	}
	w.checkShapes()
}

func (w *world) checkShapes() {
	members := 0
	for key, s := range w.cluster.shapes {
		members += len(s.members)
		for at, n := range s.members {
			if n.shape != s || n.member != at || s.key != key || n.freeCPU != key.cpu {
				w.Fatalf("%s is in the wrong shape: %+v", n.ID, key)
			}
		}
	}
	if members != len(w.cluster.nodes) {
		w.Fatalf("%d nodes in shapes, %d in all", members, len(w.cluster.nodes))
	}
}

// TestSameCallsSamePlans makes two clusters do the same, often enough for the mix to be learned and for births to be
// forgotten.
func TestSameCallsSamePlans(t *testing.T) {
	if a, b := busyCluster(300), busyCluster(300); !reflect.DeepEqual(a, b) {
		t.Error("two runs of the same calls differ")
	}
}

// busyCluster returns the plans of a few thousand placements and ends on that many instances.
func busyCluster(nodes int) []string {
	rnd := random()
	l := load{cluster: New(nil), rnd: rnd, kinds: manyKinds(rnd, 20)}
	l.fill(nodes)
	var plans []string
	for i := range 5000 {
		l.step(i)
		plans = append(plans, fmt.Sprint(l.last))
	}
	return plans
}

// TestMixIsLearned feeds a cluster tasks of one kind, then of another.
func TestMixIsLearned(t *testing.T) {
	cl, rnd := New(nil), random()
	learn := func(r *Request, times int) {
		for range times {
			cl.Learn(r)
		}
		cl.Place(r, rnd)
	}
	dominant := func() string {
		var kinds []string
		for _, c := range cl.forecast.mix {
			if c.Weight > 0.5 {
				kinds = append(kinds, fmt.Sprintf("%d/%d", c.GPUs, c.MilliGPU))
			}
		}
		return strings.Join(kinds, " ")
	}
	learn(&Request{CPU: 1024}, 100)
	if got := dominant(); got != "1/0" {
		t.Errorf("after tasks without GPUs the mix is mostly %q, want the default's", got)
	}
	learn(&Request{CPU: 1024, MilliGPU: 300}, demandCheckEvery)
	if got := dominant(); got != "0/300" {
		t.Errorf("after shares the mix is mostly %q", got)
	}
	for range 10 * demandMemory {
		cl.Place(&Request{CPU: 1024, GPUs: gpus(8)}, rnd) // there is no room
	}
	if got := dominant(); got != "0/300" {
		t.Errorf("after refusals the mix is mostly %q", got)
	}
	learn(&Request{CPU: 1024, GPUs: gpus(4)}, 2*demandMemory)
	if got := dominant(); got != "4/0" {
		t.Errorf("after many tasks of four GPUs the mix is mostly %q", got)
	}
	if len(cl.demand.counts) > 2 || cl.demand.sum > demandMemory {
		t.Errorf("the demand's memory is not bounded: %+v", cl.demand)
	}
}

func TestGivenMixStays(t *testing.T) {
	cl := New(Mix{{GPUs: 2, Weight: 3}, {CPU: 1024, Weight: 5}})
	for range 100 {
		cl.Learn(&Request{MilliGPU: 300})
	}
	cl.Place(&Request{MilliGPU: 300}, random())
	want := Mix{{GPUs: 2, Weight: 1}}
	if !reflect.DeepEqual(cl.forecast.mix, want) {
		t.Errorf("got %+v, want %+v", cl.forecast.mix, want)
	}
}
