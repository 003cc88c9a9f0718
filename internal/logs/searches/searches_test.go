package searches

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/logs/insights"
	"github.com/pintle/pintle/internal/logs/streams"
)

// groups is a store whose groups behave as their names say.
type groups struct {
	message string
}

func (g *groups) Group(name string) (streams.Group, error) {
	if name == "gone" {
		return streams.Group{}, errors.New("there is no such group")
	}
	return streams.Group{Name: name}, nil
}

func (g *groups) Batches(ctx context.Context, name string, _, _ int64) iter.Seq2[streams.Batch, error] {
	return func(yield func(streams.Batch, error) bool) {
		switch name {
		case "endless":
			<-ctx.Done()
			yield(streams.Batch{}, ctx.Err())
		case "broken":
			panic("a bug")
		default:
			yield(streams.Batch{Newest: 1, Events: []streams.Event{{Timestamp: 1, Message: g.message}}}, nil)
		}
	}
}

// inBubble runs a test with a loop, in a bubble whose time is fake.
func inBubble(t *testing.T, store *groups, test func(t *testing.T, l *Loop)) {
	synctest.Test(t, func(t *testing.T) {
		l := New(store, Options{
			Now: time.Now,
			Log: slog.New(slog.DiscardHandler),
			Event: func(group string, e streams.Event) insights.Event {
				return insights.Event{Timestamp: e.Timestamp, Group: group, Message: e.Message}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(ctx) //nolint:errcheck // it ends with ctx
		}()
		test(t, l)
		cancel()
		<-done
	})
}

func start(t *testing.T, l *Loop, group string) string {
	t.Helper()
	parsed, err := insights.Parse("fields @message", 1000)
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.Start(Query{Groups: []string{group}, End: 10}, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestEnds: a query completes, fails on its own, runs out of time after just so long, or is stopped.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		group string
		after time.Duration
		want  types.QueryStatus
	}{
		{"g", 0, types.QueryStatusComplete},
		{"gone", 0, types.QueryStatusFailed},
		{"broken", 0, types.QueryStatusFailed},
		{"endless", patience - time.Nanosecond, types.QueryStatusRunning},
		{"endless", patience, types.QueryStatusTimeout},
	} {
		inBubble(t, &groups{message: "m"}, func(t *testing.T, l *Loop) {
			id := start(t, l, c.group)
			time.Sleep(c.after)
			synctest.Wait()
			q, _ := l.Get(id)
			if q.Status != c.want {
				t.Errorf("%s after %v is %s, want %s", c.group, c.after, q.Status, c.want)
			}
			if (len(q.Results) > 0) != (c.want == types.QueryStatusComplete) {
				t.Errorf("%s has %d results", c.group, len(q.Results))
			}
		})
	}
}

// TestStop: a query that runs and one that waits are stopped, which makes room; one that has ended isn't.
func TestStop(t *testing.T) {
	inBubble(t, &groups{}, func(t *testing.T, l *Loop) {
		var ids []string
		for range MaxActive {
			ids = append(ids, start(t, l, "endless"))
		}
		synctest.Wait()
		running := 0
		for _, q := range l.List() {
			if q.Status == types.QueryStatusRunning {
				running++
			}
		}
		if running != atOnce {
			t.Errorf("%d queries run at once", running)
		}
		parsed, _ := insights.Parse("fields @message", 1000)
		if _, err := l.Start(Query{}, parsed); !errors.Is(err, ErrBusy) {
			t.Errorf("one query too many: %v", err)
		}
		for _, id := range []string{ids[0], ids[MaxActive-1]} {
			if found, stopped := l.Stop(id); !found || !stopped {
				t.Errorf("stop: %v, %v", found, stopped)
			}
			if found, stopped := l.Stop(id); !found || stopped {
				t.Errorf("stop again: %v, %v", found, stopped)
			}
			if q, _ := l.Get(id); q.Status != types.QueryStatusCancelled {
				t.Errorf("a stopped query is %s", q.Status)
			}
		}
		if found, _ := l.Stop("none"); found {
			t.Error("stopped a query that isn't there")
		}
		done := start(t, l, "g") // there is room again
		for _, id := range ids {
			l.Stop(id)
		}
		synctest.Wait()
		if q, _ := l.Get(done); q.Status != types.QueryStatusComplete {
			t.Errorf("the one after those that were stopped is %s", q.Status)
		}
	})
}

// TestForget: queries that have ended are kept for a time, up to a number and a size. Those that run are kept.
func TestForget(t *testing.T) {
	inBubble(t, &groups{message: "m"}, func(t *testing.T, l *Loop) {
		waits := start(t, l, "endless")
		for range maxKept + 5 {
			start(t, l, "g")
			synctest.Wait()
		}
		if n := len(l.List()); n != maxKept+1 {
			t.Errorf("%d queries are kept", n)
		}
		time.Sleep(patience)
		synctest.Wait()
		time.Sleep(keptFor - patience - time.Second)
		if n := len(l.List()); n != maxKept {
			t.Errorf("%d queries are kept just before their time is up", n)
		}
		time.Sleep(time.Second + patience)
		if n := len(l.List()); n != 0 {
			t.Errorf("%d queries are kept for too long", n)
		}
		if _, found := l.Get(waits); found {
			t.Error("a query that ran out of time is kept for too long")
		}
	})
}

// TestForgetBySize: large results are dropped before their time, the oldest first.
func TestForgetBySize(t *testing.T) {
	const size = 40 << 20
	inBubble(t, &groups{message: strings.Repeat("m", size)}, func(t *testing.T, l *Loop) {
		var ids []string
		for range maxKeptSize/size + 2 {
			ids = append(ids, start(t, l, "g"))
			synctest.Wait()
		}
		for i, id := range ids {
			_, found := l.Get(id)
			if want := i >= 2; found != want {
				t.Errorf("query %d of %d is kept: %v, want %v", i, len(ids), found, want)
			}
		}
	})
}
