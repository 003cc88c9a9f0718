package dataset

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// progress tells the log how far a directory is.
type progress struct {
	log   *slog.Logger
	total int64
	have  atomic.Int64 // bytes
	began time.Time
	ended chan struct{}
	run   sync.WaitGroup
}

func (c *Cache) startProgress(s Source, objects []object) *progress {
	p := &progress{log: c.log.With("source", s.String(), "objects", len(objects)), began: time.Now(), ended: make(chan struct{})}
	for _, o := range objects {
		p.total += o.size
	}
	p.run.Go(p.tell)
	return p
}

func (p *progress) add(bytes int64) { p.have.Add(bytes) }

func (p *progress) tell() {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
			p.log.Info("fetching a data set", "have", size(p.have.Load()), "of", size(p.total))
		}
	}
}

func (p *progress) stop() {
	close(p.ended)
	p.run.Wait()
	if p.have.Load() >= p.total {
		p.log.Info("a data set is here", "size", size(p.total), "took", time.Since(p.began).Round(time.Millisecond).String())
	}
}
