package queues

import (
	"context"
	"maps"
	"time"

	"github.com/pintle/pintle/internal/wal"
)

// Receipt proves that a message was received.
type Receipt struct {
	Queue  uint64
	Seq    uint64
	Number uint32 // counts the message's receives, this one included
}

// Received is a received message.
type Received struct {
	ID       [16]byte
	Seq      uint64
	Body     []byte
	Meta     []byte
	Group    string
	From     string // the queue whose dead letter it is
	Receipt  Receipt
	Sent     int64 // when it was sent
	First    int64 // when it was first received
	Receives int
}

// Want says what a receive asks for.
type Want struct {
	Limit      int
	Visibility time.Duration // how long the messages are in flight
	Wait       time.Duration // how long to wait for a first message
	Attempt    string        // repeating it returns the same messages; FIFO queues only
}

// Receive takes messages from a queue. When it returns, the disk has them as in flight.
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

// receive takes what is there. If that is nothing and there is time left, it queues the waiter, which must look again at until at the
// latest.
func (s *Store) receive(
	ctx context.Context,
	name string,
	w Want,
	wait *waiter,
	deadline int64,
) (got []taken, b *wal.Group, until int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	q, err := s.findToChange(name, now)
	if err != nil {
		return nil, nil, 0, err
	}
	q.removeWaiter(wait)
	if err := ctx.Err(); err != nil {
		s.wakeNext(q)
		return nil, nil, 0, err
	}
	if got, b = s.repeatAttempt(q, w, now); len(got) == 0 {
		got, b = s.takeFrom(q, w, now)
	}
	if len(got) > 0 {
		s.wakeNext(q)
		return got, b, 0, nil
	}
	full := q.counts[inFlight] >= MaxInFlight
	if full && w.Wait == 0 && !q.FIFO {
		return nil, nil, 0, ErrInFlight
	}
	if now >= deadline || s.waitless {
		q.flow.begin(q, now)
		q.flow.second.Empty++
		s.wakeNext(q)
		return nil, b, 0, nil
	}
	q.addWaiter(wait)
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

// takeFrom receives messages, and moves those received too often to the dead-letter queue. The caller holds mu.
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
			s.wakeNext(to)
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
			q.rememberAttempt(w.Attempt, a)
		}
		return got, b
	}
}

// rememberAttempt notes what an attempt got. Once there are many, it drops those that are too old to matter.
func (q *queue) rememberAttempt(id string, a attempt) {
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

// repeatAttempt takes what the same attempt got before, as long as all of it is still in flight. The caller holds mu.
func (s *Store) repeatAttempt(q *queue, w Want, now int64) (got []taken, b *wal.Group) {
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

// read fetches the bodies of messages. It leaves out those that are gone by now.
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

// placeOf returns where a message is now: the cleaner may have moved it. The caller holds filesMu.
func (s *Store) placeOf(t *taken) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[t.Receipt.Queue]
	if q == nil || q.messages[t.Seq] == nil {
		return place{}, false
	}
	return q.messages[t.Seq].place, true
}
