package engine

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

func prefetched(images ...string) (out []acs.PrefetchImage) {
	for _, image := range images {
		out = append(out, acs.PrefetchImage{Image: image})
	}
	return out
}

// TestPrefetch: images come before tasks want them, as long as there's room; nothing else goes for one, and what has no room goes again.
func TestPrefetch(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget int64
		here   string // besides the image of a task
		wanted string
		want   string
		count  int64
	}{
		{"no limit", 0, "old", "new newer", "new newer old run", 2},
		{"room for all", 4, "old", "new newer", "new newer old run", 2},
		{"room for one, the most urgent", 3, "old", "new newer", "new old run", 1},
		{"what is here", 9, "old", "old new", "new old run", 1},
		{"what can't be pulled keeps nothing else from coming", 9, "old", "pullfail new", "new old run", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				a.mu.Lock()
				for image := range strings.FieldsSeq(c.here) {
					a.stored[image] = true
				}
				a.mu.Unlock()
				a.take(t, newFakeTask("t", box("a", "run")))
				later(time.Second)
				a.engine.Prefetch(prefetched(strings.Fields(c.wanted)...))
				later(time.Minute)
				a.mu.Lock()
				got := strings.Join(slices.Sorted(maps.Keys(a.stored)), " ")
				a.mu.Unlock()
				if got != c.want || a.engine.Prefetched() != c.count {
					t.Errorf("here are %s, %d prefetched; want %s, %d", got, a.engine.Prefetched(), c.want, c.count)
				}
			}, func(o *Options) { o.ImageBudget = c.budget })
		})
	}
}

// TestNothingGoesForAPrefetch: while an image comes that may be too large, those that nobody uses stay.
func TestNothingGoesForAPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.stored = map[string]bool{"old": true}
		a := w.start(t, t.TempDir(), func(o *Options) { o.ImageBudget = 1 })
		defer a.kill()
		a.engine.Prefetch(prefetched("slowpull@10m"))
		later(time.Second)
		w.mu.Lock()
		w.stored["part"] = true // of what comes
		w.mu.Unlock()
		later(9 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.stored["old"] {
			t.Errorf("left are %v", w.stored)
		}
	})
}

// TestPrefetchedImageInUse: an image that is more than the budget stays if a task has begun to use it meanwhile.
func TestPrefetchedImageInUse(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, newFakeTask("t", box("a", "run")))
		later(time.Second)
		a.engine.Prefetch(prefetched("slowpull@10s"))
		later(5 * time.Second)
		a.take(t, newFakeTask("u", box("a", "slowpull@10s")))
		later(time.Minute)
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.stored["slowpull@10s"] {
			t.Error("its image was taken from a task")
		}
	}, func(o *Options) { o.ImageBudget = 1 })
}

// TestPrefetchEndsOnAFullDisk: an image that fills the disk as it's unpacked comes no further, and isn't tried again soon.
func TestPrefetchEndsOnAFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(prefetchSpare)
	alone(t, func(t *testing.T, a *agent) {
		a.engine.Prefetch(prefetched("slowpull@10m"))
		later(time.Minute)
		free.Add(-1)
		later(2 * time.Second)
		free.Store(100 * prefetchSpare)
		a.engine.Prefetch(prefetched("slowpull@10m", "small"))
		later(time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.stored["slowpull@10m"] || !a.stored["small"] {
			t.Errorf("here are %v", a.stored)
		}
	}, func(o *Options) { o.Free = func() (int64, error) { return free.Load(), nil } })
}
