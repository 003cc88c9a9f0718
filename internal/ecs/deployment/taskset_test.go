package deployment

import (
	"testing"

	"pgregory.net/rapid"
)

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		desired int
		percent float64
		want    int
	}{
		{0, 100, 0},
		{4, 0, 0},
		{4, 100, 4},
		{4, 50, 2},
		{4, 30, 2},
		{4, 0.001, 1},
		{3, 33.4, 2},
		{12, 10, 2},
		{7000, 1.1, 77},
		{1, 100, 1},
	} {
		if got := Scaled(c.desired, c.percent); got != c.want {
			t.Errorf("%v %% of %d is %d, want %d", c.percent, c.desired, got, c.want)
		}
	}
}

// TestScaledShares splits a service in two: no task is missing, and rounding adds one at most.
func TestScaledShares(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		desired := rapid.IntRange(0, 5000).Draw(r, "desired")
		percent := rapid.Float64Range(0, 100).Draw(r, "percent")
		if sum := Scaled(desired, percent) + Scaled(desired, 100-percent); sum < desired || sum > desired+1 {
			r.Fatalf("%v and %v percent of %d are %d", percent, 100-percent, desired, sum)
		}
	})
}
