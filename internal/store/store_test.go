package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"
)

// thing is the tests' row.
type thing struct {
	Name, Group string
	Count       int
	Ended       time.Time
	Version     int
}

var (
	byGroup = store.Index[*thing]{Name: "group", Value: func(t *thing) string { return t.Group }}

	things = &store.Definition[*thing]{
		Name:    "things",
		Key:     func(t *thing) string { return t.Name },
		Indexes: []store.Index[*thing]{byGroup},
		Revise:  func(before, after *thing) { after.Version = before.Version + 1 },
	}

	schema = store.NewSchema(things)
)

func named(name string) *thing { return &thing{Name: name} }

func open(t testing.TB, j store.Journal, observers ...store.Observer) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), j, schema, store.Options{Observers: observers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func update(t testing.TB, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// kept is how many rows a journal holds.
func kept(t testing.TB, j store.Journal) (n int) {
	t.Helper()
	if _, err := j.Since(context.Background(), 0, func(store.Change) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestARefusedUpdateChangesNothing(t *testing.T) {
	j := journaltest.NewMemory(nil)
	s := open(t, j)
	update(t, s, func(tx *store.Tx) error { things.In(&tx.View).Put(named("a")); return nil })
	refusal := errors.New("no")
	err := s.Update(context.Background(), func(tx *store.Tx) error {
		things.In(&tx.View).Put(named("b"))
		things.In(&tx.View).Delete("a")
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v, want the function's error", err)
	}
	if got := things.In(s.View()).Get("a"); got == nil {
		t.Error("the deleted row is gone")
	}
	if got := things.In(s.View()).Get("b"); got != nil {
		t.Error("the put row is there")
	}
	if n := kept(t, j); n != 1 {
		t.Errorf("the journal holds %d rows, want 1", n)
	}
}

func TestAPanicIsARefusal(t *testing.T) {
	s := open(t, journaltest.NewMemory(nil))
	err := s.Update(context.Background(), func(tx *store.Tx) error {
		things.In(&tx.View).Put(named("a"))
		panic("a bug")
	})
	if err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Fatalf("got %v", err)
	}
	for range things.In(s.View()).All() {
		t.Fatal("the panicking transaction's row is there")
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	j := journaltest.NewMemory(nil)
	s := open(t, j)
	full := errors.New("disk full")
	j.FailWith(func() error { return full })
	put := func(tx *store.Tx) error { things.In(&tx.View).Put(named("a")); return nil }
	if err := s.Update(context.Background(), put); !errors.Is(err, full) {
		t.Fatalf("got %v, want the journal's error", err)
	}
	if things.In(s.View()).Get("a") != nil {
		t.Fatal("the row is seen though it isn't kept")
	}
	j.FailWith(nil)
	update(t, s, func(tx *store.Tx) error { things.In(&tx.View).Put(named("a")); return nil })
}

func TestAWatchWakesForWhatWasReadAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, journaltest.NewMemory(nil))
		update(t, s, func(tx *store.Tx) error {
			things.In(&tx.View).Put(&thing{Name: "c", Group: "i1"})
			things.In(&tx.View).Put(&thing{Name: "d", Group: "i2"})
			return nil
		})
		v := s.Watch()
		for range things.In(v).By(byGroup, "i1") {
		}
		woken := make(chan error, 1)
		go func() { woken <- v.Changed(t.Context()) }()
		update(t, s, func(tx *store.Tx) error { things.In(&tx.View).Put(&thing{Name: "a", Group: "i2"}); return nil })
		synctest.Wait()
		select {
		case <-woken:
			t.Fatal("woken by another instance's task")
		default:
		}
		update(t, s, func(tx *store.Tx) error { things.In(&tx.View).Put(&thing{Name: "b", Group: "i1"}); return nil })
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	})
}

// TestLikeAMap drives the store and a plain map with the same random transactions, some of them
// refused, some from several goroutines, and compares them, also after a restart.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := journaltest.NewMemory(nil)
		s := open(t, j)
		want := map[string]string{}
		names := rapid.SampledFrom([]string{"a", "ab", "b", "c"})
		for range rapid.IntRange(1, 20).Draw(r, "transactions") {
			next := maps.Clone(want)
			refuse := rapid.Bool().Draw(r, "refuse")
			type step struct {
				key, group string
				del        bool
			}
			steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
				return step{names.Draw(r, "key"), names.Draw(r, "group"), rapid.Bool().Draw(r, "delete")}
			}), 0, 5).Draw(r, "steps")
			err := s.Update(context.Background(), func(tx *store.Tx) error {
				for _, st := range steps {
					if st.del {
						things.In(&tx.View).Delete(st.key)
						delete(next, st.key)
					} else {
						things.In(&tx.View).Put(&thing{Name: st.key, Group: st.group})
						next[st.key] = st.group
					}
				}
				if refuse {
					return errors.New("refused")
				}
				return nil
			})
			if refuse != (err != nil) {
				r.Fatalf("got %v", err)
			}
			if !refuse {
				want = next
			}
			same(r, s.View(), want)
		}
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
		again := open(t, j)
		same(r, again.View(), want)
	})
}

func same(r *rapid.T, v *store.View, want map[string]string) {
	got := map[string]string{}
	var keys, behind []string
	for row := range things.In(v).All() {
		got[row.Name] = row.Group
		if row.Name > "b" {
			keys = append(keys, row.Name)
		}
	}
	for row := range things.In(v).Behind("b") {
		behind = append(behind, row.Name)
	}
	if !slices.Equal(keys, behind) {
		r.Fatalf("Behind gives %v, want %v", behind, keys)
	}
	if !maps.Equal(got, want) {
		r.Fatalf("rows are %v, want %v", got, want)
	}
	for _, group := range []string{"a", "ab", "b", "c"} {
		n := 0
		for row := range things.In(v).By(byGroup, group) {
			if row.Group != group {
				r.Fatalf("index %q holds %v", group, row.Group)
			}
			n++
		}
		for row := range things.In(v).After(byGroup, group, "a") {
			if row.Name <= "a" {
				r.Fatalf("After gives %v", row.Name)
			}
			n--
		}
		if want["a"] == group {
			n--
		}
		if n != 0 {
			r.Fatalf("By and After of %q disagree by %d", group, n)
		}
	}
}

func TestConcurrentUpdatesAllHappen(t *testing.T) {
	s := open(t, journaltest.NewMemory(nil))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 10 {
				err := s.Update(context.Background(), func(tx *store.Tx) error {
					things.In(&tx.View).Put(named(fmt.Sprintf("c%d-%d", i, k)))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for range things.In(s.View()).All() {
		n++
	}
	if n != 640 {
		t.Fatalf("%d clusters, want 640", n)
	}
}
