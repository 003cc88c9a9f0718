package group

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRefresh replaces groups of any size with any percentages. It must end, never have more instances than allowed, and never
// fewer in service than required, except for one at a time if no surplus is allowed.
func TestRefresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		desired := rapid.IntRange(1, 50).Draw(r, "desired")
		low := rapid.IntRange(0, 100).Draw(r, "min")
		high := rapid.IntRange(100, 100+low).Draw(r, "max")
		keep, most := (desired*low+99)/100, max(desired, desired*high/100)
		if high == 100 {
			keep = min(keep, desired-1)
		} else {
			most = max(most, desired+1)
		}
		old, warm, cold := desired, 0, 0 // instances: old ones, warmed-up new ones, and other new ones
		for step := 0; old > 0 || cold > 0; step++ {
			if step > 20*desired {
				r.Fatalf("%d old ones are left, %d new ones warm, %d cold", old, warm, cold)
			}
			p := Refresh{Desired: desired, MinHealthy: low, MaxHealthy: high, Healthy: old + warm, Old: old}
			target := desired + p.Surplus()
			old -= p.Leave()
			if old+warm < keep {
				r.Fatalf("%d are in service, at least %d must be", old+warm, keep)
			}
			cold += max(0, target-old-warm-cold)
			if n := old + warm + cold; n > most {
				r.Fatalf("there are %d, at most %d may be", n, most)
			}
			if n := rapid.IntRange(0, cold).Draw(r, "warmed up"); step%3 == 0 {
				warm, cold = warm+cold, 0
			} else {
				warm, cold = warm+n, cold-n
			}
		}
		if warm != desired {
			r.Fatalf("%d new ones are there, %d are desired", warm, desired)
		}
	})
}
