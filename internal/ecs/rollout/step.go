package rollout

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

// step is one step of one service, in a transaction.
type step struct {
	tx        *state.Tx
	scheduler *scheduler.Scheduler
	settle    time.Duration
	now       time.Time

	row     *state.Service // a copy of ours
	changed bool           // it was, and is to be put
	daemon  bool
	taskSet string        // the id of the task set that it is a step of, or ""
	tasks   []*state.Task // that are not STOPPED
	wake    time.Time
	steady  bool     // nothing is left to do
	stuck   bool     // no zone that misses a task has room for it
	alarms  []string // deployment alarms that fail the PRIMARY deployment

	definitions map[string]*state.TaskDefinition
	wanted      *scheduler.Launch // a task of the PRIMARY deployment
}

func isDaemon(row *state.Service) bool {
	return row.SchedulingStrategy == types.SchedulingStrategyDaemon
}

// unplaced says whether the service waits for room.
func (s *step) unplaced() bool {
	return s.row != nil && (len(s.row.Deployments) > 0 && s.row.Deployments[0].Unplaced || waitingTaskSet(s.row))
}

func (s *step) event(message string) {
	s.row.Event(s.name()+" "+message, s.now)
	s.changed = true
}

// name is the service, or its task set, as its events begin with.
func (s *step) name() string {
	if s.taskSet != "" {
		return "(service " + *s.row.ServiceName + ", taskSet " + s.taskSet + ")"
	}
	return "(service " + *s.row.ServiceName + ")"
}

// run reads what there is, decides, and carries it out.
func (s *step) run() {
	s.read()
	if len(s.row.Deployments) == 0 {
		return
	}
	if s.wanted = s.launch(); s.wanted == nil && *s.row.Status == state.ServiceActive {
		return // its task definition is gone: nothing can be made of it
	}
	wish := s.wish()
	var tasks []deployment.Task
	for _, t := range s.tasks {
		tasks = append(tasks, s.task(t))
	}
	s.forgive(tasks)
	var deployments []deployment.Deployment
	for _, d := range s.row.Deployments {
		deployments = append(deployments, deployment.Deployment{
			ID: *d.Id, State: deployment.State(d.RolloutState), Failed: int(d.FailedTasks), NotBefore: aws.ToTime(d.NotBefore), Unplaced: d.Unplaced, Stopped: d.Stopped,
			BakesFrom: aws.ToTime(d.BakesFrom),
		})
	}
	plan := deployment.Decide(wish, deployments, tasks, s.now)
	s.wake = plan.Wake
	s.apply(plan)
}

// read collects the tasks, and takes note of those that have ended.
func (s *step) read() {
	var ended []*state.Task
	for t := range s.tx.Tasks.By(state.TasksByService, *s.row.ServiceArn) {
		switch {
		case s.taskSet != "" && aws.ToString(t.StartedBy) != s.taskSet: // another one's
		case *t.LastStatus == "STOPPED":
			ended = append(ended, t)
		case !t.CreatedAt.Before(*s.row.CreatedAt): // not left over from a deleted service of the same name
			s.tasks = append(s.tasks, t)
		}
	}
	for _, t := range ended {
		noted := *t
		noted.Noted = true
		s.tx.Tasks.Put(&noted)
		if d := s.row.Deployment(aws.ToString(t.StartedBy)); d != nil && s.failed(t) {
			s.fail(d, t.StoppedAt)
		}
	}
}

// failed says whether a task has ended before it came to be of use: it never ran, ended before it counted as
// healthy, or was stopped for being unhealthy. What users stop, or a node takes with it, has not failed.
func (s *step) failed(t *state.Task) bool {
	switch t.StopCode {
	case types.TaskStopCodeTaskFailedToStart:
		return true
	case types.TaskStopCodeEssentialContainerExited:
		return t.StartedAt == nil || aws.ToTime(t.StoppedAt).Sub(*t.StartedAt) < s.settle
	case types.TaskStopCodeServiceSchedulerInitiated:
		return aws.ToString(t.StoppedReason) == unhealthyReason
	}
	return false
}

