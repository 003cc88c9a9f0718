package metrics

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pintle/pintle/internal/file"
)

// ErrClosed is returned by Put once the store is closed, or can no longer be written.
var ErrClosed = errors.New("metricstore: the store is closed")

// Put adds samples. They are durable when it returns without an error.
func (s *Store) Put(samples []Sample) error {
	p := &pending{done: make(chan error, 1)}
	now := s.opts.Now().Unix()
	s.mu.Lock()
	for i := range samples {
		in := &samples[i]
		found, made := s.find(in.Metric, in.Unit, now)
		if made {
			p.made = append(p.made, found)
		}
		p.samples = append(p.samples, sample{found.id, in.bin()})
	}
	leads, err := s.queue.add(p) // while mu is held, so that a series is in the log before its samples
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if leads {
		s.write()
	}
	if err := <-p.done; err != nil {
		return err
	}
	if s.opts.Note != nil {
		s.opts.Note(samples)
	}
	return nil
}

func (in *Sample) bin() bin {
	at := in.At
	if !in.Fine {
		at = floor(at, 60)
	}
	return bin{at, in.Fine, in.Set}
}

// pending is a Put on its way to disk.
type pending struct {
	made    []*series
	samples []sample
	done    chan error
}

// queue is the puts that wait. Whoever comes while nobody writes becomes the writer of all that come
// until the queue is empty.
type queue struct {
	mu      sync.Mutex
	idle    sync.Cond
	waiting []*pending
	writing bool
	err     error // why nothing can be added any more
	failed  chan struct{}
}

func (q *queue) add(p *pending) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false, q.err
	}
	q.waiting = append(q.waiting, p)
	leads = !q.writing
	q.writing = true
	return leads, nil
}

// take returns what waits. Where nothing does the writer is one no more.
func (q *queue) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.waiting
	q.waiting = nil
	if len(batch) == 0 {
		q.writing = false
		q.idle.Broadcast()
	}
	return batch
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		close(q.failed)
	}
	q.err = fmt.Errorf("%w: %w", ErrClosed, err)
}

// Failed is closed when the log can no longer be written. Only a restart knows the metrics again.
func (s *Store) Failed() <-chan struct{} { return s.queue.failed }

// close lets nothing in any more, and waits for the writer.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = ErrClosed
	}
	q.idle.L = &q.mu
	for q.writing {
		q.idle.Wait()
	}
}

// write writes what waits, batch by batch, each with one write and one sync.
func (s *Store) write() {
	for batch := s.queue.take(); batch != nil; batch = s.queue.take() {
		err := s.writeBatch(batch)
		if err != nil { // what the log holds now cannot be known without reading it
			s.queue.fail(err)
		}
		for _, p := range batch {
			p.done <- err
		}
	}
}

func (s *Store) writeBatch(batch []*pending) error {
	if err := s.queue.broken(); err != nil {
		return err
	}
	s.encoded = s.encoded[:0]
	for _, p := range batch {
		s.encoded = file.AppendFrame(s.encoded, func(b []byte) []byte { return appendRecord(b, p.made, p.samples) })
	}
	if _, err := s.log.Write(s.encoded); err != nil {
		return err
	}
	if !s.opts.NoSync {
		if err := s.log.Sync(); err != nil {
			return err
		}
	}
	if cap(s.encoded) > 1<<22 {
		s.encoded = nil
	}
	if s.apply(batch) {
		return s.rotate()
	}
	return nil
}

// broken is why nothing may be written: an earlier batch failed.
func (q *queue) broken() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == ErrClosed { //nolint:errorlint // closing lets those in the queue through; a failure wraps it
		return nil
	}
	return q.err
}

// apply makes a batch seen, and says whether the head is full.
func (s *Store) apply(batch []*pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range batch {
		for _, sample := range p.samples {
			s.head.add(sample)
			s.saw(sample.series, sample.at)
		}
	}
	return s.head.size >= s.opts.MaxHead
}

// rotate begins a new head and a new log, and has the old ones flushed. Where the flush before has not
// ended it waits, and the puts with it: so memory is bounded.
func (s *Store) rotate() error {
	if s.flushing != nil {
		if <-s.flushing.done; s.flushing.err != nil {
			return s.flushing.err
		}
	}
	old := s.log
	if err := s.openLog(s.logNumber + 1); err != nil {
		return err
	}
	s.mu.Lock()
	s.frozen, s.head = s.head, newHead()
	s.mu.Unlock()
	f, number := &flushing{done: make(chan struct{})}, s.logNumber
	s.flushing = f
	go func() {
		defer close(f.done)
		f.err = errors.Join(s.flush(number), old.Close())
	}()
	return nil
}

// flushing is a flush under way; err counts once done is closed.
type flushing struct {
	done chan struct{}
	err  error
}
