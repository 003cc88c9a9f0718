package state

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of ECS services.

// The states of a service. A deleted service is DRAINING until its tasks are stopping, then INACTIVE.
const (
	ServiceActive   = "ACTIVE"
	ServiceDraining = "DRAINING"
	ServiceInactive = "INACTIVE"
)

// Service is a service: its desired state, and how far its deployments have come.
type Service struct {
	types.Service
	// Deployments starts with the PRIMARY one. The ones it replaces follow, newest first. They replace the SDK's
	// deployments; their task counts are left empty.
	Deployments []Deployment
	// Events replace the SDK's, newest first.
	Events []ServiceEvent
	// TaskSets lists the task sets of a service with the deployment controller EXTERNAL, oldest first. Such a service
	// has no deployments.
	TaskSets []TaskSet `json:",omitzero"`
	// ServiceConnect is how its next deployment takes part in a namespace.
	ServiceConnect *types.ServiceConnectConfiguration `json:",omitzero"`
	// Volumes are those of its next deployment's tasks that are configured at launch.
	Volumes []types.ServiceVolumeConfiguration `json:",omitempty"`
	// Monitoring is the metric resolution that its next revision asks for.
	Monitoring *types.MonitoringConfiguration `json:",omitzero"`
	// Rebalancing means that its tasks are being moved between Availability Zones.
	Rebalancing bool `json:",omitzero"`
	// EndedAt is when it became INACTIVE.
	EndedAt *time.Time
}

// Deployment is one deployment of a service.
type Deployment struct {
	types.Deployment
	ServiceRevisionArn   string
	ServiceDeploymentArn string
	// NotBefore is when a task may be started again after some have failed.
	NotBefore *time.Time
	// Stopped means that StopServiceDeployment wants the service back at its last completed deployment.
	Stopped bool `json:",omitzero"`
	// FailedAt is when the last task failed, or found no room. LastFailed is the ARN of the last one that failed.
	FailedAt   *time.Time
	LastFailed string `json:",omitzero"`
	// Unplaced means that the last task found no room.
	Unplaced bool `json:",omitzero"`
	// BakesFrom is when all its tasks were there. It isn't complete until its bake time is over.
	BakesFrom *time.Time `json:",omitzero"`
	// LoadBalancers are those of its service when it began.
	LoadBalancers []types.LoadBalancer `json:",omitempty"`
	// ServiceRegistries are where its tasks are registered in Cloud Map.
	ServiceRegistries []types.ServiceRegistry `json:",omitempty"`
	// Connect is how its tasks take part in Service Connect, or nil.
	Connect *TaskConnect `json:",omitempty"`
	// TargetGroups are where its tasks are registered, for each of the LoadBalancers: in its target group or in its alternate one. nil means
	// the former.
	TargetGroups []string `json:",omitempty"`
	// Shift is how far it has come, if it moves traffic to its tasks. It's nil once it is complete, and for rolling updates.
	Shift *Shift `json:",omitempty"`
	// Trace is the span of the request that began it, or "".
	Trace string `json:",omitzero"`
	// AlarmsIgnored means that one of the deployment alarms was in ALARM when it began.
	AlarmsIgnored bool `json:",omitzero"`
}

// Shift is how far a deployment with the strategy BLUE_GREEN, LINEAR or CANARY has come: package trafficshift.
type Shift struct {
	Stage types.ServiceDeploymentLifecycleStage `json:",omitzero"`
	Since time.Time                             // since when it is in this stage
	// Source is the id of the deployment whose tasks have the traffic when this one begins. It's empty if there is none.
	Source string `json:",omitzero"`
	// Production and Test are the parts of the traffic that its tasks get, in tenths of a percent. The source's tasks get the rest.
	Production int `json:",omitzero"`
	Test       int `json:",omitzero"`
	// Hooks are the lifecycle hooks that it has come to.
	Hooks []Hook `json:",omitempty"`
}

// Hook is a lifecycle hook that a deployment has come to.
type Hook struct {
	types.DeploymentLifecycleHookDetail
	Stage types.ServiceDeploymentLifecycleStage `json:",omitzero"` // in which it is: after a roll-back the deployment's own is another
}

// HookDetails returns the hooks as a service deployment shows them.
func (s *Shift) HookDetails() (out []types.DeploymentLifecycleHookDetail) {
	for _, h := range s.Hooks {
		out = append(out, h.DeploymentLifecycleHookDetail)
	}
	return out
}

