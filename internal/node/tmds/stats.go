package tmds

import (
	"cmp"
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// stats are a container's statistics in the form of the Docker Engine's API, with the rates that Amazon's agent adds.
type stats struct {
	*container.StatsResponse
	Rates *networkRates `json:"network_rate_stats"` // null at first
}

type networkRates struct {
	Rx float64 `json:"rx_bytes_per_sec"`
	Tx float64 `json:"tx_bytes_per_sec"`
}

// sample is a container's use at one moment, to compare the next one with.
type sample struct {
	at     time.Time
	cpu    container.CPUStats
	rx, tx int64
}

func (s *Server) stats(ctx context.Context, c caller) (any, error) {
	return s.read(ctx, c.record, c.name)
}

// taskStats returns the statistics of the task's containers, by id; null for those that aren't running.
func (s *Server) taskStats(ctx context.Context, c caller) (any, error) {
	out := map[string]*stats{}
	for name, container := range c.record.Containers {
		id := c.record.RuntimeID(name)
		out[id] = nil
		if container.Status != engine.Running {
			continue
		}
		if st, err := s.read(ctx, c.record, name); err == nil { // an error means that it has just ended
			out[id] = st
		}
	}
	return out, nil
}

func (s *Server) read(ctx context.Context, r *engine.Record, name string) (*stats, error) {
	id := r.ContainerID(name)
	raw, err := s.opts.Runtime.Stats(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("stats of container %s: %w", name, err)
	}
	return s.compare(id, raw), nil
}

// compare returns a container's statistics, and what changed since somebody asked for them before.
func (s *Server) compare(id string, raw runtime.Stats) *stats {
	out := &stats{StatsResponse: dockerStats(id, raw)}
	now := sample{raw.At, out.CPUStats, raw.RxBytes, raw.TxBytes}
	s.mu.Lock()
	old, seen := s.samples[id]
	s.samples[id] = now
	for id, other := range s.samples {
		if now.at.Sub(other.at) > forgetSample {
			delete(s.samples, id)
		}
	}
	s.mu.Unlock()
	if since := now.at.Sub(old.at).Seconds(); seen && since > 0 {
		out.PreRead = old.at
		out.PreCPUStats = old.cpu
		out.Rates = &networkRates{float64(now.rx-old.rx) / since, float64(now.tx-old.tx) / since}
	}
	return out
}

// forgetSample is how long a sample is kept.
const forgetSample = 10 * time.Minute

// dockerStats returns what the runtime knows, and what is the same for all containers.
func dockerStats(id string, raw runtime.Stats) *container.StatsResponse {
	out := raw.Docker
	if out == nil {
		out = &container.StatsResponse{
			Read:        raw.At,
			MemoryStats: container.MemoryStats{Usage: uint64(raw.MemoryBytes), Limit: uint64(raw.MemoryLimit)},
			Networks:    map[string]container.NetworkStats{"eth0": {RxBytes: uint64(raw.RxBytes), TxBytes: uint64(raw.TxBytes)}},
		}
		out.CPUStats.CPUUsage.TotalUsage = uint64(raw.CPU)
	}
	out.ID = cmp.Or(out.ID, id)
	out.Name = cmp.Or(out.Name, "/"+id)
	if out.CPUStats.SystemUsage == 0 {
		out.CPUStats.SystemUsage = uint64(systemCPU())
	}
	if out.CPUStats.OnlineCPUs == 0 {
		out.CPUStats.OnlineCPUs = uint32(goruntime.NumCPU())
	}
	if out.MemoryStats.Stats == nil {
		out.MemoryStats.Stats = map[string]uint64{}
	}
	return out
}

// systemCPU returns the time that the machine's processors have counted since its boot, idle time included.
func systemCPU() time.Duration {
	b, _ := os.ReadFile("/proc/stat") // every Linux has one
	line, _, _ := strings.Cut(string(b), "\n")
	var total time.Duration
	for _, f := range strings.Fields(line)[min(1, len(strings.Fields(line))):] {
		n, _ := strconv.ParseInt(f, 10, 64)
		total += time.Duration(n) * clockTick
	}
	return total
}

const clockTick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
