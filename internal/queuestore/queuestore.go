// Package queuestore keeps queues and their messages: durable before a call returns, in the order that was
// asked for, invisible while they are in flight. All queues share an append-only log, whose oldest segment is
// cleaned of what is over; what is known of a message is in memory, its body on disk. It knows nothing of AWS's
// API. The SQS service calls it, and the meter asks it what its queues did.
package queuestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Queue is what a queue is.
type Queue struct {
	ID         uint64 // of this queue and no later one of its name
	Name       string
	CreatedAt  int64 // milliseconds since 1970
	ModifiedAt int64
	FIFO       bool

	Delay       int64  // of messages that are sent, in milliseconds
	Retention   int64  // in milliseconds
	MaxReceives int    // after so many a message goes to the dead-letter queue; 0 for never
	DeadLetter  string // that queue's name
	GroupDedup  bool   // whether only messages of one group are duplicates of each other

	Attributes map[string]string // what else the service knows of it
	Tags       map[string]string
}

// MaxInFlight is how many messages of a queue can be in flight: "Amazon SQS message quotas" and "FIFO queue
// quotas" in the developer guide.
const MaxInFlight = 120_000

// Errors that callers tell apart.
var (
	ErrNoQueue   = errors.New("queuestore: there is no such queue")
	ErrExists    = errors.New("queuestore: there is such a queue")
	ErrInFlight  = errors.New("queuestore: too many messages are in flight")
	ErrReceipt   = errors.New("queuestore: the receipt is of another queue")
	ErrExpired   = errors.New("queuestore: the receipt has expired")
	ErrNoMessage = errors.New("queuestore: there is no such message any more")
	ErrVisible   = errors.New("queuestore: the message is not in flight")
	ErrTooLong   = errors.New("queuestore: the message would be in flight for too long")
	ErrPurged    = errors.New("queuestore: the queue was purged a moment ago")
	ErrClosed    = errors.New("queuestore: the store is closed")
)

// Options say how the store is kept; the zero value is right.
type Options struct {
	Now func() time.Time
	// MaxSegment is how many bytes a file of the log has before the next one begins.
	MaxSegment int64
	// Slack is how many bytes of what is over the log may have, besides as many as there are that count.
	Slack int64
	// NoSync gives up durability: for a store that is thrown away.
	NoSync bool
}

// Store is the store. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	opts Options

	// filesMu is held while bodies are read, so that their segments stay. It is taken before mu.
	filesMu sync.RWMutex

	mu       sync.Mutex
	segments []*segment // the oldest first; the last is written
	queues   map[uint64]*queue
	names    map[string]*queue
	moves    map[string]*Move
	last     uint64 // number of a message
	live     int64  // bytes of the log that still count
	batch    *batch // that the next records go into
	before   *batch // the last that has records
	waitless bool   // receives do not wait any more
	err      error  // why nothing can be changed any more
	failed   chan struct{}

	work    sync.Cond      // the writer has something to do, with mu
	clean   chan struct{}  // the cleaner has
	running sync.WaitGroup // of the writer and the cleaner
	done    chan struct{}  // closed when the store is
	tasks   sync.WaitGroup // moves under way
}

// Open opens the store in a directory, which it makes where there is none.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.MaxSegment, opts.Slack = cmp.Or(opts.MaxSegment, defaultMaxSegment), cmp.Or(opts.Slack, defaultSlack)
	s := &Store{
		dir: dir, opts: opts, queues: map[uint64]*queue{}, names: map[string]*queue{}, moves: map[string]*Move{},
		batch: newBatch(), clean: make(chan struct{}, 1), done: make(chan struct{}), failed: make(chan struct{}),
	}
	s.work.L = &s.mu
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("queuestore: %w", err), s.closeFiles())
	}
	now := s.now()
	for id, q := range s.queues {
		if q.Name == "" { // its end was in a segment that is gone
			delete(s.queues, id)
			continue
		}
		q.advance(now)
		q.flow = flow{}
	}
	s.running.Go(s.write)
	s.running.Go(s.cleanUp)
	s.resume()
	return s, nil
}

// EndWaits has receives return at once from now on, also those that wait: the program ends.
func (s *Store) EndWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitless = true
	for _, q := range s.queues {
		q.wakeAll()
	}
}

// Close ends the store once what is being written is.
func (s *Store) Close() error {
	s.EndWaits()
	s.mu.Lock()
	if s.err == nil {
		s.err = ErrClosed
	}
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.work.Broadcast()
	s.mu.Unlock()
	s.tasks.Wait()
	s.running.Wait()
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, g := range s.segments {
		errs = append(errs, g.file.Close())
	}
	s.segments = nil
	return errors.Join(errs...)
}

func (s *Store) now() int64 { return s.opts.Now().UnixMilli() }

// find returns a queue as it is now. The caller holds mu.
func (s *Store) find(name string, now int64) (*queue, error) {
	if s.err != nil {
		return nil, s.err
	}
	q := s.names[name]
	if q == nil {
		return nil, ErrNoQueue
	}
	s.settle(q, now)
	return q, nil
}

