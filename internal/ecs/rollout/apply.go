package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

// FailedContainerChecks is why the loop stops an unhealthy task, as DescribeTasks shows it. FailedTargetChecks begins another one, before the target group.
const (
	FailedContainerChecks = "Task failed container health checks"
	FailedTargetChecks    = "Task failed ELB health checks in "
)

// apply carries out a plan. Its events have ECS's own form:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-event-messages-list.html
func (s *step) apply(p deployment.Plan) {
	if p.Rollout == deployment.Failed {
		s.failDeployment(p.Failure, p.RollBackTo)
		return
	}
	s.start(p)
	s.stop(p)
	s.rebalance(p)
	s.announceHeld(p)
	s.dropDeployments(p)
	if p.Bakes {
		s.startBake()
	}
	switch {
	case p.Rollout == deployment.Completed:
		s.complete()
	case *s.row.Status == state.ServiceDraining && (s.taskSet == "" || len(s.tasks) == 0):
		s.end()
	}
	if p.Steady && s.unplaced() { // the task that found no room is no longer wanted
		s.row.Deployments[0].Unplaced = false
		s.changed = true
	}
	isPart := s.taskSet != "" && s.taskSetArn == "" // of a deployment that shifts traffic, whose end is the service's
	if s.steady = p.Steady && !p.Rebalancing; s.steady && !isPart && (s.taskSet == "" || *s.row.Status == state.ServiceActive) {
		s.announceSteady()
	}
}

// announceSteady adds the event of a service or a task set that has reached its desired state, unless it is the last one already: of all, or of the
// task set's.
func (s *step) announceSteady() {
	kind, last := state.Steady, 0
	if s.taskSet != "" {
		kind = state.TaskSetSteady
		last = slices.IndexFunc(s.row.Events, func(e state.ServiceEvent) bool { return strings.HasPrefix(*e.Message, s.name()+" ") })
	}
	if last < 0 || last >= len(s.row.Events) || s.row.Events[last].Kind != kind {
		e := s.eventOf(kind, reachedSteady)
		if s.taskSet != "" {
			e.TaskSets = []string{s.taskSetArn}
		}
	}
}

const reachedSteady = "has reached a steady state."

// announceHeld adds an event when protected tasks keep the service from its desired state.
func (s *step) announceHeld(p deployment.Plan) {
	why := fmt.Sprintf("(taskSet %s) was unable to scale in due to (reason %d tasks under protection)", *s.row.Deployments[0].Id, p.Held)
	switch {
	case p.Held == 0:
	case p.Rebalancing:
		s.eventOnce("was unable to AZ Rebalance because "+why, state.Unbalanced)
	default:
		s.eventOnce("was unable to reach steady state because "+why, state.Steady)
	}
}

// eventOnce adds an event, unless the same one came after the last event of a kind.
func (s *step) eventOnce(message string, since state.ServiceEventKind) {
	for _, e := range s.row.Events {
		if strings.HasSuffix(*e.Message, " "+message) {
			return
		}
		if e.Kind == since {
			break
		}
	}
	s.event(message)
}

// start starts the plan's tasks. It gives up on a capacity provider after the first task that finds no room there. A
// DAEMON service tries each instance.
func (s *step) start(p deployment.Plan) {
	var started []*state.Task
	var failures []types.Failure
	has, full := s.providers(), map[string]bool{}
	for range p.Start {
		provider := capacity.Next(s.row.Deployments[0].CapacityProviderStrategy, has)
		if has[provider]++; full[provider] {
			continue
		}
		s.wanted.CapacityProvider = provider
		s.wanted.MayWait = true
		t, none := s.scheduler.Launch(s.tx, s.wanted)
		if t == nil {
			failures, full[provider] = none, true
			continue
		}
		started = append(started, t)
	}
	for _, instance := range p.StartOn {
		t, failure := s.scheduler.LaunchOn(s.tx, instance, s.wanted)
		if t == nil {
			failures = append(failures, *failure)
			continue
		}
		started = append(started, t)
	}
	if len(started) > 0 {
		s.event(fmt.Sprintf("has started %d tasks: %s.", len(started), list(started)))
	}
	if p.Start+len(p.StartOn) > 0 {
		delete(full, "")
		s.recordPlacement(failures, slices.Sorted(maps.Keys(full)))
	}
}

