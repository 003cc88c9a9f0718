package sim

import (
	"container/heap"
	"time"
)

// load is the requests, those that wait, and the slots that work on them.
type load struct {
	requests []Request
	slots    int
	slo      time.Duration

	now     time.Duration
	next    int   // the first request that has not come
	waiting []int // in order of coming; from head on
	head    int
	servers map[string]*server
	free    []*server // one entry for each slot that is free; the last is taken next
	finish  finishes

	waits    []time.Duration
	met      int
	working  int
	arrived  int // since the last moment
	finished int
	busy     time.Duration // of slots, since the last moment
}

// server is a task's slots.
type server struct {
	id      string
	working int
	// leaving says that it takes no more requests. gone is called when the last is done.
	leaving bool
	gone    func(at time.Duration)
}

// finish is when a slot is done.
type finish struct {
	at     time.Duration
	server *server
}

type finishes []finish

func (f finishes) Len() int           { return len(f) }
func (f finishes) Less(i, j int) bool { return f[i].at < f[j].at }
func (f finishes) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *finishes) Push(x any)        { *f = append(*f, x.(finish)) }
func (f *finishes) Pop() any {
	old := *f
	last := old[len(old)-1]
	*f = old[:len(old)-1]
	return last
}

func newLoad(s *Scenario) *load {
	return &load{requests: s.Requests, slots: s.Slots, slo: s.SLO, servers: map[string]*server{}}
}

// join adds a task's slots.
func (l *load) join(id string) {
	s := &server{id: id}
	l.servers[id] = s
	for range l.slots {
		l.free = append(l.free, s)
	}
	l.assign()
}

// leave lets a task finish what it works on, and calls gone then.
func (l *load) leave(id string, gone func(at time.Duration)) {
	s := l.servers[id]
	if s == nil {
		gone(l.now) // it never took any
		return
	}
	delete(l.servers, id)
	s.leaving, s.gone = true, gone
	if s.working == 0 {
		gone(l.now)
	}
}

// advance lets requests come and be done until a time.
func (l *load) advance(to time.Duration) {
	for {
		at, comes := to, false
		if l.next < len(l.requests) && l.requests[l.next].At <= at {
			at, comes = l.requests[l.next].At, true
		}
		if len(l.finish) > 0 && l.finish[0].at <= at {
			l.pass(l.finish[0].at)
			l.done(heap.Pop(&l.finish).(finish).server)
			continue
		}
		l.pass(at)
		if !comes {
			return
		}
		l.waiting = append(l.waiting, l.next)
		l.next++
		l.arrived++
		l.assign()
	}
}

func (l *load) pass(to time.Duration) {
	l.busy += time.Duration(l.working) * (to - l.now)
	l.now = to
}

// done frees the slot of a server.
func (l *load) done(s *server) {
	s.working--
	l.working--
	l.finished++
	if !s.leaving {
		l.free = append(l.free, s)
		l.assign()
		return
	}
	if s.working == 0 {
		s.gone(l.now)
	}
}

// assign gives waiting requests to free slots.
func (l *load) assign() {
	for l.head < len(l.waiting) && len(l.free) > 0 {
		s := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		if s.leaving {
			continue
		}
		r := l.requests[l.waiting[l.head]]
		l.head++
		wait := l.now - r.At
		l.waits = append(l.waits, wait)
		if wait <= l.slo {
			l.met++
		}
		s.working++
		l.working++
		heap.Push(&l.finish, finish{l.now + r.Work, s})
	}
	if l.head == len(l.waiting) {
		l.waiting, l.head = l.waiting[:0], 0
	}
}

// queued is how many requests wait.
func (l *load) queued() int { return len(l.waiting) - l.head }

// oldest is how long the first of those that wait has waited.
func (l *load) oldest() time.Duration {
	if l.queued() == 0 {
		return 0
	}
	return l.now - l.requests[l.waiting[l.head]].At
}
