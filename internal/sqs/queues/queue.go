package queues

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// queue is a queue's messages in memory, with every rule that depends on time: delays, visibility, retention, the order of groups,
// deduplication. It reads no clock and no file. Every change carries its time, in milliseconds since 1970, so replaying the changes
// rebuilds the same queue.
type queue struct {
	Queue
	in   *segment // holds its record
	size int64    // of the record

	messages map[uint64]*message
	ready    messageHeap       // visible messages of a standard queue, by age
	groups   map[string]*group // of a FIFO queue
	open     groupHeap         // groups from which a message can be taken
	timed    messageHeap       // in flight or delayed, by when they become visible
	aging    messageHeap       // all, by when their retention began
	counts   [3]int            // of messages, by state

	sent     map[string]duplicate // in the deduplication window, by key
	recent   []string             // their keys, the oldest first
	purgedAt int64
	attempts map[string]attempt // recent receives, by their attempt id

	attemptsAt int // how many attempts to keep before dropping old ones

	waiters []*waiter // the one that has waited longest comes first
	alarm   int64     // when one of them looks for messages that became visible
	flow    flow
}

// state says whether a message can be received.
type state uint8

const (
	visible state = iota
	inFlight
	delayed
)

// message is a message without its body.
type message struct {
	queue     *queue
	seq       uint64 // its number in the store; messages of a queue are in this order
	state     state
	receives  uint32 // in all queues
	before    uint32 // of these, in other queues
	sent      int64  // when it was sent
	entered   int64  // when it came into this queue
	visibleAt int64
	first     int64 // when it was first received; 0 for never
	received  int64 // when it was last received
	place     place
	group     string
	from      string // the queue whose dead letter it is
	index     int    // in ready, its group or timed
	age       int    // in aging

	next, prev *message // in its segment
}

// place is where a message's record is on disk.
type place struct {
	segment *segment
	offset  int64  // of the body
	size    int32  // of the body
	meta    int32  // bytes behind the body
	sum     uint32 // CRC-32C of body and meta
	whole   int64  // size of the whole record
	id      [16]byte
}

// group is a message group of a FIFO queue. While one of its messages is in flight, none behind it can be taken.
type group struct {
	ready    messageHeap
	inFlight []uint64 // numbers of messages, ascending
	index    int      // in the queue's open groups; -1 if it isn't there
}

// next returns the group's first message if it can be taken now, else nil.
func (g *group) next() *message {
	if len(g.ready.items) == 0 {
		return nil
	}
	m := g.ready.items[0]
	if len(g.inFlight) > 0 && g.inFlight[0] < m.seq {
		return nil
	}
	return m
}

// duplicate is a sent message, kept to answer whoever sends it again.
type duplicate struct {
	id  [16]byte
	seq uint64
	at  int64
	in  *segment // holds the record
}

// attempt is what a receive with an attempt id got: API_ReceiveMessage on ReceiveRequestAttemptId.
type attempt struct {
	at       int64
	receipts []Receipt
}

// window is how many milliseconds a message counts as a duplicate: API_SendMessage on MessageDeduplicationId.
const window = 5 * 60 * 1000

func newQueue(q Queue) *queue {
	out := &queue{
		Queue:    q,
		alarm:    math.MaxInt64,
		messages: map[uint64]*message{},
		sent:     map[string]duplicate{},
		attempts: map[string]attempt{},
		groups:   map[string]*group{},
	}
	out.ready.by = bySeq
	out.timed.by = byVisibleAt
	out.aging.by = out.byAge
	out.aging.aging = true
	return out
}

// advance makes messages visible whose time has come.
func (q *queue) advance(now int64) {
	for len(q.timed.items) > 0 && q.timed.items[0].visibleAt <= now {
		m := q.timed.items[0]
		q.flow.begin(q, m.visibleAt)
		q.put(m, visible)
	}
}

// turnBack fits a replayed queue to a clock that went back to now while nobody ran. What had become visible by the latest record stays
// visible, and nothing is in flight or delayed for longer than it was to be then.
func (q *queue) turnBack(latest, now int64) {
	q.advance(latest)
	for _, m := range q.timed.items { // by the same time each, so the order stays
		m.visibleAt -= latest - now
	}
}

