package state

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// What ECS tells the default bus: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_cwe_events.html

const ecsSource = "aws.ecs"

// The detail types of ECS's events.
const (
	taskState       = "ECS Task State Change"
	instanceState   = "ECS Container Instance State Change"
	instanceHealth  = "ECS Container Instance Health Change"
	serviceAction   = "ECS Service Action"
	deploymentState = "ECS Deployment State Change"
	hookState       = "ECS Hook State Change"
)

// TaskEvent is the detail of a task's event: the task, without its tags and its health, of which AWS doesn't tell:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html
type TaskEvent struct {
	types.Task
	UpdatedAt *time.Time
}

// emitTask tells what has changed of a task, if its client would see it.
func (tx *Tx) emitTask(before, t *Task) {
	if before != nil && !t.differs(before) {
		return
	}
	tx.Emit(ecsSource, taskState, func() *Event {
		stored := tx.Tasks.Get(*t.TaskArn) // it has its version
		now := tx.listeners.Now()
		detail := &TaskEvent{Task: stored.Task, UpdatedAt: &now}
		detail.Tags = nil
		detail.HealthStatus = ""
		detail.Containers = slices.Clone(detail.Containers)
		for i := range detail.Containers {
			detail.Containers[i].HealthStatus = ""
		}
		detail.Attachments = slices.Clone(detail.Attachments)
		for i := range detail.Attachments {
			if a := &detail.Attachments[i]; IsInterface(*a) {
				a.Type = aws.String("eni") // as events name what DescribeTasks calls an ElasticNetworkInterface
			}
		}
		if stored.Deregistering {
			detail.LastStatus = aws.String("DEACTIVATING")
		}
		return &Event{Resources: []string{*t.TaskArn}, Detail: detail, Order: *t.TaskArn, Time: now}
	})
}

// differs reports whether a task's status, that of one of its containers or attachments, or its connection is another.
func (t *Task) differs(before *Task) bool {
	return aws.ToString(t.LastStatus) != aws.ToString(before.LastStatus) ||
		aws.ToString(t.DesiredStatus) != aws.ToString(before.DesiredStatus) ||
		t.Connectivity != before.Connectivity || t.Deregistering != before.Deregistering ||
		!slices.EqualFunc(t.Containers, before.Containers, func(c, old types.Container) bool {
			return aws.ToString(c.LastStatus) == aws.ToString(old.LastStatus)
		}) ||
		!slices.EqualFunc(t.Attachments, before.Attachments, func(a, old types.Attachment) bool {
			return aws.ToString(a.Status) == aws.ToString(old.Status)
		})
}

// containerInstanceTable is the table of container instances in a transaction.
type containerInstanceTable struct {
	Table[*ContainerInstance]
	tx *Tx
}

// InstanceEvent is the detail of a container instance's event.
type InstanceEvent struct {
	types.ContainerInstance
	ClusterArn *string
	UpdatedAt  *time.Time
}

// Put puts a container instance, and tells the bus if it's new, or its status, its agent, its attributes or its GPUs are others, and of its health.
// Who looks for changes of names hears when it goes away, and when it's back.
func (t containerInstanceTable) Put(row *ContainerInstance) {
	arn := aws.ToString(row.ContainerInstanceArn)
	before := t.Get(arn)
	t.Table.Put(row)
	if before != nil && before.Away != row.Away {
		t.tx.changedTasksOf(arn)
	}
	if before == nil || row.differs(before) {
		t.emit(row)
	}
	if before != nil {
		t.emitHealth(before, row)
	}
}

// emit tells the bus how a container instance is now.
func (t containerInstanceTable) emit(row *ContainerInstance) {
	arn := aws.ToString(row.ContainerInstanceArn)
	t.tx.Emit(ecsSource, instanceState, func() *Event {
		now := t.tx.listeners.Now()
		detail := &InstanceEvent{ContainerInstance: row.ContainerInstance, ClusterArn: &row.ClusterArn, UpdatedAt: &now}
		if describe := t.tx.listeners.Describe; describe != nil {
			detail.ContainerInstance = describe(t.tx.View, t.Get(arn))
		}
		detail.Tags = nil
		return &Event{Resources: []string{arn}, Detail: detail, Order: arn, Time: now}
	})
}

