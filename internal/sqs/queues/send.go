package queues

import "time"

// Message is a message to be sent.
type Message struct {
	ID    [16]byte
	Body  []byte
	Meta  []byte        // whatever else the service keeps of it
	Size  int           // as the queue's metrics count it
	Delay time.Duration // for standard queues
	Group string
	Dedup string // equal for duplicates in a FIFO queue; "" for none
}

// Sent is the outcome of sending a message. A duplicate gets the first one's id and number.
type Sent struct {
	ID  [16]byte
	Seq uint64
}

// Send puts messages into a queue, all or none. They are on disk when it returns nil.
func (s *Store) Send(name string, messages []Message) ([]Sent, error) {
	s.mu.Lock()
	now := s.now()
	q, err := s.findToChange(name, now)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	q.flow.begin(q, now)
	out := make([]Sent, len(messages))
	var records []record
	fresh := map[string]Sent{} // sent by this call
	for i := range messages {
		in := &messages[i]
		key := q.dedupKey(in)
		if before, ok := q.sentWith(key, fresh, now); ok {
			out[i] = before
			continue
		}
		s.last++
		out[i] = Sent{in.ID, s.last}
		if key != "" {
			fresh[key] = out[i]
		}
		records = append(records, q.newRecord(in, s.last, key, now))
		q.flow.sent(in.Size)
	}
	b := s.commit(records, true)
	s.wakeNext(q)
	s.mu.Unlock()
	return out, b.Wait()
}

// dedupKey returns what identifies duplicates of a message in the queue, "" for none.
func (q *queue) dedupKey(m *Message) string {
	if m.Dedup == "" || !q.FIFO {
		return ""
	}
	if q.GroupDedup {
		return m.Group + "\x00" + m.Dedup
	}
	return m.Dedup
}

func (q *queue) sentWith(key string, fresh map[string]Sent, now int64) (Sent, bool) {
	if key == "" {
		return Sent{}, false
	}
	if before, ok := fresh[key]; ok {
		return before, true
	}
	d, ok := q.duplicateOf(key, now)
	return Sent{d.id, d.seq}, ok
}

func (q *queue) newRecord(in *Message, seq uint64, key string, now int64) record {
	m := message{seq: seq, sent: now, entered: now, visibleAt: now + in.Delay.Milliseconds(), group: in.Group}
	if q.FIFO {
		m.visibleAt = now + q.Delay
	}
	if m.visibleAt > now {
		m.state = delayed
	}
	return record{kind: messageIs, queue: q.ID, seq: seq, message: m, key: key, id: in.ID, body: in.Body, meta: in.Meta}
}
