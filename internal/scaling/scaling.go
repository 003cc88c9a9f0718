// Package scaling is the maths of Application Auto Scaling: the capacity that a target tracking or a step
// scaling policy wants, how several policies combine, and when a scheduled action is due. It's pure: no
// clock, no metric store, no service. The APIs check their input with it, and the scaling loops decide by it.
// It follows the Application Auto Scaling User Guide.
package scaling

import (
	"math"
	"time"
)

// Bounds are a scalable target's minimum and maximum capacity.
type Bounds struct{ Min, Max int }

// Clamp returns the capacity within the bounds that is nearest to n.
func (b Bounds) Clamp(n int) int { return min(max(n, b.Min), b.Max) }

// Past is a policy's last scaling action, for its cool-down.
type Past struct {
	At       time.Time
	From, To int
}

// Base is the capacity that a policy counts from. During the cool-down of a scale-out, what that scale-out
// added counts as part of the next one. So only a larger scale-out adds more.
func (p Past) Base(capacity int, cooldown time.Duration, now time.Time) int {
	if p.To > p.From && now.Before(p.At.Add(cooldown)) {
		return min(p.From, capacity)
	}
	return capacity
}

// BlocksIn reports whether the cool-down of a scale-in still blocks the next scale-in. A scale-out ends that cool-down.
func (p Past) BlocksIn(cooldown time.Duration, now time.Time) bool {
	return p.To < p.From && now.Before(p.At.Add(cooldown))
}

// Proposal is what one policy wants.
type Proposal struct {
	Policy string
	// Desired is the capacity that the policy wants: the current one if it wants no change.
	Desired int
	// Consents lets the other policies scale in without this one. Step scaling policies consent, and so do
	// policies whose scale-in is disabled.
	Consents bool
}

// Combine returns the proposal that wins, or nil if nothing changes. The largest wins, both out and in. But
// a scale-in happens only if every target tracking policy whose scale-in is enabled wants it.
// See "Multiple target tracking policies for a scalable target" in the page on target tracking.
func Combine(capacity int, proposals []Proposal) *Proposal {
	var out, in *Proposal
	agreed := true
	for i := range proposals {
		switch p := &proposals[i]; {
		case p.Desired > capacity:
			if out == nil || p.Desired > out.Desired {
				out = p
			}
		case p.Desired < capacity:
			if in == nil || p.Desired > in.Desired {
				in = p
			}
		case !p.Consents:
			agreed = false
		}
	}
	if out != nil {
		return out
	}
	if !agreed {
		return nil
	}
	return in
}

// The codes of NotScaledReason.
const (
	AlreadyAtMaxCapacity     = "AlreadyAtMaxCapacity"
	AlreadyAtMinCapacity     = "AlreadyAtMinCapacity"
	AlreadyAtDesiredCapacity = "AlreadyAtDesiredCapacity"
	AnticipatedFlapping      = "AutoScalingAnticipatedFlapping"
	// BacklogDrainsBeforeStart is Pintle's own. Only the fast reaction uses it.
	BacklogDrainsBeforeStart = "BacklogDrainsBeforeStart"
)

// Why returns the code of the reason not to scale to what a policy wants, or "" if there is something to do.
// The caller hasn't clamped wanted to the bounds yet.
func Why(capacity, wanted int, b Bounds) string {
	switch {
	case wanted > capacity && b.Clamp(wanted) <= capacity:
		return AlreadyAtMaxCapacity
	case wanted < capacity && b.Clamp(wanted) >= capacity:
		return AlreadyAtMinCapacity
	case b.Clamp(wanted) == capacity:
		return AlreadyAtDesiredCapacity
	}
	return ""
}

// maxCapacity keeps results within an int32.
const maxCapacity = math.MaxInt32

// toCapacity converts a number to a capacity.
func toCapacity(f float64) int {
	if !(f > 0) { // also true of NaN
		return 0
	}
	return int(min(f, maxCapacity))
}
