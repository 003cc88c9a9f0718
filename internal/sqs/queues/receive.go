package queues

import (
	"context"
	"maps"
	"time"

	"github.com/pintle/pintle/internal/wal"
)

// Receipt is a proof that a message was received.
type Receipt struct {
	Queue  uint64
	Seq    uint64
	Number uint32 // which time it was
}

// Received is a message that was received.
type Received struct {
	ID          [16]byte
	Seq         uint64
	Body, Meta  []byte
	Group       string
	From        string // the queue whose dead letter it is
	Receipt     Receipt
	Sent, First int64 // when it was sent, and first received
	Receives    int
}

// Want is what is wanted of a queue.
type Want struct {
	Limit      int
	Visibility time.Duration // for which what is received is in flight
	Wait       time.Duration // for a message, where there is none
	Attempt    string        // gets the same again, of a FIFO queue
}

// Receive takes messages of a queue. That they are in flight is on disk when it returns.
func (s *Store) Receive(ctx context.Context, name string, w Want) ([]Received, error) {
	deadline := s.now() + w.Wait.Milliseconds()
	wait := &waiter{}
	for {
		got, b, until, err := s.receive(ctx, name, w, wait, deadline)
		if err != nil {
			return nil, err
		}
		if len(got) > 0 || until == 0 {
			if err := b.Wait(); err != nil {
				return nil, err
			}
			return s.read(got)
		}
		wait.sleep(ctx, time.Duration(until-s.now())*time.Millisecond)
	}
}

// receive takes what can be had at once. Where that is nothing, and there is time, it has the waiter woken, at the
// latest at until.
func (s *Store) receive(ctx context.Context, name string, w Want, wait *waiter, deadline int64) (got []taken, b *wal.Group, until int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	q, err := s.find(name, now)
	if err != nil {
		return nil, nil, 0, err
	}
	q.unlist(wait)
	if err := ctx.Err(); err != nil {
		s.stir(q)
		return nil, nil, 0, err
	}
	if got, b = s.again(q, w, now); len(got) == 0 {
		got, b = s.takeFrom(q, w, now)
	}
	if len(got) > 0 {
		s.stir(q)
		return got, b, 0, nil
	}
	full := q.counts[inFlight] >= MaxInFlight
	if full && w.Wait == 0 && !q.FIFO {
		return nil, nil, 0, ErrInFlight
	}
	if now >= deadline || s.waitless {
		q.flow.begin(q, now)
		q.flow.second.Empty++
		s.stir(q)
		return nil, b, 0, nil
	}
	q.list(wait)
	until = deadline
	if len(q.timed.items) > 0 {
		q.alarm = q.timed.items[0].visibleAt
		until = min(until, q.alarm)
	}
	return nil, b, until, nil
}

// taken is a message that is being received.
type taken struct {
	Received
	place place
}

// takeFrom receives messages, and moves those away that were received too often. The caller holds mu.
func (s *Store) takeFrom(q *queue, w Want, now int64) (got []taken, b *wal.Group) {
	for {
		found := q.take(w.Limit)
		var dead, records []record
		to := s.names[q.DeadLetter]
		for _, m := range found {
			if to != nil && q.isDead(m) {
				s.last++
				dead = append(dead, record{kind: movedTo, queue: q.ID, seq: m.seq, at: now, to: to.ID, toSeq: s.last, key: q.Name})
				continue
			}
			records = append(records, record{kind: receivedAt, queue: q.ID, seq: m.seq, at: now, until: now + w.Visibility.Milliseconds()})
		}
		if len(dead) > 0 {
			q.flow.begin(q, now)
			to.flow.begin(to, now)
			b = s.commit(dead, true)
			s.stir(to)
			continue
		}
		if len(records) == 0 {
			return nil, b
		}
		q.flow.begin(q, now)
		q.flow.second.Received += len(records)
		b = s.commit(records, true)
		a := attempt{at: now}
		for _, m := range found {
			got = append(got, q.taken(m))
			a.receipts = append(a.receipts, got[len(got)-1].Receipt)
		}
		if q.FIFO && w.Attempt != "" {
			q.tried(w.Attempt, a)
		}
		return got, b
	}
}

// tried notes what an attempt got. Once many were noted, those that do not count any more are forgotten.
func (q *queue) tried(id string, a attempt) {
	if len(q.attempts) >= q.attemptsAt {
		maps.DeleteFunc(q.attempts, func(_ string, old attempt) bool { return old.at+window <= a.at })
		q.attemptsAt = max(1000, 2*len(q.attempts))
	}
	q.attempts[id] = a
}

func (q *queue) taken(m *message) taken {
	return taken{Received{
		ID: m.place.id, Seq: m.seq, Group: m.group, From: m.from, Receipt: Receipt{q.ID, m.seq, m.receives},
		Sent: m.sent, First: m.first, Receives: int(m.receives),
	}, m.place}
}

// again takes what the same attempt has got before, while all of it is still in flight. The caller holds mu.
func (s *Store) again(q *queue, w Want, now int64) (got []taken, b *wal.Group) {
	a, ok := q.attempts[w.Attempt]
	if !ok || w.Attempt == "" || a.at+window <= now {
		return nil, nil
	}
	var records []record
	for _, r := range a.receipts {
		m := q.messages[r.Seq]
		if m == nil || m.state != inFlight || m.receives != r.Number {
			delete(q.attempts, w.Attempt)
			return nil, nil
		}
		records = append(records, record{kind: visibleAt, queue: q.ID, seq: m.seq, at: now, until: now + w.Visibility.Milliseconds()})
		got = append(got, q.taken(m))
	}
	return got, s.commit(records, true)
}

// read fetches the bodies of messages. One that is gone by now is left out.
func (s *Store) read(messages []taken) ([]Received, error) {
	out := make([]Received, 0, len(messages))
	s.filesMu.RLock()
	defer s.filesMu.RUnlock()
	for i := range messages {
		p, ok := s.placeOf(&messages[i])
		if !ok {
			continue
		}
		b, err := s.bodyAt(p)
		if err != nil {
			return nil, err
		}
		r := messages[i].Received
		r.Body, r.Meta = b[:p.size:p.size], b[p.size:]
		out = append(out, r)
	}
	return out, nil
}

// placeOf is where a message lies now: the cleaner may have moved it. The caller holds filesMu.
func (s *Store) placeOf(t *taken) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[t.Receipt.Queue]
	if q == nil || q.messages[t.Seq] == nil {
		return place{}, false
	}
	return q.messages[t.Seq].place, true
}