// fail counts a failure of a deployment, and puts off its next task.
func (s *step) fail(d *state.Deployment, at *time.Time) {
	desired := int(s.row.DesiredCount)
	before := deployment.Rounds(int(d.FailedTasks), desired)
	d.FailedTasks++
	d.FailedAt, d.UpdatedAt = at, &s.now
	d.NotBefore = aws.Time(s.now.Add(deployment.Delay(int(d.FailedTasks), desired)))
	s.changed = true
	if before < impaired && deployment.Rounds(int(d.FailedTasks), desired) >= impaired {
		s.event("is unable to consistently start tasks successfully.")
	}
}

// impaired is after how many rounds of failures ECS's event about them is due.
const impaired = 3

// forgive takes back a deployment's failures once a task that was started after them is healthy.
func (s *step) forgive(tasks []deployment.Task) {
	d := &s.row.Deployments[0]
	c := s.row.DeploymentConfiguration.DeploymentCircuitBreaker
	if d.FailedTasks == 0 || c.Enable && c.ResetOnHealthyTask != nil && !*c.ResetOnHealthyTask {
		return
	}
	for i, t := range tasks {
		if t.Status == deployment.Healthy && t.Deployment == *d.Id && s.tasks[i].StartedAt.After(aws.ToTime(d.FailedAt)) {
			d.FailedTasks, d.NotBefore, d.FailedAt, s.changed = 0, nil, nil, true
			return
		}
	}
}

// wish is the service as package deployment wants it.
func (s *step) wish() deployment.Service {
	c := s.row.DeploymentConfiguration
	w := deployment.Service{
		Daemon: s.daemon, Desired: int(s.row.DesiredCount), Deleted: *s.row.Status == state.ServiceDraining,
		MinimumHealthyPercent: int(*c.MinimumHealthyPercent), MaximumPercent: int(*c.MaximumPercent),
	}
	if s.daemon && !w.Deleted {
		w.Instances = s.instances()
		if n := int32(len(w.Instances)); n != s.row.DesiredCount {
			s.row.DesiredCount, s.changed = n, true
		}
		w.Desired = len(w.Instances)
	}
	if s.rebalances() {
		w.Zones, w.Rebalancing = s.scheduler.Zones(s.tx.View, s.wanted), s.row.Rebalancing
	}
	w.Alarms, w.Bake = s.watch(), s.bake()
	b := c.DeploymentCircuitBreaker
	w.Breaker = deployment.Breaker{Enabled: b.Enable, Rollback: b.Rollback, Threshold: deployment.Threshold(b.ThresholdConfiguration, w.Desired)}
	return w
}

// instances are those that a DAEMON service wants a task on. One that is away keeps the task that it has.
func (s *step) instances() []string {
	has := map[string]bool{}
	for _, t := range s.tasks {
		if *t.DesiredStatus == "RUNNING" {
			has[aws.ToString(t.ContainerInstanceArn)] = true
		}
	}
	return s.scheduler.Hosts(s.tx.View, s.wanted, has)
}

// task is a task as package deployment wants it.
func (s *step) task(t *state.Task) deployment.Task {
	out := deployment.Task{
		ID: *t.TaskArn, Deployment: aws.ToString(t.StartedBy), Instance: aws.ToString(t.ContainerInstanceArn),
		Zone: aws.ToString(t.AvailabilityZone), ProtectedUntil: aws.ToTime(t.ProtectedUntil),
	}
	if out.Instance != "" { // else it waits for its capacity provider to grow
		instance := s.tx.ContainerInstances.Get(out.Instance)
		out.Draining = instance == nil || *instance.Status != "ACTIVE"
	}
	out.Status, out.ChangesAt = s.status(t)
	return out
}

