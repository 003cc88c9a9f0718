package scaling

import (
	"strings"
	"testing"
	"time"
)

// TestTargetTracking follows the Application Auto Scaling User Guide's page "How target tracking scaling for Application Auto
// Scaling works": capacity is proportional to the metric when scaling out, and more cautious when scaling in.
func TestTargetTracking(t *testing.T) {
	for _, c := range []struct {
		name           string
		target, metric float64
		capacity       int
		out, in        int
	}{
		{"at the target", 75, 75, 4, 4, 4},
		{"a little above", 75, 76, 4, 5, 4},
		{"twice the target", 50, 100, 3, 6, 3},
		{"rounded up on the way out", 75, 80, 10, 11, 10},
		{"a little below, but one task less is too few", 75, 70, 4, 4, 4},
		{"rounded up on the way in", 75, 40, 4, 4, 3},
		{"idle", 75, 0, 4, 4, 0},
		{"from nothing", 75, 100, 0, 1, 0},
		{"idle from nothing", 75, 0, 0, 0, 0},
		{"a third without its rounding error", 0.3, 0.1, 3, 3, 1},
		{"requests for each target", 1000, 2500, 2, 5, 2},
		{"more than an int32 holds", 1e-300, 1e300, 7, maxCapacity, 7},
	} {
		p := TargetTracking{TargetValue: c.target}
		if out, in := p.Out(c.capacity, c.metric), p.In(c.capacity, c.metric); out != c.out || in != c.in {
			t.Errorf("%s: out %d, in %d, want %d, %d", c.name, out, in, c.out, c.in)
		}
		p.DisableScaleIn = true
		if in := p.In(c.capacity, c.metric); in != c.capacity {
			t.Errorf("%s: scales in to %d though that is disabled", c.name, in)
		}
	}
}

// TestAlarms takes the alarms' names from PutScalingPolicy's example, and the low alarm's 15 data points from the page "Target
// tracking scaling policies".
func TestAlarms(t *testing.T) {
	p := TargetTracking{TargetValue: 75}
	if got, want := p.High("service/default/web", "u",
		Faithful), (Alarm{"TargetTracking-service/default/web-AlarmHigh-u", "GreaterThanThreshold", 75, 3, time.Minute}); got != want {
		t.Errorf("got %+v", got)
	}
	if got, want := p.Low("service/default/web", "u",
		Faithful), (Alarm{"TargetTracking-service/default/web-AlarmLow-u", "LessThanThreshold", 67.5, 15, time.Minute}); got != want {
		t.Errorf("got %+v", got)
	}
	if got := (TargetTracking{TargetValue: 70}).Low("", "", Fast); got.Threshold != 63 || got.Period != 10*time.Second {
		t.Errorf("got %+v", got)
	}
}

func steps(text string, adjustmentType string, atLeast int) Step {
	s := Step{AdjustmentType: adjustmentType, MinAdjustmentMagnitude: atLeast}
	for f := range strings.FieldsSeq(text) {
		var a StepAdjustment
		parts := strings.Split(f, ",")
		a.Lower = float(parts[0])
		a.Upper = float(parts[1])
		a.Adjustment = int(*float(parts[2]))
		s.Adjustments = append(s.Adjustments, a)
	}
	return s
}

// TestStep follows the page "How step scaling for Application Auto Scaling works": its table of step adjustments for an alarm at
// 50, and its rounding rules in "Scaling adjustment types".
func TestStep(t *testing.T) {
	const out, in = "0,10,0 10,20,10 20,,30", "-10,0,0 -20,-10,-10 ,-20,-30"
	for _, c := range []struct {
		steps, adjustmentType string
		atLeast               int
		metric                float64
		capacity, want        int
	}{
		{out, PercentChangeInCapacity, 0, 50, 10, 10},
		{out, PercentChangeInCapacity, 0, 59.9, 10, 10},
		{out, PercentChangeInCapacity, 0, 60, 10, 11},
		{out, PercentChangeInCapacity, 0, 69.9, 10, 11},
		{out, PercentChangeInCapacity, 0, 70, 10, 13},
		{out, PercentChangeInCapacity, 0, 1000, 10, 13},
		{out, PercentChangeInCapacity, 0, 49, 10, 10},
		{in, PercentChangeInCapacity, 0, 50, 10, 10},
		{in, PercentChangeInCapacity, 0, 40, 10, 9},
		{in, PercentChangeInCapacity, 0, 40.1, 10, 10},
		{in, PercentChangeInCapacity, 0, 30, 10, 7},
		{in, PercentChangeInCapacity, 0, 0, 10, 7},
		{out, PercentChangeInCapacity, 0, 70, 11, 14},       // the page goes on: 3.3 is rounded down
		{in, PercentChangeInCapacity, 0, 40, 14, 13},        // 1.4
		{in, PercentChangeInCapacity, 0, 30, 13, 10},        // 3.9
		{"0,,10", PercentChangeInCapacity, 0, 60, 127, 139}, // 12.7 is rounded down to 12
		{"0,,10", PercentChangeInCapacity, 0, 60, 4, 5},     // 0.4 is rounded up to 1
		{",0,-10", PercentChangeInCapacity, 0, 40, 4, 3},    // -0.4 is rounded down to -1
		{",0,-10", PercentChangeInCapacity, 0, 40, 67, 61},  // -6.7 is rounded up to -6
		{"0,,25", PercentChangeInCapacity, 2, 60, 4, 6},     // 1, but at least 2
		{"0,,0", PercentChangeInCapacity, 2, 60, 4, 4},
		{",0,-100", PercentChangeInCapacity, 0, 40, 4, 0},
		{"0,,3", ChangeInCapacity, 0, 60, 4, 7},
		{",0,-3", ChangeInCapacity, 0, 40, 2, 0},
		{"0,,7", ExactCapacity, 0, 60, 2, 7},
		{",0,1", ExactCapacity, 0, 40, 5, 1},
	} {
		s := steps(c.steps, c.adjustmentType, c.atLeast)
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.steps, err)
		}
		if got := s.Desired(c.capacity, c.metric, 50); got != c.want {
			t.Errorf("%s of %s at %v from %d: got %d, want %d", c.adjustmentType, c.steps, c.metric, c.capacity, got, c.want)
		}
	}
}

