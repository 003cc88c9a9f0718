package scaling

import (
	"math"
	"time"
)

// TargetTracking is a target tracking scaling policy.
type TargetTracking struct {
	TargetValue                       float64
	DisableScaleIn                    bool
	ScaleOutCooldown, ScaleInCooldown time.Duration
}

// DefaultCooldown is ECS's, from TargetTrackingScalingPolicyConfiguration and StepScalingPolicyConfiguration.
const DefaultCooldown = 300 * time.Second

// slack is the error of floating-point numbers that must not cost a task.
const slack = 1e-9

// Out is the capacity that brings the metric down to the target. From nothing, whose metric tells
// nothing of how much is needed, it goes to one.
func (t TargetTracking) Out(base int, metric float64) int {
	if !(metric > t.TargetValue) {
		return base
	}
	return max(base, 1, t.need(base, metric))
}

// In is the smallest capacity that keeps the metric at or below the target: rounded up, so that the
// scale-in does not set off the next scale-out.
func (t TargetTracking) In(capacity int, metric float64) int {
	if t.DisableScaleIn || !(metric < t.TargetValue) {
		return capacity
	}
	return min(capacity, t.need(capacity, metric))
}

// need is the capacity that load, which is the capacity times the metric of one, comes to.
func (t TargetTracking) need(capacity int, metric float64) int {
	return whole(math.Ceil(float64(capacity)*metric/t.TargetValue - slack))
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

// HighResolution is for the predefined metrics by 20 seconds. What AWS's alarms on them wait for is not documented: here it
// is a minute on the way out, and on the way in as long as ever.
var HighResolution = Reaction{Period: 20 * time.Second, Out: 3, In: 45}

// Alarm is one of the alarms that a target tracking policy owns.
type Alarm struct {
	Name               string
	ComparisonOperator string
	Threshold          float64
	EvaluationPeriods  int
	Period             time.Duration
}

// inPart is the part of the target below which the low alarm goes off, so that the two alarms are apart.
const inPart = 0.9

// The names of the alarms of a policy begin so; the resource, the kind and a UUID follow.
const alarmPrefix = "TargetTracking-"

// High is the alarm that scales out. resource is the target's id: "service/default/web".
func (t TargetTracking) High(resource, uuid string, r Reaction) Alarm {
	return Alarm{alarmPrefix + resource + "-AlarmHigh-" + uuid, "GreaterThanThreshold", t.TargetValue, r.Out, r.Period}
}

// Low is the alarm that scales in.
func (t TargetTracking) Low(resource, uuid string, r Reaction) Alarm {
	return Alarm{alarmPrefix + resource + "-AlarmLow-" + uuid, "LessThanThreshold", round(t.TargetValue * inPart), r.In, r.Period}
}

// round drops what the product of two decimal fractions has too many digits of.
func round(f float64) float64 {
	if r := math.Round(f*1e9) / 1e9; r > 0 && !math.IsInf(r, 0) {
		return r
	}
	return f
}
