// Package scaling is the maths of Application Auto Scaling: what capacity a target tracking or a step
// scaling policy wants, what several policies come to together, and when a scheduled action is due. It
// is pure: it knows no clock, no metric store and no service; the API checks its input with it, and the
// scaling loop decides by it. It follows the Application Auto Scaling User Guide.
package scaling

import (
	"math"
	"time"
)

// Bounds are a scalable target's minimum and maximum capacity.
type Bounds struct{ Min, Max int }

// Clamp is the capacity within the bounds that is nearest to n.
func (b Bounds) Clamp(n int) int { return min(max(n, b.Min), b.Max) }

// Past is what a policy did last, for its cool-down.
type Past struct {
	At       time.Time
	From, To int
}

// Base is the capacity that a policy counts from. While the cool-down of a scale-out lasts, what it has added is
// counted as part of the next one, so that only a larger one adds to it.
func (p Past) Base(capacity int, cooldown time.Duration, now time.Time) int {
	if p.To > p.From && now.Before(p.At.Add(cooldown)) {
		return min(p.From, capacity)
	}
	return capacity
}

// BlocksIn says whether the cool-down of a scale-in still keeps a policy from the next one. A scale-out ends it.
func (p Past) BlocksIn(cooldown time.Duration, now time.Time) bool {
	return p.To < p.From && now.Before(p.At.Add(cooldown))
}

// Proposal is what one policy wants.
type Proposal struct {
	Policy string
	// Desired is the capacity that it wants; the one that there is where it wants no change.
	Desired int
	// Consents says that the others may scale in without it: a step scaling policy, or one whose
	// scale-in is disabled.
	Consents bool
}

// Combine picks the proposal that wins: on the way out the largest, on the way in the largest too, and
// only if every target tracking policy whose scale-in is enabled wants to scale in. It gives nil where
// nothing is to change.
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
	// BacklogDrainsBeforeStart is Pintle's own, of the fast reaction.
	BacklogDrainsBeforeStart = "BacklogDrainsBeforeStart"
)

// Why is the code of the reason for not scaling from the capacity to what a policy wants, which is
// not yet within the bounds; "" where there is something to do.
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

// maxCapacity bounds what a computation can come to, so that it fits an int32.
const maxCapacity = math.MaxInt32

// whole makes a capacity of a number.
func whole(f float64) int {
	if !(f > 0) { // also what is no number
		return 0
	}
	return int(min(f, maxCapacity))
}
