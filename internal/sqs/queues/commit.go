package queues

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// commit queues records for the disk in one frame, and makes their changes unless the caller has. Once the group is on disk, so is
// everything committed before it. The caller holds mu.
func (s *Store) commit(records []record, change bool) *wal.Group {
	if len(records) == 0 {
		return s.before
	}
	if s.err != nil { // the log has stopped
		return wal.Refused(s.err)
	}
	if s.log.End().Offset >= s.opts.MaxSegment {
		s.openSegment(s.log.Roll())
		s.log.Append(func(b []byte) []byte { return appendRecords(b, []record{{kind: numbered, seq: s.last}}) }, nil)
	}
	at, b := s.log.Append(func(b []byte) []byte { return appendRecords(b, records) }, nil)
	if at.Segment == 0 {
		return b // the log is closed, or the frame is too long
	}
	g := s.segments[len(s.segments)-1]
	s.grow(g, s.log.End().Offset)
	for i := range records {
		records[i].lieAt(g, at)
		if !change {
			continue
		}
		if err := s.apply(&records[i], g); err != nil {
			s.fail(err)
		}
	}
	s.before = b
	if s.isWastefulLocked() {
		select {
		case s.clean <- struct{}{}:
		default:
		}
	}
	return b
}

// fail makes the store read-only: its memory may not match the log any more. The caller holds mu.
func (s *Store) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
}

// cleanUp cleans the oldest segments while much of the log is dead, until the store is closed.
func (s *Store) cleanUp() {
	for {
		select {
		case <-s.done:
			return
		case <-s.clean:
		}
		for s.isWasteful() {
			if err := s.cleanOldest(); err != nil && !s.pauseAfter(err) {
				return
			}
		}
	}
}

// cleanAgainAfter is the pause after an attempt to clean that failed.
const cleanAgainAfter = 10 * time.Second

// pauseAfter waits before the next attempt to clean, and returns false if the store is closed meanwhile.
func (s *Store) pauseAfter(err error) bool {
	if !disk.IsUnwritable(err) { // those who write are told of that
		slog.Warn("cannot clean the log of the queues", "error", err)
	}
	pause := time.NewTimer(cleanAgainAfter)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-s.done:
		return false
	}
}

func (s *Store) isWasteful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isWastefulLocked()
}

// isWastefulLocked reports whether much of the log is dead records. The caller holds mu.
func (s *Store) isWastefulLocked() bool {
	return s.err == nil && len(s.segments) > 1 && s.size > 2*s.live+s.opts.Slack
}

// cleanOldest rewrites the live records of the oldest segment to the end of the log, and removes the segment. No record in it refers
// to an older one, because there are none.
func (s *Store) cleanOldest() error {
	s.mu.Lock()
	g := s.segments[0]
	s.mu.Unlock()
	for more := true; more; {
		bodies, err := s.bodies(g)
		if err != nil {
			return err
		}
		if more, err = s.writeAgain(g, bodies); err != nil {
			return err
		}
	}
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	if err := s.log.RemoveBefore(g.number + 1); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = s.segments[1:]
	s.size -= g.size
	return nil
}

// writeAgain rewrites some of a segment's live records at the end of the log. It waits for the disk itself, so that no call has to.
// Until then the messages stay where they were, and a receive meanwhile reads them there.
func (s *Store) writeAgain(g *segment, bodies map[*message][]byte) (more bool, err error) {
	s.mu.Lock()
	if err := s.log.Stalled(); err != nil {
		s.mu.Unlock()
		return false, err
	}
	var moved []*message
	var records []record
	for m, b := range bodies {
		if m.place.segment == g {
			moved = append(moved, m)
			records = append(records, m.record(b))
		}
	}
	others := len(moved) == 0
	if others {
		records = s.others(g)
	}
	b := s.commit(records, others)
	s.mu.Unlock()
	if err := b.Wait(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range moved {
		if m.place.segment == g {
			s.relink(m, records[i].place)
		}
	}
	return len(records) > 0 || len(bodies) > 0, nil
}

// record returns the record of a message's present state.
func (m *message) record(body []byte) record {
	return record{
		kind: messageIs, queue: m.queue.ID, seq: m.seq, message: *m, id: m.place.id, body: body[:m.place.size], meta: body[m.place.size:],
	}
}

// relink notes a message's new place. The message may have changed since that was written, but keeps its id.
func (s *Store) relink(m *message, p place) {
	p.id = m.place.id
	s.live += p.whole
	s.forget(m)
	m.link(p)
}

// maxCleaned is how many bytes writeAgain moves at a time.
const maxCleaned = 1 << 20

// bodies reads the bodies of some messages in a segment.
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
		b, err := s.bodyAt(p)
		if err != nil {
			return nil, err
		}
		out[m] = b
	}
	return out, nil
}

// bodyAt reads a message's body, followed by what the service keeps of it.
func (s *Store) bodyAt(p place) ([]byte, error) {
	at := wal.Position{Segment: p.segment.number, Offset: p.offset}
	b := make([]byte, p.size+p.meta)
	if err := s.log.ReadAt(at, b); err != nil {
		return nil, fmt.Errorf("queues: read a message: %w", err)
	}
	if wal.Checksum(b) != p.sum {
		return nil, fmt.Errorf("queues: read a message: %w", s.log.Damage(at, "a message fails its checksum"))
	}
	return b, nil
}

// others returns records for some of a segment's live content besides messages, as it is now. The caller holds mu.
func (s *Store) others(g *segment) []record {
	var out []record
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

// Check lists the damage in the directory of a store that isn't open. With repair, it rebuilds the store from what is whole and keeps
// the damaged files beside it.
func Check(dir string, repair bool) ([]file.Damage, error) { return wal.Check(dir, logKind, repair) }
