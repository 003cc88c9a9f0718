package rollout

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/state"
)

// step is one step of one service, in a transaction.
type step struct {
	tx        *state.Tx
	scheduler *scheduler.Scheduler
	settle    time.Duration
	now       time.Time
	// carriedOut is as in Options.
	carriedOut func(v *state.View, arn string) bool

	row        *state.Service // our own copy
	changed    bool           // row must be stored
	daemon     bool
	taskSet    string        // the id of the task set that this step is for, or ""
	externalID string        // and what its deployer calls it
	taskSetArn string        // and its ARN
	tasks      []*state.Task // all that are not STOPPED
	wake       time.Time
	steady     bool     // nothing is left to do
	stuck      bool     // no zone with too few tasks has room for one
	alarms     []string // deployment alarms that fail the PRIMARY deployment

	definitions map[string]*state.TaskDefinition
	wanted      *scheduler.Launch // a task of the PRIMARY deployment
}

func isDaemon(row *state.Service) bool {
	return row.SchedulingStrategy == types.SchedulingStrategyDaemon
}

// unplaced reports whether the service waits for room.
func (s *step) unplaced() bool {
	waits := func(d state.Deployment) bool { return d.Unplaced }
	switch {
	case s.row == nil:
		return false
	case s.shifts():
		return slices.ContainsFunc(s.row.Deployments, waits)
	}
	return len(s.row.Deployments) > 0 && waits(s.row.Deployments[0]) || hasWaitingTaskSet(s.row)
}

func (s *step) event(message string) { s.eventOf(state.Untold, message) }

func (s *step) eventOf(kind state.ServiceEventKind, message string) *state.ServiceEvent {
	s.changed = true
	return s.row.Event(kind, s.name()+" "+message, s.now)
}

// name is how events begin: with the service or its task set.
func (s *step) name() string {
	if s.taskSet != "" {
		return "(service " + *s.row.ServiceName + ", taskSet " + s.taskSet + ")"
	}
	return "(service " + *s.row.ServiceName + ")"
}

// run reads, decides and applies.
func (s *step) run() {
	s.read()
	s.advance()
}

// advance decides and applies.
func (s *step) advance() {
	if len(s.row.Deployments) == 0 {
		return
	}
	if s.wanted = s.launch(); s.wanted == nil && *s.row.Status == state.ServiceActive {
		return // its task definition is gone
	}
	service := s.desired()
	s.register()
	var tasks []deployment.Task
	for _, t := range s.tasks {
		tasks = append(tasks, s.task(t))
	}
	s.forgive(tasks)
	var deployments []deployment.Deployment
	for _, d := range s.row.Deployments {
		deployments = append(deployments, deployment.Deployment{
			ID:        *d.Id,
			State:     deployment.State(d.RolloutState),
			Failed:    int(d.FailedTasks),
			NotBefore: aws.ToTime(d.NotBefore),
			Unplaced:  d.Unplaced,
			Stopped:   d.Stopped,
			BakesFrom: aws.ToTime(d.BakesFrom),
		})
	}
	plan := deployment.Decide(service, deployments, tasks, s.now)
	s.wake = plan.Wake
	s.apply(plan)
}

// read collects the tasks, and counts the failures among those that have ended.
func (s *step) read() {
	var ended []*state.Task
	for t := range s.tx.Tasks.By(state.TasksByService, *s.row.ServiceArn) {
		switch {
		case s.taskSet != "" && aws.ToString(t.StartedBy) != s.taskSet: // another task set's
		case *t.LastStatus == "STOPPED":
			ended = append(ended, t)
		case s.isOwn(t):
			s.tasks = append(s.tasks, t)
		}
	}
	for _, t := range ended {
		noted := *t
		noted.Noted = true
		s.tx.Tasks.Put(&noted)
		s.tx.ForgetTask(*t.TaskArn)
		if d := s.row.Deployment(aws.ToString(t.StartedBy)); d != nil && s.failed(t) {
			s.fail(d, t.StoppedAt)
			d.LastFailed = *t.TaskArn
		}
	}
}

// isOwn reports whether a task is this service's, and not left over from a deleted one of the same name. Who started it tells; of tasks whose
// deployment is over already only the time does, which is no more than a guess where the clock was set back.
func (s *step) isOwn(t *state.Task) bool {
	return s.taskSet != "" || s.row.Deployment(aws.ToString(t.StartedBy)) != nil || !t.CreatedAt.Before(*s.row.CreatedAt)
}

