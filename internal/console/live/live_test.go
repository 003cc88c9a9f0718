package live

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// list returns a fragment with a child for each of the texts, each the child's id, too, up to a colon.
func list(texts ...string) Fragment {
	f := Fragment{ID: "list", HTML: "<ul id=list>", End: "</ul>"}
	for _, t := range texts {
		f.Children = append(f.Children, Fragment{ID: t[:1], HTML: "<li id=" + t[:1] + ">" + t})
	}
	return f
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		old, now Fragment
		want     []Op
	}{
		"nothing":        {list("a", "b"), list("a", "b"), nil},
		"one changes":    {list("a", "b", "c"), list("a", "b:2", "c"), []Op{{"set", "b", "<li id=b>b:2"}}},
		"one comes":      {list("a"), list("a", "b"), []Op{{"append", "list", "<li id=b>b"}}},
		"one goes":       {list("a", "b", "c"), list("b", "c"), []Op{{"remove", "a", ""}}},
		"a log moves on": {list("a", "b", "c"), list("c", "d"), []Op{{"remove", "a", ""}, {"remove", "b", ""}, {"append", "list", "<li id=d>d"}}},
		"all go":         {list("a"), list(), []Op{{"remove", "a", ""}}},
		"the order":      {list("a", "b"), list("b", "a"), []Op{{"set", "list", list("b", "a").String()}}},
		"one in between": {list("a", "c"), list("a", "b", "c"), []Op{{"set", "list", list("a", "b", "c").String()}}},
		"at first":       {Fragment{}, list("a"), []Op{{"set", "list", list("a").String()}}},
	} {
		if got := diff(c.old, c.now); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// world is a page with a number in it.
type world struct {
	mu       sync.Mutex
	number   int
	rendered int
	changed  chan struct{}
}

func newWorld() *world { return &world{changed: make(chan struct{})} }

// set changes the number.
func (w *world) set(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number = n
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) source() Source {
	return Source{
		Key:   "page",
		Every: time.Hour,
		Render: func(context.Context) (Fragment, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.rendered++
			return Fragment{ID: "n", HTML: strconv.Itoa(w.number)}, nil
		},
		Arm: func() func(context.Context) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			changed := w.changed
			return func(ctx context.Context) error {
				select {
				case <-changed:
				case <-ctx.Done():
				}
				return nil
			}
		},
	}
}

// watch collects the numbers that a viewer is sent.
func watch(ctx context.Context, h *Hub, s Source, seen string) *[]string {
	got := &[]string{}
	go h.Watch(ctx, s, seen, func(b Batch) error { //nolint:errcheck // ctx ends it
		*got = append(*got, b.Ops[0].HTML)
		return nil
	})
	synctest.Wait()
	return got
}

// settle waits until what has changed was sent.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// TestAPageIsRenderedOnceForAll: ten viewers cost what one costs, and nothing is rendered once they have gone.
func TestAPageIsRenderedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := New(), newWorld()
		_, version, err := h.Render(t.Context(), w.source())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all []*[]string
		for range 10 {
			all = append(all, watch(ctx, h, w.source(), version))
		}
		settle()
		before := w.rendered
		w.set(1)
		settle()
		if w.rendered != before+1 {
			t.Errorf("a change was rendered %d times", w.rendered-before)
		}
		for _, got := range all {
			if want := []string{"1"}; !reflect.DeepEqual(*got, want) {
				t.Errorf("a viewer got %q, want %q", *got, want)
			}
		}
		cancel()
		synctest.Wait()
		before = w.rendered
		w.set(2)
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.rendered != before || len(h.pages) != 0 {
			t.Errorf("without viewers the page was rendered %d times, and %d pages are remembered", w.rendered-before, len(h.pages))
		}
	})
}

// TestChangesAreGathered: a thousand changes a second are a few renderings.
func TestChangesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := New(), newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := watch(ctx, h, w.source(), "")
		for n := range 1000 {
			w.set(n + 1)
			time.Sleep(time.Millisecond)
		}
		settle()
		if n := len(*got); n < 2 || n > 6 || (*got)[n-1] != "1000" {
			t.Errorf("the viewer got %q", *got)
		}
	})
}

// TestAPageIsLookedAtInTime: what nobody tells of is rendered as often as its page says, the rest between two renderings included.
func TestAPageIsLookedAtInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		got := watch(ctx, New(), named("alice", "page", 0), "")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := len(*got); n < 19 { // looked at only now: the viewer writes on, and a sleep orders nothing for the race detector
			t.Errorf("in twenty seconds the viewer got %d changes", n)
		}
		cancel()
		time.Sleep(time.Minute)
	})
}

// TestWhoWasAwayCatchesUp: with the changes since, or with the whole page if it was long away or the control plane is another.
func TestWhoWasAwayCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := New(), newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, version, _ := h.Render(ctx, w.source())
		for n := range 3 {
			w.set(n + 1)
			h.Render(ctx, w.source()) //nolint:errcheck // it can't fail
		}
		for seen, want := range map[string][]string{version: {"1", "2", "3"}, "another.1": {"3"}} {
			if got := watch(ctx, h, w.source(), seen); !reflect.DeepEqual(*got, want) {
				t.Errorf("who had seen %s got %q, want %q", seen, *got, want)
			}
		}
	})
}

