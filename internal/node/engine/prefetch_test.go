package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
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
