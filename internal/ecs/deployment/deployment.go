// Package deployment decides the next step of an ECS service: which tasks to start and to stop now, and
// whether its roll-out is complete or has failed. It is pure: from a service's wish, its deployments and
// its tasks it makes a plan; the same step decided twice does no harm. Package rollout calls it.
package deployment

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Service is what a service is wanted to be.
type Service struct {
	Daemon    bool
	Desired   int      // tasks of a REPLICA service
	Instances []string // that a DAEMON service wants a task on
	Deleted   bool     // all that is left of it has to go

	MinimumHealthyPercent, MaximumPercent int
	Breaker                               Breaker
	Alarms                                Alarms
	// Bake is how long a deployment that is all there goes on being watched before it is complete.
	Bake time.Duration

	// Zones are those that tasks are to be spread over evenly; none where they stay where they are.
	Zones []string
	// Rebalancing says that tasks are on their way to where they are missing.
	Rebalancing bool
}

// Breaker is the deployment circuit breaker.
type Breaker struct {
	Enabled, Rollback bool
	Threshold         int // of failed tasks
}

// Alarms are the deployment alarms.
type Alarms struct {
	Triggered, Rollback bool
}

// State is a deployment's roll-out state.
type State string

// The roll-out states.
const (
	InProgress State = "IN_PROGRESS"
	Completed  State = "COMPLETED"
	Failed     State = "FAILED"
)

// Deployment is one deployment of the service.
type Deployment struct {
	ID        string
	State     State
	Failed    int       // tasks, one after the other
	NotBefore time.Time // a task is started again after failures
	Unplaced  bool      // the last task found no room
	Stopped   bool      // by a user, who wants the last completed one back
	BakesFrom time.Time // zero until it was all there
}

// Failure is why a roll-out has failed.
type Failure int

// The failures.
const (
	TasksFailed Failure = iota + 1
	AlarmDetected
	StoppedByUser
)

// Status is how far a task has come.
type Status int

// The statuses of tasks that are not STOPPED.
const (
	Pending   Status = iota
	Running          // and not long enough, or not yet found healthy
	Healthy          // RUNNING, and counted as healthy
	Unhealthy        // by its own health check
	Stopping         // wanted stopped, by whomever
)

// Task is a task of the service that is not STOPPED.
type Task struct {
	ID, Deployment string
	Instance, Zone string
	Status         Status
	ChangesAt      time.Time // when the status changes with time alone; zero for never
	ProtectedUntil time.Time
	Draining       bool // its instance is
}

// batch bounds how many tasks one step starts, and how many it stops.
const batch = 50

// Plan is one step.
type Plan struct {
	Start   int      // tasks of the PRIMARY deployment
	StartOn []string // instances that get one each, for a DAEMON service
	Stop    []Task   // in this order
	// Rollout is the new state of the PRIMARY deployment, "" for no change.
	Rollout    State
	Failure    Failure // of a roll-out that has failed
	RollBackTo string  // the deployment that becomes PRIMARY after a failure
	Bakes      bool    // the PRIMARY deployment is all there, and is watched from now on
	// StartIn are zones of which one gets a task, the first that has room for it: another zone has too many.
	StartIn []string
	// Rebalancing is what Service.Rebalancing is to be.
	Rebalancing bool
	// Held is how many tasks would be stopped, or moved, were they not protected.
	Held int
	// Steady says that the service is what it is wanted to be.
	Steady bool
	// Wake is when time alone may make another step due; zero for never.
	Wake time.Time
}

// Decide makes the next step. The deployments are the PRIMARY first, then the others, the newest first.
func Decide(s Service, deployments []Deployment, tasks []Task, now time.Time) Plan {
	if s.Deleted {
		return Plan{Stop: slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return t.Status == Stopping })}
	}
	if failure := s.failure(deployments[0]); failure != 0 {
		return Plan{Rollout: Failed, Failure: failure, RollBackTo: s.rollBackTo(failure, deployments)}
	}
	d := newStep(s, deployments, tasks, now)
	if s.Daemon {
		d.daemon()
	} else {
		d.replicas()
	}
	d.finish()
	d.plan.Held = len(d.held)
	return d.plan
}

// failure is why the PRIMARY deployment's roll-out has failed, 0 where it has not.
func (s Service) failure(primary Deployment) Failure {
	switch {
	case primary.State != InProgress:
		return 0
	case primary.Stopped:
		return StoppedByUser
	case s.Alarms.Triggered:
		return AlarmDetected
	case s.Breaker.Enabled && primary.Failed >= s.Breaker.Threshold:
		return TasksFailed
	}
	return 0
}

// rollBackTo is the newest deployment that was completed, if there is one and what found the failure wants it back:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-failure-detection.html
func (s Service) rollBackTo(f Failure, deployments []Deployment) string {
	wanted := map[Failure]bool{TasksFailed: s.Breaker.Rollback, AlarmDetected: s.Alarms.Rollback, StoppedByUser: true}
	for _, d := range deployments[1:] {
		if wanted[f] && d.State == Completed {
			return d.ID
		}
	}
	return ""
}

// step is a plan in the making.
type step struct {
	service Service
	primary Deployment
	age     map[string]int // of deployments, by id; 0 is the PRIMARY one
	tasks   []Task
	now     time.Time

	min     int // healthy tasks that our own stops must leave
	max     int // tasks that there may be
	desired int
	healthy int // tasks that are, less those that the plan stops
	stopped map[string]bool
	held    map[string]bool // by their protection
	plan    Plan
}