// Serves reports whether a deployment's tasks have the service's production traffic for good: they keep it if a newer deployment fails.
func (d *Deployment) Serves() bool {
	switch {
	case d.RolloutState == types.DeploymentRolloutStateCompleted:
		return true
	case d.Shift == nil:
		return false
	}
	return d.Shift.Stage == types.ServiceDeploymentLifecycleStageCleanUp || d.Shift.Source == "" && d.Shift.Production > 0
}

// Balancers returns where its tasks are registered.
func (d *Deployment) Balancers() []types.LoadBalancer {
	if d.TargetGroups == nil {
		return d.LoadBalancers
	}
	out := slices.Clone(d.LoadBalancers)
	for i := range out {
		out[i].TargetGroupArn = &d.TargetGroups[i]
	}
	return out
}

// Source returns the deployment that a new one would replace: the newest whose tasks have the traffic for good, or else the newest rolling
// update, whose tasks are where the traffic goes. It returns nil if there is neither.
func (s *Service) Source() *Deployment {
	for _, is := range []func(*Deployment) bool{(*Deployment).Serves, func(d *Deployment) bool { return d.Shift == nil }} {
		for i := range s.Deployments {
			if is(&s.Deployments[i]) {
				return &s.Deployments[i]
			}
		}
	}
	return nil
}

// Deployment returns the deployment with an id, or nil. It may be changed as long as the row hasn't been stored.
func (s *Service) Deployment(id string) *Deployment {
	for i := range s.Deployments {
		if aws.ToString(s.Deployments[i].Id) == id {
			return &s.Deployments[i]
		}
	}
	return nil
}

// TriggeredAlarms returns a service's deployment alarms that are in ALARM. It returns none if they're not enabled.
func (v *View) TriggeredAlarms(s *Service) []string {
	c := s.DeploymentConfiguration.Alarms
	if c == nil || !c.Enable {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.AlarmNames), func(name string) bool {
		a := v.Alarms.Get(name)
		return a == nil || a.State().Value != cwtypes.StateValueAlarm
	})
}

// AlarmsOf returns how a service's deployment alarms currently watch a deployment:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-alarm-failure.html
func (s *Service) AlarmsOf(d *Deployment, triggered []string) *types.ServiceDeploymentAlarms {
	out := &types.ServiceDeploymentAlarms{Status: types.ServiceDeploymentRollbackMonitorsStatusDisabled}
	c := s.DeploymentConfiguration.Alarms
	if c == nil {
		return out
	}
	out.AlarmNames = c.AlarmNames
	switch {
	case !c.Enable || d.AlarmsIgnored:
	case len(triggered) > 0:
		out.Status = types.ServiceDeploymentRollbackMonitorsStatusTriggered
		out.TriggeredAlarmNames = triggered
	case d.RolloutState != types.DeploymentRolloutStateInProgress:
		out.Status = types.ServiceDeploymentRollbackMonitorsStatusMonitoringComplete
	default:
		out.Status = types.ServiceDeploymentRollbackMonitorsStatusMonitoring
	}
	return out
}

// Clone returns a copy whose deployments, task sets and events may be changed.
func (s *Service) Clone() *Service {
	c := *s
	c.Deployments = slices.Clone(s.Deployments)
	c.TaskSets = slices.Clone(s.TaskSets)
	c.Events = slices.Clone(s.Events)
	return &c
}

// maxEvents is how many events of a service ECS keeps.
const maxEvents = 100

// ServiceEvent is an event of a service: a message to people, and what kind of event it is.
type ServiceEvent struct {
	types.ServiceEvent
	Kind ServiceEventKind `json:",omitempty"` // older data has none
	// What only EventBridge is told, in the transaction in which it happens, isn't kept.
	Reason    string   `json:"-"` // why a task found no room, as RunTask's failures say it
	Instances []string `json:"-"` // and the ARN of the container instance that came nearest
	Providers []string `json:"-"` // and the names of the capacity providers that had none
	Tasks     []string `json:"-"` // the ARNs of the tasks that it is about
	TaskSets  []string `json:"-"` // and of the task set
}

// ServiceEventKind is what an event of a service says, for those who would otherwise have to read its message.
type ServiceEventKind string

// The kinds of which EventBridge is told have its names.
const (
	Untold         ServiceEventKind = "" // any other
	Steady         ServiceEventKind = "SERVICE_STEADY_STATE"
	TaskSetSteady  ServiceEventKind = "TASKSET_STEADY_STATE"
	StartImpaired  ServiceEventKind = "SERVICE_TASK_START_IMPAIRED"
	PlacementFails ServiceEventKind = "SERVICE_TASK_PLACEMENT_FAILURE"
	TasksStopped   ServiceEventKind = "TASKS_STOPPED"
	Unbalanced     ServiceEventKind = "unbalanced" // between zones; nobody is told
)

