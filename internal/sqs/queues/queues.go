// Package queues keeps queues and their messages: durable before a call returns, in the order of the calls, invisible while they
// are in flight. All queues share one append-only log, and the oldest segment is cleaned of dead records. What the store knows of a
// message is in memory, its body on disk. It knows nothing of AWS's API. The SQS service calls it, and the meter asks it what its
// queues did.
package queues

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sort"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/wal"
)

// Queue is a queue's settings.
type Queue struct {
	ID         uint64 // of this queue only, not of a later one with its name
	Name       string
	CreatedAt  int64 // milliseconds since 1970
	ModifiedAt int64
	FIFO       bool

	Delay       int64  // of sent messages, in milliseconds
	Retention   int64  // in milliseconds
	MaxReceives int    // after this many, a message goes to the dead-letter queue; 0 for never
	DeadLetter  string // that queue's name
	GroupDedup  bool   // only messages of the same group are duplicates of each other

	Attributes map[string]string // whatever else the service keeps
	Tags       map[string]string
}

// MaxInFlight is how many messages of a queue can be in flight: "Amazon SQS message quotas" and "FIFO queue quotas" in the developer
// guide.
const MaxInFlight = 120_000

// Errors that callers tell apart.
var (
	ErrNoQueue   = errors.New("queues: there is no such queue")
	ErrExists    = errors.New("queues: there is such a queue")
	ErrDeleted   = errors.New("queues: a queue of that name was deleted a moment ago")
	ErrInFlight  = errors.New("queues: too many messages are in flight")
	ErrReceipt   = errors.New("queues: the receipt is of another queue")
	ErrExpired   = errors.New("queues: the receipt has expired")
	ErrNoMessage = errors.New("queues: there is no such message any more")
	ErrVisible   = errors.New("queues: the message is not in flight")
	ErrTooLong   = errors.New("queues: the message would be in flight for too long")
	ErrPurged    = errors.New("queues: the queue was purged a moment ago")
	ErrClosed    = errors.New("queues: the store is closed")
)

// Options say how the store is kept; the zero value is fine.
type Options struct {
	Now func() time.Time
	// MaxSegment is the size in bytes at which the next file of the log begins.
	MaxSegment int64
	// Slack is how many bytes of dead records the log may hold, beyond as many as there are live ones.
	Slack int64
	// NoSync gives up durability, for a store that is thrown away.
	NoSync bool
	// Flushed, unless nil, is told how long each group of records took to get onto the disk.
	Flushed func(took time.Duration)
	// Recover gives a queue whose own record was lost to damage what the service keeps of each queue.
	Recover func(*Queue)
}

// Store keeps all queues. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	opts Options

	log *wal.Log

	// filesMu is read-locked while bodies are read, so that their segments stay. It is taken before mu.
	filesMu sync.RWMutex

	mu       sync.Mutex
	segments []*segment // the oldest first; the last takes appends
	queues   map[uint64]*queue
	names    map[string]*queue
	moves    map[string]*Move
	deleted  map[string]int64 // when a queue of that name was deleted, for namePause
	latest   int64            // the latest time that a replayed record has
	last     uint64           // the last message number given out
	size     int64            // bytes of the log
	live     int64            // of these, bytes still needed
	before   *wal.Group       // the last group with records
	waitless bool             // receives return at once
	err      error            // why nothing can be changed any more

	clean   chan struct{}  // the cleaner has something to do
	running sync.WaitGroup // of the cleaner
	done    chan struct{}  // closed when the store is
	tasks   sync.WaitGroup // moves under way
}

// Open opens the store in a directory, creating it if there is none.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Now = neverBack(opts.Now)
	opts.MaxSegment, opts.Slack = cmp.Or(opts.MaxSegment, defaultMaxSegment), cmp.Or(opts.Slack, defaultSlack)
	s := &Store{
		dir: dir, opts: opts, queues: map[uint64]*queue{}, names: map[string]*queue{}, moves: map[string]*Move{},
		deleted: map[string]int64{},
		clean:   make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("queues: %w", err)
	}
	now := s.now()
	for _, q := range s.queues {
		if s.latest > now {
			q.turnBack(s.latest, now)
		}
		q.advance(now)
		q.flow = flow{}
	}
	s.running.Go(s.cleanUp)
	s.resume()
	return s, nil
}

// EndWaits makes receives return at once from now on, including those that wait: the process is about to end.
func (s *Store) EndWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitless = true
	for _, q := range s.queues {
		q.wakeAll()
	}
}

