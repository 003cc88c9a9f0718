package scaling

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestConstantLoad: under a constant load, target tracking moves in one direction and within the bounds, and settles on what the
// load needs.
func TestConstantLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := TargetTracking{TargetValue: rapid.Float64Range(0.1, 1e4).Draw(t, "target")}
		b := Bounds{Min: rapid.IntRange(1, 50).Draw(t, "min")}
		b.Max = b.Min + rapid.IntRange(0, 500).Draw(t, "more")
		load := rapid.Float64Range(0, 600*p.TargetValue).Draw(t, "load")
		capacity := rapid.IntRange(b.Min, b.Max).Draw(t, "capacity")
		need := b.Clamp(int(math.Ceil(load/p.TargetValue - 1e-6)))
		first, direction := capacity, 0
		for range 20 {
			metric, next := load/float64(capacity), capacity
			switch {
			case metric > p.High("", "", Faithful).Threshold:
				next = b.Clamp(p.Out(capacity, metric))
			case metric < p.Low("", "", Faithful).Threshold:
				next = b.Clamp(p.In(capacity, metric))
			}
			if next < b.Min || next > b.Max {
				t.Fatalf("%d is out of %v", next, b)
			}
			if step := next - capacity; step*direction < 0 {
				t.Fatalf("it oscillates: from %d to %d, then to %d", first, capacity, next)
			} else if step != 0 {
				direction = step
			}
			if next < capacity && next < need {
				t.Fatalf("it scales in to %d, below the need of %d", next, need)
			}
			capacity = next
		}
		if capacity < need {
			t.Fatalf("it settles on %d, below the need of %d", capacity, need)
		}
		if metric := load / float64(capacity); metric < p.Low("", "", Faithful).Threshold && capacity > need+1 {
			t.Fatalf("it stays on %d, above the need of %d", capacity, need)
		}
	})
}

// TestStepStaysWithinBounds: whatever the metric, a step policy that PutScalingPolicy accepts gives a capacity that can be clamped
// to the bounds. A policy for scaling out never scales in.
func TestStepStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Step{AdjustmentType: rapid.SampledFrom([]string{ChangeInCapacity, PercentChangeInCapacity, ExactCapacity}).Draw(t, "type")}
		var at *float64 = new(0.0)
		for i, n := 0, rapid.IntRange(1, 5).Draw(t, "steps"); i < n; i++ {
			a := StepAdjustment{Lower: at, Adjustment: rapid.IntRange(0, math.MaxInt32).Draw(t, "adjustment")}
			if i < n-1 {
				a.Upper = new(*at + rapid.Float64Range(0.1, 10).Draw(t, "width"))
			}
			s.Adjustments = append(s.Adjustments, a)
			at = a.Upper
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		b := Bounds{Min: rapid.IntRange(0, 10).Draw(t, "min"), Max: rapid.IntRange(10, 100).Draw(t, "max")}
		capacity := rapid.IntRange(b.Min, b.Max).Draw(t, "capacity")
		metric := rapid.Float64().Draw(t, "metric")
		got := s.Desired(capacity, metric, 50)
		if got < 0 || got > maxCapacity || b.Clamp(got) < b.Min || b.Clamp(got) > b.Max {
			t.Fatalf("from %d to %d", capacity, got)
		}
		if s.AdjustmentType != ExactCapacity && got < capacity {
			t.Fatalf("adding scales in from %d to %d", capacity, got)
		}
		if metric < 50 && got != capacity {
			t.Fatalf("below the threshold it goes from %d to %d", capacity, got)
		}
	})
}

// TestCombineNeverBelowNeed: several policies together never go below what any target tracking policy with scale-in needs.
func TestCombineNeverBelowNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(0, 100).Draw(t, "capacity")
		var all []Proposal
		most := 0
		for range rapid.IntRange(1, 5).Draw(t, "policies") {
			p := Proposal{Desired: rapid.IntRange(0, 100).Draw(t, "desired"), Consents: rapid.Bool().Draw(t, "consents")}
			all = append(all, p)
			if !p.Consents || p.Desired != capacity {
				most = max(most, p.Desired)
			}
		}
		if won := Combine(capacity, all); won != nil && won.Desired < most {
			t.Fatalf("%+v wins of %+v at %d", *won, all, capacity)
		}
	})
}
