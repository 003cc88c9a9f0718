package state

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of Amazon ECS. Each embeds the SDK's struct, so that what a client sent is stored and returned in full.
// Figures that can be derived (counts, remaining resources) are left empty in it.

// Cluster is one cluster, ACTIVE or INACTIVE.
type Cluster struct {
	types.Cluster
}

// TaskDefinition is one revision of a family.
type TaskDefinition struct {
	types.TaskDefinition
	Tags []types.Tag
}

// Deregister makes a task definition INACTIVE, and returns it. The tasks that it has keep running.
func (tx *Tx) Deregister(td *TaskDefinition, at *time.Time) *TaskDefinition {
	if td.Status == types.TaskDefinitionStatusInactive {
		return td
	}
	row := *td
	row.Status = types.TaskDefinitionStatusInactive
	row.DeregisteredAt = at
	tx.TaskDefinitions.Put(&row)
	return &row
}

// HasHealthCheck reports whether any essential container of its tasks has a health check.
func (t *TaskDefinition) HasHealthCheck() bool {
	return slices.ContainsFunc(t.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		return c.HealthCheck != nil && (c.Essential == nil || *c.Essential)
	})
}

// RequiredAttributes returns the attributes that an instance must have for its tasks: those that it shows as
// requiresAttributes, and those of its platform, which ECS doesn't show there.
func (t *TaskDefinition) RequiredAttributes() []types.Attribute {
	out := slices.Clone(t.RequiresAttributes)
	p := t.RuntimePlatform
	if p == nil {
		return out
	}
	if p.CpuArchitecture != "" {
		out = append(out, attribute("ecs.cpu-architecture", strings.ToLower(string(p.CpuArchitecture))))
	}
	switch p.OperatingSystemFamily {
	case "":
	case types.OSFamilyLinux:
		out = append(out, attribute("ecs.os-type", "linux"))
	default:
		out = append(out, attribute("ecs.os-family", string(p.OperatingSystemFamily)))
	}
	return out
}

func attribute(name, value string) types.Attribute {
	return types.Attribute{Name: &name, Value: &value}
}

// TaskFamily remembers a family's last revision number, which is never reused.
type TaskFamily struct {
	Family       string
	LastRevision int32
}

// ContainerInstance is one node of a cluster.
type ContainerInstance struct {
	types.ContainerInstance
	ClusterArn string
	// GPUs lists the instance's devices in the order in which the agent named them.
	GPUs []GPU
	// Capacity is the total of the registered resources.
	Capacity Resources
	// DisconnectedAt is when the agent's connection was lost, or nil while it is connected.
	DisconnectedAt *time.Time
	// Away means that it has been so for a while: its tasks are likely unreachable.
	Away bool `json:",omitzero"`
	// DeregisteredAt is when it became INACTIVE.
	DeregisteredAt *time.Time `json:",omitzero"`
	// PrivateIPAddress is the machine's address in its network.
	PrivateIPAddress string `json:",omitzero"`
}

// InstanceTypeAttribute is the attribute with which agents register their machine's type. A container instance keeps it.
const InstanceTypeAttribute = "ecs.instance-type"

// Type returns the instance's type, as its agent registered it, or "".
func (c *ContainerInstance) Type() string {
	for _, a := range c.Attributes {
		if aws.ToString(a.Name) == InstanceTypeAttribute {
			return aws.ToString(a.Value)
		}
	}
	return ""
}

// Clone returns a copy that can be changed.
func (c *ContainerInstance) Clone() *ContainerInstance { return new(*c) }

// Connected returns the instance with its agent connected.
func (c *ContainerInstance) Connected(version *types.VersionInfo) *ContainerInstance {
	row := c.Clone()
	row.AgentConnected = true
	row.DisconnectedAt = nil
	row.Away = false
	row.VersionInfo = version
	return row
}

// Disconnected returns the instance with its agent gone.
func (c *ContainerInstance) Disconnected(now time.Time) *ContainerInstance {
	row := c.Clone()
	row.AgentConnected = false
	row.DisconnectedAt = &now
	return row
}

// In returns the instance in another status: ACTIVE or DRAINING.
func (c *ContainerInstance) In(status types.ContainerInstanceStatus) *ContainerInstance {
	row := c.Clone()
	row.Status = aws.String(string(status))
	return row
}

