// Package store is the engine for state that must not be lost: typed tables in memory, with indexes and watches, that only
// transactions change. A transaction is durable in the journal before anyone sees it, and concurrent ones share a flush. Invariants
// check every commit. The store never knows what rows mean: package state declares the tables, and everybody else uses that.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync/atomic"

	"github.com/pintle/pintle/internal/groupcommit"
)

// ErrClosed is Update's error after Close, or after somebody else has written to the journal.
var ErrClosed = groupcommit.ErrClosed

// Observer follows every change of a row from inside the writer. It hears of a change while the transaction still runs, and of
// the reverse change if the transaction is undone. So whatever it derives matches what the running transaction sees. The store
// calls it from one goroutine at a time.
type Observer interface {
	// Change reports that the row before became after. Either may be nil: a new row, or a deleted one.
	Change(before, after any)
}

// Invariant is an observer that can refuse a transaction. It keeps its own books and trusts nobody's plans.
type Invariant interface {
	Observer
	// Check ends a transaction. An error refuses it.
	Check() error
	// Undone ends a transaction that was undone.
	Undone()
	// Replayed ends the replay of a journal, whose transactions Check has accepted when they ran. An error says that they can't have been.
	Replayed() error
}

// Options name the observers of a store's changes.
type Options struct {
	Invariants []Invariant
	Observers  []Observer
}

// Store is the store. Its methods may be called from any goroutine.
type Store struct {
	schema     *Schema
	journal    Journal
	invariants []Invariant
	observers  []Observer // the invariants first
	watches    watches
	writer     *groupcommit.Writer[func(*Tx) error]
	edit       uint64 // of the writer's trees; only the writer uses it

	// version is the last commit. Only the writer changes it.
	version atomic.Pointer[version]
}

// version is the tables at one revision.
type version struct {
	revision int64
	tables   []*rows // in the order of the schema
	view     *View   // of them, for all who don't watch
}

func newVersion(revision int64, tables []*rows) *version {
	return &version{revision, tables, &View{tables: tables}}
}

// Open replays the journal, from which observers hear of every row, and starts the writer.
func Open(ctx context.Context, journal Journal, schema *Schema, opts Options) (*Store, error) {
	s := &Store{schema: schema, journal: journal, invariants: opts.Invariants}
	for _, i := range opts.Invariants {
		s.observers = append(s.observers, i)
	}
	s.observers = append(s.observers, opts.Observers...)
	s.version.Store(newVersion(0, schema.empty()))
	if err := s.replay(ctx); err != nil {
		return nil, err
	}
	s.writer = groupcommit.Start(s.commit)
	return s, nil
}

// Close waits for the commits under way, ends the writer and closes the journal.
func (s *Store) Close() error {
	s.writer.Close()
	return s.journal.Close()
}

// Done is closed once the store accepts no more commits, because it was closed or somebody else has written to its journal.
func (s *Store) Done() <-chan struct{} { return s.writer.Done() }

// Waiting returns how many transactions wait for the writer.
func (s *Store) Waiting() int { return s.writer.Waiting() }

// replay fills the tables from the journal.
func (s *Store) replay(ctx context.Context) error {
	tx := s.begin()
	revision, err := s.journal.Since(ctx, 0, func(c Change) error {
		if c.Data == nil {
			return nil
		}
		t, row, err := s.schema.decode(c)
		if err != nil {
			return err
		}
		tx.do(change{t, nil, row})
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range s.invariants {
		if err := i.Replayed(); err != nil {
			return fmt.Errorf("store: the journal breaks an invariant: %w", err)
		}
	}
	s.version.Store(newVersion(revision, tx.tables))
	return nil
}

// Revision is the number of the last commit. It never goes back, not even over restarts.
func (s *Store) Revision() int64 { return s.version.Load().revision }

// View is a consistent snapshot of all tables, the same one until the next commit. It costs nothing to keep.
func (s *Store) View() *View { return s.version.Load().view }

// Watch is a view that remembers what you read through it, so that Changed can wait for a change of that.
func (s *Store) Watch() *View {
	return &View{tables: s.version.Load().tables, watch: &watch{store: s}}
}

// Update runs fn in a transaction and returns once its changes are durable and visible. If fn or an invariant fails, nothing
// changes and Update returns the error. Transactions run one at a time, so fn must be short and do no IO. The context can cancel a
// transaction only until the writer takes it; then Update waits for the outcome.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.writer.Update(ctx, fn)
}

// commit runs a group of transactions, flushes once and answers them all. It reports whether the store can go on.
func (s *Store) commit(group iter.Seq[*groupcommit.Change[func(*Tx) error]]) bool {
	tx := s.begin()
	var taken []*groupcommit.Change[func(*Tx) error]
	for c := range group {
		if err := tx.run(c.Do); err != nil {
			c.Answer(err)
			continue
		}
		taken = append(taken, c)
	}
	err := s.flush(tx)
	if err != nil {
		tx.undo(0)
	}
	for _, c := range taken {
		c.Answer(err)
	}
	return !errors.Is(err, ErrStale)
}

// flush writes the group's changes to the journal, then lets everybody see them. A failed write changes nothing, and later ones may
// succeed. A journal that somebody else has written to ends the store.
func (s *Store) flush(group *Tx) error {
	changes, err := group.changes()
	if err != nil || len(changes) == 0 {
		return err
	}
	revision := s.Revision() + 1
	if err := s.journal.Write(revision, changes); err != nil {
		return fmt.Errorf("store: journal: %w", err)
	}
	s.version.Store(newVersion(revision, group.tables))
	s.watches.wake(group.log)
	return nil
}

// run runs one transaction of the group. If it fails, it alone is undone.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	start := len(tx.log)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store: a transaction panicked: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			tx.undo(start)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.check()
}
