package queues

import (
	"fmt"
	"strings"

	"github.com/pintle/pintle/internal/wal"
)

const (
	defaultMaxSegment = 16 << 20
	defaultSlack      = 4 * defaultMaxSegment

	logKind = "queues"
)

// segment is one segment of the log.
type segment struct {
	number int
	size   int64    // including what is still queued
	first  *message // of the messages whose record is in it
}

// link notes where a message's record is.
func (m *message) link(p place) {
	m.place = p
	g := p.segment
	m.next, m.prev = g.first, nil
	if g.first != nil {
		g.first.prev = m
	}
	g.first = m
}

// unlink notes that a message's record is no longer needed.
func (m *message) unlink() {
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		m.place.segment.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	}
	m.next, m.prev, m.place.segment = nil, nil, nil
}

// openSegment notes that the log continues in a new segment. The caller holds mu, or is the only user.
func (s *Store) openSegment(number int) *segment {
	g := &segment{number: number}
	s.segments = append(s.segments, g)
	return g
}

// grow notes how long a segment is now. The caller holds mu, or is the only user.
func (s *Store) grow(g *segment, size int64) {
	s.size += size - g.size
	g.size = size
}

// load replays the log.
func (s *Store) load() (err error) {
	s.log, err = wal.Open(s.dir, wal.Options{Kind: logKind, NoSync: s.opts.NoSync, Flushed: s.opts.Flushed}, s.replay)
	if err != nil {
		return err
	}
	if end := s.log.End(); len(s.segments) == 0 || s.segments[len(s.segments)-1].number < end.Segment {
		s.grow(s.openSegment(end.Segment), end.Offset)
	}
	for _, q := range s.queues {
		if q.Name == "" {
			s.findName(q)
		}
	}
	return nil
}

func (s *Store) replay(at wal.Position, payload []byte) error {
	records, err := parsePayload(payload)
	if err != nil {
		return err
	}
	var g *segment
	if n := len(s.segments); n > 0 && s.segments[n-1].number == at.Segment {
		g = s.segments[n-1]
	} else {
		g = s.openSegment(at.Segment)
	}
	s.grow(g, at.Offset+int64(wal.FrameHead+len(payload)))
	for i := range records {
		records[i].lieAt(g, at)
		s.latest = max(s.latest, records[i].at, records[i].message.entered)
		if err := s.apply(&records[i], g); err != nil {
			return err
		}
	}
	return nil
}

// findName names a queue whose own record is missing. Usually the record of its end was in a removed segment, and the queue is
// empty. After a repair the record may be lost while messages are left, and those must be reachable.
func (s *Store) findName(q *queue) {
	if !s.log.Repaired() || len(q.messages) == 0 {
		delete(s.queues, q.ID)
		return
	}
	is := q.Queue
	is.Name = fmt.Sprintf("recovered-%016x", q.ID)
	is.Retention = 14 * 24 * 60 * 60 * 1000 // API_SetQueueAttributes: the longest
	for _, m := range q.messages {
		is.FIFO = is.FIFO || m.group != ""
		is.CreatedAt = max(is.CreatedAt, m.entered)
	}
	is.ModifiedAt = is.CreatedAt
	if is.FIFO && !strings.HasSuffix(is.Name, ".fifo") {
		is.Name += ".fifo"
	}
	if s.opts.Recover != nil {
		s.opts.Recover(&is)
	}
	s.putQueue(is)
}
