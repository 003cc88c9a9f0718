package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
)

// TestPullBehaviors: which of a task's images are pulled, and what counts where that fails.
func TestPullBehaviors(t *testing.T) {
	const preloaded = "pullfail:1" // is here, and no registry has it
	for _, c := range []struct {
		behavior PullBehavior
		image    string
		status   string
		pulls    int32
	}{
		{"", "pullfail", "STOPPED", 5},
		{"", preloaded, "RUNNING", 1},
		{PullAlways, preloaded, "STOPPED", 5},
		{PullOnce, preloaded, "STOPPED", 5},
		{PullPreferCached, preloaded, "RUNNING", 0},
		{PullPreferCached, "flaky@1s", "RUNNING", 2},
	} {
		t.Run(fmt.Sprint(c.behavior, c.image), func(t *testing.T) {
			alone(t, func(t *testing.T, a *agent) {
				a.stored[preloaded] = true
				task := newFakeTask("t", box("a", c.image))
				a.take(t, task)
				later(time.Minute)
				if got := a.last(task.Arn).Status; got != c.status || a.pulls.Load() != c.pulls {
					t.Errorf("%s after %d pulls, want %s and %d", got, a.pulls.Load(), c.status, c.pulls)
				}
			}, func(o *Options) { o.Pull = c.behavior })
		})
	}
}

// TestPullOnce: what one task has pulled, the next ones use, after a restart of the agent too.
func TestPullOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		once := func(o *Options) { o.Pull = PullOnce }
		for i, want := range []int32{2, 2, 3} {
			a := w.start(t, dir, once)
			task := newFakeTask(fmt.Sprint(i), box("a", "flaky@1s"))
			a.take(t, task)
			later(10 * time.Second)
			if got := a.last(task.Arn).Status; got != "RUNNING" || a.pulls.Load() != want {
				t.Errorf("task %d: %s after %d pulls, want %d", i, got, a.pulls.Load(), want)
			}
			a.take(t, stopOf(task))
			later(time.Minute)
			a.kill()
			if i == 1 {
				delete(w.stored, "flaky@1s") // by hand
			}
		}
	})
}

// TestImagesFitTheirBudget: the images that were not used for longest go, and no others.
func TestImagesFitTheirBudget(t *testing.T) {
	budget := func(bytes int64, behavior PullBehavior) func(*Options) {
		return func(o *Options) {
			o.Pull = behavior
			o.ImageBudget = bytes
			o.Keep = 10 * time.Minute
		}
	}
	for _, c := range []struct {
		name     string
		budget   int64
		behavior PullBehavior
		want     string
	}{
		{"no limit", 0, "", "exit:0,1 exit:0,2 exit:0,3 exit:0,4 run"},
		{"room for all", 5, "", "exit:0,1 exit:0,2 exit:0,3 exit:0,4 run"},
		{"the oldest goes", 4, "", "exit:0,2 exit:0,3 exit:0,4 run"},
		{"what is in use and what is young stay", 1, "", "exit:0,4 run"},
		{"nothing goes", 1, PullPreferCached, "exit:0,1 exit:0,2 exit:0,3 exit:0,4 run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dir := newWorld(), t.TempDir()
				a := w.start(t, dir, budget(c.budget, c.behavior))
				a.take(t, newFakeTask("stays", box("a", "run")))
				for i := 1; i <= 4; i++ {
					a.take(t, newFakeTask(fmt.Sprint(i), box("a", fmt.Sprint("exit:0,", i))))
					later(time.Minute)
				}
				a.kill() // the next agent knows what the images were used for, and when
				a = w.start(t, dir, budget(c.budget, c.behavior))
				later(40 * time.Minute)
				a.take(t, newFakeTask("again", box("a", "exit:0,4")))
				later(40 * time.Minute)
				if got := strings.Join(slices.Sorted(maps.Keys(w.stored)), " "); got != c.want {
					t.Errorf("left are %s, want %s", got, c.want)
				}
				a.kill()
			})
		})
	}
}

// TestImagesWithoutMemory: what is known of images may be lost: the agent starts all the same, and removes those that its runtime knows.
func TestImagesWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWorld(), t.TempDir()
		w.stored = map[string]bool{"old": true, "older": true}
		if err := os.MkdirAll(filepath.Join(dir, "images"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "images", "used.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.start(t, dir, func(o *Options) { o.ImageBudget = 1 })
		defer a.kill()
		later(2 * time.Minute)
		if !w.stored["old"] || w.stored["older"] {
			t.Errorf("left are %v", w.stored)
		}
	})
}

// TestAnImageThatStays: one that can't be removed keeps no other one from going.
func TestAnImageThatStays(t *testing.T) {
	for _, why := range []error{runtime.ErrImageInUse, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.stored = map[string]bool{"old": true, "older": true}
			w.stays = map[string]error{"older": why}
			a := w.start(t, t.TempDir(), func(o *Options) { o.ImageBudget = 1 })
			defer a.kill()
			later(2 * time.Minute)
			if w.stored["old"] || !w.stored["older"] {
				t.Errorf("%v: left are %v", why, w.stored)
			}
		})
	}
}

// TestUseWaits: a task waits for an image that is being removed, and for no other one.
func TestUseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := openImages(t.TempDir(), nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		i.used["a"] = time.Now().Add(-2 * time.Hour)
		go i.remove("a", func() error { time.Sleep(time.Minute); return nil }) //nolint:errcheck // it can't fail
		synctest.Wait()
		began := time.Now()
		if known, err := i.use(t.Context(), "b"); known || err != nil || time.Since(began) != 0 {
			t.Errorf("another one: %v, %v after %v", known, err, time.Since(began))
		}
		if known, err := i.use(t.Context(), "a"); known || err != nil || time.Since(began) != time.Minute {
			t.Errorf("it: %v, %v after %v", known, err, time.Since(began))
		}
	})
}
