// Package journaltest is the suite that every journal must pass: replay, following, fencing, failures, and the death of the process
// that writes. A journal's tests call Run, and Main from TestMain.
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/store"
)

// Opener opens the journal at a place: an existing directory, or whatever the journal makes of its name. The suite opens a place
// again after the journal was closed or its process was killed.
type Opener func(ctx context.Context, place string) (store.Journal, error)

// Run tests a journal.
func Run(t *testing.T, open Opener) {
	t.Run("LikeAMap", func(t *testing.T) { testLikeAMap(t, open) })
	t.Run("Many", func(t *testing.T) { testMany(t, open) })
	t.Run("Stale", func(t *testing.T) { testStale(t, open) })
	t.Run("Failures", func(t *testing.T) { testFailures(t, open) })
	t.Run("InDoubt", func(t *testing.T) { testInDoubt(t, open) })
}

// model is a journal in its simplest form.
type model map[[2]string]string

// opened opens a journal, or ends the test.
func opened(t rapid.TB, open Opener, place string) store.Journal {
	t.Helper()
	j, err := open(context.Background(), place)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// since reads a journal.
func since(t rapid.TB, j store.Journal, revision int64) (changes []store.Change, last int64) {
	t.Helper()
	last, err := j.Since(context.Background(), revision, func(c store.Change) error {
		changes = append(changes, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return changes, last
}

// apply makes the changes.
func (m model) apply(changes []store.Change) {
	for _, c := range changes {
		if k := [2]string{c.Table, c.Key}; c.Data == nil {
			delete(m, k)
		} else {
			m[k] = string(c.Data)
		}
	}
}

// testLikeAMap drives a journal and maps with the same writes, and reopens the journal now and then. A follower at any revision
// that applies the changes since then must end up where the journal is.
func testLikeAMap(t *testing.T, open Opener) {
	rapid.Check(t, func(r *rapid.T) {
		place, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		j := opened(r, open, place)
		defer func() { j.Close() }() //nolint:errcheck // the test is over
		history := []model{{}}
		change := rapid.Custom(func(r *rapid.T) store.Change {
			c := store.Change{
				Table: rapid.SampledFrom([]string{"a", "b"}).Draw(r, "table"),
				Key:   rapid.SampledFrom([]string{"", "x", "xy", "\x00é"}).Draw(r, "key"),
			}
			if rapid.Bool().Draw(r, "put") {
				c.Data = []byte(rapid.StringN(1, 20, -1).Draw(r, "data"))
			}
			return c
		})
		writes := rapid.SliceOfN(rapid.SliceOfNDistinct(change, 0, 6, func(c store.Change) string { return c.Table + c.Key }), 1, 8).
			Draw(r, "writes")
		for i, changes := range writes {
			if err := j.Write(int64(i+1), changes); err != nil {
				r.Fatal(err)
			}
			now := maps.Clone(history[i])
			now.apply(changes)
			history = append(history, now)
			if rapid.IntRange(0, 3).Draw(r, "reopen") == 0 {
				if err := j.Close(); err != nil {
					r.Fatal(err)
				}
				j = opened(r, open, place)
			}
		}
		for at, follower := range history {
			changes, last := since(r, j, int64(at))
			follower.apply(changes)
			if last != int64(len(writes)) || !maps.Equal(follower, history[len(writes)]) {
				r.Fatalf("from revision %d on: %v at revision %d, want %v", at, follower, last, history[len(writes)])
			}
			if at == len(writes) && len(changes) > 0 {
				r.Fatalf("%d changes behind the last revision", len(changes))
			}
		}
		if _, err := j.Since(context.Background(), int64(len(writes)+1), nil); err == nil {
			r.Fatal("a follower that knows more than the journal is not told")
		}
	})
}

// testMany writes groups of many sizes and checks their order.
func testMany(t *testing.T, open Opener) {
	j := opened(t, open, t.TempDir())
	defer j.Close() //nolint:errcheck // the test is over
	var want []string
	for revision, n := range []int{1, 15, 16, 17, 1000, 0, 3} {
		var changes []store.Change
		for i := range n {
			name := fmt.Sprintf("%d-%d", revision, i)
			changes = append(changes, store.Change{Table: "t", Key: name, Data: []byte(name)})
			want = append(want, name)
		}
		if err := j.Write(int64(revision+1), changes); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	changes, last := since(t, j, 0)
	for _, c := range changes {
		got = append(got, string(c.Data))
	}
	if last != 7 || !slices.Equal(got, want) {
		t.Errorf("%d rows at revision %d, want %d at 7, in their order", len(got), last, len(want))
	}
}

// testStale: a write that does not follow the last revision is refused whole.
func testStale(t *testing.T, open Opener) {
	j := opened(t, open, t.TempDir())
	defer j.Close() //nolint:errcheck // the test is over
	row := func(name string) []store.Change { return []store.Change{{Table: "t", Key: name, Data: []byte(name)}} }
	for _, c := range []struct {
		revision int64
		stale    bool
	}{{2, true}, {1, false}, {1, true}, {0, true}, {3, true}, {2, false}} {
		name := fmt.Sprintf("%d %v", c.revision, c.stale)
		if err := j.Write(c.revision, row(name)); errors.Is(err, store.ErrStale) != c.stale || !c.stale && err != nil {
			t.Errorf("revision %d: %v", c.revision, err)
		}
	}
	changes, last := since(t, j, 0)
	if last != 2 || len(changes) != 2 || changes[0].Key != "1 false" || changes[1].Key != "2 false" {
		t.Errorf("the journal holds %v at revision %d", changes, last)
	}
}
