package sim

import (
	"container/heap"
	"time"
)

// load holds the requests, those that wait, and the slots that work on them.
type load struct {
	requests []Request
	slots    int
	slo      time.Duration

	now     time.Duration
	next    int   // the first request that hasn't arrived
	waiting []int // in order of arrival, starting at head
	head    int
	servers map[string]*server
	free    []*server // one entry for each free slot; the last is taken next
	finish  finishes

	waits    []time.Duration
	met      int
	working  int
	arrived  int // since the last moment
	finished int
	busy     time.Duration // slots' time, since the last moment
}

// server is a task with its slots.
type server struct {
	id      string
	working int
	// leaving servers take no more requests. gone is called when the last request is done.
	leaving bool
	gone    func(at time.Duration)
}

// finish is the time at which a slot becomes free.
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

// addTask adds a task's slots.
func (l *load) addTask(id string) {
	s := &server{id: id}
	l.servers[id] = s
	for range l.slots {
		l.free = append(l.free, s)
	}
	l.assign()
}

// removeTask lets a task finish its requests and then calls gone.
func (l *load) removeTask(id string, gone func(at time.Duration)) {
	s := l.servers[id]
	if s == nil {
		gone(l.now) // it never took requests
		return
	}
	delete(l.servers, id)
	s.leaving = true
	s.gone = gone
	if s.working == 0 {
		gone(l.now)
	}
}

// advance lets requests arrive and finish until a time.
func (l *load) advance(to time.Duration) {
	for {
		at := to
		arrives := false
		if l.next < len(l.requests) && l.requests[l.next].At <= at {
			at = l.requests[l.next].At
			arrives = true
		}
		if len(l.finish) > 0 && l.finish[0].at <= at {
			l.moveTo(l.finish[0].at)
			l.finishRequest(heap.Pop(&l.finish).(finish).server)
			continue
		}
		l.moveTo(at)
		if !arrives {
			return
		}
		l.waiting = append(l.waiting, l.next)
		l.next++
		l.arrived++
		l.assign()
	}
}

func (l *load) moveTo(to time.Duration) {
	l.busy += time.Duration(l.working) * (to - l.now)
	l.now = to
}

// finishRequest frees a slot of a server.
func (l *load) finishRequest(s *server) {
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
		l.waiting = l.waiting[:0]
		l.head = 0
	}
}

// queued returns how many requests wait.
func (l *load) queued() int { return len(l.waiting) - l.head }

// oldest returns how long the first waiting request has waited.
func (l *load) oldest() time.Duration {
	if l.queued() == 0 {
		return 0
	}
	return l.now - l.requests[l.waiting[l.head]].At
}
