package session

import (
	"context"
	"sync"

	"github.com/pintle/pintle/internal/acs"
)

// most is how many sessions a node has at once.
const most = 128

// Sessions are a node's.
type Sessions struct {
	opts    Options
	mu      sync.Mutex
	running sync.WaitGroup
	count   int
	ctx     context.Context // of all sessions
	stop    context.CancelFunc
	isOpen  bool // while Run runs, until Drain
}

// New returns the sessions of a node, of which there are none yet.
func New(o Options) *Sessions { return &Sessions{opts: o} }

// Run has sessions until ctx ends, and then waits for their ends.
func (s *Sessions) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx, s.stop = context.WithCancel(ctx)
	s.isOpen = true
	s.mu.Unlock()
	<-ctx.Done()
	s.close()
	s.running.Wait()
	return ctx.Err()
}

// Drain ends all sessions and waits until their clients were told and their transcripts are kept, or until ctx ends. There are none afterwards.
func (s *Sessions) Drain(ctx context.Context) error {
	s.close()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// close ends all sessions, and has none begin.
func (s *Sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOpen = false
	if s.stop != nil {
		s.stop()
	}
}

// Begin begins a session, unless the node takes no more; then nobody connects for it, and the control plane says so.
func (s *Sessions) Begin(m *acs.PintleExecute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen || s.count >= most || len(m.Command) == 0 {
		s.opts.Log.Warn("refused a session", "session", m.SessionID, "task", m.TaskArn, "sessions", s.count)
		return
	}
	s.count++
	ctx := s.ctx
	s.running.Go(func() {
		newSession(s.opts, m).run(ctx)
		s.mu.Lock()
		s.count--
		s.mu.Unlock()
	})
}
