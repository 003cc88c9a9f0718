package metrics

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/wal/waltest"
)

// noon is at a full hour.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Unix()

func at(t int64) func() time.Time { return func() time.Time { return time.Unix(t, 0) } }

func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	if opts.Now == nil {
		opts.Now = at(noon)
	}
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test may have closed it
	return s
}

func put(t testing.TB, s *Store, samples ...Sample) {
	t.Helper()
	if err := s.Put(samples); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s *Store, q Query) []Point {
	t.Helper()
	points, err := s.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

var cpu = NewMetric("n", "cpu", Dimension{"b", "2"}, Dimension{"a", "1"})

func TestPointsOfAPeriod(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	put(t, s,
		Sample{Metric: cpu, Unit: "Percent", At: noon - 1, Set: One(3)}, // late, and out of order
		Sample{Metric: cpu, Unit: "Percent", At: noon - 119, Set: One(1)},
		Sample{Metric: cpu, Unit: "Percent", At: noon - 60, Set: Of([]Value{{5, 2}, {7, 1}})},
		Sample{Metric: cpu, Unit: "Count", At: noon - 60, Set: One(100)},
		Sample{Metric: NewMetric("n", "cpu"), Unit: "Percent", At: noon - 60, Set: One(9)},
	)
	got := read(
		t, s,
		Query{Metric: NewMetric("n", "cpu", Dimension{"a", "1"}, Dimension{"b", "2"}), Start: noon - 120, End: noon, Period: 60},
	)
	want := []Point{
		{noon - 120, "Percent", One(1)},
		{noon - 60, "Count", One(100)},
		{noon - 60, "Percent", Set{Count: 4, Sum: 20, Min: 3, Max: 7, Values: []Value{{3, 1}, {5, 2}, {7, 1}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := read(t, s, Query{Metric: cpu, Unit: "Percent", Start: noon - 60, End: noon, Period: 60}); len(got) != 1 || got[0].Sum != 20 {
		t.Errorf("by unit: got %+v", got)
	}
}

func TestFineMetricsAreKeptByTheSecond(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	put(
		t, s,
		Sample{Metric: cpu, At: noon - 9, Fine: true, Set: One(1)},
		Sample{Metric: cpu, At: noon - 2, Fine: true, Set: One(2)},
		Sample{Metric: cpu, At: noon - 2, Set: One(4)},
	)
	got := read(t, s, Query{Metric: cpu, Start: noon - 10, End: noon, Period: 5})
	if want := []Point{{noon - 10, "", One(1)}, {noon - 5, "", One(2)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("by five seconds: got %+v", got)
	}
	if got := read(t, s, Query{Metric: cpu, Start: noon - 60, End: noon, Period: 60}); len(got) != 1 || got[0].Sum != 7 {
		t.Errorf("by the minute: got %+v", got)
	}
}

// TestMinutesBySecond: a metric of standard resolution has its points at the minutes, however short the period, in memory as in blocks.
// One that was reported by the second has none beside its own.
func TestMinutesBySecond(t *testing.T) {
	s := open(t, t.TempDir(), Options{MaxHead: 4})
	fine := NewMetric("n", "fine")
	put(
		t, s,
		Sample{Metric: cpu, At: noon - 100, Set: One(1)},
		Sample{Metric: cpu, At: noon - 40, Set: One(2)},
		Sample{Metric: fine, At: noon - 100, Fine: true, Set: One(3)},
		Sample{Metric: fine, At: noon - 40, Fine: true, Set: One(4)},
	)
	for _, place := range []string{"memory", "blocks"} {
		for _, c := range []struct {
			metric     Metric
			start, end int64
			period     int64
			want       []Point
		}{
			{cpu, noon - 120, noon, 30, []Point{{noon - 120, "", One(1)}, {noon - 60, "", One(2)}}},
			{cpu, noon - 120, noon, 1, []Point{{noon - 120, "", One(1)}, {noon - 60, "", One(2)}}},
			{cpu, noon - 60, noon - 30, 10, []Point{{noon - 60, "", One(2)}}},
			{cpu, noon - 50, noon, 10, []Point{}},
			{fine, noon - 120, noon, 10, []Point{{noon - 100, "", One(3)}, {noon - 40, "", One(4)}}},
			{fine, noon - 60, noon - 50, 10, []Point{}},
		} {
			got := read(t, s, Query{Metric: c.metric, Start: c.start, End: c.end, Period: c.period})
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("in %s: %s from %d by %d: got %+v", place, c.metric.Name, c.start-noon, c.period, got)
			}
		}
		if place == "memory" {
			put(t, s, Sample{Metric: NewMetric("n", "other"), At: noon - 1, Set: One(1)})
			settle(t, s)
		}
	}
}

// settle waits for the running flush.
func settle(t testing.TB, s *Store) {
	t.Helper()
	if s.flushing == nil {
		t.Fatal("nothing was flushed")
	}
	if <-s.flushing.done; s.flushing.err != nil {
		t.Fatal(s.flushing.err)
	}
}

// Retention is CloudWatch's: 3 hours by the second, 15 days by the minute, 63 days by five, 455 by the hour.
func TestWhatAgesIsRolledUp(t *testing.T) {
	now := noon
	dir := t.TempDir()
	s := open(t, dir, Options{Now: func() time.Time { return time.Unix(now, 0) }, MaxHead: 10})
	for i := range int64(10) {
		put(t, s, Sample{Metric: cpu, At: noon - 3600 + i*360, Fine: true, Set: One(float64(i))})
	}
	settle(t, s)
	count := func(period int64) int {
		n := 0.0
		for _, p := range read(t, s, Query{Metric: cpu, Start: noon - 3600, End: noon, Period: period}) {
			n += p.Count
		}
		return int(n)
	}
	for _, c := range []struct {
		age  time.Duration
		want [4]int // for periods of 1, 60, 300 and 3600 seconds
	}{
		{0, [4]int{10, 10, 10, 10}},
		{4 * time.Hour, [4]int{0, 10, 10, 10}},
		{16 * day, [4]int{0, 0, 10, 10}},
		{64 * day, [4]int{0, 0, 0, 10}},
		{456 * day, [4]int{0, 0, 0, 0}},
	} {
		now = noon + int64(c.age/time.Second)
		if got := [4]int{count(1), count(60), count(300), count(3600)}; got != c.want {
			t.Errorf("after %s: got %v", c.age, got)
		}
	}
	s.flushing = nil
	if err := s.tidy(now); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.block")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	put(
		t, s,
		Sample{Metric: NewMetric("b", "x"), At: noon, Set: One(1)},
		Sample{Metric: NewMetric("a", "z"), At: noon - 3*3600, Set: One(1)},
		Sample{Metric: NewMetric("a", "y"), At: noon, Set: One(1)},
		Sample{Metric: NewMetric("a", "old"), At: noon - int64(15*day/time.Second), Set: One(1)},
	)
	all := func(*Metric) bool { return true }
	for range 2 {
		names := func(after string, since int64, limit int, keep func(*Metric) bool) string {
			found, more := s.Metrics(after, since, limit, keep)
			var b strings.Builder
			for _, m := range found {
				b.WriteString(m.Name)
			}
			return fmt.Sprint(b.String(), more)
		}
		first := NewMetric("a", "y")
		for _, c := range []struct{ got, want string }{
			{names("", 0, 10, all), "yzxfalse"},
			{names("", 0, 1, all), "ytrue"},
			{names(first.Key(), 0, 10, all), "zxfalse"},
			{names("", noon-3600, 10, all), "yxfalse"},
			{names("", 0, 10, func(m *Metric) bool { return m.Namespace == "b" }), "xfalse"},
		} {
			if c.got != c.want {
				t.Errorf("got %s, want %s", c.got, c.want)
			}
		}
		s.Close()
		s = open(t, dir, Options{})
	}
}

// Samples add up to the same in any order, through flushes, merges and restarts.
func TestPointsAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		opts := Options{Now: at(noon), MaxHead: rapid.IntRange(3, 60).Draw(r, "head")}
		s, err := Open(dir, opts)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { s.Close() }()
		metrics := []Metric{cpu, NewMetric("n", "memory"), NewMetric("m", "cpu")}
		model := map[string]map[int64]Set{}
		for range rapid.IntRange(1, 60).Draw(r, "puts") {
			var samples []Sample
			for range rapid.IntRange(1, 5).Draw(r, "samples") {
				m := rapid.SampledFrom(metrics).Draw(r, "metric")
				v := float64(rapid.IntRange(0, 9).Draw(r, "value"))
				in := Sample{
					Metric: m,
					At:     noon - rapid.Int64Range(1, 3600).Draw(r, "age"),
					Fine:   rapid.Bool().Draw(r, "fine"),
					Set:    One(v),
				}
				samples = append(samples, in)
				key := m.Key()
				if model[key] == nil {
					model[key] = map[int64]Set{}
				}
				set := model[key][floor(in.At, 60)]
				set.Add(in.Set)
				model[key][floor(in.At, 60)] = set
			}
			if err := s.Put(samples); err != nil {
				r.Fatal(err)
			}
			if rapid.IntRange(0, 20).Draw(r, "restart") == 0 {
				if err := s.Close(); err != nil {
					r.Fatal(err)
				}
				if s, err = Open(dir, opts); err != nil {
					r.Fatal(err)
				}
			}
		}
		period := rapid.SampledFrom([]int64{60, 120, 300, 3600}).Draw(r, "period")
		for _, m := range metrics {
			points, err := s.Read(Query{Metric: m, Start: noon - 3600, End: noon, Period: period})
			if err != nil {
				r.Fatal(err)
			}
			want := map[int64]Set{}
			for at, set := range model[m.Key()] {
				k := floor(at, period)
				sum := want[k]
				sum.Add(set)
				want[k] = sum
			}
			got := map[int64]Set{}
			for _, p := range points {
				got[p.At] = p.Set
			}
			if !reflect.DeepEqual(got, want) {
				r.Fatalf("%s by %d: got %+v, want %+v", m.Name, period, got, want)
			}
		}
	})
}

// Files left by a killed flush don't count, and a torn log ends after its last whole record.
func TestWhatACrashLeavesIsCleanedUp(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	put(t, s, Sample{Metric: cpu, At: noon - 60, Set: One(1)})
	killed := waltest.Copy(t, dir)
	put(t, s, Sample{Metric: cpu, At: noon - 60, Set: One(5)})
	for name, text := range map[string]string{"000000007.block": "x", ".new-manifest": "{"} {
		if err := os.WriteFile(filepath.Join(killed, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(logDir, "000000001.log")
	before, err := os.ReadFile(filepath.Join(killed, log))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(before); cut < len(after); cut++ {
		dir = waltest.Copy(t, killed)
		if err := os.WriteFile(filepath.Join(dir, log), after[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, Options{})
		put(t, s, Sample{Metric: cpu, At: noon - 60, Set: One(2)})
		if got := read(t, s, Query{Metric: cpu, Start: noon - 60, End: noon, Period: 60}); len(got) != 1 || got[0].Sum != 3 {
			t.Fatalf("cut at %d: got %+v", cut, got)
		}
		s.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, "000000007.block")); !os.IsNotExist(err) {
		t.Error("a block that the manifest does not name is still there")
	}
}

const crashDir = "PINTLE_METRICS_CRASH_DIR"

// TestMain lets the test binary run as the process that TestNothingAcknowledgedIsLost kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		putUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func putUntilKilled(dir string) {
	s, err := Open(dir, Options{Now: at(noon), MaxHead: 40}) // flushes all the time
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	for w := range 8 {
		go func() {
			for {
				m := NewMetric("n", fmt.Sprint(w), Dimension{"d", fmt.Sprint(rand.IntN(10))})
				if s.Put([]Sample{{Metric: m, At: noon - rand.Int64N(3600) - 1, Set: One(1)}}) == nil {
					os.Stdout.WriteString(m.Key() + "\n")
				}
			}
		}()
	}
	select {}
}

// TestNothingAcknowledgedIsLost kills a writing process at random moments, and then looks for every sample that it
// acknowledged. Each counts once: there are no more than the writers can have had in flight.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	dir := t.TempDir()
	acknowledged, kills := 0, 6
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines, n := bufio.NewReader(out), 0; ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			if strings.HasPrefix(line, "error") {
				t.Fatal(line)
			}
			if n++; n == 10 { // however slow the disk is
				time.AfterFunc(time.Duration(20+rand.IntN(100))*time.Millisecond, func() { cmd.Process.Kill() })
			}
			acknowledged++
		}
		cmd.Wait() //nolint:errcheck // we killed it
	}
	s := open(t, dir, Options{})
	there := 0.0
	found, _ := s.Metrics("", 0, 1000, func(*Metric) bool { return true })
	for _, m := range found {
		for _, p := range read(t, s, Query{Metric: m, Start: noon - 3600, End: noon, Period: 60}) {
			there += p.Count
		}
	}
	if int(there) < acknowledged || int(there) > acknowledged+8*kills {
		t.Fatalf("%d were acknowledged, and %g are there", acknowledged, there)
	}
	if acknowledged < 50 {
		t.Fatalf("only %d were acknowledged: the test shows nothing", acknowledged)
	}
}

