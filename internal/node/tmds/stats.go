package tmds

import (
	"context"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// stats are a container's statistics in the form of the Docker Engine's API, with what all runtimes can measure.
type stats struct {
	Read     time.Time               `json:"read"`
	CPU      cpuStats                `json:"cpu_stats"`
	Memory   memoryStats             `json:"memory_stats"`
	Networks map[string]networkStats `json:"networks"`
	BlockIO  blockIO                 `json:"blkio_stats"`
}

type cpuStats struct {
	Usage struct {
		Total int64 `json:"total_usage"` // nanoseconds
	} `json:"cpu_usage"`
}

type memoryStats struct {
	Usage int64 `json:"usage"`
	Limit int64 `json:"limit"`
}

type networkStats struct {
	RxBytes int64 `json:"rx_bytes"`
	TxBytes int64 `json:"tx_bytes"`
}

type blockIO struct {
	Bytes []blockIOEntry `json:"io_service_bytes_recursive"`
}

type blockIOEntry struct {
	Op    string `json:"op"`
	Value int64  `json:"value"`
}

func (s *Server) stats(ctx context.Context, c caller) (any, error) {
	return s.read(ctx, c.record, c.name)
}

// taskStats returns the statistics of the task's containers, by id; null for those that aren't running.
func (s *Server) taskStats(ctx context.Context, c caller) (any, error) {
	out := map[string]*stats{}
	for name, container := range c.record.Containers {
		id := c.record.ContainerID(name)
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
	raw, err := s.opts.Runtime.Stats(ctx, r.ContainerID(name))
	if err != nil {
		return nil, fmt.Errorf("stats of container %s: %w", name, err)
	}
	return dockerStats(raw), nil
}

func dockerStats(raw runtime.Stats) *stats {
	out := &stats{
		Read:     raw.At,
		Memory:   memoryStats{raw.MemoryBytes, raw.MemoryLimit},
		Networks: map[string]networkStats{"eth0": {raw.RxBytes, raw.TxBytes}},
		BlockIO:  blockIO{[]blockIOEntry{{"Read", raw.ReadBytes}, {"Write", raw.WrBytes}}},
	}
	out.CPU.Usage.Total = raw.CPU.Nanoseconds()
	return out
}
