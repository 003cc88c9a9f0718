package queues

import (
	"encoding/json"
	"fmt"
	"math"
)

// apply makes a record's change in memory; g is the segment that holds the record. The caller holds mu.
func (s *Store) apply(r *record, g *segment) error {
	s.last = max(s.last, r.seq, r.toSeq) // a number is never reused, even after its message is gone: receipts hold it
	switch r.kind {
	case queueIs:
		return s.applyQueue(r, g)
	case moveIs:
		return s.applyMove(r, g)
	case numbered:
		return nil
	}
	q := s.queueOf(r.queue)
	switch r.kind {
	case queueGone:
		for _, m := range q.messages {
			s.forget(m)
		}
		s.live -= q.size
		delete(s.queues, r.queue)
		if s.names[q.Name] == q {
			delete(s.names, q.Name)
		}
		return nil
	case messageIs:
		s.applyMessage(q, r, g)
		return nil
	case sentBefore:
		q.remember(r.key, duplicate{r.id, r.seq, r.at, g})
		return nil
	case purged:
		for _, m := range q.messages {
			s.forget(m)
			q.drop(m)
		}
		q.purgedAt = r.at
		clear(q.sent)
		q.recent = nil
		return nil
	}
	m := q.messages[r.seq]
	if m == nil {
		return nil // its newer record comes later in the log
	}
	switch r.kind {
	case receivedAt:
		q.received(m, r.at, r.until)
	case visibleAt:
		q.retime(m, r.until)
	case messageGone:
		s.forget(m)
		q.drop(m)
	case movedTo, redriven:
		s.applyMoved(q, m, r)
	}
	return nil
}

// queueOf returns the queue that a record is about. The log may only later say what that queue is, or that it's gone. Until then it
// has no name, and keeps its messages.
func (s *Store) queueOf(id uint64) *queue {
	q := s.queues[id]
	if q == nil {
		q = newQueue(Queue{ID: id, Retention: math.MaxInt64 / 2})
		s.queues[id] = q
	}
	return q
}

func (s *Store) applyQueue(r *record, g *segment) error {
	var is Queue
	if err := json.Unmarshal(r.json, &is); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	q := s.queues[is.ID]
	switch {
	case q == nil:
		q = newQueue(is)
		s.queues[is.ID] = q
	case q.Name == "": // its messages came before its own record
		before := q
		q = newQueue(is)
		q.sent, q.recent, q.purgedAt = before.sent, before.recent, before.purgedAt
		for _, m := range before.messages {
			q.add(m, m.state)
		}
		s.queues[is.ID] = q
	default:
		q.update(is)
	}
	s.names[is.Name] = q
	s.live += int64(len(r.json)) - q.size
	q.size, q.in = int64(len(r.json)), g
	return nil
}

func (s *Store) applyMessage(q *queue, r *record, g *segment) {
	s.live += r.place.whole
	if r.key != "" {
		q.remember(r.key, duplicate{r.id, r.seq, r.message.entered, g})
	}
	if m := q.messages[r.seq]; m != nil {
		s.forget(m)
		m.link(r.place)
		return
	}
	m := r.message
	m.link(r.place)
	q.add(&m, m.state)
}

// forget notes that a message's record is no longer needed.
func (s *Store) forget(m *message) {
	s.live -= m.place.whole
	m.unlink()
}

func (s *Store) applyMoved(q *queue, m *message, r *record) {
	to := s.queueOf(r.to)
	q.drop(m)
	m.seq, m.entered, m.visibleAt, m.before, m.from = r.toSeq, r.at, r.at, m.receives, r.key
	if r.kind == redriven { // it counts as new: "Configuring a dead-letter queue redrive" in the developer guide
		m.place.id, m.sent, m.receives, m.before, m.first = r.id, r.at, 0, 0, 0
	}
	to.add(m, visible)
}