// nextExpired returns a message whose retention is over, or nil.
func (q *queue) nextExpired(now int64) *message {
	if len(q.aging.items) == 0 {
		return nil
	}
	if m := q.aging.items[0]; q.born(m)+q.Retention <= now {
		return m
	}
	return nil
}

// born returns when a message's retention began: in a FIFO dead-letter queue when it arrived there, else when it was first sent
// ("Dead-letter queues and message retention" in the developer guide).
func (q *queue) born(m *message) int64 {
	if q.FIFO {
		return m.entered
	}
	return m.sent
}

func (q *queue) byAge(a, b *message) bool { return q.born(a) < q.born(b) }

func bySeq(a, b *message) bool { return a.seq < b.seq }

func byVisibleAt(a, b *message) bool { return a.visibleAt < b.visibleAt }

// add adds a message, in its state at the time of its record.
func (q *queue) add(m *message, s state) {
	q.messages[m.seq] = m
	m.queue = q
	heap.Push(&q.aging, m)
	m.index = -1
	q.counts[s]++
	q.enter(m, s)
}

// put moves a message to another state.
func (q *queue) put(m *message, s state) {
	q.leave(m)
	q.counts[m.state]--
	q.counts[s]++
	q.enter(m, s)
}

// drop forgets a message.
func (q *queue) drop(m *message) {
	q.leave(m)
	q.counts[m.state]--
	heap.Remove(&q.aging, m.age)
	delete(q.messages, m.seq)
}

func (q *queue) enter(m *message, s state) {
	m.state = s
	if s != visible {
		heap.Push(&q.timed, m)
	}
	if s == delayed || !q.FIFO {
		if s == visible {
			heap.Push(&q.ready, m)
		}
		return
	}
	g := q.groups[m.group]
	if g == nil {
		g = &group{index: -1}
		g.ready.by = bySeq
		q.groups[m.group] = g
	}
	switch s {
	case visible:
		heap.Push(&g.ready, m)
	case inFlight:
		at, _ := slices.BinarySearch(g.inFlight, m.seq)
		g.inFlight = slices.Insert(g.inFlight, at, m.seq)
	}
	q.arrange(m.group, g)
}

func (q *queue) leave(m *message) {
	if m.state != visible {
		heap.Remove(&q.timed, m.index)
	}
	if m.state == delayed || !q.FIFO {
		if m.state == visible {
			heap.Remove(&q.ready, m.index)
		}
		return
	}
	g := q.groups[m.group]
	switch m.state {
	case visible:
		heap.Remove(&g.ready, m.index)
	case inFlight:
		at, _ := slices.BinarySearch(g.inFlight, m.seq)
		g.inFlight = slices.Delete(g.inFlight, at, at+1)
	}
	q.arrange(m.group, g)
}

// arrange adds a group to the open ones, takes it out of them, or forgets it.
func (q *queue) arrange(name string, g *group) {
	open := g.next() != nil
	switch {
	case open && g.index < 0:
		heap.Push(&q.open, g)
	case open:
		heap.Fix(&q.open, g.index)
	case g.index >= 0:
		heap.Remove(&q.open, g.index)
	}
	if len(g.inFlight) == 0 && len(g.ready.items) == 0 {
		delete(q.groups, name) // a delayed message makes it again on becoming visible
	}
}

// next returns the message that would be received next, or nil.
func (q *queue) next() *message {
	if q.FIFO {
		if len(q.open) == 0 {
			return nil
		}
		return q.open[0].next()
	}
	if len(q.ready.items) == 0 {
		return nil
	}
	return q.ready.items[0]
}

