// Package state is the schema of the control plane's store: every row, every kind of change to one as a function beside
// it, how long rows live, and the ledger that no transaction may violate. Services and loops read views and commit
// updates. Nothing else holds control-plane state. Package store is the engine.
package state

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/store"
)

// ErrClosed is returned by Update after Close, or after the journal failed in a commit.
var ErrClosed = store.ErrClosed

// Table reads, and inside an Update changes, the rows of one type.
type Table[R any] = store.Table[R]

// Index finds a table's rows by a value other than their key.
type Index[R any] = store.Index[R]

// Observer follows every change of a row from inside the writer.
type Observer = store.Observer

// Store is the control plane's store. Its methods may be called from any goroutine.
type Store struct {
	*store.Store
	// Undelivered may be asked in transactions only.
	Undelivered *Undelivered
	// Listeners are asked in transactions only. Whoever opens the store completes them.
	Listeners *Listeners

	last atomic.Pointer[View] // what View returned last
}

// Open replays the journal and starts the writer. The observers see every row first.
func Open(ctx context.Context, journal store.Journal, observers ...Observer) (*Store, error) {
	u := &Undelivered{ByTopic: map[string]int{}, BySubscription: map[string]int{}, Own: map[string]int{}}
	l := &Listeners{Now: time.Now, kinds: map[kindOfEvent]int{}}
	s, err := store.Open(ctx, journal, schema, store.Options{Invariants: []store.Invariant{newLedger()}, Observers: append(observers, u, l)})
	if err != nil {
		return nil, err
	}
	return &Store{Store: s, Undelivered: u, Listeners: l}, nil
}

// View returns a consistent picture of all tables at one moment. It costs nothing to keep. Until the next commit everybody has the same one.
func (s *Store) View() *View {
	now := s.Store.View()
	if last := s.last.Load(); last != nil && last.view == now {
		return last
	}
	v := newView(now)
	s.last.Store(v)
	return v
}

// Watch returns a view that remembers what is read through it, so that Changed can wait for a change.
func (s *Store) Watch() *View { return newView(s.Store.Watch()) }

// Update runs fn in a transaction. See store.Store.Update.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		return fn(tx.Bound(func(v *store.View) any { return newTx(v, s.Listeners) }).(*Tx))
	})
}

// Tx is a view that can change rows. It is valid only inside its Update's function.
type Tx struct {
	*View
	// These are instead of the view's: what others hear of a row changes together with it.
	Tasks              taskTable
	ContainerInstances containerInstanceTable
	Services           serviceTable

	listeners *Listeners
}

func newTx(v *store.View, l *Listeners) *Tx {
	tx := &Tx{View: newView(v), listeners: l}
	tx.Tasks = taskTable{tx.View.Tasks, tx}
	tx.ContainerInstances = containerInstanceTable{tx.View.ContainerInstances, tx}
	tx.Services = serviceTable{tx.View.Services, tx}
	return tx
}
