package engine

import (
	"context"
	"sync"
)

// pins is the node's own books on its GPUs. Whatever the control plane says, a device is never in two
// tasks at once: the later one waits until the earlier has ended, as with Amazon's agent.
type pins struct {
	mu      sync.Mutex
	holders map[string]string // task ARN by device
	freed   chan struct{}     // closed when a device comes free
}

func newPins() *pins { return &pins{holders: map[string]string{}, freed: make(chan struct{})} }

// hold takes all of the devices for the task, or waits until it can.
func (p *pins) hold(ctx context.Context, task string, devices []string) error {
	for {
		p.mu.Lock()
		free := true
		for _, d := range devices {
			if h, ok := p.holders[d]; ok && h != task {
				free = false
			}
		}
		if free {
			for _, d := range devices {
				p.holders[d] = task
			}
			p.mu.Unlock()
			return nil
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}

// release gives back what the task holds.
func (p *pins) release(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for d, h := range p.holders {
		if h == task {
			delete(p.holders, d)
		}
	}
	close(p.freed)
	p.freed = make(chan struct{})
}
