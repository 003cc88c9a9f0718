package placement

import (
	"cmp"
	"math"
	"slices"
)

// What placement minimizes. The idea is fragmentation-gradient descent (Weng et al., USENIX ATC 2023): a GPU is a
// fragment to a class of tasks that can't use it where it is. Here a class can use as many GPUs as the CPU and memory
// beside them serve, so a node's CPU isn't spent long before its GPUs are. The part of a GPU that no shares can fill
// counts as lost. A placement costs the GPUs that it makes useless to the expected work and, as in best fit, what stays
// free of its instance. bench/openb measures what that is worth.

// worthWeight weighs GPUs made useless against the part of the instance that stays free. It was picked on the openb
// trace's lists default and gpushare40. From 20 to 100 it makes little difference. A larger weight leaves slightly
// fewer GPUs idle in a full cluster, and refuses more before it is full.
const worthWeight = 40

// forecast is a mix, prepared for frequent use.
type forecast struct {
	mix     Mix
	byModel map[string]*classes
	lost    [WholeGPU + 1]float64 // by free thousandths of a device: how many of them no shares can fill
}

// classes is the part of a mix that may use a model of GPU.
type classes struct {
	whole  []Class
	shares []Class // from small to large
}

func newForecast(m Mix) *forecast {
	f := &forecast{mix: m.normalized(), byModel: map[string]*classes{}}
	var filled [WholeGPU + 1]int
	for free := 1; free < WholeGPU; free++ {
		for i := range f.mix {
			if share := f.mix[i].MilliGPU; share > 0 && share <= free {
				filled[free] = max(filled[free], share+filled[free-share])
			}
		}
		f.lost[free] = float64(free - filled[free])
	}
	return f
}

// classesFor returns the classes that may use a model. It computes them once per model.
func (f *forecast) classesFor(model string) *classes {
	if known := f.byModel[model]; known != nil {
		return known
	}
	out := &classes{}
	for _, c := range f.mix {
		switch {
		case !takesModel(c.Models, model):
		case c.MilliGPU > 0:
			out.shares = append(out.shares, c)
		default:
			out.whole = append(out.whole, c)
		}
	}
	slices.SortStableFunc(out.shares, func(a, b Class) int { return cmp.Compare(a.MilliGPU, b.MilliGPU) })
	f.byModel[model] = out
	return out
}

// room is what is free of an instance. Devices are in thousandths, from small to large.
type room struct {
	cpu    int64
	memory int64
	gpus   []int
}

// serves returns how many tasks of the class the CPU and memory suffice for, or 0 if not even for one.
func (r *room) serves(c *Class) float64 {
	if c.CPU > r.cpu || c.MemoryMiB > r.memory {
		return 0
	}
	n := math.Inf(1)
	if c.CPU > 0 {
		n = float64(r.cpu) / float64(c.CPU)
	}
	if c.MemoryMiB > 0 {
		n = min(n, float64(r.memory)/float64(c.MemoryMiB))
	}
	return n
}

// worth returns the thousandths of free GPUs that the expected work can use.
func (f *forecast) worth(model string, r room) float64 {
	reach, whole := 0, 0
	sum := 0.0
	for _, free := range r.gpus {
		reach += free
		sum -= f.lost[free]
		if free == WholeGPU {
			whole++
		}
	}
	if reach == 0 {
		return 0
	}
	fit := f.classesFor(model)
	for i := range fit.whole {
		if c := &fit.whole[i]; c.GPUs <= whole {
			sum += c.Weight * min(float64(whole), r.serves(c)*float64(c.GPUs)) * WholeGPU
		}
	}
	next := 0
	for i := range fit.shares {
		c := &fit.shares[i]
		for next < len(r.gpus) && r.gpus[next] < c.MilliGPU {
			reach -= r.gpus[next]
			next++
		}
		sum += c.Weight * min(float64(reach), r.serves(c)*WholeGPU)
	}
	return sum
}

// price is what a placement costs. For a share of a device, device is how much is free on the device to use.
type price struct {
	cost   float64
	device int
}

// price computes what the request costs on an instance of the shape, and reports whether it fits.
func (c *Cluster) price(s *shape, r *Request) (p price, fits bool) {
	if !s.fits(r) {
		return price{}, false
	}
	if s.valued != c.forecast {
		s.valued = c.forecast
		s.worth = c.forecast.worth(s.model, s.room)
	}
	var buf [16]int
	after := room{s.cpu - r.CPU, s.memory - r.MemoryMiB, nil}
	if r.MilliGPU == 0 {
		after.gpus = withoutWhole(buf[:0], s.gpus, r.wholeGPUs())
		return price{c.costs(s, after), WholeGPU}, true
	}
	p.cost = math.Inf(1)
	for i, free := range s.gpus {
		if free < r.MilliGPU || i > 0 && s.gpus[i-1] == free {
			continue
		}
		after.gpus = withoutShare(buf[:0], s.gpus, i, r.MilliGPU)
		if cost := c.costs(s, after); cost < p.cost {
			p = price{cost, free}
		}
	}
	return p, true
}

// costs weighs what is lost between a shape and what is left after a placement.
func (c *Cluster) costs(s *shape, after room) float64 {
	useless := 0.0
	if len(after.gpus) > 0 {
		useless = (s.worth - c.forecast.worth(s.model, after)) / WholeGPU
	}
	return worthWeight*useless + c.scale.part(after)
}

// withoutWhole appends the devices to buf, with the n largest taken. Those must be whole.
func withoutWhole(buf, gpus []int, n int) []int {
	for range n {
		buf = append(buf, 0)
	}
	return append(buf, gpus[:len(gpus)-n]...)
}

// withoutShare appends the devices to buf in order, with a share of the i-th taken.
func withoutShare(buf, gpus []int, i, share int) []int {
	left := gpus[i] - share
	at, _ := slices.BinarySearch(gpus[:i], left)
	buf = append(buf, gpus[:at]...)
	buf = append(buf, left)
	buf = append(buf, gpus[at:i]...)
	return append(buf, gpus[i+1:]...)
}

// scale is the largest instance that a cluster has had, resource by resource. An instance's free resources are measured
// against it, so that best fit fills small machines before it opens large ones.
type scale struct {
	cpu    int64
	memory int64
	gpus   int
}

// grow raises the scale to the instance, and reports whether it exceeds all before it in any resource.
func (s *scale) grow(i *Instance) bool {
	old := *s
	s.cpu = max(s.cpu, i.CPU)
	s.memory = max(s.memory, i.MemoryMiB)
	s.gpus = max(s.gpus, len(i.GPUs))
	return *s != old
}

// part returns the CPU, memory and GPUs of a room, each as a part of the largest instance's, added up.
func (s *scale) part(r room) float64 {
	free := 0
	for _, f := range r.gpus {
		free += f
	}
	return ratio(r.cpu, s.cpu) + ratio(r.memory, s.memory) + ratio(int64(free), int64(s.gpus)*WholeGPU)
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func takesModel(models []string, model string) bool {
	return len(models) == 0 || slices.Contains(models, model)
}