// providers counts the tasks of the PRIMARY deployment by capacity provider.
func (s *step) providers() map[string]int {
	has := map[string]int{}
	for _, t := range s.tasks {
		if *t.DesiredStatus == "RUNNING" && aws.ToString(t.StartedBy) == *s.row.Deployments[0].Id {
			has[aws.ToString(t.CapacityProviderName)]++
		}
	}
	return has
}

// recordPlacement records whether there was room, and which capacity providers had none.
func (s *step) recordPlacement(failures []types.Failure, full []string) {
	d := &s.row.Deployments[0]
	if len(failures) == 0 {
		s.changed = s.changed || d.Unplaced
		d.Unplaced = false
		return
	}
	message := "was unable to place a task because no container instance met all of its requirements. " + scheduler.Closest(failures)
	if !d.Unplaced || !s.wasAnnounced(message) {
		e, nearest := s.eventOf(state.PlacementFails, message), scheduler.Nearest(failures)
		e.Reason = aws.ToString(nearest.Reason)
		e.Providers = full
		if arn := aws.ToString(nearest.Arn); strings.Contains(arn, ":container-instance/") {
			e.Instances = []string{arn}
		}
	}
	if !d.Unplaced || !s.now.Before(aws.ToTime(d.NotBefore)) { // this was a retry on time, not one after a change
		s.fail(d, &s.now)
	}
	d.Unplaced = true
	if s.wake.IsZero() || d.NotBefore.Before(s.wake) {
		s.wake = *d.NotBefore
	}
}

// wasAnnounced reports whether the last event about a lack of room has this message.
func (s *step) wasAnnounced(message string) bool {
	for _, e := range s.row.Events {
		if e.Kind == state.PlacementFails {
			return strings.HasSuffix(*e.Message, message)
		}
	}
	return false
}

// stop stops the plan's tasks.
func (s *step) stop(p deployment.Plan) {
	var running, pending []*state.Task
	draining := 0
	for _, t := range p.Stop {
		old := s.tx.Tasks.Get(t.ID)
		s.announceDeregistration(old)
		reason := "Scaling activity initiated by (deployment " + *s.row.Deployments[0].Id + ")"
		if t.Status == deployment.Unhealthy {
			reason = s.unhealthy(old)
		}
		if s.tx.StopTask(old, types.TaskStopCodeServiceSchedulerInitiated, reason, s.now).Deregistering {
			draining++
		}
		if *old.LastStatus == "RUNNING" {
			running = append(running, old)
		} else {
			pending = append(pending, old)
		}
	}
	if draining > 0 {
		s.event(fmt.Sprintf("has begun draining connections on %d tasks.", draining))
	}
	switch {
	case p.Rebalancing && len(running) == 1:
		s.eventOf(state.TasksStopped, fmt.Sprintf("has stopped 1 running tasks in %s due to AZ rebalancing: %s.",
			aws.ToString(running[0].AvailabilityZone), list(running))).Tasks = arnsOf(running)
	case len(running) > 0:
		s.eventOf(state.TasksStopped, fmt.Sprintf("has stopped %d running tasks: %s.", len(running), list(running))).Tasks = arnsOf(running)
	}
	if len(pending) > 0 {
		s.event(fmt.Sprintf("has stopped %d pending tasks: %s.", len(pending), list(pending)))
	}
}

func arnsOf(tasks []*state.Task) (out []string) {
	for _, t := range tasks {
		out = append(out, *t.TaskArn)
	}
	return out
}

