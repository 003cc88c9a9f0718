package pool

import (
	"reflect"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	idle := func(id string, ago time.Duration) Idle { return Idle{id, now.Add(-ago)} }
	for _, c := range []struct {
		name string
		in   Snapshot
		want Plan
	}{
		{"nothing to do", Snapshot{}, Plan{}},
		{"the first invocation starts one", Snapshot{Waiting: 1}, Plan{Start: 1}},
		{"one on its way is enough", Snapshot{Waiting: 1, Starting: 1}, Plan{}},
		{"one for each that waits", Snapshot{Waiting: 3, Starting: 1}, Plan{Start: 2}},
		{"not too many at once", Snapshot{Waiting: 200, Starting: 10}, Plan{Start: 40}},
		{"never fewer than none", Snapshot{Waiting: 1, Starting: 4}, Plan{}},
		{
			"the one that was busy last is used again",
			Snapshot{Waiting: 1, Idle: []Idle{idle("old", 2*time.Minute), idle("new", time.Minute)}},
			Plan{Assign: []string{"new"}, Next: now.Add(3 * time.Minute)},
		},
		{
			"idle ones before new ones",
			Snapshot{Waiting: 3, Idle: []Idle{idle("a", time.Minute), idle("b", 2*time.Minute)}},
			Plan{Assign: []string{"a", "b"}, Start: 1},
		},
		{
			"after a while they end", Snapshot{Idle: []Idle{idle("a", 5*time.Minute), idle("b", time.Second)}},
			Plan{End: []string{"a"}, Next: now.Add(5*time.Minute - time.Second)},
		},
		{
			"one that would end is used first", Snapshot{Waiting: 1, Idle: []Idle{idle("a", time.Hour)}},
			Plan{Assign: []string{"a"}},
		},
		{
			"those of old code end", Snapshot{Retired: true, Idle: []Idle{idle("a", time.Second)}},
			Plan{End: []string{"a"}},
		},
		{
			"what waits for old code still gets one", Snapshot{Retired: true, Waiting: 1, Idle: []Idle{idle("a", time.Second)}},
			Plan{End: []string{"a"}, Start: 1},
		},
	} {
		c.in.Now, c.in.Keep = now, 5*time.Minute
		if got := Decide(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
