package state

// rowSize is what a message and a debt count besides their bytes: however short, they are rows.
const rowSize = 1 << 10

// Undelivered knows how many bytes of topics' messages and of events are on their way: all rows are in memory. It follows the rows, also inside a running
// transaction, so that it may be asked in one, and nowhere else.
type Undelivered struct {
	All            int // of topics' messages
	Events         int // of events that wait for targets
	Invocations    int // of functions' asynchronous invocations
	ByTopic        map[string]int
	BySubscription map[string]int // by a debt's destination
	Own            map[string]int // of events of Pintle's services, by a debt's destination
}

// Room is how many bytes of events may wait for targets, and how many of invocations for functions.
const Room = 256 << 20

// IsFull reports whether as many events wait for targets as may.
func (u *Undelivered) IsFull() bool { return u.Events > Room }

// Change implements store.Observer.
func (u *Undelivered) Change(before, after any) {
	u.post(before, -1)
	u.post(after, 1)
}

// post adds (sign 1) or subtracts (sign -1) a row.
func (u *Undelivered) post(row any, sign int) {
	switch row := row.(type) {
	case *Publication:
		n := sign * (row.Size() + rowSize)
		u.All += n
		add(u.ByTopic, row.TopicARN, n)
	case *Invocation:
		u.Invocations += sign * (len(row.Payload) + rowSize)
	case *EventText:
		u.Events += sign * (len(row.Text) + rowSize)
	case *Delivery:
		if row.Own {
			add(u.Own, row.Destination, sign*(row.Size+rowSize))
		}
		if row.Publication != "" {
			add(u.BySubscription, row.Destination, sign*(row.Size+rowSize))
		} else if row.Event != "" {
			u.Events += sign * rowSize
		} else if row.Size > 0 {
			u.Events += sign * (row.Size + rowSize)
		}
	}
}
