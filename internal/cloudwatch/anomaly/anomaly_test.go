package anomaly

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var monday = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// every returns a data point for each step of a number of days.
func every(step time.Duration, days int, value func(time.Time) float64) (points []Point) {
	for at := monday; at.Before(monday.AddDate(0, 0, days)); at = at.Add(step) {
		points = append(points, Point{at, value(at)})
	}
	return points
}

func TestBand(t *testing.T) {
	wave := func(at time.Time) float64 { return float64(at.Minute() / 30 * 2) } // 0 and 2: mean 1, deviation 1
	byDay := func(at time.Time) float64 { return 100*float64(at.Hour()) + wave(at) }
	byWeek := func(at time.Time) float64 { return byDay(at) + 10000*float64(at.Weekday()) }
	ny, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		points       []Point
		zone         *time.Location
		at           time.Time
		lower, upper float64
		ok           bool
	}{
		{"nothing", nil, time.UTC, monday, 0, 0, false},
		{"two points", every(12*time.Hour, 1, wave), time.UTC, monday, 0, 0, false},
		{"two hours", every(30*time.Minute, 14, wave)[:4], time.UTC, monday.AddDate(0, 0, 1), 0, 3, true},
		{
			"below zero", every(30*time.Minute, 14, func(at time.Time) float64 { return wave(at) - 2 })[:4], time.UTC,
			monday.AddDate(0, 0, 1), -3, 1, true,
		},
		{"always the same", every(time.Hour, 3, func(time.Time) float64 { return 7 }), time.UTC, monday.AddDate(0, 0, 5), 7, 7, true},
	} {
		lower, upper, ok := Train(c.points, c.zone).Band(c.at, 2)
		if math.Abs(lower-c.lower) > 1e-9 || math.Abs(upper-c.upper) > 1e-9 || ok != c.ok {
			t.Errorf("%s: got %v to %v, %v", c.name, lower, upper, ok)
		}
	}
	// If the hours differ, a share of all data points' deviation sets the width. The means tell which hours the band uses.
	for _, c := range []struct {
		name   string
		points []Point
		zone   *time.Location
		at     time.Time
		middle float64
	}{
		{"by the hour of the day", every(30*time.Minute, 3, byDay), time.UTC, monday.AddDate(0, 0, 4).Add(20 * time.Hour), 2001},
		{"by the hour of the week", every(30*time.Minute, 14, byWeek), time.UTC, monday.AddDate(0, 0, 18).Add(20 * time.Hour), 52001},
		{
			"by the hour of a zone, whose clocks do not change here", every(30*time.Minute, 14, byWeek), ny,
			monday.AddDate(0, 0, 18).Add(20 * time.Hour), 52001,
		},
	} {
		lower, upper, ok := Train(c.points, c.zone).Band(c.at, 0.01)
		if middle := (lower + upper) / 2; !ok || math.Abs(middle-c.middle) > 1e-6 {
			t.Errorf("%s: got %v, want %v", c.name, middle, c.middle)
		}
	}
}

// TestBandProperties: a band's limits are in order, and it grows with the deviations. It shifts and scales with its data.
// By Chebyshev's inequality, at most one in k² of all data points lies outside k deviations of all.
func TestBandProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := time.Duration(rapid.SampledFrom([]int{5, 30, 60, 300}).Draw(t, "minutes")) * time.Minute
		points := every(step, rapid.IntRange(1, 14).Draw(t, "days"), func(time.Time) float64 { return 0 })
		scale, shift := rapid.Float64Range(0.1, 10).Draw(t, "scale"), rapid.Float64Range(-100, 100).Draw(t, "shift")
		var moved []Point
		seed := rapid.Float64Range(1, 1000).Draw(t, "seed")
		for i, p := range points {
			points[i].Value = 50*math.Sin(seed*float64(i)) - 1 // values below 0 are likely, unless there are few points
			moved = append(moved, Point{p.At, scale*points[i].Value + shift})
		}
		points[0].Value, moved[0].Value = -60, scale*-60+shift
		k := rapid.Float64Range(1, 5).Draw(t, "k")
		a, b := Train(points, time.UTC), Train(moved, time.UTC)
		at := monday.Add(time.Duration(rapid.IntRange(0, 30*24*60).Draw(t, "at")) * time.Minute)
		lower, upper, ok := a.Band(at, k)
		if ok != (len(points) >= enoughPoints) || lower > upper {
			t.Fatalf("from %v to %v, %v", lower, upper, ok)
		}
		if !ok {
			return
		}
		if l, u, _ := a.Band(at, 2*k); l > lower || u < upper {
			t.Fatalf("%v deviations: %v to %v; twice as many: %v to %v", k, lower, upper, l, u)
		}
		l, u, _ := b.Band(at, k)
		near := func(x, y float64) bool { return math.Abs(x-y) < 1e-6*(1+math.Abs(x)+math.Abs(y)) }
		if !near(u, scale*upper+shift) || b.negative && !near(l, scale*lower+shift) {
			t.Fatalf("moved: %v to %v, not %v to %v", l, u, scale*lower+shift, scale*upper+shift)
		}
		out := 0.0
		for _, p := range points {
			if math.Abs(p.Value-a.all.mean) > k*a.all.deviation()+1e-9 {
				out++
			}
		}
		if out > a.all.count/(k*k)+1e-9 {
			t.Fatalf("%v of %v points are outside", out, a.all.count)
		}
	})
}

func BenchmarkTrain(b *testing.B) {
	points := every(time.Minute, 14, func(at time.Time) float64 { return float64(at.Hour()) })
	b.ReportAllocs()
	for b.Loop() {
		Train(points, time.UTC)
	}
}
