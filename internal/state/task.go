package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Task is one task, from RunTask until an hour after it has stopped.
type Task struct {
	types.Task
	// ServiceArn is the service that the task belongs to, or "" if RunTask started it.
	ServiceArn string `json:",omitzero"`
	// ProtectedUntil is until when its service must not stop it.
	ProtectedUntil *time.Time
	// Noted means that its service has taken note of its end.
	Noted bool `json:",omitzero"`
	// Deregistering means that its stop was requested, and that it goes on running until it has drained at its load balancers.
	Deregistering bool `json:",omitzero"`
	// Reserved is what the task holds of its instance until it is STOPPED.
	Reserved Resources
	// GPUs are the devices that its containers hold until it is STOPPED.
	GPUs []HeldGPU
	// RoleIDs are the unique ids of its roles in IAM when it was placed, by ARN. A role that was a name alone has none.
	RoleIDs map[string]string `json:",omitempty"`
	// SecurityGroups are those of its own interface, in network mode awsvpc, once it was placed.
	SecurityGroups []string `json:",omitempty"`
	// BridgeAddresses are those of its containers in network mode bridge, while it runs on an instance with security groups.
	BridgeAddresses []string `json:",omitempty"`
	// Volumes are the EBS volumes that ECS makes for it.
	Volumes []TaskVolume `json:",omitempty"`
	// Registry is where its service registers it in Cloud Map, or nil.
	Registry *TaskRegistry `json:",omitempty"`
	// Connect is how it takes part in Service Connect, or nil.
	Connect *TaskConnect `json:",omitempty"`
	// Trace is the span of the request that started it, as the header traceparent has it, or "" if it isn't traced.
	Trace string `json:",omitzero"`
	// Waiting is set while a task has no instance and waits for its capacity provider to grow. It says what the task
	// needs.
	Waiting *Waiting `json:",omitzero"`
}

// Waiting is what a task that waits for room needs, and how to place it.
type Waiting struct {
	CPU         int64
	MemoryMiB   int64
	GPUs        int
	Constraints []types.PlacementConstraint
	Strategy    []types.PlacementStrategy
}

// MemberOf returns the expressions of the memberOf constraints that the task and its definition have.
func (w *Waiting) MemberOf(td *TaskDefinition) (out []string) {
	for _, c := range td.PlacementConstraints {
		out = append(out, aws.ToString(c.Expression))
	}
	for _, c := range w.Constraints {
		if c.Type == types.PlacementConstraintTypeMemberOf {
			out = append(out, aws.ToString(c.Expression))
		}
	}
	return out
}

// HeldGPU is a device, or a share of one, that a container of a task holds.
type HeldGPU struct {
	Container string
	ID        string
	Milli     int // thousandths of the device, 1 to 1000
}

// Override returns what RunTask changed of the definition; nothing is an empty one.
func (t *Task) Override() *types.TaskOverride {
	if t.Overrides == nil {
		return &types.TaskOverride{}
	}
	return t.Overrides
}

// TaskRole returns the ARN of the role that the task's containers have, or "". What RunTask named overrides the definition.
func (t *Task) TaskRole(td *TaskDefinition) string {
	return cmp.Or(aws.ToString(t.Override().TaskRoleArn), aws.ToString(td.TaskRoleArn))
}

// ExecutionRole returns the ARN of the role with which the task is prepared, or "".
func (t *Task) ExecutionRole(td *TaskDefinition) string {
	return cmp.Or(aws.ToString(t.Override().ExecutionRoleArn), aws.ToString(td.ExecutionRoleArn))
}

// RoleIDsOf returns the ids that a task's roles have in IAM now, by ARN.
func (v *View) RoleIDsOf(t *Task, td *TaskDefinition) (ids map[string]string) {
	owner, err := arn.Parse(*t.TaskArn)
	if err != nil {
		return nil
	}
	for _, id := range []string{t.TaskRole(td), t.ExecutionRole(td)} {
		if r := v.RoleAt(owner.AccountID, id); r != nil {
			if ids == nil {
				ids = map[string]string{}
			}
			ids[id] = r.ID
		}
	}
	return ids
}

// revise gives the task that follows this one its version. That its service has noted its end is no change: who follows a task's events has the
// version that DescribeTasks shows.
func (t *Task) revise(after *Task) {
	after.Version = t.Version
	if after.Noted == t.Noted {
		after.Version++
	}
}

// Holds reports whether the task holds resources of a container instance.
func (t *Task) Holds() bool {
	return t.ContainerInstanceArn != nil && aws.ToString(t.LastStatus) != string(types.DesiredStatusStopped)
}

// Home returns the ARN of the cluster that the task's container instance is of: Fargate's tasks may be on instances of another cluster than their own.
func (t *Task) Home() string {
	if t.LaunchType != types.LaunchTypeFargate {
		return *t.ClusterArn
	}
	prefix, id, ok := strings.Cut(aws.ToString(t.ContainerInstanceArn), ":container-instance/")
	if !ok {
		return *t.ClusterArn
	}
	cluster, _, _ := strings.Cut(id, "/")
	return prefix + ":cluster/" + cluster
}

// Running returns the task as RUNNING, as its node reports.
func (t *Task) Running(now time.Time) *Task {
	c := *t
	c.LastStatus = aws.String("RUNNING")
	c.StartedAt = cmp.Or(c.StartedAt, &now)
	c.Connectivity = types.ConnectivityConnected
	c.ConnectivityAt = cmp.Or(c.ConnectivityAt, &now)
	c.Attachments = withVolumes(c.Attachments, "ATTACHED")
	return &c
}

// Stopped returns the task as STOPPED, because its node reports so or can't report any more. Every task ends here. A
// stop reason that the task already has stays. A task that ended by itself has been stopping since its containers ended.
func (t *Task) Stopped(code types.TaskStopCode, reason string, now time.Time) *Task {
	c := *t
	c.DesiredStatus = aws.String("STOPPED")
	c.LastStatus = aws.String("STOPPED")
	if c.StoppedReason == nil {
		c.StopCode = code
		c.StoppedReason = &reason
	}
	if ended := c.ExecutionStoppedAt; ended != nil && ended.Before(now) { // a node's clock may be ahead
		c.StoppingAt = cmp.Or(c.StoppingAt, ended)
	}
	c.StoppingAt = cmp.Or(c.StoppingAt, &now)
	c.StoppedAt = &now
	c.ExecutionStoppedAt = cmp.Or(c.ExecutionStoppedAt, &now)
	c.Containers = slices.Clone(c.Containers)
	for i := range c.Containers {
		c.Containers[i].LastStatus = aws.String("STOPPED")
	}
	c.Attachments = slices.Clone(c.Attachments)
	c.BridgeAddresses = nil
	c.Deregistering = false
	for i := range c.Attachments {
		c.Attachments[i] = ended(c.Attachments[i], *c.StoppedReason)
	}
	return &c
}

// Stopping returns the task with its stop requested. A task without an instance has nothing to stop: it is STOPPED.
func (t *Task) Stopping(code types.TaskStopCode, reason string, now time.Time) *Task {
	if t.ContainerInstanceArn == nil {
		return t.Stopped(code, reason, now)
	}
	c := *t
	c.DesiredStatus = aws.String("STOPPED")
	c.StopCode = code
	c.StoppedReason = &reason
	c.StoppingAt = &now
	return &c
}