// emitRemaining tells the bus that a task has taken something of its container instance, or has given it back. That's a change of the container
// instance, and gives it another version, which nobody compares unless they listen.
func (tx *Tx) emitRemaining(before, t *Task) {
	held := before != nil && before.Holds()
	if held == t.Holds() || !tx.listeners.listens(ecsSource, instanceState) {
		return
	}
	arn := t.ContainerInstanceArn
	if held {
		arn = before.ContainerInstanceArn
	}
	if row := tx.ContainerInstances.Get(*arn); row != nil {
		row = row.Clone()
		tx.ContainerInstances.Table.Put(row)
		tx.ContainerInstances.emit(row)
	}
}

func (c *ContainerInstance) differs(before *ContainerInstance) bool {
	return aws.ToString(c.Status) != aws.ToString(before.Status) || c.AgentConnected != before.AgentConnected ||
		c.AgentUpdateStatus != before.AgentUpdateStatus || !reflect.DeepEqual(c.VersionInfo, before.VersionInfo) ||
		!slices.EqualFunc(c.Attributes, before.Attributes, func(a, old types.Attribute) bool {
			return aws.ToString(a.Name) == aws.ToString(old.Name) && aws.ToString(a.Value) == aws.ToString(old.Value)
		}) ||
		!slices.EqualFunc(c.GPUs, before.GPUs, func(g, old GPU) bool { return g.ID == old.ID && (g.Fault == nil) == (old.Fault == nil) })
}

// emitHealth tells the bus that a check of a container instance's health has another result:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_health_events.html
func (t containerInstanceTable) emitHealth(before, row *ContainerInstance) {
	t.tx.Emit(ecsSource, instanceHealth, func() *Event {
		health, old := row.Health(), before.Health()
		if health == nil || old != nil && sameHealth(health, old) {
			return nil
		}
		checks := []any{}
		for _, c := range health.Details {
			checks = append(checks, map[string]any{
				"type":             c.Type,
				"status":           c.Status,
				"lastStatusChange": inSeconds(c.LastStatusChange),
				"lastUpdated":      inSeconds(c.LastUpdated),
				"statusReason":     c.StatusReason,
			})
		}
		return &Event{Resources: []string{*row.ContainerInstanceArn}, Order: *row.ContainerInstanceArn, Detail: raw(map[string]any{
			"clusterArn":           row.ClusterArn,
			"containerInstanceArn": row.ContainerInstanceArn,
			"capacityProviderName": row.CapacityProviderName,
			"ec2InstanceId":        row.Ec2InstanceId,
			"overallStatus":        health.OverallStatus,
			"healthChecks":         checks,
		})}
	})
}

// sameHealth reports whether checks have the same results, whenever they were made.
func sameHealth(a, b *types.ContainerInstanceHealthStatus) bool {
	return a.OverallStatus == b.OverallStatus && slices.EqualFunc(a.Details, b.Details, func(a, b types.InstanceHealthCheckResult) bool {
		return a.Type == b.Type && a.Status == b.Status && aws.ToString(a.StatusReason) == aws.ToString(b.StatusReason)
	})
}