// Close closes the store once everything queued is written.
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
	s.mu.Unlock()
	s.tasks.Wait()
	s.running.Wait()
	return s.log.Close()
}

// neverBack returns a clock that goes on from where it was when the other one is set back: else messages would stay invisible for as long as
// it was. A restart turns the messages' times back instead.
func neverBack(clock func() time.Time) func() time.Time {
	var mu sync.Mutex
	var last time.Time
	var ahead time.Duration
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now := clock().Round(0).Add(ahead) // as the wall clock has it
		if now.Before(last) {
			ahead += last.Sub(now)
			now = last
		}
		last = now
		return now
	}
}

func (s *Store) now() int64 { return s.opts.Now().UnixMilli() }

// find returns a queue, brought up to date. The caller holds mu.
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

// findToChange returns a queue, unless nothing can be changed now. The caller holds mu.
func (s *Store) findToChange(name string, now int64) (*queue, error) {
	if err := s.log.Stalled(); err != nil {
		return nil, err
	}
	return s.find(name, now)
}

// maxSettled limits the expired messages in one frame: all of a queue's may expire at once, and they wouldn't fit.
const maxSettled = 10_000

// settle brings a queue up to date: it drops expired messages and makes others visible. The caller holds mu.
func (s *Store) settle(q *queue, now int64) {
	q.advance(now)
	if q.nextExpired(now) == nil || s.log.Stalled() != nil {
		return
	}
	var gone []record
	for m := q.nextExpired(now); m != nil; m = q.nextExpired(now) {
		q.flow.begin(q, now)
		r := record{kind: messageGone, queue: q.ID, seq: m.seq, at: now}
		gone = append(gone, r)
		s.apply(&r, nil) //nolint:errcheck // removing a message cannot fail
		if len(gone) == maxSettled {
			s.commit(gone, false)
			gone = nil
		}
	}
	s.commit(gone, false)
}

// namePause is how many milliseconds a deleted queue's name can't be used again: API_DeleteQueue.
const namePause = 60_000

// CreateQueue makes a queue. If there is one of that name, it returns that one and ErrExists, once that one is on disk.
func (s *Store) CreateQueue(in Queue) (Queue, error) {
	s.mu.Lock()
	if q, err := s.find(in.Name, s.now()); err == nil {
		there, b := q.Queue, s.before
		s.mu.Unlock()
		return there, cmp.Or(b.Wait(), ErrExists)
	} else if !errors.Is(err, ErrNoQueue) {
		s.mu.Unlock()
		return Queue{}, err
	}
	if err := s.log.Stalled(); err != nil {
		s.mu.Unlock()
		return Queue{}, err
	}
	if at, ok := s.deleted[in.Name]; ok && s.now() < at+namePause {
		s.mu.Unlock()
		return Queue{}, ErrDeleted
	}
	in.ID = rand.Uint64()
	in.CreatedAt, in.ModifiedAt = s.now(), s.now()
	b := s.putQueue(in)
	q := s.queues[in.ID]
	q.flow.begin(q, s.now())
	s.mu.Unlock()
	return in, b.Wait()
}

// putQueue writes a queue's record. The caller holds mu.
func (s *Store) putQueue(q Queue) *wal.Group {
	return s.commit([]record{q.record()}, true)
}

func (q *Queue) record() record {
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // a Queue is numbers and text
	}
	return record{kind: queueIs, queue: q.ID, json: b}
}

// UpdateQueue changes a queue. change may replace the queue's maps but must not write to them, since others read them.
func (s *Store) UpdateQueue(name string, change func(*Queue) error) error {
	s.mu.Lock()
	q, err := s.findToChange(name, s.now())
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
	s.wakeNext(q)
	s.mu.Unlock()
	return b.Wait()
}

// DeleteQueue removes a queue with all its messages.
func (s *Store) DeleteQueue(name string) error {
	s.mu.Lock()
	q, err := s.findToChange(name, s.now())
	if err != nil {
		s.mu.Unlock()
		return err
	}
	b := s.commit([]record{{kind: queueGone, queue: q.ID}}, true)
	now := s.now()
	maps.DeleteFunc(s.deleted, func(_ string, at int64) bool { return at+namePause <= now })
	s.deleted[name] = now
	q.wakeAll()
	s.mu.Unlock()
	return b.Wait()
}

// Queue returns a queue's settings.
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
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Counts says how many messages a queue has, by state.
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
