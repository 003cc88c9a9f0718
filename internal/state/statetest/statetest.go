// Package statetest gives tests a control plane's store.
package statetest

import (
	"context"
	"testing"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/sqlite"
)

// Open opens a store in a directory of its own, until the test ends.
func Open(t testing.TB, observers ...state.Observer) *state.Store {
	t.Helper()
	return OpenIn(t, t.TempDir(), observers...)
}

// OpenIn opens the store in a directory, until it is closed or the test ends.
func OpenIn(t testing.TB, dir string, observers ...state.Observer) *state.Store {
	t.Helper()
	journal, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return OpenOn(t, journal, observers...)
}

// OpenOn opens the store on a journal, until it is closed or the test ends.
func OpenOn(t testing.TB, journal store.Journal, observers ...state.Observer) *state.Store {
	t.Helper()
	s, err := state.Open(context.Background(), journal, observers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test may have closed it
	return s
}

// Update changes rows.
func Update(t testing.TB, s *state.Store, change func(*state.Tx)) {
	t.Helper()
	err := s.Update(context.Background(), func(tx *state.Tx) error {
		change(tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
