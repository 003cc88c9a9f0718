package scaling

import (
	"math"
	"slices"
	"time"
)

// TargetTracking is a target tracking scaling policy.
type TargetTracking struct {
	TargetValue      float64
	DisableScaleIn   bool
	ScaleOutCooldown time.Duration
	ScaleInCooldown  time.Duration
}

// DefaultCooldown is ECS's, from TargetTrackingScalingPolicyConfiguration and StepScalingPolicyConfiguration.
const DefaultCooldown = 300 * time.Second

// slack keeps floating-point errors from costing a task.
const slack = 1e-9

// Out returns the capacity that brings the metric down to the target. From 0 it goes to at least 1: the metric
// of no capacity doesn't show how much is needed.
func (t TargetTracking) Out(base int, metric float64) int {
	if !(metric > t.TargetValue) {
		return base
	}
	return max(base, 1, t.need(base, metric))
}

// In returns the smallest capacity that keeps the metric at or below the target. It rounds up, so that the
// scale-in doesn't set off the next scale-out.
func (t TargetTracking) In(capacity int, metric float64) int {
	if t.DisableScaleIn || !(metric < t.TargetValue) {
		return capacity
	}
	return min(capacity, t.need(capacity, metric))
}

// Want returns the capacity that the policy wants because its high or its low alarm is in ALARM, and the capacity that a scale-out
// counts from. values are the metric's, newest first, and at least one.
func (t TargetTracking) Want(low bool, values []float64, capacity int, past Past, now time.Time) (desired, base int) {
	if !low {
		base = past.Base(capacity, t.ScaleOutCooldown, now)
		return max(capacity, t.Out(base, values[0])), base
	}
	if past.BlocksIn(t.ScaleInCooldown, now) {
		return capacity, capacity
	}
	// Take the highest that the alarm saw: one quiet period among them is no reason to give up more.
	return t.In(capacity, slices.Max(values)), capacity
}

// Since returns from when on the metric's values count for the high or the low alarm. The policy multiplies the metric by the
// capacity at which it was measured, so values from before the last change don't count. But a scale-out during the cool-down of the
// last one counts from the capacity before that one, so there they do.
func (t TargetTracking) Since(low bool, past Past, now time.Time) time.Time {
	if !low && past.Base(past.To, t.ScaleOutCooldown, now) != past.To {
		return time.Time{}
	}
	return past.At
}

// need returns the capacity for the load, which is capacity times metric.
func (t TargetTracking) need(capacity int, metric float64) int {
	return toCapacity(math.Ceil(float64(capacity)*metric/t.TargetValue - slack))
}

// Reaction is how fast policies' alarms see a change.
type Reaction struct {
	Period time.Duration
	// Out and In are how many data points in a row each alarm waits for.
	Out, In int
}

// Faithful is what Application Auto Scaling does. Fast is for metrics of high resolution.
var (
	Faithful = Reaction{Period: time.Minute, Out: 3, In: 15}
	Fast     = Reaction{Period: 10 * time.Second, Out: 1, In: 6}
)

// HighResolution is for the predefined metrics with a period of 20 seconds. AWS doesn't document what its alarms on them
// wait for. Here it's a minute before scaling out, and 15 minutes as usual before scaling in.
var HighResolution = Reaction{Period: 20 * time.Second, Out: 3, In: 45}

// PerMinute returns the reaction to a metric whose targets are sums of a minute, as ALBRequestCountPerTarget's are: a shorter period has less.
func (r Reaction) PerMinute() Reaction {
	minutes := func(points int) int { return int((time.Duration(points)*r.Period + time.Minute - 1) / time.Minute) }
	return Reaction{Period: max(r.Period, time.Minute), Out: max(1, minutes(r.Out)), In: max(1, minutes(r.In))}
}

// Alarm is one of the alarms that a target tracking policy owns.
type Alarm struct {
	Name               string
	ComparisonOperator string
	Threshold          float64
	EvaluationPeriods  int
	Period             time.Duration
}

// inPart is the fraction of the target below which the low alarm goes off. It keeps the two alarms apart.
const inPart = 0.9

// alarmPrefix begins the names of a policy's alarms. The resource, the kind and a UUID follow.
const alarmPrefix = "TargetTracking-"

// High is the alarm that scales out. resource is the target's id: "service/default/web".
func (t TargetTracking) High(resource, uuid string, r Reaction) Alarm {
	return Alarm{alarmPrefix + resource + "-AlarmHigh-" + uuid, "GreaterThanThreshold", t.TargetValue, r.Out, r.Period}
}

// Low is the alarm that scales in.
func (t TargetTracking) Low(resource, uuid string, r Reaction) Alarm {
	return Alarm{alarmPrefix + resource + "-AlarmLow-" + uuid, "LessThanThreshold", round(t.TargetValue * inPart), r.In, r.Period}
}

// round drops the surplus digits that the product of two decimal fractions has.
func round(f float64) float64 {
	if r := math.Round(f*1e9) / 1e9; r > 0 && !math.IsInf(r, 0) {
		return r
	}
	return f
}
