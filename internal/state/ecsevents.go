package state

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// What ECS tells the default bus: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_cwe_events.html

const ecsSource = "aws.ecs"

// TaskEvent is the detail of a task's event: the task, without its tags.
type TaskEvent struct {
	types.Task
	UpdatedAt *time.Time
}

// emitTask tells what has changed of a task, if its client would see it.
func (tx *Tx) emitTask(before, t *Task) {
	if before != nil && !t.differs(before) {
		return
	}
	tx.Emit(ecsSource, "ECS Task State Change", func() *Event {
		stored := tx.Tasks.Get(*t.TaskArn) // it has its version
		now := tx.listeners.Now()
		detail := &TaskEvent{Task: stored.Task, UpdatedAt: &now}
		detail.Tags = nil
		if stored.Deregistering {
			detail.LastStatus = aws.String("DEACTIVATING")
		}
		return &Event{Resources: []string{*t.TaskArn}, Detail: detail, Order: *t.TaskArn, Time: now}
	})
}

// differs reports whether a task's status, that of one of its containers or attachments, its health or its connection is another.
func (t *Task) differs(before *Task) bool {
	return aws.ToString(t.LastStatus) != aws.ToString(before.LastStatus) ||
		aws.ToString(t.DesiredStatus) != aws.ToString(before.DesiredStatus) ||
		t.HealthStatus != before.HealthStatus || t.Connectivity != before.Connectivity || t.Deregistering != before.Deregistering ||
		!slices.EqualFunc(t.Containers, before.Containers, func(c, old types.Container) bool {
			return aws.ToString(c.LastStatus) == aws.ToString(old.LastStatus) && c.HealthStatus == old.HealthStatus
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

// Put puts a container instance, and tells the bus if it's new, or its status, its agent's connection or its attributes are others. Who looks for
// changes of names hears when it goes away, and when it's back.
func (t containerInstanceTable) Put(row *ContainerInstance) {
	arn := aws.ToString(row.ContainerInstanceArn)
	before := t.Get(arn)
	t.Table.Put(row)
	if before != nil && before.Away != row.Away {
		t.tx.changedTasksOf(arn)
	}
	if before != nil && !row.differs(before) {
		return
	}
	t.tx.Emit(ecsSource, "ECS Container Instance State Change", func() *Event {
		now := t.tx.listeners.Now()
		detail := &InstanceEvent{ContainerInstance: row.ContainerInstance, ClusterArn: &row.ClusterArn, UpdatedAt: &now}
		if describe := t.tx.listeners.Describe; describe != nil {
			detail.ContainerInstance = describe(t.tx.View, t.Get(arn))
		}
		detail.Tags = nil
		return &Event{Resources: []string{arn}, Detail: detail, Order: arn, Time: now}
	})
}

func (c *ContainerInstance) differs(before *ContainerInstance) bool {
	return aws.ToString(c.Status) != aws.ToString(before.Status) || c.AgentConnected != before.AgentConnected ||
		c.AgentUpdateStatus != before.AgentUpdateStatus ||
		!slices.EqualFunc(c.Attributes, before.Attributes, func(a, old types.Attribute) bool {
			return aws.ToString(a.Name) == aws.ToString(old.Name) && aws.ToString(a.Value) == aws.ToString(old.Value)
		})
}

// serviceTable is the table of services in a transaction.
type serviceTable struct {
	Table[*Service]
	tx *Tx
}

// ServiceActionEvent is the detail of a service's event:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service_events.html
type ServiceActionEvent struct {
	EventType            string
	EventName            string
	ClusterArn           *string
	CreatedAt            *time.Time
	CapacityProviderArns []string
	DesiredCount         *int32
	Reason               *string
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

const (
	serviceAction   = "ECS Service Action"
	deploymentState = "ECS Deployment State Change"
)

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
}

// actionTypes are how bad the service's events are that the bus hears of.
var actionTypes = map[ServiceEventKind]string{Steady: "INFO", TaskSetSteady: "INFO", StartImpaired: "WARN", PlacementFails: "ERROR"}

// emitActions tells the bus of a service's new events, oldest first, and of another desired count.
func (t serviceTable) emitActions(before, row *Service) {
	tell := func(e *ServiceActionEvent) {
		e.ClusterArn = row.ClusterArn
		t.tx.Emit(ecsSource, serviceAction, func() *Event {
			return &Event{Resources: []string{*row.ServiceArn}, Detail: e, Order: *row.ServiceArn}
		})
	}
	if before != nil && before.DesiredCount != row.DesiredCount {
		now := t.tx.listeners.Now()
		tell(&ServiceActionEvent{EventType: "INFO", EventName: "SERVICE_DESIRED_COUNT_UPDATED", CreatedAt: &now, DesiredCount: &row.DesiredCount})
	}
	for _, e := range slices.Backward(newEvents(before, row)) {
		if actionTypes[e.Kind] == "" {
			continue
		}
		detail := &ServiceActionEvent{EventType: actionTypes[e.Kind], EventName: string(e.Kind), CreatedAt: e.CreatedAt}
		if e.Kind == PlacementFails {
			detail.Reason = e.Message
		}
		tell(detail)
	}
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