// list names tasks the way events do.
func list(tasks []*state.Task) string {
	var names []string
	for _, t := range tasks {
		names = append(names, "(task "+state.NameOf(*t.TaskArn)+")")
	}
	return strings.Join(names, " ")
}

// dropDeployments forgets replaced deployments without tasks, but keeps those that the service may still roll back to.
func (s *step) dropDeployments(p deployment.Plan) {
	stopping := map[string]bool{}
	for _, t := range p.Stop {
		stopping[t.ID] = true
	}
	live := map[string]bool{*s.row.Deployments[0].Id: true}
	for _, t := range s.tasks {
		if *t.DesiredStatus == "RUNNING" && !stopping[*t.TaskArn] {
			live[aws.ToString(t.StartedBy)] = true
		}
	}
	isDone := s.row.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted || p.Rollout == deployment.Completed
	n := len(s.row.Deployments)
	s.row.Deployments = slices.DeleteFunc(s.row.Deployments, func(d state.Deployment) bool {
		return !live[*d.Id] && (isDone || d.RolloutState != types.DeploymentRolloutStateCompleted)
	})
	s.changed = s.changed || len(s.row.Deployments) != n
}

// complete ends the PRIMARY deployment's roll-out as a success.
func (s *step) complete() {
	d := &s.row.Deployments[0]
	d.RolloutState = types.DeploymentRolloutStateCompleted
	d.UpdatedAt = &s.now
	d.RolloutStateReason = aws.String("ECS deployment " + *d.Id + " completed.")
	s.event("(deployment " + *d.Id + ") deployment completed.")
	s.record(d, func(r *state.ServiceDeployment) {
		r.Status = types.ServiceDeploymentStatusSuccessful
		r.LifecycleStage = types.ServiceDeploymentLifecycleStageCleanUp
		if r.Rollback != nil {
			r.Status = types.ServiceDeploymentStatusRollbackSuccessful
		}
		if r.Alarms == nil {
			r.Alarms = s.row.AlarmsOf(d, nil)
		}
		if r.DeploymentCircuitBreaker == nil {
			r.DeploymentCircuitBreaker = s.breakerOf(d)
		}
		r.FinishedAt = &s.now
	})
}

func (s *step) breakerOf(d *state.Deployment) *types.ServiceDeploymentCircuitBreaker {
	return deployment.BreakerOf(s.row.DeploymentConfiguration.DeploymentCircuitBreaker, int(s.row.DesiredCount), &d.Deployment)
}

// failures are the words for each failure, in events and in state reasons.
var failures = map[deployment.Failure]struct {
	by   string
	what string
}{
	deployment.TasksFailed:   {"ECS deployment circuit breaker: ", "tasks failed to start."},
	deployment.AlarmDetected: {"ECS deployment alarms: ", "alarm detected."},
	deployment.StoppedByUser: {"ECS deployment: ", "it was stopped by StopServiceDeployment."},
	deployment.HookFailed:    {"ECS deployment lifecycle hook: ", "a hook failed, or waited for too long."},
	deployment.ListenerGone:  {"ECS deployment: ", "traffic could not be shifted."},
}

