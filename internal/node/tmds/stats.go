package tmds

import (
	"context"
	"fmt"
	"time"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// stats are a container's as the Docker Engine's API has them, as far as any runtime knows them.
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

func (s *Server) stats(ctx context.Context, a asker) (any, error) {
	return s.read(ctx, a.record, a.name)
}

// taskStats is every container's, by id; of one that does not run, null.
func (s *Server) taskStats(ctx context.Context, a asker) (any, error) {
	out := map[string]*stats{}
	for name, c := range a.record.Containers {
		id := a.record.ContainerID(name)
		out[id] = nil
		if c.Status != engine.Running {
			continue
		}
		if st, err := s.read(ctx, a.record, name); err == nil { // else it has just ended
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
	return convert(raw), nil
}

func convert(raw runtime.Stats) *stats {
	out := &stats{
		Read: raw.At, Memory: memoryStats{raw.MemoryBytes, raw.MemoryLimit},
		Networks: map[string]networkStats{"eth0": {raw.RxBytes, raw.TxBytes}},
		BlockIO:  blockIO{[]blockIOEntry{{"Read", raw.ReadBytes}, {"Write", raw.WrBytes}}},
	}
	out.CPU.Usage.Total = raw.CPU.Nanoseconds()
	return out
}