// Event adds an event as the newest one, and returns it.
func (s *Service) Event(kind ServiceEventKind, message string, now time.Time) *ServiceEvent {
	e := ServiceEvent{ServiceEvent: types.ServiceEvent{Id: new(NewUUID()), CreatedAt: &now, Message: &message}, Kind: kind}
	s.Events = append([]ServiceEvent{e}, s.Events[:min(len(s.Events), maxEvents-1)]...)
	return &s.Events[0]
}

// SDKEvents returns the events as DescribeServices shows them.
func (s *Service) SDKEvents() []types.ServiceEvent {
	all := []types.ServiceEvent{}
	for _, e := range s.Events {
		all = append(all, e.ServiceEvent)
	}
	return all
}

// ServiceDeployment is the record of one deployment. It outlives the deployment.
type ServiceDeployment struct {
	types.ServiceDeployment
	// DeploymentID is what its tasks have as StartedBy.
	DeploymentID string
}

// ServiceRevision is what a deployment deploys.
type ServiceRevision struct {
	types.ServiceRevision
}

// RevisionOf returns the revision of its service that a task runs, or nil.
func (v *View) RevisionOf(t *Task) *ServiceRevision {
	s := v.Services.Get(t.ServiceArn)
	if s == nil {
		return nil
	}
	d := s.Deployment(aws.ToString(t.StartedBy))
	if d == nil {
		return nil
	}
	return v.ServiceRevisions.Get(d.ServiceRevisionArn)
}

// The indexes of the service tables.
var (
	// TasksByService finds the tasks of a service. Ended tasks are included only until the service has taken note of
	// their end.
	TasksByService = Index[*Task]{Name: "service", Value: func(t *Task) string {
		if t.ServiceArn == "" || t.Noted {
			return ""
		}
		return t.ServiceArn
	}}

	ServicesByCluster = Index[*Service]{Name: "cluster", Value: func(s *Service) string { return aws.ToString(s.ClusterArn) }}

	ServiceDeploymentsByService = Index[*ServiceDeployment]{
		Name:  "service",
		Value: func(d *ServiceDeployment) string { return aws.ToString(d.ServiceArn) },
	}
)

// keepDeployments is how long ECS lists a deployment: API_ListServiceDeployments.
const keepDeployments = 90 * 24 * time.Hour

// oldDeployments returns the deployments of forgotten services, and old deployments that their service has moved past.
func oldDeployments(t Table[*ServiceDeployment], now time.Time) (over []string) {
	services := services.In(t.View())
	for d := range t.All() {
		s := services.Get(aws.ToString(d.ServiceArn))
		old := d.FinishedAt != nil && now.Sub(*d.FinishedAt) > keepDeployments
		if s == nil || old && !s.deploys(d) {
			over = append(over, *d.ServiceDeploymentArn)
		}
	}
	return over
}

// deploys reports whether one of the service's current deployments is this one, or has its revision.
func (s *Service) deploys(d *ServiceDeployment) bool {
	return slices.ContainsFunc(s.Deployments, func(own Deployment) bool {
		return own.ServiceDeploymentArn == *d.ServiceDeploymentArn || own.ServiceRevisionArn == *d.TargetServiceRevision.Arn
	})
}

// unusedRevisions returns the revisions whose deployments were forgotten.
func unusedRevisions(t Table[*ServiceRevision], _ time.Time) (over []string) {
	deployed := map[string]bool{}
	for d := range serviceDeployments.In(t.View()).All() {
		deployed[*d.TargetServiceRevision.Arn] = true
	}
	for r := range t.All() {
		if !deployed[*r.ServiceRevisionArn] {
			over = append(over, *r.ServiceRevisionArn)
		}
	}
	return over
}

var (
	services = &store.Definition[*Service]{
		Name:     "services",
		Key:      func(s *Service) string { return aws.ToString(s.ServiceArn) },
		Indexes:  []Index[*Service]{ServicesByCluster},
		JSON:     documents,
		Lifetime: store.KeepFor(keepEnded, func(s *Service) *time.Time { return s.EndedAt }),
	}

	serviceDeployments = &store.Definition[*ServiceDeployment]{
		Name:     "service_deployments",
		Key:      func(d *ServiceDeployment) string { return aws.ToString(d.ServiceDeploymentArn) },
		Indexes:  []Index[*ServiceDeployment]{ServiceDeploymentsByService},
		JSON:     documents,
		Lifetime: oldDeployments,
	}

	serviceRevisions = &store.Definition[*ServiceRevision]{
		Name:     "service_revisions",
		Key:      func(r *ServiceRevision) string { return aws.ToString(r.ServiceRevisionArn) },
		Lifetime: unusedRevisions,
	}
)
