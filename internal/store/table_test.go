package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"
)

// TestAListingStandsStill: what a transaction changes while it lists rows is not in the listing.
func TestAListingStandsStill(t *testing.T) {
	s := open(t, journaltest.NewMemory(nil))
	update(t, s, func(tx *store.Tx) error {
		table := things.In(&tx.View)
		for i := range 20 {
			table.Put(&thing{Name: fmt.Sprintf("%02d", i), Group: "g"})
		}
		for _, list := range []func() int{
			func() (n int) {
				for row := range table.By(byGroup, "g") {
					table.Put(&thing{Name: row.Name, Group: "h"})
					table.Put(&thing{Name: row.Name + "0", Group: "g"})
					n++
				}
				return n
			},
			func() (n int) {
				for row := range table.All() {
					table.Delete(row.Name)
					table.Put(named("z" + row.Name))
					n++
				}
				return n / 2
			},
		} {
			if n := list(); n != 20 {
				t.Errorf("%d rows were listed, want 20", n)
			}
		}
		return nil
	})
	if n := len(slices.Collect(things.In(s.View()).All())); n != 40 {
		t.Errorf("%d rows are there, want 40", n)
	}
}

// TestInOrder lists rows by their values in an index, and by their keys where those are equal. Rows without a value aren't listed.
func TestInOrder(t *testing.T) {
	s := open(t, journaltest.NewMemory(nil))
	update(t, s, func(tx *store.Tx) error {
		for _, row := range []*thing{{Name: "1", Group: "z"}, {Name: "3", Group: "a"}, {Name: "2", Group: "a"}, {Name: "4"}, {Name: "0", Group: "m"}} {
			things.In(&tx.View).Put(row)
		}
		return nil
	})
	var got []string
	for row := range things.In(s.View()).InOrder(byGroup) {
		if got = append(got, row.Name); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, []string{"2", "3", "0"}) {
		t.Errorf("listed as %v", got)
	}
	for row := range things.In(s.View()).InOrderAfter(byGroup, "b") {
		got = append(got, row.Name)
	}
	if !slices.Equal(got, []string{"2", "3", "0", "0", "1"}) {
		t.Errorf("and behind b as %v", got)
	}
}

// TestVersions: each put of a row that is there already counts, over failures and restarts.
func TestVersions(t *testing.T) {
	j := journaltest.NewMemory(nil)
	s := open(t, j)
	put := func(s *store.Store, err error) {
		s.Update(t.Context(), func(tx *store.Tx) error { things.In(&tx.View).Put(named("a")); return err }) //nolint:errcheck // below
	}
	put(s, nil)
	put(s, nil)
	put(s, context.Canceled)
	put(s, nil)
	if v := things.In(s.View()).Get("a").Version; v != 2 {
		t.Errorf("version %d after two changes", v)
	}
	again := open(t, journaltest.NewMemory(rowsOf(t, j)))
	if v := things.In(again.View()).Get("a").Version; v != 2 {
		t.Errorf("version %d after a restart", v)
	}
}

