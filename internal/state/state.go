// Package state is the control plane's one store: typed tables in memory with indexes and watches,
// changed by transactions alone. A transaction is durable in the journal before anyone sees it, and
// concurrent ones share one flush. Invariants that must never break are checked in the commit.
// Services and control loops read views and commit updates; nothing else holds control-plane state.
package state

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/pintle/pintle/internal/groupcommit"
)

// ErrClosed is returned by Update after Close, or after the journal failed in a commit.
var ErrClosed = groupcommit.ErrClosed

// Journal keeps rows durably. A store is its journal's only user.
type Journal interface {
	// Load hands every kept row to row, in no particular order, and returns the last revision.
	Load(ctx context.Context, row func(table, key string, data []byte) error) (revision int64, err error)
	// Write makes the changes durable together or not at all. An error that wraps ErrInDoubt says
	// that it cannot know which; any other error says that nothing was kept.
	Write(revision int64, changes []Change) error
	Close() error
}

// ErrInDoubt marks a journal's error after which the disk may or may not hold the changes.
var ErrInDoubt = errors.New("the journal cannot tell whether it kept the last write")

// Change is one row as the journal keeps it; nil Data is a row that was deleted.
type Change struct {
	Table, Key string
	Data       []byte
}

// Observer follows every change of a row from inside the writer: while a transaction runs it is
// told at once, and told the reverse if the transaction is undone. So what it derives is always
// equal to what the running transaction sees. It is called from one goroutine at a time.
type Observer interface {
	// Change says that the row before became after; nil where there is none.
	Change(before, after any)
}

// Store is the store. Its methods may be called from any goroutine.
type Store struct {
	db        *memdb.MemDB
	journal   Journal
	observers []Observer
	ledger    *ledger

	writer *groupcommit.Writer[func(*Tx) error]

	// revision is the number of the last commit. The writer alone changes it.
	revision atomic.Int64
}

// Open replays the journal and starts the writer. The observers hear of every row first.
func Open(ctx context.Context, journal Journal, observers ...Observer) (*Store, error) {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		return nil, fmt.Errorf("state: schema: %w", err)
	}
	s := &Store{db: db, journal: journal, ledger: newLedger()}
	s.observers = append([]Observer{s.ledger}, observers...)
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
	txn := s.db.Txn(true)
	defer txn.Abort()
	tx := newTx(txn, s)
	revision, err := s.journal.Load(ctx, func(table, key string, data []byte) error {
		t, ok := tables[table]
		if !ok {
			return fmt.Errorf("state: the journal holds a table %q that this version does not know", table)
		}
		row, err := t.decode(data)
		if err != nil {
			return fmt.Errorf("state: row %s of %s: %w", key, table, err)
		}
		if t.key(row) != key {
			return fmt.Errorf("state: row %s of %s is kept under the wrong key", key, table)
		}
		tx.put(t, row)
		return nil
	})
	if err != nil {
		return err
	}
	if err := tx.check(); err != nil {
		return fmt.Errorf("state: the journal breaks an invariant: %w", err)
	}
	s.revision.Store(revision)
	txn.Commit()
	return nil
}

// Revision is the number of the last commit. It never goes back, also over restarts.
func (s *Store) Revision() int64 { return s.revision.Load() }

// View is a consistent picture of all tables at one moment. It costs nothing to keep.
func (s *Store) View() *View { return newView(s.db.Txn(false), nil) }

// Watch is a view that remembers what is read through it, for Changed to wait on.
func (s *Store) Watch() *View { return newView(s.db.Txn(false), memdb.NewWatchSet()) }

// Update runs fn in a transaction and returns once what it changed is durable and seen. Where fn
// returns an error, or an invariant would break, nothing is changed and Update returns that error.
// Transactions run one at a time, so fn must be short and do no IO. The context counts until the
// writer has taken the transaction; from then on Update waits for the outcome.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.writer.Update(ctx, fn)
}

// commit runs a group of transactions, flushes once, and answers them all. It returns false where the journal has failed.
func (s *Store) commit(group iter.Seq[*groupcommit.Change[func(*Tx) error]]) bool {
	txn := s.db.Txn(true)
	tx := newTx(txn, s)
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
		txn.Abort()
	} else {
		txn.Commit()
	}
	for _, c := range taken {
		c.Answer(err)
	}
	return !errors.Is(err, ErrInDoubt)
}

// flush writes the group's changes to the journal. A journal in doubt ends the store: only a
// restart, which reads what the disk really holds, can know the state again.
func (s *Store) flush(group *Tx) error {
	changes, err := group.changes()
	if err != nil || len(changes) == 0 {
		return err
	}
	err = s.journal.Write(s.revision.Load()+1, changes)
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	s.revision.Add(1)
	return nil
}

// run runs one transaction's function on the group, and undoes it alone where it fails.
func (tx *Tx) run(fn func(*Tx) error) (err error) {
	mark := len(tx.log)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("state: a transaction panicked: %v\n%s", p, debug.Stack())
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
