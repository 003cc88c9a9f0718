package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLoad steps through a load by hand: two slots, five requests.
func TestLoad(t *testing.T) {
	const s = time.Second
	l := newLoad(&Scenario{
		Slots:    2,
		SLO:      3 * s,
		Requests: []Request{{1 * s, 4 * s}, {1 * s, 2 * s}, {2 * s, 5 * s}, {2 * s, 1 * s}, {9 * s, 1 * s}},
	})
	l.advance(1 * s)
	if l.queued() != 2 || l.working != 0 {
		t.Errorf("without tasks %d wait and %d are worked on", l.queued(), l.working)
	}
	l.addTask("a")
	l.advance(2 * s)
	if l.queued() != 2 || l.working != 2 || l.oldest() != 0 {
		t.Errorf("%d wait, the oldest for %v, %d are worked on", l.queued(), l.oldest(), l.working)
	}
	var gone time.Duration
	l.advance(4 * s) // the second is done at 3, and the third begins
	l.removeTask("a", func(at time.Duration) { gone = at })
	l.advance(10 * s) // the first is done at 5, the third at 8; the others stay
	if gone != 8*s || l.queued() != 2 || l.oldest() != 8*s {
		t.Errorf("the task left at %v; %d wait, the oldest for %v", gone, l.queued(), l.oldest())
	}
	l.addTask("b")
	l.advance(20 * s)
	if want := []time.Duration{0, 0, 1 * s, 8 * s, 1 * s}; !slices.Equal(l.waits, want) || l.met != 4 || l.finished != 5 {
		t.Errorf("waits %v, %d within the SLO, %d finished", l.waits, l.met, l.finished)
	}
	if l.busy != 4*s+2*s+5*s+1*s+1*s {
		t.Errorf("slots were busy for %v", l.busy)
	}
}

// TestClairvoyant compares the yardstick with a brute-force search, which decides for every gap at each level whether to keep
// the task.
func TestClairvoyant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scenario{
			Slots:  rapid.IntRange(1, 3).Draw(t, "slots"),
			Start:  time.Duration(rapid.IntRange(0, 20).Draw(t, "start")) * time.Second,
			Length: 200 * time.Second,
		}
		at := time.Duration(0)
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			at += time.Duration(rapid.IntRange(0, 8).Draw(t, "gap")) * time.Second
			if at >= s.Length {
				break
			}
			s.Requests = append(s.Requests, Request{at, time.Duration(rapid.IntRange(1, 20).Draw(t, "work")) * time.Second})
		}
		var need []int // tasks needed in each second
		for second := range int(s.Length / time.Second) {
			n := 0
			for _, r := range s.Requests {
				if at := time.Duration(second) * time.Second; r.At <= at && at < r.At+r.Work {
					n++
				}
			}
			need = append(need, (n+s.Slots-1)/s.Slots)
		}
		want, peak := time.Duration(0), slices.Max(need)
		for level := 1; level <= peak; level++ {
			idle := -1 // seconds since it last worked; -1 before the first time
			for _, n := range need {
				switch {
				case n < level:
					if idle >= 0 {
						idle++
					}
					continue
				case idle < 0:
					want += s.Start
				default:
					want += min(s.Start, time.Duration(idle)*time.Second)
				}
				want += time.Second
				idle = 0
			}
		}
		got := Clairvoyant(s)
		if got.Held != want || got.Tasks != peak {
			t.Fatalf("%v with at most %d tasks, want %v with %d", got.Held, got.Tasks, want, peak)
		}
		if static := Static(s); static.Tasks != peak || static.Held != time.Duration(peak)*s.Length {
			t.Fatalf("static: %+v", static)
		}
	})
}
