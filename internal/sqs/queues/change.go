package queues

import (
	"errors"
	"slices"
	"time"
)

// held returns the message of a receipt. If it was received again since, that's together with ErrExpired. The caller holds mu.
func (q *queue) held(r Receipt) (*message, error) {
	if r.Queue != q.ID {
		return nil, ErrReceipt
	}
	m := q.messages[r.Seq]
	if m == nil || r.Number > m.receives {
		return nil, ErrNoMessage
	}
	if r.Number < m.receives {
		return m, ErrExpired
	}
	return m, nil
}

// Delete removes received messages, with an error for each. ErrNoMessage and, in a standard queue, ErrExpired say that there was
// nothing left to delete.
func (s *Store) Delete(name string, receipts []Receipt) ([]error, error) {
	return s.change(name, len(receipts), func(q *queue, i int, now int64) (record, error) {
		m, err := q.held(receipts[i])
		if err == nil && q.FIFO && m.state != inFlight {
			err = ErrExpired
		}
		if err != nil {
			return record{}, err
		}
		return record{kind: messageGone, queue: q.ID, seq: m.seq, at: now}, nil
	})
}

// Visibility is how long a received message stays in flight from now.
type Visibility struct {
	Receipt Receipt
	Timeout time.Duration
}

// maxVisibility is how many milliseconds a message can be in flight in all: API_ChangeMessageVisibility.
const maxVisibility = 12 * 60 * 60 * 1000

// ChangeVisibility changes how long messages are in flight, with an error for each. In a standard queue every receipt does that, as on AWS:
// a message that is visible goes back in flight, and one that somebody else has received since is changed for them, too.
func (s *Store) ChangeVisibility(name string, changes []Visibility) ([]error, error) {
	return s.change(name, len(changes), func(q *queue, i int, now int64) (record, error) {
		m, err := q.held(changes[i].Receipt)
		if err != nil && (q.FIFO || !errors.Is(err, ErrExpired)) {
			return record{}, err
		}
		if q.FIFO && m.state != inFlight {
			return record{}, ErrVisible
		}
		until := now + changes[i].Timeout.Milliseconds()
		if until > m.received+maxVisibility+1000 { // a second's grace for the call itself
			return record{}, ErrTooLong
		}
		return record{kind: visibleAt, queue: q.ID, seq: m.seq, at: now, until: until}, nil
	})
}

// change makes up to n records, each on top of the ones before, and commits them together.
func (s *Store) change(name string, n int, make func(q *queue, i int, now int64) (record, error)) ([]error, error) {
	s.mu.Lock()
	now := s.now()
	q, err := s.findToChange(name, now)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	var errs []error
	var records []record
	for i := range n {
		r, err := make(q, i, now)
		errs = append(errs, err)
		if err == nil && !slices.ContainsFunc(records, func(x record) bool { return x.kind == r.kind && x.seq == r.seq }) {
			records = append(records, r)
		}
		if err == nil && r.kind == messageGone {
			q.flow.begin(q, now)
			q.flow.second.Deleted++
		}
	}
	b := s.commit(records, true)
	q.advance(now)
	s.wakeNext(q)
	s.mu.Unlock()
	return errs, b.Wait()
}

// Purge removes all messages of a queue, at most once a minute.
func (s *Store) Purge(name string) error {
	s.mu.Lock()
	now := s.now()
	q, err := s.findToChange(name, now)
	if err == nil && q.purgedAt+60_000 > now {
		err = ErrPurged
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	q.flow.begin(q, now)
	b := s.commit([]record{{kind: purged, queue: q.ID, at: now}}, true)
	s.mu.Unlock()
	return b.Wait()
}
