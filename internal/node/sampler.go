package node

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/gpu"
	"github.com/pintle/pintle/internal/node/runtime"
)

// sampler looks at the node's GPUs and at what containers use, and keeps what it saw for those who ask:
// the control plane and whoever scrapes the node. It looks at containers with a GPU each time, since a
// simulated GPU's load comes from them, and at all of them every few times.
type sampler struct {
	agent *Agent
	looks int                // only the one that looks knows these two
	load  map[string]float64 // of simulated GPUs, by id

	mu    sync.Mutex
	usage map[string]*usage // by container id
	gpus  []gpu.Sample      // as seen last
	told  map[string]int    // how many of a GPU's errors the control plane was told of, by id
}

// sampleEvery is how often it looks.
const sampleEvery = time.Second

// everyFew is how many looks there are to one at all containers.
const everyFew = 5

// lookTime is how long one look may take: a runtime that hangs must not silence the node.
const lookTime = 5 * time.Second

// usage is one container's, since it was collected last.
type usage struct {
	task, family, version, name string
	last                        runtime.Stats
	cores                       float64 // between the last two looks
	cpu, memory                 acs.StatsSet
	seen                        int // the look that saw it last
}

func newSampler(a *Agent) *sampler {
	return &sampler{agent: a, usage: map[string]*usage{}, load: map[string]float64{}, told: map[string]int{}}
}

// run looks until ctx ends.
func (s *sampler) run(ctx context.Context) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		looking, cancel := context.WithTimeout(ctx, lookTime)
		s.sample(looking)
		s.sampleGPUs(looking)
		cancel()
	}
}

// sample looks at the containers once.
func (s *sampler) sample(ctx context.Context) {
	s.looks++
	clear(s.load)
	for _, r := range s.agent.engine.Tasks() {
		for i := range r.Task.Containers {
			c := &r.Task.Containers[i]
			gpus := pinnedTo(&r.Task, c.Name)
			if r.Containers[c.Name].Status != engine.Running || len(gpus) == 0 && s.looks%everyFew != 0 {
				continue
			}
			cores := s.look(ctx, r, c)
			for _, id := range gpus {
				s.load[id] = load(c, cores)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.usage {
		if s.looks-u.seen > 2*everyFew { // it has ended
			delete(s.usage, id)
		}
	}
}

// maxErrors is the most errors of a GPU that are kept: one that fails all the time says nothing new.
const maxErrors = 64

// sampleGPUs looks at the GPUs once. Their errors add up.
func (s *sampler) sampleGPUs(ctx context.Context) {
	now := s.agent.config.GPUs.Load(ctx, s.busy)
	s.keep(now, s.agent.engine.Pinned())
	broken := map[string]string{}
	for _, g := range now {
		if g.Fault != "" {
			broken[g.ID] = g.Fault
		}
	}
	s.agent.broken(broken)
}

// keep keeps what was seen of the GPUs, with whom they are pinned to.
func (s *sampler) keep(now []gpu.Sample, pins map[string]engine.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range now {
		g := &now[i]
		p := pins[g.ID]
		g.TaskArn, g.Container = p.TaskArn, p.Container
		if i < len(s.gpus) {
			g.XIDErrors = slices.Concat(s.gpus[i].XIDErrors, g.XIDErrors)
		}
		if over := len(g.XIDErrors) - maxErrors; over > 0 {
			g.XIDErrors = g.XIDErrors[over:]
			s.told[g.ID] = max(s.told[g.ID]-over, 0)
		}
	}
	s.gpus = now
}

// news is the GPUs' load, with the errors that the control plane has not been told of.
func (s *sampler) news() []acs.GPULoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []acs.GPULoad
	for _, g := range s.gpus {
		l := g.GPULoad
		l.XIDErrors = l.XIDErrors[s.told[l.ID]:]
		s.told[l.ID] = len(g.XIDErrors)
		out = append(out, l)
	}
	return out
}

// GPUs is each GPU as seen last, with all the errors that it had.
func (s *sampler) GPUs() []gpu.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gpus)
}

// pinnedTo lists the GPUs that a container has.
func pinnedTo(t *acs.Task, container string) []string {
	var out []string
	for _, a := range t.Associations {
		if a.Type == "gpu" && len(a.Containers) > 0 && a.Containers[0] == container {
			out = append(out, a.Name)
		}
	}
	return out
}

// look adds a sample to a container's usage, and returns how many cores it keeps busy.
func (s *sampler) look(ctx context.Context, r *engine.Record, c *acs.Container) (cores float64) {
	id := r.ContainerID(c.Name)
	now, err := s.agent.config.Runtime.Stats(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usage[id]
	if u == nil {
		u = &usage{task: r.Task.Arn, family: r.Task.Family, version: r.Task.Version, name: c.Name}
		s.usage[id] = u
	}
	u.seen = s.looks
	if err != nil {
		return u.cores // it has just ended
	}
	if elapsed := now.At.Sub(u.last.At); !u.last.At.IsZero() && elapsed > 0 {
		u.cores = max(0, float64(now.CPU-u.last.CPU)/float64(elapsed))
		add(&u.cpu, 100*u.cores/s.agent.cores())
		add(&u.memory, float64(now.MemoryBytes)/(1<<20))
	}
	u.last = now
	return u.cores
}

// cores is what the node registered, of which ECS reckons CPU in percent.
func (a *Agent) cores() float64 { return max(float64(a.config.CPU)/1024, 1) }

func add(s *acs.StatsSet, v float64) {
	if s.SampleCount == 0 || v < s.Min {
		s.Min = v
	}
	s.Max = max(s.Max, v)
	s.Sum += v
	s.SampleCount++
}

// simulatedLoad is the variable by which a container says how busy its simulated GPUs are to be.
const simulatedLoad = "PINTLE_SIMULATED_GPU_LOAD"

// load is how busy a container keeps its simulated GPUs: as it says in its environment, from 0 to 1,
// else as much as of the CPU that it reserved.
func load(c *acs.Container, cores float64) float64 {
	if v, err := strconv.ParseFloat(c.Environment[simulatedLoad], 64); err == nil && v >= 0 && v <= 1 {
		return v
	}
	return cores / max(float64(c.CPU)/1024, 0.1)
}

// busy is the load of a simulated GPU, from 0 to 1.
func (s *sampler) busy(id string) float64 { return s.load[id] }

// collect gives what was sampled since it was called last, by task.
func (s *sampler) collect() []acs.TaskMetric {
	s.mu.Lock()
	defer s.mu.Unlock()
	byTask := map[string]int{}
	var out []acs.TaskMetric
	for _, u := range s.usage {
		if u.cpu.SampleCount == 0 {
			continue
		}
		i, ok := byTask[u.task]
		if !ok {
			i = len(out)
			byTask[u.task] = i
			out = append(out, acs.TaskMetric{TaskArn: u.task, TaskDefinitionFamily: u.family, TaskDefinitionVersion: u.version})
		}
		out[i].ContainerMetrics = append(out[i].ContainerMetrics, acs.ContainerMetric{ContainerName: u.name, CPUStatsSet: u.cpu, MemoryStatsSet: u.memory})
		u.cpu, u.memory = acs.StatsSet{}, acs.StatsSet{}
	}
	return out
}