// rowsOf is what a journal holds.
func rowsOf(t *testing.T, j *journaltest.Memory) (out journaltest.Rows) {
	t.Helper()
	j.OnWrite(func(rows journaltest.Rows) { out = rows })
	last, err := j.Since(t.Context(), 0, func(store.Change) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Write(last+1, nil); err != nil {
		t.Fatal(err)
	}
	return maps.Clone(out)
}

// TestWatches: each kind of reading is woken by what concerns it, whether it happened before the wait began or later, and by
// nothing else.
func TestWatches(t *testing.T) {
	put := func(row *thing) func(store.Table[*thing]) { return func(t store.Table[*thing]) { t.Put(row) } }
	del := func(name string) func(store.Table[*thing]) { return func(t store.Table[*thing]) { t.Delete(name) } }
	read := func(key string) func(store.Table[*thing]) { return func(t store.Table[*thing]) { t.Get(key) } }
	by := func(group string) func(store.Table[*thing]) {
		return func(t store.Table[*thing]) { t.WatchBy(byGroup, group) }
	}
	for _, c := range []struct {
		name   string
		read   func(store.Table[*thing])
		change func(store.Table[*thing])
		wakes  bool
	}{
		{"a row, changed", read("a"), put(&thing{Name: "a", Group: "g", Count: 1}), true},
		{"a row, deleted", read("a"), del("a"), true},
		{"a row, and another changed", read("a"), put(&thing{Name: "ab", Group: "g"}), false},
		{"no row, and there is one", read("new"), put(&thing{Name: "new"}), true},
		{"no row, and another", read("new"), put(&thing{Name: "newer"}), false},
		{"a group, and one more", by("g"), put(&thing{Name: "b", Group: "g"}), true},
		{"a group, and one fewer", by("g"), del("a"), true},
		{"a group, and one goes to another", by("g"), put(&thing{Name: "a", Group: "h"}), true},
		{"a group, and one comes from another", by("h"), put(&thing{Name: "a", Group: "h"}), true},
		{"a group, and a change in another", by("g"), put(&thing{Name: "b", Group: "h"}), false},
		{"all", store.Table[*thing].Watch, put(&thing{Name: "new"}), true},
		{"nothing", func(store.Table[*thing]) {}, put(&thing{Name: "a"}), false},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/early=%v", c.name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, journaltest.NewMemory(nil))
					change := func(fn func(store.Table[*thing])) {
						update(t, s, func(tx *store.Tx) error { fn(things.In(&tx.View)); return nil })
					}
					change(put(&thing{Name: "a", Group: "g"}))
					ctx, cancel := context.WithCancel(t.Context())
					v := s.Watch()
					c.read(things.In(v))
					if early {
						change(c.change)
					}
					woken := v.ChangedCh(ctx)
					if synctest.Wait(); !early {
						change(c.change)
					}
					synctest.Wait()
					cancel()
					if err := <-woken; (err == nil) != c.wakes {
						t.Errorf("woken: %v", err)
					}
				})
			})
		}
	}
}

// TestLifetimes: a table forgets what has ended for long enough, and nothing else.
func TestLifetimes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ended := func(t *thing) *time.Time {
		if t.Ended.IsZero() {
			return nil
		}
		return &t.Ended
	}
	rows := []thing{
		{Name: "1 old", Group: "over", Ended: now.Add(-time.Hour - 1)},
		{Name: "2 old, of another group", Group: "other", Ended: now.Add(-time.Hour - 1)},
		{Name: "3 recent", Group: "over", Ended: now.Add(-time.Hour)},
		{Name: "4 old, behind a recent one", Group: "over", Ended: now.Add(-2 * time.Hour)},
		{Name: "5 not ended"},
	}
	for _, c := range []struct {
		name     string
		lifetime store.Lifetime[*thing]
		left     string
	}{
		{"for ever", nil, "12345"},
		{"for a while", store.KeepFor(time.Hour, ended), "35"},
		{"for a while, in an index", store.KeepForBy(byGroup, "over", time.Hour, ended), "235"},
		{"in order", store.KeepLatest(time.Hour, ended), "345"},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := &store.Definition[*thing]{Name: "things", Key: things.Key, Indexes: things.Indexes, Lifetime: c.lifetime}
			s, err := store.Open(t.Context(), journaltest.NewMemory(nil), store.NewSchema(def), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // the test is over
			update(t, s, func(tx *store.Tx) error {
				for _, row := range rows {
					def.In(&tx.View).Put(&row)
				}
				return nil
			})
			if err := s.Sweep(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			left := ""
			for row := range def.In(s.View()).All() {
				left += row.Name[:1]
			}
			if left != c.left {
				t.Errorf("%s are left, want %s", left, c.left)
			}
		})
	}
}

// TestSweeper: RunSweeper forgets in time, and has others forget.
func TestSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		def := &store.Definition[*thing]{
			Name:     "things",
			Key:      things.Key,
			Lifetime: store.KeepFor(time.Hour, func(t *thing) *time.Time { return &t.Ended }),
		}
		s, err := store.Open(t.Context(), journaltest.NewMemory(nil), store.NewSchema(def), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // the test is over
		update(t, s, func(tx *store.Tx) error { def.In(&tx.View).Put(&thing{Name: "a", Ended: time.Now()}); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		ended, others := make(chan error), 0
		go func() { ended <- s.RunSweeper(ctx, time.Now, func(int64) error { others++; return nil }) }()
		time.Sleep(time.Hour)
		if def.In(s.View()).Get("a") == nil {
			t.Error("it went too early")
		}
		time.Sleep(2 * time.Minute)
		if def.In(s.View()).Get("a") != nil {
			t.Error("it is still there")
		}
		cancel()
		if err := <-ended; err != context.Canceled || others < 60 {
			t.Errorf("ended with %v, after %d rounds", err, others)
		}
	})
}
