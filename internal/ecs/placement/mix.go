package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Mix is the work that is still to come: the kinds of tasks that want GPUs, and how common each is.
type Mix []Class

// Class is a kind of task that wants whole GPUs, or a share of one.
type Class struct {
	CPU       int64 // units
	MemoryMiB int64
	GPUs      int
	MilliGPU  int
	Models    []string // nil takes any
	Weight    float64  // how common it is beside the others
}

// defaultMix is the mix of a cluster of which nothing is known: mostly one GPU, some whole machines.
func defaultMix() Mix {
	return Mix{
		{CPU: 4096, MemoryMiB: 16384, GPUs: 1, Weight: 0.6},
		{CPU: 8192, MemoryMiB: 32768, GPUs: 2, Weight: 0.2},
		{CPU: 16384, MemoryMiB: 65536, GPUs: 4, Weight: 0.1},
		{CPU: 32768, MemoryMiB: 131072, GPUs: 8, Weight: 0.1},
	}
}

// demand counts the tasks with GPUs of late, by their kind. A fixed mix instead of it costs more GPUs than
// all of placement's cleverness gains: see bench/openb.
type demand struct {
	counts map[kind]float64
	sum    float64
	seen   int
	looked int // of seen, when the mix was last looked at
}

const (
	demandLook   = 16   // tasks from one look at whether the mix has changed to the next
	demandMemory = 2048 // tasks, after which all that went before counts half
	demandDrift  = 0.15 // of the mix that must have changed for a new one to be worth ranking anew
	mixCoverage  = 0.95 // of the tasks that the mix's classes stand for
	maxClasses   = 64
)

// kind is what the cost of a request on an instance depends on. Requests of one kind share a ranking.
type kind struct {
	cpu, memory int64
	gpus, milli int
	models      string
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

// Learn counts a request that became a task, now or before the control plane started, as one of those
// that are to be expected. What is refused does not count: it is asked for again until there is room,
// and would weigh as much as its client is impatient.
func (c *Cluster) Learn(r *Request) {
	if k := r.kind(); c.learns && k.wantsGPU() {
		c.demand.note(k)
	}
}

// expect brings the forecast up to date with what was learned. The mix changes only when it has become
// another, for then all that was ranked has to be ranked anew.
func (c *Cluster) expect() {
	d := &c.demand
	if d.seen-d.looked < demandLook {
		return
	}
	d.looked = d.seen
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

// fade halves all counts, and forgets what has become rare.
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

// mix is the most common kinds, as classes.
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
	return m.normalised()
}

// normalised is the classes that want GPUs, with weights that add up to one.
func (m Mix) normalised() Mix {
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

// distance is how much of one normalised mix is not in the other: 0 for equal ones, 1 for ones that
// have nothing in common.
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
