// Package deployment decides the next step of an ECS service: which tasks to start and stop now, and whether its
// roll-out is complete or has failed. It is pure: settings, deployments and tasks go in, a Plan comes out, and deciding
// the same step twice does no harm. The rollout loop calls it.
package deployment

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Service is the desired state of a service.
type Service struct {
	Daemon    bool
	Desired   int      // tasks of a REPLICA service
	Instances []string // wanted by a DAEMON service, with a task each
	Deleted   bool     // every task has to go

	MinimumHealthyPercent int
	MaximumPercent        int
	Breaker               Breaker
	Alarms                Alarms
	// Bake is how long we go on watching a deployment whose tasks are all healthy before it is complete.
	Bake time.Duration

	// Zones are the Availability Zones to spread tasks over evenly; none leaves tasks where they are.
	Zones []string
	// Rebalancing is set while tasks move between zones.
	Rebalancing bool
}

// Breaker is the deployment circuit breaker.
type Breaker struct {
	Enabled   bool
	Rollback  bool
	Threshold int // of failed tasks
}

// Alarms are the deployment alarms.
type Alarms struct {
	Triggered bool
	Rollback  bool
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
	Failed    int       // tasks in a row
	NotBefore time.Time // no task starts earlier, after failures
	Unplaced  bool      // the last task found no room
	Stopped   bool      // by a user, who wants to roll back
	BakesFrom time.Time // zero until all its tasks were healthy
}

// Failure is why a roll-out failed.
type Failure int

// The failures.
const (
	TasksFailed Failure = iota + 1
	AlarmDetected
	StoppedByUser
	HookFailed   // a lifecycle hook, by a user or since it has waited for too long
	ListenerGone // or its rule, whose traffic was to be shifted
)

// Status is how far a task has come.
type Status int

// The statuses of tasks that are not STOPPED.
const (
	Pending   Status = iota
	Running          // but not for long enough, or not yet found healthy
	Healthy          // RUNNING, and counted as healthy
	Unhealthy        // by its own health check
	Stopping         // its desired status is STOPPED, whoever set it
)

// Task is a task of the service that is not STOPPED.
type Task struct {
	ID             string
	Deployment     string
	Instance       string
	Zone           string
	Status         Status
	ChangesAt      time.Time // when time alone changes the status; zero is never
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
	Failure    Failure // why Rollout is Failed
	RollBackTo string  // the deployment that becomes PRIMARY after a failure
	Bakes      bool    // the PRIMARY deployment begins its bake time
	// StartIn are the zones that have too few tasks. The first one with room gets one.
	StartIn []string
	// Rebalancing is the new Service.Rebalancing.
	Rebalancing bool
	// Held counts the tasks that we would stop or move if they were not protected.
	Held int
	// Steady is set when the service has reached its desired state.
	Steady bool
	// Wake is when time alone may make another step due; zero is never.
	Wake time.Time
}

// Decide plans the next step. deployments are the PRIMARY one, then the others, newest first.
func Decide(s Service, deployments []Deployment, tasks []Task, now time.Time) Plan {
	if s.Deleted {
		return Plan{Stop: slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return t.Status == Stopping })}
	}
	if failure := s.Failure(deployments[0]); failure != 0 {
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

// Failure returns why the PRIMARY deployment's roll-out failed, or 0.
func (s Service) Failure(primary Deployment) Failure {
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

// rollBackTo returns the newest completed deployment, if the failure's detector is set to roll back, or "":
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-failure-detection.html
func (s Service) rollBackTo(f Failure, deployments []Deployment) string {
	for _, d := range deployments[1:] {
		if s.RollsBack(f) && d.State == Completed {
			return d.ID
		}
	}
	return ""
}

// RollsBack reports whether a failure is to be rolled back.
func (s Service) RollsBack(f Failure) bool {
	switch f {
	case TasksFailed:
		return s.Breaker.Rollback
	case AlarmDetected:
		return s.Alarms.Rollback
	}
	return true
}

// step is a plan in the making.
type step struct {
	service Service
	primary Deployment
	age     map[string]int // of deployments, by id; the PRIMARY one is 0
	tasks   []Task
	now     time.Time

	min     int // healthy tasks that our stops must leave
	max     int // tasks allowed, of any status
	desired int
	healthy int // tasks, less those that the plan stops
	stopped map[string]bool
	held    map[string]bool // by their protection
	plan    Plan
}

func newStep(s Service, deployments []Deployment, tasks []Task, now time.Time) *step {
	d := &step{
		service: s,
		primary: deployments[0],
		age:     map[string]int{},
		tasks:   tasks,
		now:     now,
		desired: s.Desired,
		stopped: map[string]bool{},
		held:    map[string]bool{},
	}
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

// good reports whether the service wants to keep a task: it belongs to the PRIMARY deployment, is not unhealthy, and
// its instance isn't draining.
func (d *step) good(t Task) bool {
	return d.live(t) && t.Deployment == d.primary.ID && t.Status != Unhealthy && !t.Draining
}

// fine reports whether a task is good and healthy.
func (d *step) fine(t Task) bool { return d.good(t) && t.Status == Healthy }

// live reports whether a task is neither stopping nor about to.
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

// mayStart reports whether tasks may start. After failures they have to wait. A task that only found no room may try at
// every step.
func (d *step) mayStart() bool {
	return d.primary.State != Failed && (d.primary.Unplaced || !d.now.Before(d.primary.NotBefore))
}

// stop plans a stop and reports whether it did: not of a protected task, nor of a healthy one below the minimum.
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

// hold counts a protected task, and wakes us when its protection ends.
func (d *step) hold(t Task) {
	d.held[t.ID] = true
	d.wake(t.ProtectedUntil)
}

// full reports whether the step stops as many tasks as one may.
func (d *step) full() bool { return len(d.plan.Stop) == batch }

// wake asks for another step at a time.
func (d *step) wake(at time.Time) {
	if at.After(d.now) && (d.plan.Wake.IsZero() || at.Before(d.plan.Wake)) {
		d.plan.Wake = at
	}
}

// finish sets whether the roll-out is complete and the service steady.
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

// baked reports whether the bake time is over. It plans the beginning if it hasn't begun.
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

// Threshold returns the number of failed tasks at which the circuit breaker trips: API_ThresholdConfiguration. The default is
// half the desired count, at least 3 and at most 200.
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

// BreakerOf describes the circuit breaker of a deployment: its status, threshold and failures so far.
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

// bounded returns a share of the desired count, rounded up, within ECS's limits of 3 and 200.
func bounded(desired, share int) int { return min(max(percent(desired, share), 3), 200) }

// percent returns a share of the desired count, rounded up.
func percent(desired, share int) int { return (desired*share + 99) / 100 }

// maxDelay is the longest time between two attempts:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-throttle-logic.html
const maxDelay = 27 * time.Minute

// Delay returns how long to wait after a number of failed tasks: a second after the first round, doubled after each
// further one.
func Delay(failed, desired int) time.Duration {
	rounds := Rounds(failed, desired)
	if rounds == 0 {
		return 0
	}
	return min(time.Second<<min(rounds-1, 20), maxDelay)
}

// Rounds returns how many times all of a service's tasks have failed, rounded up.
func Rounds(failed, desired int) int {
	desired = max(desired, 1)
	return (failed + desired - 1) / desired
}