// TestStepErrors checks the rules of the API reference's StepAdjustment.
func TestStepErrors(t *testing.T) {
	for _, c := range []struct {
		steps, adjustmentType string
		atLeast               int
		says                  string
	}{
		{"0,,1", "Slowly", 0, "AdjustmentType"},
		{"0,,1", ChangeInCapacity, 1, "MinAdjustmentMagnitude"},
		{"0,,1", PercentChangeInCapacity, -1, "MinAdjustmentMagnitude"},
		{"", ChangeInCapacity, 0, "StepAdjustments"},
		{strings.Repeat("0,,1 ", 21), ChangeInCapacity, 0, "at most 20"},
		{",,1", ChangeInCapacity, 0, "neither"},
		{"10,0,1", ChangeInCapacity, 0, "not below"},
		{"5,5,1", ChangeInCapacity, 0, "not below"},
		{"0,,-1", ExactCapacity, 0, "ScalingAdjustment"},
		{"0,10,1 5,,2", ChangeInCapacity, 0, "overlap at 5"},
		{"0,10,1 20,,2", ChangeInCapacity, 0, "gap between 10 and 20"},
		{",0,1 ,5,2", ChangeInCapacity, 0, "more than one step without a MetricIntervalLowerBound"},
		{"0,,1 5,,2", ChangeInCapacity, 0, "more than one step without a MetricIntervalUpperBound"},
		{"-10,0,-1", ChangeInCapacity, 0, "negative MetricIntervalLowerBound"},
		{"0,10,1", ChangeInCapacity, 0, "positive MetricIntervalUpperBound"},
	} {
		if err := steps(c.steps, c.adjustmentType, c.atLeast).Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.steps, err, c.says)
		}
	}
}

// TestCombine follows "Multiple target tracking policies" in the page "Target tracking scaling policies": scale out if any policy
// wants to, and in only if all do.
func TestCombine(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants []Proposal
		want  string
	}{
		{"none", nil, ""},
		{"no change", []Proposal{{"a", 5, false}}, ""},
		{"out", []Proposal{{"a", 6, false}}, "a"},
		{"the largest goes out", []Proposal{{"a", 6, false}, {"b", 9, false}, {"c", 7, false}}, "b"},
		{"out wins over in", []Proposal{{"a", 2, false}, {"b", 6, false}}, "b"},
		{"in", []Proposal{{"a", 3, false}}, "a"},
		{"in, to the largest", []Proposal{{"a", 2, false}, {"b", 4, false}}, "b"},
		{"in only if all agree", []Proposal{{"a", 2, false}, {"b", 5, false}}, ""},
		{"a policy that never scales in isn't asked", []Proposal{{"a", 2, false}, {"b", 5, true}}, "a"},
	} {
		got := ""
		if p := Combine(5, c.wants); p != nil {
			got = p.Policy
		}
		if got != c.want {
			t.Errorf("%s: %q wins, want %q", c.name, got, c.want)
		}
	}
}

// TestCooldown follows the pages' "Define cooldown periods": a scale-out counts what the last one added, and a scale-in waits.
func TestCooldown(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	out, in := Past{start, 2, 6}, Past{start, 6, 2}
	for _, c := range []struct {
		past   Past
		after  time.Duration
		base   int
		blocks bool
	}{
		{Past{}, 0, 6, false},
		{out, 299 * time.Second, 2, false}, {out, 300 * time.Second, 6, false},
		{in, 299 * time.Second, 6, true}, {in, 300 * time.Second, 6, false},
	} {
		now := start.Add(c.after)
		if base, blocks := c.past.Base(6, DefaultCooldown, now), c.past.BlocksIn(DefaultCooldown, now); base != c.base ||
			blocks != c.blocks {
			t.Errorf("%v after %v: base %d, blocks %v", c.after, c.past, base, blocks)
		}
	}
	if base := out.Base(1, DefaultCooldown, start); base != 1 {
		t.Errorf("after a scale-in by hand the base is %d", base)
	}
}

// TestWhy checks the codes of the API reference's NotScaledReason.
func TestWhy(t *testing.T) {
	b := Bounds{2, 8}
	for _, c := range []struct {
		capacity, wanted int
		want             string
	}{
		{8, 9, AlreadyAtMaxCapacity}, {2, 1, AlreadyAtMinCapacity}, {5, 5, AlreadyAtDesiredCapacity},
		{5, 9, ""}, {5, 1, ""}, {9, 10, AlreadyAtMaxCapacity}, {10, 3, ""}, {0, 1, ""},
	} {
		if got := Why(c.capacity, c.wanted, b); got != c.want {
			t.Errorf("from %d to %d: got %q, want %q", c.capacity, c.wanted, got, c.want)
		}
	}
}
