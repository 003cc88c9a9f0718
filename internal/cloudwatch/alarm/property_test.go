package alarm

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEvaluateProperties checks what holds for all data points.
func TestEvaluateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "n")
		a := metric(rapid.IntRange(1, n).Draw(t, "m"), n)
		a.Period = rapid.SampledFrom([]time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}).Draw(t, "period")
		_, to := a.Range(now)
		var points []Datapoint
		breaching := 0
		for back := n + extraPeriods; back > 0; back-- {
			if value := rapid.IntRange(0, 2).Draw(t, "point"); value > 0 {
				points = append(points, Datapoint{Timestamp: to.Add(-time.Duration(back) * a.Period), Value: float64(value)*4 - 3})
			}
		}
		for _, p := range points[max(0, len(points)-n):] {
			if p.Value > a.Threshold {
				breaching++
			}
		}
		states := map[string]State{}
		for _, treatment := range []string{AsMissing, Ignore, Breaching, NotBreaching} {
			a.TreatMissingData = treatment
			got := a.Evaluate("before", points, now)
			if states[treatment] = got.State; (got.State == "before") != (got.Reason == "") {
				t.Fatalf("%s: %s because of %q", treatment, got.State, got.Reason)
			}
			if (got.State == InsufficientData) && treatment != AsMissing || got.State == "before" && treatment != Ignore {
				t.Fatalf("%s gives %s", treatment, got.State)
			}
			if breaching >= a.toAlarm() && got.State != Alarming {
				t.Fatalf("%s: %d of %d breach, and it is %s", treatment, breaching, n, got.State)
			}
		}
		if len(points) >= n &&
			(states[AsMissing] != states[Ignore] || states[Ignore] != states[Breaching] || states[Breaching] != states[NotBreaching]) {
			t.Fatalf("with enough data points the treatment counts: %v", states)
		}
		if states[NotBreaching] == Alarming && states[Breaching] != Alarming {
			t.Fatalf("breaching is milder than notBreaching: %v", states)
		}
	})
}
