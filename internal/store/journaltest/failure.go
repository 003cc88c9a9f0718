package journaltest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pintle/pintle/internal/store"
)

// row is what the suite's stores keep.
type row struct {
	Name  string
	Count int
}

var (
	rows   = &store.Definition[*row]{Name: "rows", Key: func(r *row) string { return r.Name }}
	schema = store.NewSchema(rows)
)

// faulty is a journal whose writes a test can fail.
type faulty struct {
	store.Journal
	write func(write func() error) error
}

func (f *faulty) Write(revision int64, changes []store.Change) error {
	return f.write(func() error { return f.Journal.Write(revision, changes) })
}

// counter is an observer that keeps the count of the row "n".
type counter struct{ n int }

func (c *counter) Change(_, after any) {
	c.n = 0
	if r, ok := after.(*row); ok {
		c.n = r.Count
	}
}

// countUp adds one to the row "n", durably.
func countUp(s *store.Store) error {
	return s.Update(context.Background(), func(tx *store.Tx) error {
		table := rows.In(&tx.View)
		table.Put(&row{Name: "n", Count: count(table) + 1})
		return nil
	})
}

func count(t store.Table[*row]) int {
	if r := t.Get("n"); r != nil {
		return r.Count
	}
	return 0
}

// kept is the count that a journal holds.
func kept(t *testing.T, open Opener, place string) int {
	t.Helper()
	s, err := store.Open(context.Background(), opened(t, open, place), schema, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it was only read
	return count(rows.In(s.View()))
}

// testFailures counts in one row from several goroutines while writes fail now and then: the count is that of the transactions that
// were told yes, in the tables, with the observers, and in the journal.
func testFailures(t *testing.T, open Opener) {
	for seed := range uint64(10) {
		place := t.TempDir()
		rnd, failures := rand.New(rand.NewPCG(seed, 1)), 0
		j := &faulty{opened(t, open, place), func(write func() error) error {
			if rnd.IntN(3) == 0 {
				failures++
				return errors.New("disk full")
			}
			return write()
		}}
		observer := &counter{}
		s, err := store.Open(t.Context(), j, schema, store.Options{Observers: []store.Observer{observer}})
		if err != nil {
			t.Fatal(err)
		}
		var yes atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if countUp(s) == nil {
						yes.Add(1)
					}
				}
			})
		}
		wg.Wait()
		seen := count(rows.In(s.View()))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if want, kept := int(yes.Load()), kept(t, open, place); seen != want || kept != want || observer.n != want || failures == 0 {
			t.Fatalf("%d were told yes; seen %d, kept %d, observed %d, with %d failures", want, seen, kept, observer.n, failures)
		}
	}
}

// testInDoubt: after a write that failed the store goes on. If the journal has kept it all the same, the store ends at the next one, and a
// restart finds it.
func testInDoubt(t *testing.T, open Opener) {
	for _, keeps := range []bool{false, true} {
		place := t.TempDir()
		writes := 0
		j := &faulty{opened(t, open, place), func(write func() error) error {
			if writes++; writes != 4 {
				return write()
			}
			if keeps {
				if err := write(); err != nil {
					return err
				}
			}
			return errors.New("fsync: input/output error")
		}}
		s, err := store.Open(t.Context(), j, schema, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := countUp(s); err != nil {
				t.Fatal(err)
			}
		}
		if countUp(s) == nil {
			t.Error("what failed is acknowledged")
		}
		if n := count(rows.In(s.View())); n != 3 {
			t.Errorf("%d are seen, want what was acknowledged", n)
		}
		err = countUp(s)
		if keeps != errors.Is(err, store.ErrStale) || !keeps && err != nil {
			t.Errorf("the write behind it: %v", err)
		}
		if keeps {
			<-s.Done()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n := kept(t, open, place); n != 4 {
			t.Errorf("%d are there after a restart, want 4", n)
		}
	}
}
