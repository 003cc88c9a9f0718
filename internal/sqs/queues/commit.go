package queues

import (
	"errors"
	"fmt"
	"os"

	"github.com/pintle/pintle/internal/file"
)

// batch is what goes to disk together, with one sync.
type batch struct {
	writes []write
	done   chan struct{}
	err    error // counts once done is closed
}

// write is what goes to one segment.
type write struct {
	segment *segment
	at      int64
	b       []byte
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// wait waits until the batch is on disk.
func (b *batch) wait() error {
	if b == nil {
		return nil
	}
	<-b.done
	return b.err
}

// commit puts records on their way to disk, as one, and makes their changes unless that is done. What is on disk when the
// batch is includes all that was committed before. The caller holds mu.
func (s *Store) commit(records []record, change bool) *batch {
	if len(records) == 0 {
		return s.before
	}
	if s.err != nil { // nobody writes any more
		b := newBatch()
		b.err = s.err
		close(b.done)
		return b
	}
	g := s.segments[len(s.segments)-1]
	if g.size >= s.opts.MaxSegment {
		if err := s.openSegment(); err != nil {
			s.fail(err)
		}
		g = s.segments[len(s.segments)-1]
		records = append([]record{{kind: numbered, seq: s.last}}, records...)
	}
	b := s.batch
	if n := len(b.writes); n == 0 || b.writes[n-1].segment != g {
		b.writes = append(b.writes, write{segment: g, at: g.size})
	}
	w := &b.writes[len(b.writes)-1]
	offset, before := g.size, len(w.b)
	w.b = appendFrame(w.b, records)
	g.size += int64(len(w.b) - before)
	if change {
		for i := range records {
			if err := s.apply(&records[i], g, offset); err != nil {
				s.fail(err)
			}
		}
	}
	s.before = b
	s.work.Signal()
	return b
}

// fail has nothing be changed any more: what the log holds cannot be known without reading it. The caller holds mu.
func (s *Store) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", ErrClosed, err)
		close(s.failed)
	}
}

// Failed is closed when the log can no longer be written. Only a restart knows the queues again.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// write writes batches until the store is closed and the last one is on disk.
func (s *Store) write() {
	for {
		s.mu.Lock()
		for len(s.batch.writes) == 0 && s.err == nil {
			s.work.Wait()
		}
		b, failed := s.batch, s.err
		s.batch = newBatch()
		s.mu.Unlock()
		if len(b.writes) == 0 {
			return
		}
		if b.err = s.flush(b, failed); b.err != nil {
			s.mu.Lock()
			s.fail(b.err)
			s.mu.Unlock()
		}
		close(b.done)
		select {
		case s.clean <- struct{}{}:
		default:
		}
	}
}

// flush writes a batch, unless an earlier one failed. A segment is on disk before the next one is written.
func (s *Store) flush(b *batch, failed error) error {
	if failed != nil && failed != ErrClosed { //nolint:errorlint // closing lets through what was committed; a failure wraps it
		return failed
	}
	for _, w := range b.writes {
		if _, err := w.segment.file.WriteAt(w.b, w.at); err != nil {
			return err
		}
		if s.opts.NoSync {
			continue
		}
		if err := w.segment.file.Sync(); err != nil {
			return err
		}
		if w.segment.named {
			continue
		}
		if err := file.SyncDir(s.dir); err != nil {
			return err
		}
		w.segment.named = true
	}
	return nil
}

// cleanUp cleans the oldest segments while much of the log is over, until the store is closed.
func (s *Store) cleanUp() {
	for {
		select {
		case <-s.done:
			return
		case <-s.clean:
		}
		for s.wasteful() {
			if err := s.cleanOldest(); err != nil {
				s.mu.Lock()
				s.fail(err)
				s.work.Broadcast()
				s.mu.Unlock()
				return
			}
		}
	}
}

func (s *Store) wasteful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var size int64
	for _, g := range s.segments {
		size += g.size
	}
	return s.err == nil && len(s.segments) > 1 && size > 2*s.live+s.opts.Slack
}

// cleanOldest writes again what still counts of the oldest segment, and removes it. Since it is the oldest, nothing in it
// is about anything that lies elsewhere.
func (s *Store) cleanOldest() error {
	s.mu.Lock()
	g := s.segments[0]
	s.mu.Unlock()
	for {
		bodies, err := s.bodies(g)
		if err != nil {
			return err
		}
		s.mu.Lock()
		still := s.still(g, bodies)
		b := s.commit(still, true)
		s.mu.Unlock()
		if err := b.wait(); err != nil { // one after the other, so that calls are not held up
			return err
		}
		if len(still) == 0 && len(bodies) == 0 {
			break
		}
	}
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	s.mu.Lock()
	s.segments = s.segments[1:]
	s.mu.Unlock()
	return errors.Join(g.file.Close(), os.Remove(s.segmentPath(g.number)))
}

// maxCleaned is how many bytes are written again at a time.
const maxCleaned = 1 << 20

// bodies reads some of the messages in a segment.
func (s *Store) bodies(g *segment) (map[*message][]byte, error) {
	s.mu.Lock()
	places, size := map[*message]place{}, int64(0)
	for m := g.first; m != nil && size < maxCleaned; m = m.next {
		places[m] = m.place
		size += m.place.whole
	}
	s.mu.Unlock()
	out := map[*message][]byte{}
	for m, p := range places {
		out[m] = make([]byte, p.size+p.meta)
		if n, err := g.file.ReadAt(out[m], p.offset); n < len(out[m]) {
			return nil, err
		}
	}
	return out, nil
}

// still is some of what counts in a segment, as it is now. The caller holds mu.
func (s *Store) still(g *segment, bodies map[*message][]byte) []record {
	var out []record
	for m, b := range bodies {
		if m.place.segment == g {
			out = append(out, record{kind: messageIs, queue: m.queue.ID, seq: m.seq, message: *m, id: m.place.id, body: b[:m.place.size], meta: b[m.place.size:]})
		}
	}
	if len(out) > 0 {
		return out
	}
	now := s.now()
	for _, m := range s.moves {
		if m.in == g {
			out = append(out, m.record())
		}
	}
	for _, q := range s.queues {
		if len(out) > 1000 {
			break
		}
		if q.in == g {
			out = append(out, q.record())
		}
		for key, d := range q.sent {
			if d.in == g && d.at+window > now {
				out = append(out, record{kind: sentBefore, queue: q.ID, seq: d.seq, at: d.at, key: key, id: d.id})
			}
		}
	}
	return out
}