// FuzzParseRecord parses arbitrary records.
func FuzzParseRecord(f *testing.F) {
	one := &series{0, &metricState{Metric: cpu}, "Percent"}
	f.Add(
		appendRecord(
			nil,
			[]*series{one},
			[]sample{{0, bin{noon, true, Of([]Value{{1, 2}, {3, 4}})}}, {0, bin{-1, false, Set{Count: 3, Sum: 1, Min: -2, Max: 4}}}},
		),
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		made, samples, err := parseRecord(b)
		if err != nil {
			return
		}
		var again []*series
		for _, n := range made {
			again = append(again, &series{n.id, &metricState{Metric: n.metric}, n.unit})
		}
		once := appendRecord(nil, again, samples)
		_, twice, err := parseRecord(once)
		if err != nil || string(appendRecord(nil, again, twice)) != string(once) {
			t.Fatalf("%+v became %+v, %v", samples, twice, err)
		}
	})
}

// manyMetrics returns metrics like those of a large fleet.
func manyMetrics(n int) []Metric {
	metrics := make([]Metric, n)
	for i := range metrics {
		metrics[i] = NewMetric(
			"ECS/ContainerInsights", "GPUUtilization",
			Dimension{"ClusterName", "default"},
			Dimension{"ServiceName", fmt.Sprint("s", i/100)},
			Dimension{"TaskId", fmt.Sprintf("%032d", i)},
		)
	}
	return metrics
}