// failed reports whether an ended task was never of use: it never ran, ended before it counted as healthy, or was stopped
// as unhealthy. A task that a user stopped or a node took with it hasn't failed.
func (s *step) failed(t *state.Task) bool {
	switch t.StopCode {
	case types.TaskStopCodeTaskFailedToStart:
		return true
	case types.TaskStopCodeEssentialContainerExited:
		return t.StartedAt == nil || aws.ToTime(t.StoppedAt).Sub(*t.StartedAt) < s.settle
	case types.TaskStopCodeServiceSchedulerInitiated:
		reason := aws.ToString(t.StoppedReason)
		return reason == FailedContainerChecks || strings.HasPrefix(reason, FailedTargetChecks)
	}
	return false
}

// fail counts a failed task of a deployment, and delays the next one.
func (s *step) fail(d *state.Deployment, at *time.Time) {
	desired := int(s.row.DesiredCount)
	before := deployment.Rounds(int(d.FailedTasks), desired)
	d.FailedTasks++
	d.FailedAt = at
	d.UpdatedAt = &s.now
	d.NotBefore = aws.Time(s.now.Add(deployment.Delay(int(d.FailedTasks), desired)))
	s.changed = true
	if before < impaired && deployment.Rounds(int(d.FailedTasks), desired) >= impaired {
		s.eventOf(state.StartImpaired, "is unable to consistently start tasks successfully.")
	}
}

// impaired is the number of rounds of failures at which ECS sends its event about them.
const impaired = 3

// forgive resets a deployment's failures once a task that started after them is healthy.
func (s *step) forgive(tasks []deployment.Task) {
	d := &s.row.Deployments[0]
	c := s.row.DeploymentConfiguration.DeploymentCircuitBreaker
	if d.FailedTasks == 0 || c.Enable && c.ResetOnHealthyTask != nil && !*c.ResetOnHealthyTask {
		return
	}
	for i, t := range tasks {
		if t.Status == deployment.Healthy && t.Deployment == *d.Id && s.tasks[i].StartedAt.After(aws.ToTime(d.FailedAt)) {
			d.FailedTasks = 0
			d.NotBefore = nil
			d.FailedAt = nil
			d.LastFailed = ""
			s.changed = true
			return
		}
	}
}

// desired converts the service for package deployment.
func (s *step) desired() deployment.Service {
	c := s.row.DeploymentConfiguration
	w := deployment.Service{
		Daemon:                s.daemon,
		Desired:               int(s.row.DesiredCount),
		Deleted:               *s.row.Status == state.ServiceDraining,
		MinimumHealthyPercent: int(*c.MinimumHealthyPercent),
		MaximumPercent:        int(*c.MaximumPercent),
	}
	if s.daemon && !w.Deleted {
		w.Instances = s.instances()
		if n := int32(len(w.Instances)); n != s.row.DesiredCount {
			s.row.DesiredCount = n
			s.changed = true
		}
		w.Desired = len(w.Instances)
	}
	if s.rebalances() {
		w.Zones = s.scheduler.Zones(s.tx.View, s.wanted)
		w.Rebalancing = s.row.Rebalancing
	}
	w.Alarms = s.checkAlarms()
	w.Bake = s.bake(c)
	b := c.DeploymentCircuitBreaker
	w.Breaker = deployment.Breaker{
		Enabled:   b.Enable,
		Rollback:  b.Rollback,
		Threshold: deployment.Threshold(b.ThresholdConfiguration, w.Desired),
	}
	return w
}

// instances returns the instances that a DAEMON service wants a task on. A disconnected one keeps its task.
func (s *step) instances() []string {
	has := map[string]bool{}
	for _, t := range s.tasks {
		if *t.DesiredStatus == "RUNNING" {
			has[aws.ToString(t.ContainerInstanceArn)] = true
		}
	}
	return s.scheduler.Hosts(s.tx.View, s.wanted, has)
}

// task converts a task for package deployment.
func (s *step) task(t *state.Task) deployment.Task {
	out := deployment.Task{
		ID:             *t.TaskArn,
		Deployment:     aws.ToString(t.StartedBy),
		Instance:       aws.ToString(t.ContainerInstanceArn),
		Zone:           aws.ToString(t.AvailabilityZone),
		ProtectedUntil: aws.ToTime(t.ProtectedUntil),
	}
	if out.Instance != "" { // otherwise it waits for its capacity provider to grow
		instance := s.tx.ContainerInstances.Get(out.Instance)
		out.Draining = instance == nil || *instance.Status != "ACTIVE"
	}
	out.Status, out.ChangesAt = s.status(t)
	return out
}

