package store

import (
	"context"
	"sync"
)

// topic is something to watch: all rows of a table, the one with a key, or those with a value in an index.
type topic struct {
	table int
	of    int // ofAll, ofKey, or the index's place
	value string
}

const (
	ofAll = -1
	ofKey = -2
)

// watch is what a view has read.
type watch struct {
	store *Store
	seen  []sighting
}

// sighting is a topic and the version of it that the view read.
type sighting struct {
	topic
	version any
}

// recordRead remembers what a watching view has read.
func (v *View) recordRead(about topic, version any) {
	if v.watch != nil {
		v.watch.seen = append(v.watch.seen, sighting{about, version})
	}
}

// Changed waits until something that was read through a Watch's view has changed since. It may also return for a row that was put
// again unchanged.
func (v *View) Changed(ctx context.Context) error {
	w := v.watch.store.watches.add(v.watch)
	if w == nil {
		return ctx.Err()
	}
	defer v.watch.store.watches.remove(w)
	select {
	case <-w.woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ChangedCh is Changed for a select: the channel gets one value. It ends with ctx.
func (v *View) ChangedCh(ctx context.Context) <-chan error {
	out := make(chan error, 1)
	go func() { out <- v.Changed(ctx) }()
	return out
}

// watches knows who waits for which topic.
type watches struct {
	mu      sync.Mutex
	waiters map[topic]map[*waiter]struct{}
}

type waiter struct {
	topics []topic
	woken  chan struct{}
}

// add registers a waiter for what a view has read, or returns nil if that has changed already. A commit becomes visible before it
// wakes waiters, so none is missed.
func (w *watches) add(watch *watch) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := watch.store.version.Load()
	for _, s := range watch.seen {
		if now.tables[s.table].version(s.topic) != s.version {
			return nil
		}
	}
	if w.waiters == nil {
		w.waiters = map[topic]map[*waiter]struct{}{}
	}
	added := &waiter{woken: make(chan struct{})}
	for _, s := range watch.seen {
		if w.waiters[s.topic] == nil {
			w.waiters[s.topic] = map[*waiter]struct{}{}
		}
		w.waiters[s.topic][added] = struct{}{}
		added.topics = append(added.topics, s.topic)
	}
	return added
}

func (w *watches) remove(old *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(old)
}

func (w *watches) removeLocked(old *waiter) {
	for _, t := range old.topics {
		if delete(w.waiters[t], old); len(w.waiters[t]) == 0 {
			delete(w.waiters, t)
		}
	}
	old.topics = nil
}

// wake wakes whoever waits for one of the changes.
func (w *watches) wake(log []change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range log {
		if len(w.waiters) == 0 {
			return
		}
		c.table.topics(c, func(t topic) {
			for waiting := range w.waiters[t] {
				w.removeLocked(waiting)
				close(waiting.woken)
			}
		})
	}
}