// BenchmarkPut puts samples in calls of a thousand, and reports samples per second. It includes flushes and merges.
func BenchmarkPut(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			metrics := manyMetrics(n)
			s := open(b, b.TempDir(), Options{})
			samples := make([]Sample, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				for j := range samples {
					k := i*1000 + j
					samples[j] = Sample{Metric: metrics[k%n], Unit: "Percent", At: noon - 3600 + int64(k/n)*60, Set: One(float64(k % 101))}
				}
				if err := s.Put(samples); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*1000)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// BenchmarkRead reads an hour of one series from a store with an hour of 100,000 series.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	metrics := manyMetrics(n)
	s := open(b, b.TempDir(), Options{})
	for minute := range int64(60) {
		for from := 0; from < n; from += 10_000 {
			var samples []Sample
			for _, m := range metrics[from : from+10_000] {
				samples = append(samples, Sample{Metric: m, Unit: "Percent", At: noon - 3600 + minute*60, Set: One(float64(minute))})
			}
			put(b, s, samples...)
		}
	}
	settle(b, s)
	for _, period := range []int64{60, 3600} {
		b.Run(fmt.Sprintf("period=%d", period), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				got := read(b, s, Query{Metric: metrics[i*7919%n], Start: noon - 3600, End: noon, Period: period})
				if len(got) != int(3600/period) {
					b.Fatalf("got %d points", len(got))
				}
			}
		})
	}
}