// maxSettled is how many messages' ends one frame holds: all of a queue's may be over at once, more than a frame takes.
const maxSettled = 10_000

// settle does what time has done to a queue. The caller holds mu.
func (s *Store) settle(q *queue, now int64) {
	q.advance(now)
	var gone []record
	for m := q.over(now); m != nil; m = q.over(now) {
		q.flow.begin(q, now)
		r := record{kind: messageGone, queue: q.ID, seq: m.seq, at: now}
		gone = append(gone, r)
		s.apply(&r, nil, 0) //nolint:errcheck // a message's end is always well
		if len(gone) == maxSettled {
			s.commit(gone, false)
			gone = nil
		}
	}
	s.commit(gone, false)
}

// CreateQueue makes a queue. Where there is one of the name it returns that, and ErrExists, once it is on disk.
func (s *Store) CreateQueue(in Queue) (Queue, error) {
	s.mu.Lock()
	if q, err := s.find(in.Name, s.now()); err == nil {
		there, b := q.Queue, s.before
		s.mu.Unlock()
		return there, cmp.Or(b.wait(), ErrExists)
	} else if !errors.Is(err, ErrNoQueue) {
		s.mu.Unlock()
		return Queue{}, err
	}
	in.ID = rand.Uint64()
	in.CreatedAt, in.ModifiedAt = s.now(), s.now()
	b := s.putQueue(in)
	q := s.queues[in.ID]
	q.flow.begin(q, s.now())
	s.mu.Unlock()
	return in, b.wait()
}

// putQueue writes a queue's record. The caller holds mu.
func (s *Store) putQueue(q Queue) *batch {
	return s.commit([]record{q.record()}, true)
}

func (q *Queue) record() record {
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // a Queue is numbers and text
	}
	return record{kind: queueIs, queue: q.ID, json: b}
}

// UpdateQueue changes a queue. change must not write to the queue's maps, which others read, but may replace them.
func (s *Store) UpdateQueue(name string, change func(*Queue) error) error {
	s.mu.Lock()
	q, err := s.find(name, s.now())
	if err != nil {
		s.mu.Unlock()
		return err
	}
	next := q.Queue
	if err := change(&next); err != nil {
		s.mu.Unlock()
		return err
	}
	b := s.putQueue(next)
	s.stir(q)
	s.mu.Unlock()
	return b.wait()
}

// DeleteQueue removes a queue with all its messages.
func (s *Store) DeleteQueue(name string) error {
	s.mu.Lock()
	q, err := s.find(name, s.now())
	if err != nil {
		s.mu.Unlock()
		return err
	}
	b := s.commit([]record{{kind: queueGone, queue: q.ID}}, true)
	q.wakeAll()
	s.mu.Unlock()
	return b.wait()
}

// Queue returns a queue.
func (s *Store) Queue(name string) (Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name, s.now())
	if err != nil {
		return Queue{}, err
	}
	return q.Queue, nil
}

// Queues returns all queues by name.
func (s *Store) Queues() []Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Queue, 0, len(s.names))
	for _, q := range s.names {
		out = append(out, q.Queue)
	}
	slices.SortFunc(out, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Counts is how many messages a queue has.
type Counts struct{ Visible, InFlight, Delayed int }

// Counts counts a queue's messages.
func (s *Store) Counts(name string) (Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name, s.now())
	if err != nil {
		return Counts{}, err
	}
	return Counts{q.counts[visible], q.counts[inFlight], q.counts[delayed]}, nil
}

// Message is a message as it is sent.
type Message struct {
	ID    [16]byte
	Body  []byte
	Meta  []byte        // what else the service knows of it
	Size  int           // as it counts in the queue's figures
	Delay time.Duration // of a standard queue's
	Group string
	Dedup string // what tells it from others, in a FIFO queue; "" where nothing does
}

// Sent is what became of a message. One that was sent before has that one's id and number.
type Sent struct {
	ID  [16]byte
	Seq uint64
}

// Send puts messages into a queue, all or none of them. They are on disk when it returns nil.
func (s *Store) Send(name string, messages []Message) ([]Sent, error) {
	s.mu.Lock()
	now := s.now()
	q, err := s.find(name, now)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	q.flow.begin(q, now)
	out := make([]Sent, len(messages))
	var records []record
	fresh := map[string]Sent{} // of this call
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
	s.stir(q)
	s.mu.Unlock()
	return out, b.wait()
}

// dedupKey is what must not be sent to the queue twice, "" for none.
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
			if err := b.wait(); err != nil {
				return nil, err
			}
			return s.read(got)
		}
		wait.sleep(ctx, time.Duration(until-s.now())*time.Millisecond)
	}
}

