package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"
)

// mirror is an observer that keeps the things by name.
type mirror map[string]*thing

func (m mirror) Change(before, after any) {
	if t, ok := before.(*thing); ok {
		delete(m, t.Name)
	}
	if t, ok := after.(*thing); ok {
		m[t.Name] = t
	}
}

// alone is an invariant: no two things are of one group.
type alone map[string]int

var errNotAlone = errors.New("two things of one group")

func (a alone) Change(before, after any) {
	if t, ok := before.(*thing); ok {
		a[t.Group]--
	}
	if t, ok := after.(*thing); ok {
		a[t.Group]++
	}
}

func (a alone) Check() error {
	for _, n := range a {
		if n > 1 {
			return errNotAlone
		}
	}
	return nil
}

func (a alone) Undone() {}

func (a alone) Replayed() error { return a.Check() }

// TestWhatIsNotDurableIsNotThere follows a transaction while its write is under way, until it fails,
// and one that waits behind it.
func TestWhatIsNotDurableIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, m, outcome := journaltest.NewMemory(nil), mirror{}, make(chan error, 1)
		j.FailWith(func() error { return <-outcome })
		s, err := store.Open(t.Context(), j, schema, store.Options{Invariants: []store.Invariant{alone{}}, Observers: []store.Observer{m}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // the test is over
		outcome <- nil
		update(t, s, func(tx *store.Tx) error { things.In(&tx.View).Put(named("kept")); return nil })
		begin := func(fn func(store.Table[*thing])) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- s.Update(context.Background(), func(tx *store.Tx) error { fn(things.In(&tx.View)); return nil })
			}()
			synctest.Wait()
			return done
		}
		watch := s.Watch()
		things.In(watch).Get("kept")
		woken := watch.ChangedCh(t.Context())
		first := begin(func(t store.Table[*thing]) {
			t.Delete("kept")
			t.Put(&thing{Name: "first", Group: "g"})
		})
		second := begin(func(t store.Table[*thing]) { t.Put(&thing{Name: "second", Group: "g"}) }) // g is free again
		select {
		case err := <-first:
			t.Errorf("answered (%v) before it is durable", err)
		case <-woken:
			t.Error("a watch wakes before there is anything to see")
		default:
		}
		if v := things.In(s.View()); v.Get("kept") == nil || v.Get("first") != nil {
			t.Error("seen before it is durable")
		}
		failure := errors.New("disk full")
		outcome <- failure
		if err := <-first; !errors.Is(err, failure) {
			t.Errorf("got %v, want the journal's error", err)
		}
		outcome <- nil
		if err := <-second; err != nil {
			t.Errorf("the transaction behind: %v", err)
		}
		v := things.In(s.View())
		if v.Get("kept") == nil || v.Get("first") != nil || v.Get("second") == nil || s.Revision() != 2 {
			t.Errorf("the failed transaction left something behind, at revision %d", s.Revision())
		}
		if names := slices.Sorted(maps.Keys(m)); !slices.Equal(names, []string{"kept", "second"}) {
			t.Errorf("the observer has %v", names)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error { things.In(&tx.View).Put(&thing{Name: "third", Group: "g"}); return nil })
		if !errors.Is(err, errNotAlone) || things.In(s.View()).Get("third") != nil {
			t.Errorf("what the invariant forbids: %v", err)
		}
	})
}

// TestAStaleStoreEnds: a store whose journal somebody else has written to changes nothing, and ends.
func TestAStaleStoreEnds(t *testing.T) {
	j := journaltest.NewMemory(nil)
	old, leader := open(t, j), open(t, j)
	put := func(s *store.Store, name string) error {
		return s.Update(t.Context(), func(tx *store.Tx) error { things.In(&tx.View).Put(named(name)); return nil })
	}
	if err := put(leader, "new"); err != nil {
		t.Fatal(err)
	}
	if err := put(old, "stale"); !errors.Is(err, store.ErrStale) {
		t.Errorf("a write that misses another's: %v", err)
	}
	<-old.Done()
	if things.In(old.View()).Get("stale") != nil || kept(t, j) != 1 {
		t.Error("the stale write is there")
	}
	if err := put(leader, "newer"); err != nil {
		t.Errorf("the other's next: %v", err)
	}
}
