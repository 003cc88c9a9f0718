// Package sim replays a load against a service in simulated time. The requests of a trace queue for the slots of the service's
// tasks. The resulting metrics go to the metric store, and the real control plane, with its services and loops, scales the
// service by a policy on simulated nodes. The package reads no clock and touches only its own temporary directory, so hours
// take seconds, and the same input gives the same result.
package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/instancetype"
)

// Scenario is what to replay.
type Scenario struct {
	Requests []Request
	// Length is how long the replay lasts.
	Length time.Duration
	// TaskDefinition is what the service runs.
	TaskDefinition *awsecs.RegisterTaskDefinitionInput
	// Slots is how many requests a task handles at the same time.
	Slots int
	// Start is the time from a task's placement until it's RUNNING and takes requests.
	Start time.Duration
	// SLO is the longest time that a request may wait for a slot.
	SLO time.Duration
	// Fleet lists the nodes, which are there all the time.
	Fleet []instancetype.Type
	// Min and Max are the service's bounds. It starts at Min.
	Min, Max int
	// Fast makes the control plane react fast. Otherwise it reacts as AWS does.
	Fast bool
}

// Policy is a scaling policy as Application Auto Scaling takes it. A step scaling policy brings the alarms that trigger it. Run
// adds the policy to their actions.
type Policy struct {
	applicationautoscaling.PutScalingPolicyInput
	Alarms []cloudwatch.PutMetricAlarmInput
}

// The names by which a policy finds what it scales and the metrics of the load.
const (
	Cluster = "default"
	Service = "sim"
	Queue   = "sim"
)

// Moment is the state at the end of a second, or of the last second of a longer interval.
type Moment struct {
	At       time.Duration
	Desired  int
	Running  int
	Waiting  int
	Working  int
	Arrived  int // in this interval
	Finished int // in this interval
}

// ByMinute summarizes a timeline of seconds as one moment for each minute.
func ByMinute(seconds []Moment) []Moment {
	const minute = int(time.Minute / time.Second)
	var out []Moment
	for i, m := range seconds {
		if i%minute > 0 {
			last := out[len(out)-1]
			m.Arrived += last.Arrived
			m.Finished += last.Finished
			out[len(out)-1] = m
			continue
		}
		out = append(out, m)
	}
	return out
}

// Scaling is one scaling activity.
type Scaling struct {
	At      time.Duration
	Desired int `json:",omitempty"` // 0 if the service was not scaled
	Cause   string
	Details string `json:",omitempty"`
	Reason  string `json:",omitempty"` // the code of the reason for not scaling
}

// Result is the outcome of a replay.
type Result struct {
	Requests int
	// Met is how many requests waited no longer than the SLO.
	Met int
	// Waits lists how long the requests that got a slot had waited, sorted.
	Waits []time.Duration `json:"-"`
	// Held is how long tasks held their places, and so their GPUs, added up: from placement to STOPPED.
	Held time.Duration
	// GPUs is how many GPUs a task holds.
	GPUs     int
	Peak     int // most tasks at once
	Timeline []Moment
	Scalings []Scaling
}

// GPUHours returns the GPU-hours that the replay used. Without GPUs, it returns the tasks' hours.
func (r *Result) GPUHours() float64 { return r.Held.Hours() * float64(max(1, r.GPUs)) }

// Attainment returns the fraction of the requests that met the SLO.
func (r *Result) Attainment() float64 {
	if r.Requests == 0 {
		return 1
	}
	return float64(r.Met) / float64(r.Requests)
}

// epoch is when a replay begins: at the start of an hour, where metric periods begin too.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// maxTasks is how many tasks ECS allows for a service.
const maxTasks = 5000

// check refuses a scenario that makes no sense.
func (s *Scenario) check() error {
	switch {
	case s.Length < time.Minute:
		return errors.New("a replay lasts at least a minute")
	case len(s.Requests) == 0:
		return errors.New("the trace has no requests")
	case s.Slots < 1:
		return errors.New("a task must have at least one slot for requests")
	case s.Start < 0 || s.SLO < 0:
		return errors.New("the time to start a task and the SLO cannot be negative")
	case s.Min < 0 || s.Max < s.Min || s.Max < 1 || s.Max > maxTasks:
		return fmt.Errorf("the bounds must be 0 <= min <= max and 1 <= max <= %d, not %d and %d", maxTasks, s.Min, s.Max)
	}
	return nil
}

// Run replays a scenario under a policy. Without a policy the service stays at its minimum.
func Run(ctx context.Context, s Scenario, policy *Policy) (*Result, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := newReplay(ctx, s, &simulated{now: epoch})
	if err != nil {
		return nil, err
	}
	result, err := p.replay(ctx, policy)
	return result, errors.Join(err, p.close())
}
