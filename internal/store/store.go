// Package store is an engine for state that must not be lost: typed tables in memory with indexes and watches, changed by
// transactions alone. A transaction is durable in the journal before anyone sees it, and concurrent ones share one flush. What must
// never be is checked in the commit, by Invariants. It knows nothing of what the rows mean: package state declares the tables, and
// everybody else sees them through it.
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

// ErrClosed is returned by Update after Close, or after the journal failed in a commit.
var ErrClosed = groupcommit.ErrClosed

// Observer follows every change of a row from inside the writer: while a transaction runs it is
// told at once, and told the reverse if the transaction is undone. So what it derives is always
// equal to what the running transaction sees. It is called from one goroutine at a time.
type Observer interface {
	// Change says that the row before became after; nil where there is none.
	Change(before, after any)
}

// Invariant is an observer that refuses transactions. It keeps books of its own, and trusts nobody's plans.
type Invariant interface {
	Observer
	// Check ends a transaction, and refuses it with an error.
	Check() error
	// Undone ends a transaction that was undone.
	Undone()
}

// Options are what a store's changes are told to.
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
	edit       uint64 // of the writer's trees; the writer alone uses it

	// version is what was committed last. The writer alone changes it.
	version atomic.Pointer[version]
}

// version is the tables at one revision.
type version struct {
	revision int64
	tables   []contents // by their places in the schema
}

// Open replays the journal and starts the writer. The observers hear of every row first.
func Open(ctx context.Context, journal Journal, schema *Schema, opts Options) (*Store, error) {
	s := &Store{schema: schema, journal: journal, invariants: opts.Invariants}
	for _, i := range opts.Invariants {
		s.observers = append(s.observers, i)
	}
	s.observers = append(s.observers, opts.Observers...)
	s.version.Store(&version{tables: schema.empty()})
	if err := s.replay(ctx); err != nil {
		return nil, err
	}
	s.writer = groupcommit.Start(s.commit)
	return s, nil
}

// Close ends the writer after the commits that it has taken, and closes the journal.
func (s *Store) Close() error {
	s.writer.Close()
	return s.journal.Close()
}

// Done is closed when the store accepts no more commits: it was closed, or its journal failed.
func (s *Store) Done() <-chan struct{} { return s.writer.Done() }

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
	if err := tx.check(); err != nil {
		return fmt.Errorf("store: the journal breaks an invariant: %w", err)
	}
	s.version.Store(&version{revision, tx.tables})
	return nil
}

// Revision is the number of the last commit. It never goes back, also over restarts.
func (s *Store) Revision() int64 { return s.version.Load().revision }

// View is a consistent picture of all tables at one moment. It costs nothing to keep.
func (s *Store) View() *View { return &View{tables: s.version.Load().tables} }

// Watch is a view that remembers what is read through it, for Changed to wait on.
func (s *Store) Watch() *View {
	v := s.View()
	v.watch = &watch{store: s}
	return v
}

// Update runs fn in a transaction and returns once what it changed is durable and seen. Where fn
// returns an error, or an invariant would break, nothing is changed and Update returns that error.
// Transactions run one at a time, so fn must be short and do no IO. The context counts until the
// writer has taken the transaction; from then on Update waits for the outcome.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.writer.Update(ctx, fn)
}

// commit runs a group of transactions, flushes once, and answers them all. It returns false where the store can't go on.
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
	return !errors.Is(err, ErrInDoubt) && !errors.Is(err, ErrStale)
}

// flush writes the group's changes to the journal, and lets everybody see them. A journal in doubt ends the store: only a
// restart, which reads what the disk really holds, can know the state again. So does a journal that another store has written to.
func (s *Store) flush(group *Tx) error {
	changes, err := group.changes()
	if err != nil || len(changes) == 0 {
		return err
	}
	revision := s.Revision() + 1
	if err := s.journal.Write(revision, changes); err != nil {
		return fmt.Errorf("store: journal: %w", err)
	}
	s.version.Store(&version{revision, group.tables})
	s.watches.wake(group.log)
	return nil
}

// run runs one transaction's function on the group, and undoes it alone where it fails.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	mark := len(tx.log)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store: a transaction panicked: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			tx.undo(mark)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.check()
}
