package agent

import (
	"context"
	"strconv"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// sampler looks at what containers use: at those with a GPU each time, since a simulated GPU's load
// comes from it, and at all of them every few times. One goroutine uses it.
type sampler struct {
	agent   *Agent
	looks   int
	usage   map[string]*usage // by container id
	gpuLoad map[string]float64
}

// everyFew is how many looks there are to one at all containers.
const everyFew = 5

// usage is one container's, since it was collected last.
type usage struct {
	task, family, version, name string
	last                        runtime.Stats
	cores                       float64 // between the last two looks
	cpu, memory                 acs.StatsSet
	seen                        int // the look that saw it last
}

func newSampler(a *Agent) *sampler {
	return &sampler{agent: a, usage: map[string]*usage{}, gpuLoad: map[string]float64{}}
}

// sample looks once.
func (s *sampler) sample(ctx context.Context) {
	s.looks++
	clear(s.gpuLoad)
	for _, r := range s.agent.engine.Tasks() {
		for i := range r.Task.Containers {
			c := &r.Task.Containers[i]
			gpus := pinnedTo(&r.Task, c.Name)
			if r.Containers[c.Name].Status != engine.Running || len(gpus) == 0 && s.looks%everyFew != 0 {
				continue
			}
			u := s.look(ctx, r, c)
			for _, id := range gpus {
				s.gpuLoad[id] = load(c, u)
			}
		}
	}
	for id, u := range s.usage {
		if s.looks-u.seen > 2*everyFew { // it has ended
			delete(s.usage, id)
		}
	}
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

// look adds a sample to a container's usage.
func (s *sampler) look(ctx context.Context, r *engine.Record, c *acs.Container) *usage {
	id := r.ContainerID(c.Name)
	u := s.usage[id]
	if u == nil {
		u = &usage{task: r.Task.Arn, family: r.Task.Family, version: r.Task.Version, name: c.Name}
		s.usage[id] = u
	}
	u.seen = s.looks
	now, err := s.agent.config.Runtime.Stats(ctx, id)
	if err != nil {
		return u // it has just ended
	}
	if elapsed := now.At.Sub(u.last.At); !u.last.At.IsZero() && elapsed > 0 {
		u.cores = max(0, float64(now.CPU-u.last.CPU)/float64(elapsed))
		add(&u.cpu, 100*u.cores/s.agent.cores())
		add(&u.memory, float64(now.MemoryBytes)/(1<<20))
	}
	u.last = now
	return u
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
func load(c *acs.Container, u *usage) float64 {
	if v, err := strconv.ParseFloat(c.Environment[simulatedLoad], 64); err == nil && v >= 0 && v <= 1 {
		return v
	}
	return u.cores / max(float64(c.CPU)/1024, 0.1)
}

// busy is the load of a simulated GPU, from 0 to 1.
func (s *sampler) busy(id string) float64 { return s.gpuLoad[id] }

// collect gives what was sampled since it was called last, by task.
func (s *sampler) collect() []acs.TaskMetric {
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
