package metrics

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that the test moves while the flush reads it.
type clock struct{ atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.Store(noon)
	return c
}

func (c *clock) now() time.Time { return time.Unix(c.Load(), 0) }

func numbered(i int) Metric { return NewMetric("n", "m", Dimension{"Task", fmt.Sprint(i)}) }

// TestForget: beyond the limit, the metrics reported longest ago are forgotten, but no recent ones. The rest is intact, also
// after a restart, and a forgotten metric that is reported again starts anew.
func TestForget(t *testing.T) {
	clock, dir := newClock(), t.TempDir()
	opts := Options{Now: clock.now, MaxHead: 20, MaxMetrics: 16}
	s := open(t, dir, opts)
	for i := range 40 {
		put(t, s, Sample{Metric: numbered(i), At: clock.Load(), Set: One(float64(i))})
		clock.Add(60)
	}
	settle(t, s)
	if len(s.metrics) != 40 {
		t.Fatalf("%d are known, though all were reported of late", len(s.metrics))
	}
	clock.Add(4 * 3600)
	for i := range 20 {
		put(t, s, Sample{Metric: numbered(39), At: clock.Load() + 60*int64(i), Set: One(1)})
	}
	settle(t, s)
	for _, state := range []string{"before", "after"} {
		found, _ := s.Metrics("", 0, 100, func(*Metric) bool { return true })
		if len(s.metrics) != 15 || len(found) != 15 || len(s.series) != 15 {
			t.Fatalf("%s a restart: %d metrics, %d listed, %d series", state, len(s.metrics), len(found), len(s.series))
		}
		for i := range 40 {
			got := read(t, s, Query{Metric: numbered(i), Start: noon, End: noon + 3600, Period: 60})
			if i < 25 && len(got) > 0 || i >= 25 && (len(got) != 1 || got[0].Sum != float64(i) || got[0].At != noon+60*int64(i)) {
				t.Errorf("%s a restart: of %d there is %v", state, i, got)
			}
		}
		s.Close()
		s = open(t, dir, opts)
	}
	put(t, s, Sample{Metric: numbered(3), At: clock.Load(), Set: One(7)})
	if got := read(t, s, Query{Metric: numbered(3), Start: noon, End: clock.Load() + 60, Period: 60}); len(got) != 1 || got[0].Sum != 7 {
		t.Errorf("of one that came again there is %v", got)
	}
}

// TestForgetExpired: metrics without any data left are forgotten even if there aren't too many.
func TestForgetExpired(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), Options{Now: clock.now, MaxHead: 10})
	for i := range 10 {
		put(t, s, Sample{Metric: numbered(i), At: clock.Load(), Set: One(1)})
	}
	settle(t, s)
	for _, c := range []struct {
		days int64
		want int
	}{{454, 11}, {2, 1}} {
		clock.Add(c.days * 86400)
		for i := range int64(10) {
			put(t, s, Sample{Metric: cpu, At: clock.Load() - 60*i, Set: One(1)})
		}
		if settle(t, s); len(s.metrics) != c.want {
			t.Errorf("%d days later there are %d metrics, want %d", c.days, len(s.metrics), c.want)
		}
	}
}

// TestForgetKeeps: whatever is forgotten, and however often the store is opened, data of the last three hours stays.
func TestForgetKeeps(t *testing.T) {
	dirs := 0
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dirs++
		dir, clock := fmt.Sprint(base, "/", dirs), newClock()
		opts := Options{Now: clock.now, MaxHead: rapid.IntRange(3, 20).Draw(t, "head"), MaxMetrics: 16, NoSync: true}
		s, err := Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		type kept struct {
			metric int
			at     int64
			value  float64
		}
		var puts []kept
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			clock.Add(int64(rapid.SampledFrom([]int{60, 60, 60, 3600, 4 * 3600}).Draw(t, "later")))
			if rapid.IntRange(0, 20).Draw(t, "what") == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(dir, opts); err != nil {
					t.Fatal(err)
				}
				continue
			}
			p := kept{rapid.IntRange(0, 60).Draw(t, "metric"), clock.Load(), float64(i)}
			if err := s.Put([]Sample{{Metric: numbered(p.metric), At: p.at, Set: One(p.value)}}); err != nil {
				t.Fatal(err)
			}
			puts = append(puts, p)
		}
		for _, p := range puts {
			got, err := s.Read(Query{Metric: numbered(p.metric), Start: p.at, End: p.at + 60, Period: 60})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 1 || len(got) == 1 && got[0].Sum != p.value || len(got) == 0 && p.at > clock.Load()-3*3600 {
				t.Fatalf("of %+v there is %v", p, got)
			}
		}
	})
}