// TestWriteFails: on a full disk puts are refused, and metrics are read. The store goes on once there is room.
func TestWriteFails(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, at := NewMetric("n", "m"), floor(time.Now().Unix(), 60)
	write := func(name string) error {
		return s.Put([]Sample{{Metric: m, At: at, Set: One(1)}, {Metric: NewMetric("n", name), At: at, Set: One(1)}})
	}
	sum := func() float64 {
		got := read(t, s, Query{Metric: m, Start: at - 60, End: at + 60, Period: 60})
		if len(got) != 1 {
			t.Fatalf("got %v", got)
		}
		return got[0].Set.Sum
	}
	if err := write("a"); err != nil {
		t.Fatal(err)
	}
	free := filetest.Fill(t, uint64(s.log.End().Offset+5))
	for range 2 {
		if err := write("b"); !errors.Is(err, disk.ErrUnwritable) || sum() != 1 {
			t.Errorf("what was not written: %v", err)
		}
	}
	free()
	for s.log.Stalled() != nil {
		time.Sleep(time.Millisecond)
	}
	if err := write("c"); err != nil {
		t.Error(err)
	}
	if got := sum(); got != 3 { // the first that was refused was in doubt
		t.Errorf("the sum is %v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := sum(); got != 3 {
		t.Errorf("after a restart the sum is %v", got)
	}
}

// TestFlushFails: while blocks can't be written, everything is read from memory. The store goes on once they can.
func TestFlushFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(dir, Options{MaxHead: 10})
		if err != nil {
			t.Fatal(err)
		}
		block := filepath.Join(dir, "000000001.block") // where the flush wants to write
		s.nextBlock = 0
		if err := os.Mkdir(block, 0o700); err != nil {
			t.Fatal(err)
		}
		at := floor(time.Now().Unix(), 60)
		m := NewMetric("n", "m")
		for i := range int64(10) {
			if err := s.Put([]Sample{{Metric: m, At: at - 60*i, Set: One(1)}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := s.Put([]Sample{{Metric: m, At: at, Set: One(1)}}); !errors.Is(err, disk.ErrUnwritable) {
			t.Errorf("a put: %v", err)
		}
		if got := read(t, s, Query{Metric: m, Start: at - 3600, End: at + 60, Period: 60}); len(got) != 10 {
			t.Errorf("%d are read", len(got))
		}
		if err := os.Remove(block); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * flushAgainAfter)
		synctest.Wait()
		if err := s.Put([]Sample{{Metric: m, At: at, Set: One(1)}}); err != nil {
			t.Errorf("a put: %v", err)
		}
		if got := read(t, s, Query{Metric: m, Start: at - 3600, End: at + 60, Period: 60}); len(got) != 10 {
			t.Errorf("%d are read", len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