// receive takes what can be had at once. Where that is nothing, and there is time, it has the waiter woken, at the
// latest at until.
func (s *Store) receive(ctx context.Context, name string, w Want, wait *waiter, deadline int64) (got []taken, b *batch, until int64, err error) {
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
func (s *Store) takeFrom(q *queue, w Want, now int64) (got []taken, b *batch) {
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
func (s *Store) again(q *queue, w Want, now int64) (got []taken, b *batch) {
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
		b := make([]byte, p.size+p.meta)
		if n, err := p.segment.file.ReadAt(b, p.offset); n < len(b) {
			return nil, fmt.Errorf("queuestore: read a message: %w", err)
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

// held is the message of a receipt, if the receipt is its last. The caller holds mu.
func (q *queue) held(r Receipt) (*message, error) {
	if r.Queue != q.ID {
		return nil, ErrReceipt
	}
	m := q.messages[r.Seq]
	if m == nil || r.Number > m.receives {
		return nil, ErrNoMessage
	}
	if r.Number < m.receives {
		return nil, ErrExpired
	}
	return m, nil
}

// Delete removes messages that were received. Each has an error of its own: ErrNoMessage and, of a standard queue,
// ErrExpired say that there was nothing to delete any more.
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

// Visibility is for how long from now a message that was received is to be in flight.
type Visibility struct {
	Receipt Receipt
	Timeout time.Duration
}

// maxVisibility is how long a message can be in flight in all: API_ChangeMessageVisibility.
const maxVisibility = 12 * 60 * 60 * 1000

// ChangeVisibility changes how long messages are in flight. Each has an error of its own.
func (s *Store) ChangeVisibility(name string, changes []Visibility) ([]error, error) {
	return s.change(name, len(changes), func(q *queue, i int, now int64) (record, error) {
		m, err := q.held(changes[i].Receipt)
		if err != nil {
			return record{}, err
		}
		if m.state != inFlight {
			return record{}, ErrVisible
		}
		until := now + changes[i].Timeout.Milliseconds()
		if until > m.received+maxVisibility+1000 { // the call may have taken a moment
			return record{}, ErrTooLong
		}
		return record{kind: visibleAt, queue: q.ID, seq: m.seq, at: now, until: until}, nil
	})
}

// change makes up to n records, each on top of those before, and commits them together.
func (s *Store) change(name string, n int, make func(q *queue, i int, now int64) (record, error)) ([]error, error) {
	s.mu.Lock()
	now := s.now()
	q, err := s.find(name, now)
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
	s.stir(q)
	s.mu.Unlock()
	return errs, b.wait()
}

// Purge removes all messages of a queue. It does so once a minute.
func (s *Store) Purge(name string) error {
	s.mu.Lock()
	now := s.now()
	q, err := s.find(name, now)
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
	return b.wait()
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

// apply makes a record's change in memory. It lies in the segment, in the frame at the offset. The caller holds mu.
func (s *Store) apply(r *record, g *segment, offset int64) error {
	s.last = max(s.last, r.seq, r.toSeq) // no number is given twice, also where its message is gone: receipts have it
	switch r.kind {
	case queueIs:
		return s.applyQueue(r, g)
	case moveIs:
		return s.applyMove(r, g)
	case numbered:
		return nil
	}
	q := s.queues[r.queue]
	if q == nil { // what it is comes later in the log, or that it is gone
		q = newQueue(Queue{ID: r.queue, Retention: math.MaxInt64 / 2})
		s.queues[r.queue] = q
	}
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
		s.applyMessage(q, r, g, offset)
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
		return nil
	}
	m := q.messages[r.seq]
	if m == nil {
		return nil // it lies further on, as it is now
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
	case q.Name == "": // its messages came first
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

func (s *Store) applyMessage(q *queue, r *record, g *segment, offset int64) {
	p := place{g, offset + int64(r.offset), int32(len(r.body)), int32(len(r.meta)), int64(r.size), r.id}
	s.live += p.whole
	if r.key != "" {
		q.remember(r.key, duplicate{r.id, r.seq, r.message.entered, g})
	}
	if m := q.messages[r.seq]; m != nil {
		s.forget(m)
		m.link(p)
		return
	}
	m := r.message
	m.link(p)
	q.add(&m, m.state)
}

// forget notes that a message's record does not count any more.
func (s *Store) forget(m *message) {
	s.live -= m.place.whole
	m.unlink()
}

func (s *Store) applyMoved(q *queue, m *message, r *record) {
	to := s.queues[r.to]
	if to == nil {
		to = newQueue(Queue{ID: r.to, Retention: math.MaxInt64 / 2})
		s.queues[r.to] = to
	}
	q.drop(m)
	m.seq, m.entered, m.visibleAt, m.before, m.from = r.toSeq, r.at, r.at, m.receives, r.key
	if r.kind == redriven { // "Configuring a dead-letter queue redrive" in the developer guide: it is a new message
		m.place.id, m.sent, m.receives, m.before, m.first = r.id, r.at, 0, 0, 0
	}
	to.add(m, visible)
}
