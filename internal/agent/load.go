package agent

import (
	"context"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// load knows how busy containers are, from the processor time that they used between two looks.
type load struct {
	runtime runtime.Runtime

	mu   sync.Mutex
	last map[string]runtime.Stats // by container id
}

func newLoad(rt runtime.Runtime) *load { return &load{runtime: rt, last: map[string]runtime.Stats{}} }

// busy is the share of its CPU reservation that a pinned container has used since the last look: what
// a simulated GPU shows as its load.
func (l *load) busy(ctx context.Context, p engine.Pin) float64 {
	if p.ID == "" {
		return 0
	}
	s, err := l.runtime.Stats(ctx, p.ID)
	if err != nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.last[p.ID]
	l.last[p.ID] = s
	if len(l.last) > 10000 { // containers that are long gone
		l.last = map[string]runtime.Stats{}
	}
	elapsed := s.At.Sub(before.At)
	if !ok || elapsed <= 0 {
		return 0
	}
	cores := max(float64(p.CPU)/1024, 0.1)
	return float64(s.CPU-before.CPU) / float64(time.Duration(cores*float64(elapsed)))
}