// status returns a task's status, and when time alone will change it, by the rules of minimumHealthyPercent in
// API_DeploymentConfiguration.
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
	balanced := s.balanced(t)
	unhealthy := t.HealthStatus == types.HealthStatusUnhealthy || balanced == targetsUnhealthy
	switch {
	case unhealthy && s.now.Before(grace):
		return deployment.Running, grace
	case unhealthy:
		return deployment.Unhealthy, time.Time{}
	case balanced == targetsUnknown:
		return deployment.Running, time.Time{}
	case t.HealthStatus == types.HealthStatusHealthy:
		return deployment.Healthy, time.Time{}
	case s.hasHealthCheck(t):
		return deployment.Running, time.Time{}
	case balanced == targetsHealthy:
		return deployment.Healthy, time.Time{}
	case s.now.Before(settled):
		return deployment.Running, settled
	}
	return deployment.Healthy, time.Time{}
}

// hasHealthCheck reports whether any essential container of a task has a health check.
func (s *step) hasHealthCheck(t *state.Task) bool {
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

// launch returns the launch of a task of the PRIMARY deployment, or nil if its task definition is gone.
func (s *step) launch() *scheduler.Launch {
	d := &s.row.Deployments[0]
	td := s.definition(*d.TaskDefinition)
	if td == nil {
		return nil
	}
	l := LaunchOf(s.row, d, td)
	l.Tags = s.tags(td)
	l.Registry = s.registry(d, td)
	l.Now = s.now
	if d.RolloutState == types.DeploymentRolloutStateInProgress { // later ones have nothing to do with the request
		l.Trace = d.Trace
	}
	return l
}

// LaunchOf returns the launch of a task of a deployment, as far as it says where the task may go.
func LaunchOf(row *state.Service, d *state.Deployment, td *state.TaskDefinition) *scheduler.Launch {
	none := &types.TaskOverride{
		ContainerOverrides:            []types.ContainerOverride{},
		InferenceAcceleratorOverrides: []types.InferenceAcceleratorOverride{},
	}
	need := scheduler.NeedOf(&td.TaskDefinition, none)
	strategy := row.PlacementStrategy
	if len(strategy) == 0 && (len(need.GPUs) == 0 || row.AvailabilityZoneRebalancing == types.AvailabilityZoneRebalancingEnabled) {
		strategy = spread
	}
	return &scheduler.Launch{
		ClusterArn:     *row.ClusterArn,
		TaskDefinition: td,
		Overrides:      none,
		Need:           need,
		Group:          "service:" + *row.ServiceName,
		StartedBy:      d.Id,
		ServiceArn:     *row.ServiceArn,
		LaunchType:     d.LaunchType,
		Network:        d.NetworkConfiguration,
		Exec:           row.EnableExecuteCommand,
		Volumes:        taskvolume.Make(taskvolume.OfService(d.VolumeConfigurations), td, row.Tags, ownTags(row)),
		Constraints:    row.PlacementConstraints,
		Strategy:       strategy,
		Connect:        d.Connect,
	}
}

// registry returns where a deployment's tasks are registered in Cloud Map, or nil.
func (s *step) registry(d *state.Deployment, td *state.TaskDefinition) *state.TaskRegistry {
	if len(d.ServiceRegistries) == 0 {
		return nil
	}
	r := d.ServiceRegistries[0]
	return &state.TaskRegistry{
		Service:       state.NameOf(*r.RegistryArn),
		Port:          aws.ToInt32(r.Port),
		ContainerName: aws.ToString(r.ContainerName),
		ContainerPort: aws.ToInt32(r.ContainerPort),
		TaskSet:       s.externalID,
		Checked: slices.ContainsFunc(td.ContainerDefinitions, func(c types.ContainerDefinition) bool {
			return c.HealthCheck != nil && (c.Essential == nil || *c.Essential)
		}),
	}
}

// spread is the strategy of a service that names none, so that it survives the loss of a zone or a node. Tasks with
// GPUs are placed by Pintle's own strategy instead, which keeps GPUs usable, unless zones are rebalanced.
var spread = []types.PlacementStrategy{
	{Type: types.PlacementStrategyTypeSpread, Field: aws.String("attribute:ecs.availability-zone")},
	{Type: types.PlacementStrategyTypeSpread, Field: aws.String("instanceId")},
}

// tags returns the tags of a new task.
func (s *step) tags(td *state.TaskDefinition) []types.Tag {
	tags := []types.Tag{}
	switch s.row.PropagateTags {
	case types.PropagateTagsTaskDefinition:
		tags = append(tags, td.Tags...)
	case types.PropagateTagsService:
		tags = append(tags, s.row.Tags...)
	}
	return append(tags, ownTags(s.row)...)
}

// ownTags returns ECS's own tags, if the service wants them.
func ownTags(row *state.Service) []types.Tag {
	if !row.EnableECSManagedTags {
		return nil
	}
	return []types.Tag{
		scheduler.ClusterTag(*row.ClusterArn),
		{Key: aws.String("aws:ecs:serviceName"), Value: row.ServiceName},
	}
}
