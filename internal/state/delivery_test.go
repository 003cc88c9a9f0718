package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestOwed: debts come by the time at which they are due, and of each line the first alone. The next one moves up when that is settled.
func TestOwed(t *testing.T) {
	s := statetest.Open(t)
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	box := state.Outbox{Store: s, Now: func() time.Time { return now }}
	statetest.Update(t, s, func(tx *state.Tx) {
		for i, id := range []string{"c", "b", "a"} {
			tx.Owe(state.Delivery{Debt: delivery.Debt{ID: id, NotBefore: start.Add(time.Duration(i) * time.Nanosecond)}}, start)
		}
		for i := range 3 {
			tx.Owe(state.Delivery{Debt: delivery.Debt{ID: fmt.Sprint("line", i)}, Line: "l"}, start.Add(time.Second))
		}
		tx.Owe(state.Delivery{Debt: delivery.Debt{ID: "later", NotBefore: start.Add(time.Hour)}}, start)
	})
	due := func() (ids []string, next time.Time) {
		t.Helper()
		all, next, _, err := box.Owed(t.Context(), 10, delivery.All)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			ids = append(ids, d.ID)
		}
		return ids, next
	}
	if ids, next := due(); !slices.Equal(ids, []string{"c"}) || !next.Equal(start.Add(time.Nanosecond)) {
		t.Errorf("at first %v are due, and then at %v", ids, next)
	}
	now = start.Add(time.Minute)
	if ids, next := due(); !slices.Equal(ids, []string{"c", "b", "a", "line0"}) || !next.Equal(start.Add(time.Hour)) {
		t.Errorf("%v are due, and then at %v", ids, next)
	}
	if err := box.Postpone(t.Context(), delivery.Debt{ID: "line0"}, start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if ids, next := due(); !slices.Equal(ids, []string{"c", "b", "a"}) || !next.Equal(start.Add(2*time.Minute)) {
		t.Errorf("while the line's first waits, %v are due, and then at %v", ids, next)
	}
	for i := range 3 {
		if err := box.Settle(t.Context(), delivery.Debt{ID: fmt.Sprint("line", i)}, nil); err != nil {
			t.Fatal(err)
		}
		want := []string{"c", "b", "a"}
		if i < 2 {
			want = append(want, fmt.Sprint("line", i+1))
		}
		if ids, _ := due(); !slices.Equal(ids, want) {
			t.Errorf("behind the line's debt %d, %v are due, want %v", i, ids, want)
		}
	}
}

// TestOwedBehindABacklog: whoever has no room for many debts of one destination isn't asked about all of them, and hears of the others.
func TestOwedBehindABacklog(t *testing.T) {
	s := statetest.Open(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	box := state.Outbox{Store: s, Now: func() time.Time { return now }}
	statetest.Update(t, s, func(tx *state.Tx) {
		for i := range 5000 {
			tx.Owe(state.Delivery{Debt: delivery.Debt{ID: fmt.Sprintf("%06d", i), Destination: "slow"}}, now.Add(-time.Minute))
		}
		for i, destination := range []string{"quick", "slower", "zero", ""} {
			tx.Owe(state.Delivery{Debt: delivery.Debt{ID: destination + "now", Destination: destination}}, now.Add(-time.Duration(i)))
			tx.Owe(state.Delivery{Debt: delivery.Debt{ID: destination + "later", Destination: destination, NotBefore: now.Add(time.Hour)}}, now)
		}
	})
	asked := 0
	all, next, _, err := box.Owed(t.Context(), 100, func(d delivery.Debt) bool { asked++; return d.Destination != "slow" })
	var ids []string
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"now", "zeronow", "slowernow", "quicknow"}) || !next.Equal(now.Add(time.Hour)) || asked > 1500 {
		t.Errorf("%q are due, and then at %v; %d were asked about; %v", ids, next, asked, err)
	}
}

// BenchmarkOwed reads what is due, one debt, from outboxes of more and more that isn't.
func BenchmarkOwed(b *testing.B) {
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s := statetest.Open(b)
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			statetest.Update(b, s, func(tx *state.Tx) {
				for i := range waiting {
					id := fmt.Sprintf("%06d", i)
					tx.Owe(state.Delivery{Debt: delivery.Debt{ID: id, NotBefore: now.Add(time.Hour)}}, now)
					tx.Owe(state.Delivery{Debt: delivery.Debt{ID: "line" + id}, Line: "l"}, now)
				}
			})
			box := state.Outbox{Store: s, Now: func() time.Time { return now }}
			for b.Loop() {
				due, _, _, err := box.Owed(b.Context(), 10, delivery.All)
				if err != nil || len(due) != 1 {
					b.Fatal(due, err)
				}
			}
		})
	}
}
