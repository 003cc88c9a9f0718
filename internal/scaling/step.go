package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

// The adjustment types of step scaling.
const (
	ChangeInCapacity        = "ChangeInCapacity"
	ExactCapacity           = "ExactCapacity"
	PercentChangeInCapacity = "PercentChangeInCapacity"
)

// Step is a step scaling policy.
type Step struct {
	AdjustmentType         string
	MinAdjustmentMagnitude int
	Adjustments            []StepAdjustment
}

// StepAdjustment is what to do when the metric minus the alarm's threshold lies between the bounds. A nil
// bound is infinite.
type StepAdjustment struct {
	Lower, Upper *float64
	Adjustment   int
}

// maxSteps is Application Auto Scaling's quota of step adjustments per policy.
const maxSteps = 20

func (a StepAdjustment) lower() float64 { return bound(a.Lower, math.Inf(-1)) }
func (a StepAdjustment) upper() float64 { return bound(a.Upper, math.Inf(1)) }

func bound(p *float64, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	return *p
}

// Check refuses what PutScalingPolicy refuses, by the rules that StepAdjustment lists.
func (s Step) Check() error {
	switch {
	case !slices.Contains([]string{ChangeInCapacity, ExactCapacity, PercentChangeInCapacity}, s.AdjustmentType):
		return fmt.Errorf("AdjustmentType must be ChangeInCapacity, PercentChangeInCapacity or ExactCapacity, not %q", s.AdjustmentType)
	case s.MinAdjustmentMagnitude < 0:
		return fmt.Errorf("MinAdjustmentMagnitude must not be negative, but is %d", s.MinAdjustmentMagnitude)
	case s.MinAdjustmentMagnitude > 0 && s.AdjustmentType != PercentChangeInCapacity:
		return fmt.Errorf("MinAdjustmentMagnitude is only for the AdjustmentType PercentChangeInCapacity")
	case len(s.Adjustments) == 0:
		return fmt.Errorf("StepAdjustments must have at least one step")
	case len(s.Adjustments) > maxSteps:
		return fmt.Errorf("StepAdjustments has %d steps, at most %d are allowed", len(s.Adjustments), maxSteps)
	}
	for _, a := range s.Adjustments {
		switch {
		case a.Lower == nil && a.Upper == nil:
			return fmt.Errorf("StepAdjustments has a step with neither MetricIntervalLowerBound nor MetricIntervalUpperBound")
		case !(a.lower() < a.upper()):
			return fmt.Errorf("StepAdjustments has a step whose MetricIntervalLowerBound %v is not below its MetricIntervalUpperBound %v",
				a.lower(), a.upper())
		case s.AdjustmentType == ExactCapacity && a.Adjustment < 0:
			return fmt.Errorf("ScalingAdjustment must not be negative for ExactCapacity, but is %d", a.Adjustment)
		}
	}
	return s.checkIntervals()
}

// checkIntervals refuses overlaps, gaps and missing ends.
func (s Step) checkIntervals() error {
	steps := s.sorted()
	for i := 1; i < len(steps); i++ {
		switch below, above := steps[i-1], steps[i]; {
		case above.Lower == nil:
			return fmt.Errorf("StepAdjustments has more than one step without a MetricIntervalLowerBound")
		case below.Upper == nil && above.Upper == nil:
			return fmt.Errorf("StepAdjustments has more than one step without a MetricIntervalUpperBound")
		case below.upper() > above.lower():
			return fmt.Errorf("StepAdjustments has steps that overlap at %v", above.lower())
		case below.upper() < above.lower():
			return fmt.Errorf("StepAdjustments has a gap between %v and %v", below.upper(), above.lower())
		}
	}
	first, last := steps[0], steps[len(steps)-1]
	switch {
	case first.Lower != nil && *first.Lower < 0:
		return fmt.Errorf("StepAdjustments has a negative MetricIntervalLowerBound, but no step without one")
	case last.Upper != nil && *last.Upper > 0:
		return fmt.Errorf("StepAdjustments has a positive MetricIntervalUpperBound, but no step without one")
	}
	return nil
}

func (s Step) sorted() []StepAdjustment {
	sorted := slices.Clone(s.Adjustments)
	sort.Slice(sorted, func(i, j int) bool {
		a, b := &sorted[i], &sorted[j]
		return cmp.Or(cmp.Compare(a.lower(), b.lower()), cmp.Compare(a.upper(), b.upper())) < 0
	})
	return sorted
}

// Desired returns the capacity that the policy wants when its alarm goes off. If no step covers the
// metric's distance from the threshold, the policy wants no change.
func (s Step) Desired(capacity int, metric, threshold float64) int {
	a := s.step(metric - threshold)
	if a == nil {
		return capacity
	}
	switch s.AdjustmentType {
	case ExactCapacity:
		return a.Adjustment
	case PercentChangeInCapacity:
		return toCapacity(float64(capacity) + s.percent(capacity, a.Adjustment))
	}
	return toCapacity(float64(capacity) + float64(a.Adjustment))
}

// Applies reports whether a step covers the metric.
func (s Step) Applies(metric, threshold float64) bool { return s.step(metric-threshold) != nil }

// step finds the step for a distance from the threshold. At the threshold and above, a step includes its lower
// bound and excludes its upper one. Below, it's the other way round.
func (s Step) step(distance float64) *StepAdjustment {
	for i := range s.Adjustments {
		a := &s.Adjustments[i]
		if distance >= 0 && a.lower() <= distance && distance < a.upper() {
			return a
		}
	}
	for i := range s.Adjustments {
		a := &s.Adjustments[i]
		if distance <= 0 && a.lower() < distance && distance <= a.upper() {
			return a
		}
	}
	return nil
}

// percent converts a change in percent to a number of tasks, rounded towards 0 but to at least one.
// See "Scaling adjustment types" in the page "How step scaling for Application Auto Scaling works".
func (s Step) percent(capacity, adjustment int) float64 {
	change := float64(capacity) * float64(adjustment) / 100
	size := math.Floor(math.Abs(change))
	if change != 0 {
		size = max(size, 1)
	}
	if adjustment != 0 {
		size = max(size, float64(s.MinAdjustmentMagnitude))
	}
	return math.Copysign(size, float64(adjustment))
}
