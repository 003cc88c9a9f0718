package queues

import (
	"context"
	"math"
	"slices"
	"time"
)

// waiter is a receive that waits for a message.
type waiter struct{ woken chan struct{} }

// sleep waits until the waiter is woken, ctx ends, or the time is up.
func (w *waiter) sleep(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.woken:
	}
}

// addWaiter queues a waiter, to be woken when there may be something for it. The one that has waited longest comes first.
func (q *queue) addWaiter(w *waiter) {
	w.woken = make(chan struct{})
	q.waiters = append(q.waiters, w)
}

// removeWaiter removes a waiter that is looking for itself, or leaving. Others may have relied on its timer.
func (q *queue) removeWaiter(w *waiter) {
	if w.woken == nil {
		return
	}
	w.woken = nil
	q.waiters = slices.DeleteFunc(q.waiters, func(x *waiter) bool { return x == w })
	q.alarm = math.MaxInt64
}

// wakeNext wakes one waiter if a message can be taken, or if one becomes visible sooner than the waiters know. A woken waiter calls
// wakeNext in turn, so each message wakes one. The caller holds mu.
func (s *Store) wakeNext(q *queue) {
	if len(q.waiters) == 0 {
		return
	}
	can := q.next() != nil && q.counts[inFlight] < MaxInFlight
	soon := len(q.timed.items) > 0 && q.timed.items[0].visibleAt < q.alarm
	if !can && !soon {
		return
	}
	w := q.waiters[0]
	q.waiters = slices.Delete(q.waiters, 0, 1)
	close(w.woken)
}

func (q *queue) wakeAll() {
	for _, w := range q.waiters {
		close(w.woken)
	}
	q.waiters = nil
}