// failDeployment ends the PRIMARY deployment's roll-out as a failure, and rolls the service back to the deployment with
// the id back, if there is one.
func (s *step) failDeployment(why deployment.Failure, back string) {
	d, f := &s.row.Deployments[0], failures[why]
	d.RolloutState = types.DeploymentRolloutStateFailed
	d.UpdatedAt = &s.now
	d.RolloutStateReason = aws.String(f.by + f.what)
	s.event("(deployment " + *d.Id + ") deployment failed: " + f.what)
	to := s.row.Deployment(back)
	s.record(d, func(r *state.ServiceDeployment) {
		r.StatusReason = d.RolloutStateReason
		switch why {
		case deployment.TasksFailed:
			r.DeploymentCircuitBreaker = s.breakerOf(d)
			r.DeploymentCircuitBreaker.Status = types.ServiceDeploymentRollbackMonitorsStatusTriggered
		case deployment.AlarmDetected:
			r.Alarms = s.row.AlarmsOf(d, s.alarms)
		}
		switch {
		case to != nil:
			r.Status = types.ServiceDeploymentStatusRollbackInProgress
			r.Rollback = &types.Rollback{Reason: r.StatusReason, ServiceRevisionArn: new(to.ServiceRevisionArn), StartedAt: &s.now}
		case r.Rollback != nil:
			r.Status = types.ServiceDeploymentStatusRollbackFailed
			r.FinishedAt = &s.now
		default:
			r.Status = types.ServiceDeploymentStatusStopped
			r.StoppedAt = &s.now
			r.FinishedAt = &s.now
		}
	})
	if to != nil {
		s.rollBack(to, f.by)
	}
}

// rollBack makes a completed deployment PRIMARY again. It goes on under the record of the deployment that failed.
func (s *step) rollBack(to *state.Deployment, by string) {
	failed, d := s.row.Deployments[0], *to
	s.row.Deployments = slices.DeleteFunc(s.row.Deployments, func(o state.Deployment) bool { return *o.Id == *d.Id })
	s.row.Deployments[0].Status = aws.String("ACTIVE")
	d.Status = aws.String("PRIMARY")
	d.ServiceDeploymentArn = failed.ServiceDeploymentArn
	d.UpdatedAt = &s.now
	d.RolloutState = types.DeploymentRolloutStateInProgress
	d.RolloutStateReason = aws.String(by + "rolling back to deploymentId " + *d.Id + ".")
	d.FailedTasks = 0
	d.NotBefore = nil
	d.FailedAt = nil
	d.LastFailed = ""
	d.Unplaced = false
	d.BakesFrom = nil
	d.AlarmsIgnored = len(s.tx.TriggeredAlarms(s.row)) > 0
	s.row.Deployments = append([]state.Deployment{d}, s.row.Deployments...)
	s.row.TaskDefinition = d.TaskDefinition
	s.row.LaunchType = d.LaunchType
	if (s.row.PlatformVersion == nil) != (d.PlatformVersion == nil) {
		s.row.PlatformVersion, s.row.PlatformFamily = d.PlatformVersion, d.PlatformFamily
	}
	s.row.NetworkConfiguration = d.NetworkConfiguration
	s.row.CapacityProviderStrategy = d.CapacityProviderStrategy
	s.row.ServiceConnect = d.ServiceConnectConfiguration
	s.row.Volumes = d.VolumeConfigurations
	s.tx.PublishEndpoints(d.Connect)
	s.row.LoadBalancers = notNil(d.LoadBalancers)
	s.row.ServiceRegistries = notNil(d.ServiceRegistries)
	s.event("rolling back to deployment " + *d.Id + ".")
}

// record changes a deployment's record.
func (s *step) record(d *state.Deployment, change func(*state.ServiceDeployment)) {
	old := s.tx.ServiceDeployments.Get(d.ServiceDeploymentArn)
	if old == nil {
		return
	}
	r := *old
	change(&r)
	r.UpdatedAt = &s.now
	s.tx.ServiceDeployments.Put(&r)
}

// end makes a deleted service INACTIVE, once all its tasks are stopping.
func (s *step) end() {
	s.record(&s.row.Deployments[0], func(r *state.ServiceDeployment) {
		if r.FinishedAt == nil {
			r.Status = types.ServiceDeploymentStatusStopped
			r.StatusReason = aws.String("The service was deleted.")
			r.StoppedAt = &s.now
			r.FinishedAt = &s.now
		}
	})
	s.row.Status = aws.String(state.ServiceInactive)
	s.row.EndedAt = &s.now
	s.row.Deployments = nil
	s.changed = true
}