// status is how far a task has come, and when that changes with time alone: what API_DeploymentConfiguration
// says of minimumHealthyPercent.
func (s *step) status(t *state.Task) (deployment.Status, time.Time) {
	if *t.DesiredStatus == "STOPPED" {
		return deployment.Stopping, time.Time{}
	}
	if *t.LastStatus != "RUNNING" {
		return deployment.Pending, time.Time{}
	}
	started := aws.ToTime(t.StartedAt)
	grace := started.Add(time.Duration(aws.ToInt32(s.row.HealthCheckGracePeriodSeconds)) * time.Second)
	settled := started.Add(s.settle)
	switch {
	case t.HealthStatus == types.HealthStatusHealthy:
		return deployment.Healthy, time.Time{}
	case t.HealthStatus == types.HealthStatusUnhealthy && s.now.Before(grace):
		return deployment.Running, grace
	case t.HealthStatus == types.HealthStatusUnhealthy:
		return deployment.Unhealthy, time.Time{}
	case s.checked(t):
		return deployment.Running, time.Time{}
	case s.now.Before(settled):
		return deployment.Running, settled
	}
	return deployment.Healthy, time.Time{}
}

// checked says whether any essential container of a task has a health check.
func (s *step) checked(t *state.Task) bool {
	td := s.definition(*t.TaskDefinitionArn)
	return td != nil && td.HasHealthCheck()
}

func (s *step) definition(arn string) *state.TaskDefinition {
	td, ok := s.definitions[arn]
	if !ok {
		td = s.tx.TaskDefinitions.Get(arn)
		s.definitions[arn] = td
	}
	return td
}

// launch is a task of the PRIMARY deployment, or nil if its task definition is gone.
func (s *step) launch() *scheduler.Launch {
	d := &s.row.Deployments[0]
	td := s.definition(*d.TaskDefinition)
	if td == nil {
		return nil
	}
	none := &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{}, InferenceAcceleratorOverrides: []types.InferenceAcceleratorOverride{}}
	need := scheduler.NeedOf(&td.TaskDefinition, none)
	strategy := s.row.PlacementStrategy
	if len(strategy) == 0 && (len(need.GPUs) == 0 || s.row.AvailabilityZoneRebalancing == types.AvailabilityZoneRebalancingEnabled) {
		strategy = spread
	}
	return &scheduler.Launch{
		ClusterArn: *s.row.ClusterArn, TaskDefinition: td, Overrides: none, Need: need,
		Group: "service:" + *s.row.ServiceName, StartedBy: d.Id, ServiceArn: *s.row.ServiceArn, LaunchType: d.LaunchType,
		Network: d.NetworkConfiguration, Exec: s.row.EnableExecuteCommand, Tags: s.tags(td),
		Constraints: s.row.PlacementConstraints, Strategy: strategy, Now: s.now,
	}
}

// spread is how a service's tasks are placed where it names no strategy, so that it outlives a zone or a node. Tasks
// with GPUs are left to placement's own way, which keeps GPUs usable, unless they are to be balanced over zones.
var spread = []types.PlacementStrategy{
	{Type: types.PlacementStrategyTypeSpread, Field: aws.String("attribute:ecs.availability-zone")},
	{Type: types.PlacementStrategyTypeSpread, Field: aws.String("instanceId")},
}

// tags are those of a new task.
func (s *step) tags(td *state.TaskDefinition) []types.Tag {
	tags := []types.Tag{}
	switch s.row.PropagateTags {
	case types.PropagateTagsTaskDefinition:
		tags = append(tags, td.Tags...)
	case types.PropagateTagsService:
		tags = append(tags, s.row.Tags...)
	}
	if s.row.EnableECSManagedTags {
		tags = append(tags,
			types.Tag{Key: aws.String("aws:ecs:clusterName"), Value: aws.String(state.NameOf(*s.row.ClusterArn))},
			types.Tag{Key: aws.String("aws:ecs:serviceName"), Value: s.row.ServiceName})
	}
	return tags
}
