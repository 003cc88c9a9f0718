package engine

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestFigures: what tasks do, what isn't reported yet, and each pull and start, by how it ended.
func TestFigures(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, newFakeTask("runs", box("a", "run")))
		a.take(t, newFakeTask("pulls", box("a", "slowpull@1h")))
		a.take(t, newFakeTask("fails", box("a", "startfail")))
		later(time.Minute)
		f := a.engine.Figures()
		if want := map[string]int{"PENDING": 1, "RUNNING": 1, "STOPPING": 0}; !maps.Equal(f.Tasks, want) || f.Unreported != 0 {
			t.Errorf("tasks are %v, %d unreported, want %v", f.Tasks, f.Unreported, want)
		}
		for name, c := range map[string]struct {
			of   outcomes
			want []int // succeeded, failed
		}{"pulls": {f.Pulls, []int{2, 0}}, "starts": {f.Starts, []int{1, 1}}} {
			got := []int{}
			for _, outcome := range []string{"succeeded", "failed"} {
				classes, _ := c.of[outcome].Counts()
				n := 0
				for _, in := range classes {
					n += int(in)
				}
				got = append(got, n)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v succeeded and failed, want %v", name, got, c.want)
			}
		}
		a.refuse = func(Report) error { return errDead } // any error that isn't for good
		a.take(t, newFakeTask("unheard", box("a", "run")))
		later(time.Minute)
		if f := a.engine.Figures(); f.Unreported != 1 || f.Tasks["RUNNING"] != 2 {
			t.Errorf("tasks are %v, %d unreported, want 2 that run, one of which nobody heard of", f.Tasks, f.Unreported)
		}
	})
}