// take returns up to limit messages to receive together. In a FIFO queue they come in order from as few groups as possible, and a
// group can give several at once.
func (q *queue) take(limit int) []*message {
	limit = min(limit, MaxInFlight-q.counts[inFlight])
	var out []*message
	if !q.FIFO {
		for len(out) < limit && len(q.ready.items) > 0 {
			out = append(out, heap.Pop(&q.ready).(*message))
		}
		for _, m := range out {
			heap.Push(&q.ready, m)
		}
		return out
	}
	var seen []*group
	for len(out) < limit && len(q.open) > 0 {
		g := heap.Pop(&q.open).(*group)
		seen = append(seen, g)
		first := len(out)
		for len(out) < limit && g.next() != nil {
			out = append(out, heap.Pop(&g.ready).(*message))
		}
		for _, m := range out[first:] {
			heap.Push(&g.ready, m)
		}
	}
	for _, g := range seen {
		heap.Push(&q.open, g)
	}
	return out
}

// isDead reports whether a message has been received as often as the queue allows.
func (q *queue) isDead(m *message) bool {
	return q.MaxReceives > 0 && m.receives-m.before >= uint32(q.MaxReceives)
}

// received notes that a message was received.
func (q *queue) received(m *message, at, until int64) {
	m.receives++
	if m.first == 0 {
		m.first = at
	}
	m.received, m.visibleAt = at, until
	q.put(m, inFlight)
}

// retime sets when a message becomes visible.
func (q *queue) retime(m *message, until int64) {
	s := m.state
	if s == visible { // its time was over
		s = inFlight
	}
	q.leave(m)
	q.counts[m.state]--
	q.counts[s]++
	m.visibleAt = until
	q.enter(m, s)
}

// update replaces the queue's settings. In a FIFO queue a changed delay applies to messages already there: API_SetQueueAttributes.
func (q *queue) update(to Queue) {
	retimed := q.FIFO && q.Delay != to.Delay
	q.Queue = to
	if !retimed {
		return
	}
	for _, m := range q.messages {
		if m.receives == m.before && m.state == delayed {
			q.retime(m, m.entered+to.Delay)
		}
	}
}

// duplicateOf returns what was sent with the same key within the window.
func (q *queue) duplicateOf(key string, now int64) (duplicate, bool) {
	for len(q.recent) > 0 && q.sent[q.recent[0]].at+window <= now {
		delete(q.sent, q.recent[0])
		q.recent = q.recent[1:]
	}
	d, ok := q.sent[key]
	return d, ok && d.at+window > now
}

// remember notes a sent message. Times only grow, so the oldest are first.
func (q *queue) remember(key string, d duplicate) {
	if key == "" {
		return
	}
	if _, known := q.sent[key]; !known {
		q.recent = append(q.recent, key)
	}
	q.sent[key] = d
}

// messageHeap is a heap of messages. Each message knows its index, so that it can be removed from the middle.
type messageHeap struct {
	items []*message
	by    func(a, b *message) bool
	aging bool // keep the index in age instead of index
}

func (h *messageHeap) Len() int           { return len(h.items) }
func (h *messageHeap) Less(i, j int) bool { return h.by(h.items[i], h.items[j]) }

func (h *messageHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.place(i)
	h.place(j)
}

func (h *messageHeap) place(i int) {
	if h.aging {
		h.items[i].age = i
		return
	}
	h.items[i].index = i
}

// Push implements heap.Interface.
func (h *messageHeap) Push(x any) {
	h.items = append(h.items, x.(*message))
	h.place(len(h.items) - 1)
}

// Pop implements heap.Interface.
func (h *messageHeap) Pop() any {
	last := len(h.items) - 1
	m := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return m
}

// groupHeap is a heap of groups. On top is the one whose next message was received least recently, or never, and among these the one
// with the oldest message. So a message that is refused over and over doesn't hold up other groups.
type groupHeap []*group

func (h groupHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h groupHeap) Less(i, j int) bool {
	a, b := h[i].ready.items[0], h[j].ready.items[0]
	return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.seq, b.seq)) < 0
}

// Swap implements heap.Interface.
func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *groupHeap) Push(x any) {
	g := x.(*group)
	g.index = len(*h)
	*h = append(*h, g)
}

// Pop implements heap.Interface.
func (h *groupHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	g.index = -1
	return g
}