func newStep(s Service, deployments []Deployment, tasks []Task, now time.Time) *step {
	d := &step{service: s, primary: deployments[0], age: map[string]int{}, tasks: tasks, now: now, desired: s.Desired, stopped: map[string]bool{}, held: map[string]bool{}}
	if s.Daemon {
		d.desired = len(s.Instances)
	}
	// Rounded as API_DeploymentConfiguration says.
	d.min = percent(d.desired, s.MinimumHealthyPercent)
	d.max = d.desired * s.MaximumPercent / 100
	d.plan.Rebalancing = s.Rebalancing && d.rebalances()
	for i, deployment := range deployments {
		d.age[deployment.ID] = i
	}
	for _, t := range tasks {
		if t.Status == Healthy {
			d.healthy++
		}
		d.wake(t.ChangesAt)
	}
	return d
}

// good says whether a task is what the service wants: of the PRIMARY deployment, not unhealthy, and on
// an instance that stays.
func (d *step) good(t Task) bool {
	return d.live(t) && t.Deployment == d.primary.ID && t.Status != Unhealthy && !t.Draining
}

// fine says whether a task is what the service wants, and healthy.
func (d *step) fine(t Task) bool { return d.good(t) && t.Status == Healthy }

// live says whether a task is not stopping, nor about to.
func (d *step) live(t Task) bool { return t.Status != Stopping && !d.stopped[t.ID] }

func (d *step) count(which func(Task) bool) int {
	n := 0
	for _, t := range d.tasks {
		if which(t) {
			n++
		}
	}
	return n
}

// mayStart says whether tasks may be started. After failures they have to wait; one that only found
// no room may be tried whenever somebody looks.
func (d *step) mayStart() bool {
	return d.primary.State != Failed && (d.primary.Unplaced || !d.now.Before(d.primary.NotBefore))
}

// stop stops a task, unless it is protected, or a healthy one that must stay.
func (d *step) stop(t Task) bool {
	if !d.live(t) || d.full() || t.Status == Healthy && d.healthy <= d.min {
		return false
	}
	if d.now.Before(t.ProtectedUntil) {
		d.hold(t)
		return false
	}
	if t.Status == Healthy {
		d.healthy--
	}
	d.stopped[t.ID] = true
	d.plan.Stop = append(d.plan.Stop, t)
	return true
}

// hold waits for a protected task.
func (d *step) hold(t Task) {
	d.held[t.ID] = true
	d.wake(t.ProtectedUntil)
}

// full says that the step stops enough.
func (d *step) full() bool { return len(d.plan.Stop) == batch }

// wake has somebody look again at the time.
func (d *step) wake(at time.Time) {
	if at.After(d.now) && (d.plan.Wake.IsZero() || at.Before(d.plan.Wake)) {
		d.plan.Wake = at
	}
}

// finish says whether the roll-out is complete and the service steady.
func (d *step) finish() {
	if d.plan.Start+len(d.plan.StartOn)+len(d.plan.Stop) > 0 || d.primary.State == Failed {
		return
	}
	done := d.count(d.fine) == d.desired && d.count(d.live) == d.desired
	if done && d.primary.State == InProgress && !d.baked() {
		return
	}
	if done && d.primary.State == InProgress {
		d.plan.Rollout = Completed
	}
	d.plan.Steady = done
	if done {
		d.rebalance()
	}
}

// baked says whether a deployment that is all there has been watched for as long as it has to be.
func (d *step) baked() bool {
	if d.service.Bake == 0 {
		return true
	}
	if d.primary.BakesFrom.IsZero() {
		d.plan.Bakes = true
		d.wake(d.now.Add(d.service.Bake))
		return false
	}
	end := d.primary.BakesFrom.Add(d.service.Bake)
	d.wake(end)
	return !d.now.Before(end)
}

// Threshold is after how many failed tasks the circuit breaker trips: API_ThresholdConfiguration. Without one it
// is half of the desired count, within limits.
func Threshold(c *types.ThresholdConfiguration, desired int) int {
	switch {
	case c == nil:
		return bounded(desired, 50)
	case c.Type == types.ThresholdTypeCount:
		return int(c.Value)
	case c.Type == types.ThresholdTypeUnboundedPercent:
		return max(percent(desired, int(c.Value)), 1)
	}
	return bounded(desired, int(c.Value))
}

// BreakerOf says how near the circuit breaker is to failing a deployment.
func BreakerOf(c *types.DeploymentCircuitBreaker, desired int, d *types.Deployment) *types.ServiceDeploymentCircuitBreaker {
	b := &types.ServiceDeploymentCircuitBreaker{FailureCount: d.FailedTasks, Status: types.ServiceDeploymentRollbackMonitorsStatusDisabled}
	if !c.Enable {
		return b
	}
	b.Threshold = int32(Threshold(c.ThresholdConfiguration, desired))
	b.Status = types.ServiceDeploymentRollbackMonitorsStatusMonitoring
	if d.RolloutState == types.DeploymentRolloutStateCompleted {
		b.Status = types.ServiceDeploymentRollbackMonitorsStatusMonitoringComplete
	}
	return b
}

func bounded(desired, share int) int { return min(max(percent(desired, share), 3), 200) }

// percent is a share of the desired count, rounded up.
func percent(desired, share int) int { return (desired*share + 99) / 100 }

// maxDelay is the longest time between two attempts:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-throttle-logic.html
const maxDelay = 27 * time.Minute

// Delay is how long to wait after a number of failed tasks: a second after the first round of them,
// and twice as long after each other.
func Delay(failed, desired int) time.Duration {
	rounds := Rounds(failed, desired)
	if rounds == 0 {
		return 0
	}
	return min(time.Second<<min(rounds-1, 20), maxDelay)
}

// Rounds is how often all of a service's tasks have failed.
func Rounds(failed, desired int) int {
	desired = max(desired, 1)
	return (failed + desired - 1) / desired
}
