package hindsight

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/scaling"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// minutes is a history in which a metric was so for some minutes each, with some tasks.
func minutes(spans ...[3]float64) History {
	h := History{From: noon, Period: time.Minute}
	for _, s := range spans {
		for range int(s[0]) {
			h.Metric = append(h.Metric, s[1])
			h.Running = append(h.Running, s[2])
		}
	}
	return h
}

func tracking(target float64, least, most int) Policy {
	return Policy{
		TargetTracking: scaling.TargetTracking{TargetValue: target, ScaleOutCooldown: time.Minute, ScaleInCooldown: time.Minute},
		Bounds:         scaling.Bounds{Min: least, Max: most}, Out: 3, In: 15,
	}
}

// changes returns the minutes after which the number of tasks was another, and that number.
func changes(running []float64) (all [][2]float64) {
	for i, n := range running {
		if i == 0 || n != running[i-1] {
			all = append(all, [2]float64{float64(i), n})
		}
	}
	return all
}

// TestReplay: each load under a policy, by hand.
func TestReplay(t *testing.T) {
	nan := math.NaN()
	steady := minutes([3]float64{10, 50, 2}, [3]float64{20, 100, 4}, [3]float64{30, 25, 4}) // a load of 100, 400 and 100
	slow := tracking(50, 1, 10)
	slow.Start = 5 * time.Minute
	hasty := slow
	slow.ScaleOutCooldown = 10 * time.Minute
	half := tracking(50, 1, 10)
	half.Start = 30 * time.Second
	half.ScaleOutCooldown = 10 * time.Minute
	full := tracking(50, 1, 10)
	full.Full = 100
	group := tracking(50, 1, 10)
	group.Group, group.Start, group.Warmup = true, 5*time.Minute, 10*time.Minute
	cold := group
	cold.Start, cold.Warmup = 0, 40*time.Minute
	never := tracking(50, 1, 10)
	never.DisableScaleIn = true
	for name, c := range map[string]struct {
		h    History
		p    Policy
		want [][2]float64
	}{
		// Three minutes at 200 per cent of one's work, then eight tasks for 400; 15 minutes of 100/8, then two.
		"as it follows":           {steady, tracking(50, 1, 10), [][2]float64{{0, 2}, {13, 8}, {45, 2}}},
		"at most five":            {steady, tracking(50, 1, 5), [][2]float64{{0, 2}, {13, 5}, {45, 2}}},
		"at least six":            {steady, tracking(50, 6, 10), [][2]float64{{0, 6}, {13, 8}, {45, 6}}},
		"twice the target":        {steady, tracking(100, 1, 10), [][2]float64{{0, 2}, {13, 4}, {45, 1}}},
		"never in":                {steady, never, [][2]float64{{0, 2}, {13, 8}}},
		"tasks that start slowly": {steady, slow, [][2]float64{{0, 2}, {18, 8}, {45, 2}}},
		"a cool-down that's over before they start":   {steady, hasty, [][2]float64{{0, 2}, {18, 8}, {19, 10}, {34, 8}, {35, 2}}},
		"a group whose instances start slowly":        {steady, group, [][2]float64{{0, 2}, {18, 8}, {45, 2}}},
		"a group doesn't scale in while one warms up": {steady, cold, [][2]float64{{0, 2}, {13, 8}, {53, 2}}},
		"half a minute":             {steady, half, [][2]float64{{0, 2}, {13, 5}, {14, 8}, {45, 2}}},
		"no more than 100 per cent": {steady, full, [][2]float64{{0, 2}, {13, 4}, {14, 8}, {45, 2}}},
		"from nothing":              {minutes([3]float64{5, 0, 0}, [3]float64{20, 6, 0}), tracking(2, 0, 10), [][2]float64{{0, 0}, {8, 1}, {9, 3}}},
		"nothing is known":          {minutes([3]float64{20, nan, 2}), tracking(50, 1, 10), [][2]float64{{0, 2}}},
		"it is as it should be":     {minutes([3]float64{60, 48, 2}), tracking(50, 1, 10), [][2]float64{{0, 2}}},
	} {
		out := Replay(c.h, c.p)
		if got := changes(out.Running); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if len(out.Metric) != len(c.h.Metric) {
			t.Errorf("%s: %d minutes came of %d", name, len(out.Metric), len(c.h.Metric))
		}
	}
}

// TestCooldown: another scale-in waits for the cool-down of the last one.
func TestCooldown(t *testing.T) {
	h := minutes([3]float64{20, 10, 8}, [3]float64{60, 2.5, 8})
	for cooldown, want := range map[time.Duration][][2]float64{
		time.Minute:      {{0, 8}, {15, 2}, {35, 1}},
		40 * time.Minute: {{0, 8}, {15, 2}, {55, 1}},
	} {
		p := tracking(50, 1, 10)
		p.ScaleInCooldown = cooldown
		if got := changes(Replay(h, p).Running); !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", cooldown, got, want)
		}
	}
}

func TestSum(t *testing.T) {
	nan := math.NaN()
	got := Sum([]float64{1, 3, nan, 2}, []float64{50, 60, nan, nan}, 10*time.Minute, 50)
	if got.Above != 0.5 || got.Least != 1 || got.Most != 3 || math.Abs(got.TaskHours-1) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}

// BenchmarkReplay is the longest history that the page takes, with as many tasks as a service may have.
func BenchmarkReplay(b *testing.B) {
	h := minutes([3]float64{720, 100, 2500}, [3]float64{720, 50, 5000})
	for b.Loop() {
		Replay(h, tracking(50, 1, 5000))
	}
}
