package connection

import (
	"container/list"
	"net/netip"
	"time"
)

// crowd is a set of connections, by where they come from. Of each place, the first has been there for the longest time.
type crowd struct {
	size int
	from map[netip.Prefix]*mates
	came uint64
}

// mates are the connections from one place: those that have no request, and those with one under way.
type mates struct{ quiet, busy list.List }

func (m *mates) size() int { return m.quiet.Len() + m.busy.Len() }

// place is where a connection stands in a crowd.
type place struct {
	crowd   *crowd
	list    *list.List
	element *list.Element
	came    uint64
	since   time.Time
}

// add adds a connection that is in no crowd, or in this one; isBusy is whether it has a request under way.
func (w *crowd) add(c *conn, isBusy bool) {
	if c.place.crowd != nil {
		return
	}
	if w.from == nil {
		w.from = map[netip.Prefix]*mates{}
	}
	m := w.from[c.from]
	if m == nil {
		m = &mates{}
		w.from[c.from] = m
	}
	to := &m.quiet
	if isBusy {
		to = &m.busy
	}
	w.size++
	w.came++
	c.place = place{w, to, to.PushBack(c), w.came, time.Now()}
}

// remove removes a connection, if it's in this crowd.
func (w *crowd) remove(c *conn) {
	if c.place.crowd != w {
		return
	}
	w.size--
	c.place.list.Remove(c.place.element)
	if w.from[c.from].size() == 0 {
		delete(w.from, c.from)
	}
	c.place = place{}
}

// hello is how long a connection without a request counts as about to have one. Otherwise a crowd with a slow request on each of its connections would
// leave those alone to go that have just come.
const hello = time.Second

// first returns the connection of a place that goes first: the one that has had no request for the longest time, or else the oldest request's.
func (m *mates) first() *conn {
	quiet, busy := m.quiet.Front(), m.busy.Front()
	if busy == nil || quiet != nil && time.Since(quiet.Value.(*conn).place.since) >= hello {
		return quiet.Value.(*conn)
	}
	return busy.Value.(*conn)
}

// takeFirst removes the first connection of the place with the most, and returns it. It returns nil if there is none.
func (w *crowd) takeFirst() *conn {
	var first *conn
	most := 0
	for _, m := range w.from {
		c := m.first()
		if m.size() > most || m.size() == most && c.place.came < first.place.came {
			first = c
			most = m.size()
		}
	}
	if first != nil {
		w.remove(first)
	}
	return first
}
