package agent

import (
	"context"
	"time"

	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// load knows how busy containers are, from the processor time that they used between two looks. One
// goroutine uses it.
type load struct {
	runtime runtime.Runtime
	last    map[string]runtime.Stats // by container id
}

func newLoad(rt runtime.Runtime) *load { return &load{runtime: rt, last: map[string]runtime.Stats{}} }

// sample gives, by GPU, the share of its CPU reservation that the pinned container has used since the
// last look: what a simulated GPU shows as its load.
func (l *load) sample(ctx context.Context, pins map[string]engine.Pin) map[string]float64 {
	now := map[string]runtime.Stats{}
	busy := map[string]float64{}
	for gpu, p := range pins {
		s, ok := now[p.ID]
		if !ok {
			var err error
			if s, err = l.runtime.Stats(ctx, p.ID); err != nil {
				continue
			}
			now[p.ID] = s
		}
		if before, ok := l.last[p.ID]; ok {
			busy[gpu] = share(before, s, p.CPU)
		}
	}
	l.last = now
	return busy
}

// share is the processor time used between two looks, of what the CPU units came to.
func share(before, after runtime.Stats, units int64) float64 {
	elapsed := after.At.Sub(before.At)
	if elapsed <= 0 {
		return 0
	}
	cores := max(float64(units)/1024, 0.1)
	return float64(after.CPU-before.CPU) / (cores * float64(elapsed))
}

// telemetryEvery is how often the node tells its GPUs' load.
const telemetryEvery = time.Second