// TestASlowViewerIsToldToReload, and keeps nobody waiting.
func TestASlowViewerIsToldToReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := New(), newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stuck, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- h.Watch(ctx, w.source(), "", func(Batch) error { <-stuck; return nil })
		}()
		got := watch(ctx, h, w.source(), "")
		for n := range 3 * maxQueue {
			w.set(n + 1)
			time.Sleep(time.Second)
		}
		close(stuck)
		if err := <-ended; !errors.Is(err, ErrBehind) {
			t.Errorf("the slow viewer ended with %v", err)
		}
		settle()
		if len(*got) < 3*maxQueue {
			t.Errorf("the other one got %d changes", len(*got))
		}
	})
}

// named is a page of somebody's that changes each time.
func named(of, key string, size int) Source {
	n := 0
	return Source{Key: key, Of: of, Every: time.Second, Render: func(context.Context) (Fragment, error) {
		n++
		return Fragment{ID: "n", HTML: strconv.Itoa(n) + strings.Repeat("x", size)}, nil
	}, Arm: func() func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }
	}}
}

// TestNobodyKeepsOthersOut: not with pages that are loaded and left, nor with those that somebody looks at, nor with connections.
func TestNobodyKeepsOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); time.Sleep(time.Minute) }()
		for n := range 3 * maxPages {
			if _, _, err := h.Render(ctx, named("mallory", strconv.Itoa(n), 0)); err != nil {
				t.Fatal(err)
			}
		}
		if len(h.pages) > maxPagesOf {
			t.Errorf("somebody has %d pages", len(h.pages))
		}
		for n := range maxViewersOf {
			watch(ctx, h, named("mallory", strconv.Itoa(n%maxPagesOf), 0), "")
		}
		if _, _, err := h.Render(ctx, named("mallory", "another", 0)); !errors.Is(err, ErrFull) {
			t.Errorf("one more page: %v", err)
		}
		if err := h.Watch(ctx, named("mallory", "0", 0), "", nil); !errors.Is(err, ErrFull) {
			t.Errorf("one more connection: %v", err)
		}
		if _, _, err := h.Render(ctx, named("alice", "hers", 0)); err != nil {
			t.Errorf("somebody else's page: %v", err)
		}
	})
}

// TestWhatWaitsIsBounded: neither the changes of a large page nor a viewer who doesn't read take more memory than they may.
func TestWhatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); time.Sleep(time.Minute) }()
		s := named("alice", "log", maxBehind/3)
		ended := make(chan error, 1)
		go func() {
			ended <- h.Watch(ctx, s, "", func(Batch) error { time.Sleep(20 * time.Second); return nil })
		}()
		got := watch(ctx, h, s, "")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		p, _ := h.page(s)
		p.mu.Lock()
		if p.size > maxBehind || len(p.past) > 3 || len(*got) < 20 {
			t.Errorf("%d bytes of %d changes are kept, and somebody who reads got %d", p.size, len(p.past), len(*got))
		}
		p.mu.Unlock()
		if err := <-ended; !errors.Is(err, ErrBehind) {
			t.Errorf("who doesn't read ended with %v", err)
		}
	})
}

// TestWhatMayNotBeSeenAnyMore: viewers of a page that can't be rendered any more are told to load it anew, and whoever comes then gets nothing of what
// it was.
func TestWhatMayNotBeSeenAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); time.Sleep(time.Minute) }()
		var refused atomic.Bool
		s := named("alice", "page", 0)
		s.Every = time.Minute // what was rendered within the last second would do
		render := s.Render
		s.Render = func(ctx context.Context) (Fragment, error) {
			if refused.Load() {
				return Fragment{}, errors.New("refused")
			}
			return render(ctx)
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Watch(ctx, s, "", func(Batch) error { return nil }) }()
		time.Sleep(5 * time.Second)
		refused.Store(true)
		if err := h.Watch(ctx, s, "", func(Batch) error { t.Error("something is told"); return nil }); !errors.Is(err, ErrBehind) {
			t.Errorf("who comes gets %v", err)
		}
		if err := <-ended; !errors.Is(err, ErrBehind) {
			t.Errorf("who was there gets %v", err)
		}
	})
}

// TestPagesShareTheirTime: where others are dear, a page that isn't is rendered seldom, too; and what a page took is forgotten with its last viewer.
func TestPagesShareTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := New(), newWorld()
		const others = time.Second
		h.took.Store(int64(others))
		ctx, cancel := context.WithCancel(t.Context())
		got := watch(ctx, h, w.source(), "")
		for n := range 600 {
			w.set(n + 1)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := len(*got); n < 2 || n > 4 { // every 20 seconds
			t.Errorf("in a minute the viewer got %d changes", n)
		}
		quick := w.source()
		quick.Key, quick.Pace = "shell", 30*time.Millisecond
		got = watch(ctx, h, quick, "")
		for n := range 20 {
			w.set(-n - 1)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := len(*got); n < 10 {
			t.Errorf("a page that answers to keys changed %d times in two seconds", n)
		}
		cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := h.took.Load(); left != int64(others) {
			t.Errorf("%v are left of a page that nobody looks at", time.Duration(left)-others)
		}
	})
}
