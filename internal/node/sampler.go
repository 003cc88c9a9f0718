package node

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/gpu"
	"github.com/pintle/pintle/internal/node/runtime"
)

// sampler samples the node's GPUs and its containers' usage, and keeps the results for the control plane and whoever scrapes the node. It
// samples containers with a GPU each time, since they make up a simulated GPU's load, and all containers every few times.
type sampler struct {
	agent *Agent
	count int                // of samples; only run uses count and load
	load  map[string]float64 // of simulated GPUs, by id

	mu       sync.Mutex
	usage    map[string]*usage // by container id
	gpus     []gpu.Sample      // the last sample
	reported map[string]int    // how many of a GPU's errors the control plane was told of, by id
}

// sampleEvery is the time between samples.
const sampleEvery = time.Second

// fullSampleEvery says that every fifth sample includes the containers without a GPU.
const fullSampleEvery = 5

// sampleTimeout limits one sample. A runtime that hangs must not silence the node.
const sampleTimeout = 5 * time.Second

// usage is a container's usage since the last collect.
type usage struct {
	task    string // ARN
	family  string
	version string
	name    string // of the container
	last    runtime.Stats
	cores   float64 // busy between the last two samples
	cpu     acs.StatsSet
	memory  acs.StatsSet
	seen    int // the last sample that saw it
}

func newSampler(a *Agent) *sampler {
	return &sampler{agent: a, usage: map[string]*usage{}, load: map[string]float64{}, reported: map[string]int{}}
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		sampling, cancel := context.WithTimeout(ctx, sampleTimeout)
		s.sample(sampling)
		s.sampleGPUs(sampling)
		cancel()
	}
}

// sample samples the GPUs and the containers once.
func (s *sampler) sample(ctx context.Context) {
	s.count++
	clear(s.load)
	for _, r := range s.agent.engine.Tasks() {
		for i := range r.Task.Containers {
			c := &r.Task.Containers[i]
			gpus := pinnedTo(&r.Task, c.Name)
			if r.Containers[c.Name].Status != engine.Running || len(gpus) == 0 && s.count%fullSampleEvery != 0 {
				continue
			}
			cores := s.sampleContainer(ctx, r, c)
			for _, id := range gpus {
				s.load[id] = simulatedLoad(c, cores)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.usage {
		if s.count-u.seen > 2*fullSampleEvery { // it has ended
			delete(s.usage, id)
		}
	}
}

// maxErrors is the most errors kept of a GPU. Beyond that, a failing GPU says nothing new.
const maxErrors = 64

// sampleGPUs samples the GPUs once. Their errors add up.
func (s *sampler) sampleGPUs(ctx context.Context) {
	now := s.agent.config.GPUs.Load(ctx, s.busy)
	s.keep(now, s.agent.engine.Pinned())
	broken := map[string]string{}
	for _, g := range now {
		if g.Fault != "" {
			broken[g.ID] = g.Fault
		}
	}
	s.agent.noteFaults(broken)
}

// keep keeps a sample of the GPUs, and whom each is pinned to.
func (s *sampler) keep(now []gpu.Sample, pins map[string]engine.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range now {
		g := &now[i]
		p := pins[g.ID]
		g.TaskArn = p.TaskArn
		g.Container = p.Container
		if i < len(s.gpus) {
			g.XIDErrors = slices.Concat(s.gpus[i].XIDErrors, g.XIDErrors)
		}
		if over := len(g.XIDErrors) - maxErrors; over > 0 {
			g.XIDErrors = g.XIDErrors[over:]
			s.reported[g.ID] = max(s.reported[g.ID]-over, 0)
		}
	}
	s.gpus = now
}

// takeLoad returns the GPUs' load, with the errors that it hasn't returned before.
func (s *sampler) takeLoad() []acs.GPULoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []acs.GPULoad
	for _, g := range s.gpus {
		l := g.GPULoad
		l.XIDErrors = l.XIDErrors[s.reported[l.ID]:]
		s.reported[l.ID] = len(g.XIDErrors)
		out = append(out, l)
	}
	return out
}

// GPUs returns the last sample of each GPU, with all its errors so far.
func (s *sampler) GPUs() []gpu.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gpus)
}

// pinnedTo lists a container's GPUs.
func pinnedTo(t *acs.Task, container string) []string {
	var out []string
	for _, a := range t.Associations {
		if a.Type == "gpu" && len(a.Containers) > 0 && a.Containers[0] == container {
			out = append(out, a.Name)
		}
	}
	return out
}

// sampleContainer adds a sample to a container's usage, and returns how many cores it keeps busy.
func (s *sampler) sampleContainer(ctx context.Context, r *engine.Record, c *acs.Container) (cores float64) {
	id := r.ContainerID(c.Name)
	now, err := s.agent.config.Runtime.Stats(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usage[id]
	if u == nil {
		u = &usage{task: r.Task.Arn, family: r.Task.Family, version: r.Task.Version, name: c.Name}
		s.usage[id] = u
	}
	u.seen = s.count
	if err != nil {
		return u.cores // it has just ended
	}
	if elapsed := now.At.Sub(u.last.At); !u.last.At.IsZero() && elapsed > 0 {
		u.cores = max(0, float64(now.CPU-u.last.CPU)/float64(elapsed))
		addTo(&u.cpu, 100*u.cores/s.agent.cores())
		addTo(&u.memory, float64(now.MemoryBytes)/(1<<20))
	}
	u.last = now
	return u.cores
}

// cores returns what the node registered, which ECS's CPU percentages refer to.
func (a *Agent) cores() float64 { return max(float64(a.config.CPU)/1024, 1) }

func addTo(s *acs.StatsSet, v float64) {
	if s.SampleCount == 0 || v < s.Min {
		s.Min = v
	}
	s.Max = max(s.Max, v)
	s.Sum += v
	s.SampleCount++
}

// simulatedLoadVar is the environment variable with which a container sets the load of its simulated GPUs.
const simulatedLoadVar = "PINTLE_SIMULATED_GPU_LOAD"

// simulatedLoad returns how busy a container keeps its simulated GPUs, from 0 to 1: what its environment says, a file that the
// environment names, or else how much of its reserved CPU it uses.
func simulatedLoad(c *acs.Container, cores float64) float64 {
	says := c.Environment[simulatedLoadVar]
	if filepath.IsAbs(says) {
		says = loadIn(says)
	}
	if v, err := strconv.ParseFloat(says, 64); err == nil && v >= 0 && v <= 1 {
		return v
	}
	return cores / max(float64(c.CPU)/1024, 0.1)
}

// loadIn returns the first words of a file on the node. A GPU whose file is missing does nothing.
func loadIn(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the sampler up
	if err != nil {
		return "0"
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "0"
	}
	b, _ := io.ReadAll(io.LimitReader(f, 32)) //nolint:errcheck // then it holds no number
	return strings.TrimSpace(string(b))
}

// busy returns the load of a simulated GPU, from 0 to 1.
func (s *sampler) busy(id string) float64 { return s.load[id] }

// collect returns what was sampled since the last call, by task.
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
		out[i].ContainerMetrics = append(out[i].ContainerMetrics, acs.ContainerMetric{
			ContainerName:  u.name,
			CPUStatsSet:    u.cpu,
			MemoryStatsSet: u.memory,
		})
		u.cpu = acs.StatsSet{}
		u.memory = acs.StatsSet{}
	}
	return out
}
