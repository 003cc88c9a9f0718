package metrics

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/pintle/pintle/internal/wal/waltest"
)

// TestRandomDamage: whatever happens to the store's files after a clean end or a kill, the store names the damage or has every
// point. After a repair it has everything that wasn't damaged.
func TestRandomDamage(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // torn ends are many
	dir := t.TempDir()
	s := open(t, dir, Options{MaxHead: 40})
	for i := range int64(45 * 11) { // flushed eleven times, merged once, and partly only in the log
		put(t, s, Sample{Metric: numbered(int(i % 9)), At: noon - 60*(i/9) - 60, Fine: i%2 == 0, Set: One(float64(i))})
	}
	settle(t, s)
	killed := waltest.Copy(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(s.manifest.Blocks) < 5 || s.head.size == 0 {
		t.Fatalf("there are %d blocks, and %d in the log: the test shows too little", len(s.manifest.Blocks), s.head.size)
	}
	trials := waltest.Trials{
		Images:    []string{dir, killed},
		Read:      contents,
		Check:     Check,
		Sums:      sums,
		FlipLoses: 1 + 2*55,       // the name of a series, and so all its points
		FileLoses: 9 * (1 + 2*55), // all series' names
	}
	trials.Run(t)
}

// sums is the prefix of the names of points made of several samples.
const sums = "sum of "

// contents returns every metric, and every point of each in each tier.
func contents(t testing.TB, dir string) (map[string]bool, error) {
	s, err := Open(dir, Options{Now: at(noon)})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // we only read it
	out := map[string]bool{}
	found, _ := s.Metrics("", 0, 1000, func(*Metric) bool { return true })
	for _, m := range found {
		out[m.Key()] = true
		for _, period := range []int64{1, 60, 300, 3600} {
			points, err := s.Read(Query{Metric: m, Start: noon - 3600, End: noon, Period: period})
			if err != nil {
				return nil, err
			}
			for _, p := range points {
				name := fmt.Sprint(m.Key(), " ", period, " ", p.At, " ", p.Set)
				if period > 60 {
					name = sums + name
				}
				out[name] = true
			}
		}
	}
	return out, nil
}

// FuzzBlock checks and reads arbitrary blocks.
func FuzzBlock(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir, Options{MaxHead: 3})
	for i := range int64(3) {
		put(f, s, Sample{Metric: cpu, At: noon - 60*i - 60, Set: One(float64(i))})
	}
	settle(f, s)
	info := s.manifest.Blocks[0]
	whole, err := os.ReadFile(s.path(info.File))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Fuzz(func(t *testing.T, b []byte) {
		if own, ok := parseFooter(b); ok && own.Step > 0 {
			own.splitEntries(b)
		}
		good, bad := info.splitEntries(b)
		if len(good)+len(bad) > info.Series {
			t.Fatalf("of %d series %d are good and %d bad", info.Series, len(good), len(bad))
		}
	})
}
