package metrics

import (
	"errors"
	"fmt"

	"github.com/pintle/pintle/internal/wal"
)

// ErrClosed is returned by Put once the store is closed, or can no longer be written.
var ErrClosed = errors.New("metrics: the store is closed")

// Put adds samples. They are durable when it returns without an error.
func (s *Store) Put(samples []Sample) error {
	written, err := s.append(samples)
	if err == nil {
		err = written.Wait()
	}
	if errors.Is(err, wal.ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if err != nil {
		return err
	}
	if s.opts.Note != nil {
		s.opts.Note(samples)
	}
	return nil
}

// append puts samples on their way to disk, while mu is held, so that a series is in the log before its samples.
func (s *Store) append(in []Sample) (*wal.Group, error) {
	now := s.opts.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	samples := make([]sample, 0, len(in))
	var made []*series
	for i := range in {
		found, isNew := s.find(in[i].Metric, in[i].Unit, now)
		if isNew {
			made = append(made, found)
		}
		samples = append(samples, sample{found.id, in[i].bin()})
	}
	_, written := s.log.Append(
		func(b []byte) []byte { return appendRecord(b, made, samples) },
		func(at wal.Position, err error) {
			if err == nil {
				s.written(at, samples)
			}
		})
	return written, nil
}

func (in *Sample) bin() bin {
	at := in.At
	if !in.Fine {
		at = floor(at, 60)
	}
	return bin{at, in.Fine, in.Set}
}

// fail has nothing be put any more.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || s.err == ErrClosed { //nolint:errorlint // a failure wraps it
		s.err = fmt.Errorf("%w: %w", ErrClosed, err)
		close(s.failed)
	}
}

// Failed is closed when the log can no longer be written. Only a restart knows the metrics again.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// written makes samples seen that are on disk. Where the head is full the log goes on in a new segment, and once all that lies in
// those before it was seen the head is flushed: so those segments hold what the head does, and nothing else.
func (s *Store) written(at wal.Position, samples []sample) {
	if s.next > 0 && at.Segment >= s.next {
		s.rotate()
	}
	if !s.apply(samples) {
		return
	}
	if s.next == 0 {
		s.next = s.log.Roll()
	}
	if s.log.Applied(s.next) {
		s.rotate()
	}
}

// apply makes samples seen, and says whether the head is full.
func (s *Store) apply(samples []sample) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range samples {
		s.head.add(sample)
		s.saw(sample.series, sample.at)
	}
	return s.head.size >= s.opts.MaxHead
}

// rotate begins a new head, and has the old one flushed. Where the flush before has not ended it waits, and the puts with it: so
// memory is bounded. Where that flush has failed the old head stays.
func (s *Store) rotate() {
	if s.flushing != nil {
		if <-s.flushing.done; s.flushing.err != nil {
			return
		}
	}
	s.mu.Lock()
	s.frozen, s.head = s.head, newHead()
	s.mu.Unlock()
	f, number := &flushing{done: make(chan struct{})}, s.next
	s.flushing, s.next = f, 0
	go func() {
		defer close(f.done)
		if f.err = s.flush(number); f.err != nil {
			s.fail(f.err)
		}
	}()
}

// flushing is a flush under way; err counts once done is closed.
type flushing struct {
	done chan struct{}
	err  error
}
