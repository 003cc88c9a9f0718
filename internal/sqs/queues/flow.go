package queues

// Second is what a queue did in a second, and its state at the end of it.
type Second struct {
	Queue      string
	At         int64 // seconds since 1970
	Sent       int
	Received   int
	Deleted    int
	Empty      int     // receives that got nothing
	Bytes      float64 // of all messages sent
	Least      float64 // bytes of the smallest
	Most       float64 // bytes of the largest
	Visible    int
	NotVisible int
	Delayed    int
	Oldest     int64 // age of the oldest message, in seconds
	Changed    bool  // whether anything happened in it
}

// flow adds up what a queue does, second by second.
type flow struct {
	second   Second // the current one
	ended    []Second
	changed  int64 // the last second in which something happened
	reported int64 // the last second that Seconds returned
}

// maxEnded limits the seconds kept for Seconds; the oldest are dropped.
const maxEnded = 300

// begin starts a change to a queue. It must come before the change, so that the seconds before end with the old counts.
func (f *flow) begin(q *queue, now int64) {
	f.end(q, now/1000)
	f.second.Changed = true
	f.changed = max(f.changed, f.second.At)
}

// end ends the current second if it is over.
func (f *flow) end(q *queue, second int64) {
	if second <= f.second.At {
		return
	}
	if f.second.Changed {
		f.ended = append(f.ended, f.withCounts(q, f.second))
		if len(f.ended) > maxEnded {
			f.ended = f.ended[len(f.ended)-maxEnded:]
		}
	}
	f.second = Second{At: second}
}

// withCounts adds a queue's current counts to a second.
func (f *flow) withCounts(q *queue, s Second) Second {
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

// A queue reports every second while it's in use, and every minute while it's active: "Available CloudWatch metrics for Amazon SQS"
// in the developer guide.
const (
	inUse  = 60
	active = 6 * 60 * 60
)

// take returns the seconds before now that are due.
func (f *flow) take(q *queue, now int64) []Second {
	f.end(q, now)
	out := f.ended
	f.ended = nil
	if n := len(out); n > 0 {
		f.reported = out[n-1].At
	}
	last := now - 1
	quiet := last - f.changed
	due := quiet <= inUse || last-f.reported >= 60 && (quiet <= active || len(q.messages) > 0)
	if f.reported < last && due {
		out = append(out, f.withCounts(q, Second{At: last}))
		f.reported = last
	}
	return out
}

// Seconds returns what queues did in the seconds that have ended since the last call: every second of a queue in which something
// happened, and some of those in between.
func (s *Store) Seconds() []Second {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []Second
	for _, q := range s.names {
		s.settle(q, now)
		s.wakeNext(q)
		out = append(out, q.flow.take(q, now/1000)...)
	}
	return out
}
