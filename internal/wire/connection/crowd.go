package connection

import (
	"container/list"
	"net/netip"
)

// crowd is a set of connections, by where they come from. Of each place, the first has been there for the longest time.
type crowd struct {
	size int
	from map[netip.Prefix]*list.List
	came uint64
}

// place is where a connection stands in a crowd.
type place struct {
	crowd   *crowd
	element *list.Element
	came    uint64
}

// add adds a connection that is in no crowd, or in this one.
func (w *crowd) add(c *conn) {
	if c.place.crowd != nil {
		return
	}
	if w.from == nil {
		w.from = map[netip.Prefix]*list.List{}
	}
	if w.from[c.from] == nil {
		w.from[c.from] = list.New()
	}
	w.size++
	w.came++
	c.place = place{w, w.from[c.from].PushBack(c), w.came}
}

// remove removes a connection, if it's in this crowd.
func (w *crowd) remove(c *conn) {
	if c.place.crowd != w {
		return
	}
	w.size--
	mates := w.from[c.from]
	mates.Remove(c.place.element)
	if mates.Len() == 0 {
		delete(w.from, c.from)
	}
	c.place = place{}
}

// takeFirst removes the first connection of the place with the most, and returns it. It returns nil if there is none.
func (w *crowd) takeFirst() *conn {
	var first *conn
	most := 0
	for _, mates := range w.from {
		c := mates.Front().Value.(*conn)
		if mates.Len() > most || mates.Len() == most && c.place.came < first.place.came {
			first = c
			most = mates.Len()
		}
	}
	if first != nil {
		w.remove(first)
	}
	return first
}
