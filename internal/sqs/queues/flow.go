package queues

// Second is what a queue did in a second, and how it stood at its end.
type Second struct {
	Queue                        string
	At                           int64 // seconds since 1970
	Sent, Received, Deleted      int
	Empty                        int     // receives that got nothing
	Bytes, Least, Most           float64 // of what was sent: in all, of the smallest, of the largest message
	Visible, NotVisible, Delayed int
	Oldest                       int64 // seconds that the oldest message has been there
	Changed                      bool  // whether something happened in it
}

// flow adds up what a queue does, second by second.
type flow struct {
	second  Second // that is under way
	ended   []Second
	changed int64 // the last second in which something happened
	told    int64 // the last second that was told of
}

// maxEnded bounds the seconds that are kept for whoever asks; the oldest go.
const maxEnded = 300

// begin says that something happens in a queue now. It must come before the change, so that the seconds before
// end with what there was.
func (f *flow) begin(q *queue, now int64) {
	f.end(q, now/1000)
	f.second.Changed = true
	f.changed = max(f.changed, f.second.At)
}

// end ends the second that was under way, unless it still is.
func (f *flow) end(q *queue, second int64) {
	if second <= f.second.At {
		return
	}
	if f.second.Changed {
		f.ended = append(f.ended, f.stand(q, f.second))
		if len(f.ended) > maxEnded {
			f.ended = f.ended[len(f.ended)-maxEnded:]
		}
	}
	f.second = Second{At: second}
}

// stand adds how the queue stands to a second.
func (f *flow) stand(q *queue, s Second) Second {
	s.Queue = q.Name
	s.Visible, s.NotVisible, s.Delayed = q.counts[visible], q.counts[inFlight], q.counts[delayed]
	if len(q.aging.items) > 0 {
		s.Oldest = max(0, s.At-q.aging.items[0].entered/1000)
	}
	return s
}

func (f *flow) sent(bytes int) {
	s, size := &f.second, float64(bytes)
	if s.Sent == 0 || size < s.Least {
		s.Least = size
	}
	s.Most = max(s.Most, size)
	s.Bytes += size
	s.Sent++
}

// Queues are told of every second while they are in use, and of every minute while they are active: "Available
// CloudWatch metrics for Amazon SQS" in the developer guide.
const (
	inUse  = 60
	active = 6 * 60 * 60
)

// take returns the seconds before now that are to be told of.
func (f *flow) take(q *queue, now int64) []Second {
	f.end(q, now)
	out := f.ended
	f.ended = nil
	if n := len(out); n > 0 {
		f.told = out[n-1].At
	}
	last := now - 1
	quiet := last - f.changed
	due := quiet <= inUse || last-f.told >= 60 && (quiet <= active || len(q.messages) > 0)
	if f.told < last && due {
		out = append(out, f.stand(q, Second{At: last}))
		f.told = last
	}
	return out
}

// Seconds returns what queues did in the seconds that have ended and were not asked for yet: every second of a queue in
// which something happened, and some of those in between.
func (s *Store) Seconds() []Second {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []Second
	for _, q := range s.names {
		s.settle(q, now)
		s.stir(q)
		out = append(out, q.flow.take(q, now/1000)...)
	}
	return out
}