// Deregistered returns the instance, INACTIVE for good.
func (c *ContainerInstance) Deregistered(now time.Time) *ContainerInstance {
	row := c.Clone()
	row.Status = aws.String(InstanceInactive)
	row.AgentConnected = false
	row.DeregisteredAt = &now
	return row
}

// Health returns the health that the agent reported, plus the faults of the instance's GPUs. A fault impairs ECS's
// check ACCELERATED_COMPUTE, and the check's reason names the GPU.
func (c *ContainerInstance) Health() *types.ContainerInstanceHealthStatus {
	check := types.InstanceHealthCheckResult{
		Type:   types.InstanceHealthCheckTypeAcceleratedCompute,
		Status: types.InstanceHealthCheckStateImpaired,
	}
	var reasons []string
	for _, g := range c.GPUs {
		if g.Fault == nil {
			continue
		}
		reasons = append(reasons, "GPU "+g.ID+": "+g.Fault.Reason)
		if check.LastStatusChange == nil || g.Fault.Since.After(*check.LastStatusChange) {
			check.LastStatusChange = &g.Fault.Since
			check.LastUpdated = &g.Fault.Since
		}
	}
	if len(reasons) == 0 {
		return c.HealthStatus
	}
	check.StatusReason = aws.String(strings.Join(reasons, "; "))
	h := types.ContainerInstanceHealthStatus{OverallStatus: check.Status}
	if c.HealthStatus != nil {
		h.Details = slices.DeleteFunc(slices.Clone(c.HealthStatus.Details), func(r types.InstanceHealthCheckResult) bool {
			return r.Type == check.Type
		})
	}
	h.Details = append(h.Details, check)
	return &h
}

// InstanceInactive is the status of a container instance that was deregistered.
const InstanceInactive = "INACTIVE"

// GPU is one device of a container instance.
type GPU struct {
	ID        string
	Model     string `json:",omitzero"`
	Simulated bool   `json:",omitzero"`
	NUMA      int    `json:",omitzero"`
	// Links counts the NVLinks to the instance's other devices, by index into GPUs.
	Links []int `json:",omitzero"`
	// Fault is why no task may have the device, or nil if it's healthy.
	Fault *GPUFault `json:",omitzero"`
}

// GPUFault is what is wrong with a device, as reported by its node.
type GPUFault struct {
	Reason string
	Since  time.Time
}

// Resources is an amount of what tasks compete for on an instance.
type Resources struct {
	CPU       int64 // CPU units, 1,024 a core
	MemoryMiB int64
	PortsTCP  []uint16 // reserved ports
	PortsUDP  []uint16
}

// IdempotencyToken remembers what a call with a client token created, so that repeating it creates nothing new.
type IdempotencyToken struct {
	Token   string // operation, cluster and client token
	Request []byte // a hash of the call: the same token with another call is refused
	Arns    []string
	Expires time.Time
}

// AccountSetting is a setting of one principal, or the account's default if the principal is empty.
type AccountSetting struct {
	types.Setting
}

// Key returns the principal and the name.
func (s *AccountSetting) Key() string {
	return aws.ToString(s.PrincipalArn) + "/" + string(s.Name)
}

// The indexes of the ECS tables.
var (
	TasksByCluster = Index[*Task]{Name: "cluster", Value: func(t *Task) string {
		return ClusterStatus(aws.ToString(t.ClusterArn), aws.ToString(t.DesiredStatus))
	}}
	TasksByInstance = Index[*Task]{Name: "instance", Value: func(t *Task) string { return aws.ToString(t.ContainerInstanceArn) }}
	// TasksByLastStatus finds tasks that wait for placement, and stopped ones that are due to be forgotten.
	TasksByLastStatus = Index[*Task]{Name: "last_status", Value: func(t *Task) string { return aws.ToString(t.LastStatus) }}

	InstancesByCluster = Index[*ContainerInstance]{Name: "cluster", Value: func(c *ContainerInstance) string { return c.ClusterArn }}
	// InstancesByMachine finds what an EC2 instance has registered.
	InstancesByMachine = Index[*ContainerInstance]{
		Name:  "machine",
		Value: func(c *ContainerInstance) string { return aws.ToString(c.Ec2InstanceId) },
	}

	TaskDefinitionsByFamily = Index[*TaskDefinition]{Name: "family", Value: func(t *TaskDefinition) string { return aws.ToString(t.Family) }}
)

