// Package hindsight replays the past load of a service or of an Auto Scaling group under another target tracking policy: how many tasks or
// instances would have run, and what the metric would have been. It decides by the maths of the scaling loops and of alarms, for the console's page.
// It is pure, and it knows the load only from what was measured: the metric times what ran. What it says of tasks holds for instances, too.
package hindsight

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/scaling"
)

// History is what was, in periods of one length, the oldest first. What isn't known is NaN.
type History struct {
	From    time.Time // a multiple of Period
	Period  time.Duration
	Metric  []float64
	Running []float64 // tasks
}

// Policy is what to replay a history with.
type Policy struct {
	scaling.TargetTracking
	scaling.Bounds
	// Out and In are how many periods the policy's alarms wait for.
	Out, In int
	// Start is how long a task takes until it's RUNNING.
	Start time.Duration
	// Full is the most that the metric can be, such as 100 percent, or 0 if it has no such bound.
	Full float64
	// Group is set for an Auto Scaling group. It has no cool-downs: an instance counts as warming up for Warmup after its start.
	Group  bool
	Warmup time.Duration
}

// PolicyOfGroup reads a policy of an Auto Scaling group, and the group's bounds and warm-up.
func PolicyOfGroup(p *grouptypes.ScalingPolicy, g *grouptypes.AutoScalingGroup) Policy {
	seconds := cmp.Or(p.EstimatedInstanceWarmup, g.DefaultInstanceWarmup, g.DefaultCooldown)
	c := p.TargetTrackingConfiguration
	return Policy{
		TargetTracking: scaling.TargetTracking{TargetValue: aws.ToFloat64(c.TargetValue), DisableScaleIn: aws.ToBool(c.DisableScaleIn)},
		Bounds:         scaling.Bounds{Min: int(aws.ToInt32(g.MinSize)), Max: int(aws.ToInt32(g.MaxSize))},
		Group:          true,
		Warmup:         time.Duration(max(0, aws.ToInt32(seconds))) * time.Second,
	}
}

// PolicyOf reads a policy and the bounds of what it scales, as the API keeps them.
func PolicyOf(c *types.TargetTrackingScalingPolicyConfiguration, t types.ScalableTarget) Policy {
	bounds := scaling.Bounds{Min: int(aws.ToInt32(t.MinCapacity)), Max: int(aws.ToInt32(t.MaxCapacity))}
	return Policy{TargetTracking: scaling.TargetTrackingOf(c), Bounds: bounds}
}

// Outcome is what would have been, in the history's periods.
type Outcome struct {
	Metric   []float64 // NaN where the load isn't known
	Running  []float64 // a task that started in a period counts in part
	Scalings int
}

// Figures sum up what was or would have been.
type Figures struct {
	TaskHours   float64
	Least, Most float64 // tasks at once
	Above       float64 // the fraction of the time with a metric in which that was above the target
}

// replay is a replay that goes on.
type replay struct {
	Policy
	period time.Duration
	alarms [2]watched // the high and the low one
	points []alarm.Datapoint
	ready  []time.Time // when each task is RUNNING, the oldest first
	past   scaling.Past
	Outcome
}

// watched is an alarm with its state.
type watched struct {
	alarm.Metric
	low   bool
	state alarm.State
}

// Replay returns what would have been. It begins with as many tasks as there were, within the bounds.
func Replay(h History, p Policy) Outcome {
	reaction := scaling.Reaction{Period: h.Period, Out: p.Out, In: p.In}
	r := &replay{Policy: p, period: h.Period}
	for i, a := range []scaling.Alarm{p.High("", "", reaction), p.Low("", "", reaction)} {
		r.alarms[i] = watched{
			Metric: alarm.Metric{ComparisonOperator: a.ComparisonOperator, Threshold: a.Threshold, EvaluationPeriods: a.EvaluationPeriods, Period: a.Period},
			low:    i == 1,
			state:  alarm.InsufficientData,
		}
	}
	r.ready = make([]time.Time, p.Clamp(initial(h.Running)))
	for i := range h.Metric {
		at := h.From.Add(time.Duration(i) * h.Period)
		r.play(at, Load(h.Metric[i], h.Running[i]))
		r.scale(at.Add(h.Period))
	}
	return r.Outcome
}

