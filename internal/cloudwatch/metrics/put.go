package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/wal"
)

// ErrClosed is returned by Put once the store is closed.
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

// append appends samples to the log. It holds mu meanwhile, so that a series gets into the log before its samples.
func (s *Store) append(in []Sample) (*wal.Group, error) {
	now := s.opts.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.err, s.log.Stalled()); err != nil {
		return nil, err
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

// written makes samples that are on disk readable. When the head is full, the log continues in a new segment. Once everything in
// the segments before it is in the head, the head is flushed. So those segments hold exactly what the head holds.
func (s *Store) written(at wal.Position, samples []sample) {
	if s.nextSegment > 0 && at.Segment >= s.nextSegment {
		s.rotate()
	}
	if !s.apply(samples) {
		return
	}
	if s.nextSegment == 0 {
		s.nextSegment = s.log.Roll()
	}
	if s.log.Applied(s.nextSegment) {
		s.rotate()
	}
}

// apply adds samples to the head, and reports whether the head is full.
func (s *Store) apply(samples []sample) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range samples {
		s.head.add(sample)
		s.noteReported(sample.series, sample.at)
	}
	return s.head.size >= s.opts.MaxHead
}

// rotate starts a new head and a flush of the old one. If the previous flush is still running, rotate waits, and puts wait with
// it, which bounds memory. If the store is closed before that has succeeded, the old head stays.
func (s *Store) rotate() {
	if s.flushing != nil {
		if <-s.flushing.done; s.flushing.err != nil {
			return
		}
	}
	s.mu.Lock()
	s.frozen = s.head
	s.head = newHead()
	s.mu.Unlock()
	f := &flushing{done: make(chan struct{})}
	s.flushing = f
	number := s.nextSegment
	s.nextSegment = 0
	go func() {
		defer close(f.done)
		f.err = s.persist(number)
	}()
}

// flushing is a running flush. Read err only after done is closed.
type flushing struct {
	done chan struct{}
	err  error
}

// flushAgainAfter is the pause after a flush that failed.
const flushAgainAfter = time.Second

// persist flushes the frozen head, and tries until that succeeds or the store is closed. Until then nothing can be put.
func (s *Store) persist(number int) error {
	for {
		if err := s.flushOnce(number); err == nil {
			return nil
		}
		pause := time.NewTimer(flushAgainAfter)
		select {
		case <-pause.C:
		case <-s.closing:
			pause.Stop()
			return ErrClosed
		}
	}
}

// flushOnce flushes the frozen head, unless that fails, and tidies up behind it.
func (s *Store) flushOnce(number int) error {
	s.working.Lock()
	defer s.working.Unlock()
	err := s.flush(number)
	s.refuse(err)
	if err == nil {
		s.tidyUp()
	}
	return err
}

// tidyUp tidies the blocks. What fails is tried again after the next flush.
func (s *Store) tidyUp() {
	if err := s.tidy(s.opts.Now().Unix()); err != nil && !disk.IsUnwritable(err) {
		slog.Warn("metrics cannot be tidied up", "error", err)
	}
}

// refuse sets why nothing can be put now; nil if it can.
func (s *Store) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == ErrClosed { //nolint:errorlint // it is set as it is
		return
	}
	if err != nil && s.err == nil && !disk.IsUnwritable(err) {
		slog.Error("metrics cannot be flushed; they are tried again", "error", err)
	}
	s.err = disk.Unwritable(err)
}