// ClusterStatus returns the index value in TasksByCluster for a cluster's tasks with a desired status.
func ClusterStatus(clusterArn, desiredStatus string) string { return clusterArn + " " + desiredStatus }

// keepEnded is how long ECS shows what has ended.
const keepEnded = time.Hour

// unusedDefinitions returns the definitions that were asked to be deleted and that no task or service names any more.
func unusedDefinitions(t Table[*TaskDefinition], _ time.Time) []string {
	doomed := map[string]bool{}
	for td := range t.All() {
		if td.Status == types.TaskDefinitionStatusDeleteInProgress {
			doomed[*td.TaskDefinitionArn] = true
		}
	}
	if len(doomed) == 0 {
		return nil
	}
	for task := range tasks.In(t.View()).All() {
		delete(doomed, aws.ToString(task.TaskDefinitionArn))
	}
	for s := range services.In(t.View()).All() {
		for _, d := range s.Deployments { // they may have to start a task of it again
			delete(doomed, aws.ToString(d.TaskDefinition))
		}
		for _, set := range s.TaskSets {
			delete(doomed, aws.ToString(set.TaskDefinition))
		}
	}
	return slices.Collect(maps.Keys(doomed))
}

// GPUHolder is the task that holds a GPU, and which of its containers has it.
type GPUHolder struct {
	Task      *Task
	Container string
}

// GPUHolders returns who holds a container instance's GPUs, by their ids.
func (v *View) GPUHolders(instance string) map[string]GPUHolder {
	holders := map[string]GPUHolder{}
	for t := range v.Tasks.By(TasksByInstance, instance) {
		if !t.Holds() {
			continue
		}
		for _, g := range t.GPUs {
			holders[g.ID] = GPUHolder{t, g.Container}
		}
	}
	return holders
}

var (
	accountSettings = &store.Definition[*AccountSetting]{Name: "account_settings", Key: (*AccountSetting).Key}

	clusters = &store.Definition[*Cluster]{Name: "clusters", Key: func(c *Cluster) string { return aws.ToString(c.ClusterArn) }}

	containerInstances = &store.Definition[*ContainerInstance]{
		Name:     "container_instances",
		Key:      func(c *ContainerInstance) string { return aws.ToString(c.ContainerInstanceArn) },
		Indexes:  []Index[*ContainerInstance]{InstancesByCluster, InstancesByMachine},
		Lifetime: store.KeepFor(keepEnded, func(c *ContainerInstance) *time.Time { return c.DeregisteredAt }),
		Revise:   func(before, after *ContainerInstance) { after.Version = before.Version + 1 },
	}

	idempotencyTokens = &store.Definition[*IdempotencyToken]{
		Name:     "idempotency_tokens",
		Key:      func(t *IdempotencyToken) string { return t.Token },
		Lifetime: store.KeepFor(0, func(t *IdempotencyToken) *time.Time { return &t.Expires }),
	}

	taskDefinitions = &store.Definition[*TaskDefinition]{
		Name:     "task_definitions",
		Key:      func(t *TaskDefinition) string { return aws.ToString(t.TaskDefinitionArn) },
		Indexes:  []Index[*TaskDefinition]{TaskDefinitionsByFamily},
		Lifetime: unusedDefinitions,
	}

	taskFamilies = &store.Definition[*TaskFamily]{Name: "task_families", Key: func(f *TaskFamily) string { return f.Family }}

	tasks = &store.Definition[*Task]{
		Name:     "tasks",
		Key:      func(t *Task) string { return aws.ToString(t.TaskArn) },
		Indexes:  append([]Index[*Task]{TasksByCluster, TasksByInstance, TasksByLastStatus, TasksByService, TasksByInterface, tasksBySubnet}, tasksByGroup...),
		Lifetime: store.KeepForBy(TasksByLastStatus, "STOPPED", keepEnded, func(t *Task) *time.Time { return t.StoppedAt }),
		Revise:   (*Task).revise,
	}
)