// initial returns how many tasks there were at first.
func initial(running []float64) int {
	for _, n := range running {
		if !math.IsNaN(n) {
			return int(math.Ceil(n))
		}
	}
	return 0
}

// Load returns what a metric says of all tasks together. Without tasks it's what one would have to do.
func Load(metric, running float64) float64 { return metric * max(1, running) }

// play adds a period with a load.
func (r *replay) play(at time.Time, load float64) {
	settled := sort.Search(len(r.ready), func(i int) bool { return r.ready[i].After(at) })
	running := float64(settled)
	for _, ready := range r.ready[settled:] {
		up := at.Add(r.period).Sub(ready)
		running += min(1, max(0, up.Seconds()/r.period.Seconds()))
	}
	metric := load / max(1, running)
	if r.Full > 0 {
		metric = min(metric, r.Full)
	}
	r.Running = append(r.Running, running)
	r.Metric = append(r.Metric, metric)
	if !math.IsNaN(metric) {
		r.points = append(r.points, alarm.Datapoint{Timestamp: at, Value: metric})
	}
}

// scale has the alarms evaluated, and does what the policy wants of them.
func (r *replay) scale(now time.Time) {
	capacity := len(r.ready)
	for i := range r.alarms {
		a := &r.alarms[i]
		from, _ := a.Range(now)
		seen := r.points[r.after(from):]
		if a.state = a.Evaluate(a.state, seen, now).State; a.state != alarm.Alarming {
			continue
		}
		values := r.values(*a, now)
		if len(values) == 0 {
			continue
		}
		wanted, base := r.want(a.low, values, now)
		if wanted = r.Clamp(wanted); wanted != capacity {
			r.past = scaling.Past{At: now, From: base, To: wanted}
			r.set(wanted, now)
			return
		}
	}
}

// want returns what the policy wants because an alarm is in ALARM, and what a scale-out counts from. As for the groups' loop, a group's instances
// that warm up don't count when it scales out, and keep it from scaling in.
func (r *replay) want(low bool, values []float64, now time.Time) (wanted, base int) {
	capacity := len(r.ready)
	if !r.Group {
		return r.Want(low, values, capacity, r.past, now)
	}
	warm := sort.Search(capacity, func(i int) bool { return r.ready[i].Add(r.Warmup).After(now) })
	switch {
	case !low:
		return max(capacity, r.TargetTracking.Out(warm, values[0])), warm
	case warm < capacity:
		return capacity, warm
	}
	return r.TargetTracking.In(capacity, slices.Max(values)), warm
}

// after returns the number of the first point at a time or later.
func (r *replay) after(from time.Time) int {
	i, _ := slices.BinarySearchFunc(r.points, from, func(p alarm.Datapoint, t time.Time) int { return p.Timestamp.Compare(t) })
	return i
}

// values returns those of an alarm's evaluation periods that count, the newest first.
func (r *replay) values(a watched, now time.Time) (values []float64) {
	from := now.Add(-time.Duration(a.EvaluationPeriods) * r.period)
	if since := r.Since(a.low, r.past, now); !r.Group && since.After(from) {
		from = since
	}
	for _, p := range slices.Backward(r.points[r.after(from):]) {
		values = append(values, p.Value)
	}
	return values
}

// set starts tasks, or stops those that were started last.
func (r *replay) set(desired int, now time.Time) {
	r.Scalings++
	for len(r.ready) < desired {
		r.ready = append(r.ready, now.Add(r.Start))
	}
	r.ready = r.ready[:desired]
}

// Sum sums up a number of tasks and a metric over time.
func Sum(running, metric []float64, period time.Duration, target float64) (f Figures) {
	f.Least = math.Inf(1)
	known, above := 0, 0
	for i, n := range running {
		if !math.IsNaN(n) {
			f.TaskHours += n * period.Hours()
			f.Least, f.Most = min(f.Least, n), max(f.Most, n)
		}
		if !math.IsNaN(metric[i]) {
			known++
			if metric[i] > target {
				above++
			}
		}
	}
	f.Above = float64(above) / float64(max(1, known))
	return f
}