// inSeconds returns a time as the events of container instances' health have it.
func inSeconds(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// serviceTable is the table of services in a transaction.
type serviceTable struct {
	Table[*Service]
	tx *Tx
}

// ServiceActionEvent is the detail of a service's event:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service_events.html
type ServiceActionEvent struct {
	EventType             string
	EventName             string
	ClusterArn            *string
	CreatedAt             *time.Time
	CapacityProviderArns  []string
	ContainerInstanceArns []string
	DesiredCount          *int32
	Reason                string
	TaskArns              []string
	TaskSetArns           []string
}

// DeploymentEvent is the detail of a deployment's event:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service_deployment_events.html
type DeploymentEvent struct {
	EventType    string
	EventName    string
	DeploymentId string
	UpdatedAt    *time.Time
	Reason       string
}

// HookEvent is the detail of the event of a deployment's lifecycle hook:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_hook_state_change_events.html
type HookEvent struct {
	EventType            string
	EventName            string
	HookId               *string
	HookType             types.DeploymentLifecycleHookTargetType
	ExpiresAt            *time.Time
	LifecycleStage       types.ServiceDeploymentLifecycleStage
	ClusterArn           *string
	ServiceArn           *string
	ServiceDeploymentArn string
	UpdatedAt            *time.Time
}

// Put puts a service, and tells the bus what has become of it and of its deployments.
func (t serviceTable) Put(row *Service) {
	before := t.Get(aws.ToString(row.ServiceArn))
	t.Table.Put(row)
	if t.tx.listeners.listens(ecsSource, serviceAction) {
		t.emitActions(before, row)
	}
	if t.tx.listeners.listens(ecsSource, deploymentState) {
		t.emitDeployments(before, row)
	}
	if t.tx.listeners.listens(ecsSource, hookState) {
		t.emitHooks(before, row)
	}
}

// actionTypes are how bad the service's events are that the bus hears of.
var actionTypes = map[ServiceEventKind]string{
	Steady: "INFO", TaskSetSteady: "INFO", TasksStopped: "INFO", StartImpaired: "WARN", PlacementFails: "ERROR",
}

// emitActions tells the bus of a service's new events, oldest first, and of a desired count that ECS has found. What a user has set isn't told.
func (t serviceTable) emitActions(before, row *Service) {
	tell := func(e *ServiceActionEvent) {
		e.ClusterArn = row.ClusterArn
		t.tx.Emit(ecsSource, serviceAction, func() *Event {
			return &Event{Resources: []string{*row.ServiceArn}, Detail: e, Order: *row.ServiceArn}
		})
	}
	if before != nil && before.DesiredCount != row.DesiredCount && row.SchedulingStrategy == types.SchedulingStrategyDaemon {
		now := t.tx.listeners.Now()
		tell(&ServiceActionEvent{EventType: "INFO", EventName: "SERVICE_DESIRED_COUNT_UPDATED", CreatedAt: &now, DesiredCount: &row.DesiredCount})
	}
	for _, e := range slices.Backward(newEvents(before, row)) {
		if actionTypes[e.Kind] == "" {
			continue
		}
		tell(&ServiceActionEvent{
			EventType:             actionTypes[e.Kind],
			EventName:             string(e.Kind),
			CreatedAt:             e.CreatedAt,
			CapacityProviderArns:  row.providerARNs(e.Providers),
			ContainerInstanceArns: e.Instances,
			Reason:                e.Reason,
			TaskArns:              e.Tasks,
			TaskSetArns:           e.TaskSets,
		})
		if e.Kind == Steady && len(row.CapacityProviderStrategy) > 0 {
			var providers []string
			for _, p := range row.CapacityProviderStrategy {
				providers = append(providers, aws.ToString(p.CapacityProvider))
			}
			tell(&ServiceActionEvent{
				EventType:            "INFO",
				EventName:            "CAPACITY_PROVIDER_STEADY_STATE",
				CreatedAt:            e.CreatedAt,
				CapacityProviderArns: row.providerARNs(providers),
			})
		}
	}
}

// providerARNs returns the ARNs of capacity providers with names, Fargate's among them, which have no rows.
func (s *Service) providerARNs(names []string) (out []string) {
	owner, _, _ := strings.Cut(aws.ToString(s.ClusterArn), ":cluster/")
	for _, name := range names {
		out = append(out, owner+":capacity-provider/"+name)
	}
	return out
}

// newEvents returns the service's events that it didn't have before, the newest first.
func newEvents(before, row *Service) []ServiceEvent {
	if before == nil || len(before.Events) == 0 {
		return row.Events
	}
	last := aws.ToString(before.Events[0].Id)
	for i, e := range row.Events {
		if aws.ToString(e.Id) == last {
			return row.Events[:i]
		}
	}
	return row.Events
}

// emitDeployments tells the bus of deployments that have begun, are complete or have failed.
func (t serviceTable) emitDeployments(before, row *Service) {
	for i := len(row.Deployments) - 1; i >= 0; i-- {
		d := &row.Deployments[i]
		if before != nil {
			if old := before.Deployment(aws.ToString(d.Id)); old != nil && old.RolloutState == d.RolloutState {
				continue
			}
		}
		eventType, eventName := "INFO", ""
		switch d.RolloutState {
		case types.DeploymentRolloutStateInProgress:
			eventName = "SERVICE_DEPLOYMENT_IN_PROGRESS"
		case types.DeploymentRolloutStateCompleted:
			eventName = "SERVICE_DEPLOYMENT_COMPLETED"
		case types.DeploymentRolloutStateFailed:
			eventType, eventName = "ERROR", "SERVICE_DEPLOYMENT_FAILED"
		default:
			continue
		}
		t.tx.Emit(ecsSource, deploymentState, func() *Event {
			now := t.tx.listeners.Now()
			return &Event{Resources: []string{*row.ServiceArn}, Order: *row.ServiceArn, Time: now, Detail: &DeploymentEvent{
				EventType:    eventType,
				EventName:    eventName,
				DeploymentId: aws.ToString(d.Id),
				UpdatedAt:    &now,
				Reason:       aws.ToString(d.RolloutStateReason),
			}}
		})
	}
}

// hookEventTypes are how bad the events of lifecycle hooks are.
var hookEventTypes = map[types.DeploymentLifecycleHookStatus]string{
	types.DeploymentLifecycleHookStatusInProgress:     "INFO",
	types.DeploymentLifecycleHookStatusAwaitingAction: "INFO",
	types.DeploymentLifecycleHookStatusSucceeded:      "INFO",
	types.DeploymentLifecycleHookStatusFailed:         "ERROR",
	types.DeploymentLifecycleHookStatusTimedOut:       "ERROR",
}

// emitHooks tells the bus of lifecycle hooks that a service's deployments have come to, and of what has become of those. A roll-back takes
// hooks from one deployment to another.
func (t serviceTable) emitHooks(before, row *Service) {
	told := map[string]types.DeploymentLifecycleHookStatus{}
	if before != nil {
		for _, h := range before.hooks {
			told[*h.HookId] = h.Status
		}
	}
	for d, h := range row.hooks {
		if told[*h.HookId] != h.Status {
			t.emitHook(row, d, h)
		}
	}
}

// hooks yields the lifecycle hooks of a service's deployments, those of the oldest first.
func (s *Service) hooks(yield func(*Deployment, *Hook) bool) {
	for i := len(s.Deployments) - 1; i >= 0; i-- {
		d := &s.Deployments[i]
		if d.Shift == nil {
			continue
		}
		for i := range d.Shift.Hooks {
			if !yield(d, &d.Shift.Hooks[i]) {
				return
			}
		}
	}
}

func (t serviceTable) emitHook(s *Service, d *Deployment, h *Hook) {
	t.tx.Emit(ecsSource, hookState, func() *Event {
		now := t.tx.listeners.Now()
		return &Event{Resources: []string{d.ServiceDeploymentArn}, Order: *s.ServiceArn, Time: now, Detail: &HookEvent{
			EventType:            hookEventTypes[h.Status],
			EventName:            "HOOK_" + string(h.Status),
			HookId:               h.HookId,
			HookType:             h.TargetType,
			ExpiresAt:            h.ExpiresAt,
			LifecycleStage:       cmp.Or(h.Stage, d.Shift.Stage), // older data has none
			ClusterArn:           s.ClusterArn,
			ServiceArn:           s.ServiceArn,
			ServiceDeploymentArn: d.ServiceDeploymentArn,
			UpdatedAt:            &now,
		}}
	})
}
