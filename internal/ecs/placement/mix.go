package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Mix is the expected work: the kinds of tasks that want GPUs, and how common each is.
type Mix []Class

// Class is a kind of task that wants whole GPUs, or a share of one.
type Class struct {
	CPU       int64 // units
	MemoryMiB int64
	GPUs      int
	MilliGPU  int
	Models    []string // nil accepts any
	Weight    float64  // how common it is, relative to the others
}

// defaultMix is the mix of a cluster that has learned nothing yet: mostly one GPU, some whole machines.
func defaultMix() Mix {
	return Mix{
		{CPU: 4096, MemoryMiB: 16384, GPUs: 1, Weight: 0.6},
		{CPU: 8192, MemoryMiB: 32768, GPUs: 2, Weight: 0.2},
		{CPU: 16384, MemoryMiB: 65536, GPUs: 4, Weight: 0.1},
		{CPU: 32768, MemoryMiB: 131072, GPUs: 8, Weight: 0.1},
	}
}

// demand counts recent tasks with GPUs by kind. A fixed mix would cost more GPUs than all of placement's cleverness
// gains: see bench/openb.
type demand struct {
	counts    map[kind]float64
	sum       float64
	seen      int
	checkedAt int // the value of seen when the mix was last checked
}

const (
	demandCheckEvery = 16   // tasks between checks of whether the mix has changed
	demandMemory     = 2048 // tasks after which everything before counts half
	demandDrift      = 0.15 // the part of the mix that must change before new rankings pay off
	mixCoverage      = 0.95 // the part of the tasks that the mix's classes represent
	maxClasses       = 64
)

// kind is everything that the cost of a request on an instance depends on. Requests of one kind share a ranking.
type kind struct {
	cpu    int64
	memory int64
	gpus   int
	milli  int
	models string
}

func (r *Request) kind() kind {
	return kind{r.CPU, r.MemoryMiB, r.wholeGPUs(), r.MilliGPU, strings.Join(r.GPUModels, "|")}
}

func (c *Class) kind() kind {
	return kind{c.CPU, c.MemoryMiB, c.GPUs, c.MilliGPU, strings.Join(c.Models, "|")}
}

func (k kind) class(weight float64) Class {
	c := Class{CPU: k.cpu, MemoryMiB: k.memory, GPUs: k.gpus, MilliGPU: k.milli, Weight: weight}
	if k.models != "" {
		c.Models = strings.Split(k.models, "|")
	}
	return c
}

func (k kind) wantsGPU() bool { return k.gpus > 0 || k.milli > 0 }

func (k kind) compare(o kind) int {
	return cmp.Or(cmp.Compare(k.cpu, o.cpu), cmp.Compare(k.memory, o.memory), cmp.Compare(k.gpus, o.gpus),
		cmp.Compare(k.milli, o.milli), cmp.Compare(k.models, o.models))
}

// Learn counts a request that became a task, now or before the control plane started, as expected work. Refused
// requests don't count: a client repeats them until there is room, so they would weigh as much as the client is
// impatient.
func (c *Cluster) Learn(r *Request) {
	if k := r.kind(); c.learns && k.wantsGPU() {
		c.demand.note(k)
	}
}

// updateForecast adapts the forecast to what was learned. It does so only if the mix has changed enough, because a new
// mix invalidates all rankings.
func (c *Cluster) updateForecast() {
	d := &c.demand
	if d.seen-d.checkedAt < demandCheckEvery {
		return
	}
	d.checkedAt = d.seen
	if mix := d.mix(); mix.distance(c.forecast.mix) > demandDrift {
		c.forecast = newForecast(mix)
		c.ranks = ranks{}
	}
}

func (d *demand) note(k kind) {
	if d.counts == nil {
		d.counts = map[kind]float64{}
	}
	d.counts[k]++
	d.sum++
	d.seen++
	if d.sum >= demandMemory {
		d.fade()
	}
}

// fade halves all counts, and forgets kinds that have become rare.
func (d *demand) fade() {
	d.sum = 0
	for k, n := range d.counts {
		if n < 1 {
			delete(d.counts, k)
			continue
		}
		d.counts[k] = n / 2
		d.sum += n / 2
	}
}

// mix returns the most common kinds as classes.
func (d *demand) mix() Mix {
	kinds := slices.SortedFunc(maps.Keys(d.counts), func(a, b kind) int {
		return cmp.Or(cmp.Compare(d.counts[b], d.counts[a]), a.compare(b))
	})
	var m Mix
	covered := 0.0
	for _, k := range kinds {
		if covered >= mixCoverage*d.sum || len(m) == maxClasses {
			break
		}
		covered += d.counts[k]
		m = append(m, k.class(d.counts[k]))
	}
	return m.normalized()
}

// normalized returns the classes that want GPUs, with weights that add up to one.
func (m Mix) normalized() Mix {
	var out Mix
	sum := 0.0
	for _, c := range m {
		if c.kind().wantsGPU() {
			out = append(out, c)
			sum += c.Weight
		}
	}
	for i := range out {
		out[i].Weight /= sum
	}
	return out
}

// distance returns how much of one normalized mix is missing from the other: 0 for equal mixes, 1 for mixes with
// nothing in common.
func (m Mix) distance(o Mix) float64 {
	weights := map[kind]float64{}
	for i := range m {
		weights[m[i].kind()] += m[i].Weight
	}
	for i := range o {
		weights[o[i].kind()] -= o[i].Weight
	}
	sum := 0.0
	for _, w := range weights {
		sum += math.Abs(w)
	}
	return sum / 2
}
