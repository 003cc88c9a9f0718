package scheduler

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

// Launch describes a task that RunTask, StartTask or a service wants. It has been validated.
type Launch struct {
	ClusterArn     string
	TaskDefinition *state.TaskDefinition
	Overrides      *types.TaskOverride
	Need           Need
	Group          string
	StartedBy      *string
	ServiceArn     string // set for a service's task
	LaunchType     types.LaunchType
	Network        *types.NetworkConfiguration
	Exec           bool
	Tags           []types.Tag
	Constraints    []types.PlacementConstraint
	Strategy       []types.PlacementStrategy
	Volumes        []state.TaskVolume
	Registry       *state.TaskRegistry // where the task is registered in Cloud Map, or nil
	Connect        *state.TaskConnect  // how it takes part in Service Connect, or nil
	// CapacityProvider is the provider that the task belongs to; "" leaves it to the launch type.
	CapacityProvider string
	// MayWait applies if the task's capacity provider has managed scaling. If there is no room, the task is then
	// written without an instance, PROVISIONING, and placed once there is.
	MayWait bool
	Now     time.Time
	// Trace is the span that the task belongs to, or "".
	Trace string
}

// ClusterTag is the tag with the cluster's name that a task has by enableECSManagedTags.
func ClusterTag(clusterArn string) types.Tag {
	return types.Tag{Key: aws.String("aws:ecs:clusterName"), Value: aws.String(state.NameOf(clusterArn))}
}

// Request is what the launch asks of placement.
func (l *Launch) Request() Request {
	return Request{
		ClusterArn:       l.ClusterArn,
		TaskDefinition:   l.TaskDefinition,
		Need:             l.Need,
		Group:            l.Group,
		Constraints:      l.Constraints,
		Strategy:         l.Strategy,
		CapacityProvider: l.CapacityProvider,
		Fargate:          l.launchType() == types.LaunchTypeFargate,
		Exec:             l.Exec,
		Volumes:          l.Volumes,
		Connect:          l.Connect,
	}
}

// launchType is the task's: its capacity provider's, if it has one.
func (l *Launch) launchType() types.LaunchType {
	if l.CapacityProvider != "" {
		return capacity.LaunchType(l.CapacityProvider)
	}
	return cmp.Or(l.LaunchType, types.LaunchTypeEc2)
}

// Launch places a task and writes it, bound to its instance and GPUs. From then on its node gets it. If there is no
// room, a task that may wait for its capacity provider to grow is written without an instance. PlaceWaiting places it
// once there is room. Where others wait already, it waits for its turn, or those who ask most often would get all that becomes free.
// A task that may not wait gets what those that wait can't use.
func (s *Scheduler) Launch(tx *state.Tx, l *Launch) (*state.Task, []types.Failure) {
	waiting, others := s.mayWait(tx.View, l)
	if !waiting && s.hasNews {
		s.PlaceWaiting(tx, l.Now)
		waiting, others = s.mayWait(tx.View, l)
	}
	if others {
		if t := s.waiting(l); Refusal(tx.View, t) == nil {
			tx.Tasks.Put(t)
			return t, nil
		}
	}
	p, failures := s.Place(tx.View, l.Request())
	if len(failures) == 0 {
		return s.bind(tx, l, p), nil
	}
	if !waiting {
		return nil, failures
	}
	t := s.waiting(l)
	if refusal := Refusal(tx.View, t); refusal != nil { // waiting would never help
		return nil, []types.Failure{*refusal}
	}
	tx.Tasks.Put(t)
	return t, nil
}

// Refusal says why no instance that its capacity provider could launch would ever take a waiting task, or returns nil if one may.
func Refusal(v *state.View, t *state.Task) *types.Failure {
	p := v.CapacityProviderNamed(aws.ToString(t.CapacityProviderName))
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if p == nil || td == nil {
		return nil
	}
	g := v.GroupOf(p)
	if g == nil {
		return nil
	}
	var kinds []capacity.Kind
	for _, o := range v.Offers(p, g) {
		if i, err := instancetype.Lookup(o.Type); err == nil {
			kinds = append(kinds, capacity.NewKind(o.Type, g.AvailabilityZones, i.VCPUs, i.MemoryMiB, i.GPUs, o.Seen))
		}
	}
	size := capacity.Size{CPU: t.Waiting.CPU, MemoryMiB: t.Waiting.MemoryMiB, GPUs: t.Waiting.GPUs}
	needs := capacity.NewTask(size, td.RequiredAttributes(), t.Waiting.MemberOf(td))
	reason, detail := capacity.Refusal(kinds, needs)
	if reason == "" || reason == capacity.UnmetConstraint && isMet(v, t, needs.MemberOf) {
		return nil
	}
	return &types.Failure{Arn: p.CapacityProviderArn, Reason: &reason, Detail: &detail}
}

// isMet reports whether an instance that is there may meet a task's memberOf constraints all the same: it may have been given an attribute
// since it came. Then the task waits until there is room on it.
func isMet(v *state.View, t *state.Task, expressions []*query.Expression) bool {
	for i := range v.ContainerInstances.By(state.InstancesByCluster, *t.ClusterArn) {
		known := func(name string) (string, bool, bool) {
			value, ok := subject{v, i}.Attribute(name)
			return value, ok, true
		}
		excludes := func(e *query.Expression) bool {
			may, _ := e.Outcomes(query.Known{Attribute: known})
			return !may
		}
		ofProvider := aws.ToString(i.CapacityProviderName) == *t.CapacityProviderName && *i.Status == "ACTIVE"
		if ofProvider && !slices.ContainsFunc(expressions, excludes) {
			return true
		}
	}
	return false
}

// maxWaiting is how many tasks of a cluster may be PROVISIONING, from the service's quotas:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-quotas.html
const maxWaiting = 500

// mayWait reports whether a task may wait: its capacity provider grows for it, and the cluster has fewer than maxWaiting waiting tasks.
// If so, it also reports whether others wait for the provider.
func (s *Scheduler) mayWait(v *state.View, l *Launch) (may, others bool) {
	if !l.MayWait || !Grows(v, l.CapacityProvider) {
		return false, false
	}
	n := 0
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if *t.ClusterArn == l.ClusterArn && t.Waiting != nil {
			n++
			others = others || aws.ToString(t.CapacityProviderName) == l.CapacityProvider
		}
	}
	return n < maxWaiting, others && n < maxWaiting
}

// Grows reports whether a capacity provider has managed scaling.
func Grows(v *state.View, provider string) bool {
	p := v.CapacityProviderNamed(provider)
	return p != nil && p.AutoScalingGroupProvider.ManagedScaling.Status == types.ManagedScalingStatusEnabled
}

// waiting makes a task that has no instance yet.
func (s *Scheduler) waiting(l *Launch) *state.Task {
	t := newTask(l, s.NewID())
	t.LastStatus = aws.String("PROVISIONING")
	t.Waiting = &state.Waiting{
		CPU:         l.Need.Reserved.CPU,
		MemoryMiB:   l.Need.Reserved.MemoryMiB,
		Constraints: l.Constraints,
		Strategy:    l.Strategy,
	}
	for _, g := range l.Need.GPUs {
		t.Waiting.GPUs += g.Count
	}
	return t
}

// placeWaiting places a waiting task. If there is no room, it returns why.
func (s *Scheduler) placeWaiting(tx *state.Tx, old *state.Task, now time.Time) []types.Failure {
	td := tx.TaskDefinitions.Get(*old.TaskDefinitionArn)
	if td == nil {
		return []types.Failure{{Arn: old.TaskDefinitionArn, Reason: aws.String("MISSING")}}
	}
	r := RequestOf(td, old)
	p, failures := s.Place(tx.View, r)
	if len(failures) > 0 {
		return failures
	}
	t := new(*old)
	t.Containers = slices.Clone(old.Containers)
	t.Waiting = nil
	if td.NetworkMode != types.NetworkModeAwsvpc {
		t.LastStatus = aws.String("PENDING")
	}
	s.put(tx, t, r.Need, p, now)
	return nil
}

// RequestOf returns what a waiting task of a definition asks for.
func RequestOf(td *state.TaskDefinition, t *state.Task) Request {
	return Request{
		ClusterArn:       *t.ClusterArn,
		TaskDefinition:   td,
		Need:             NeedOf(&td.TaskDefinition, t.Overrides),
		Group:            aws.ToString(t.Group),
		Constraints:      t.Waiting.Constraints,
		Strategy:         t.Waiting.Strategy,
		CapacityProvider: aws.ToString(t.CapacityProviderName),
		Exec:             t.EnableExecuteCommand,
		Volumes:          t.Volumes,
		Connect:          t.Connect,
		TaskArn:          *t.TaskArn,
	}
}

// LaunchOn launches a task on an instance that the caller has chosen.
func (s *Scheduler) LaunchOn(tx *state.Tx, instanceArn string, l *Launch) (*state.Task, *types.Failure) {
	p, failure := s.PlaceOn(tx.View, instanceArn, l.Request())
	if failure != nil {
		return nil, failure
	}
	return s.bind(tx, l, p), nil
}

func (s *Scheduler) bind(tx *state.Tx, l *Launch, p Placement) *state.Task {
	return s.put(tx, newTask(l, s.NewID()), l.Need, p, l.Now)
}

// put writes a task, bound to its placement.
func (s *Scheduler) put(tx *state.Tx, t *state.Task, need Need, p Placement, now time.Time) *state.Task {
	t.ContainerInstanceArn = &p.InstanceArn
	t.Reserved = need.Reserved
	t.GPUs = p.GPUs
	if instance := tx.ContainerInstances.Get(p.InstanceArn); instance != nil {
		t.AvailabilityZone = zone(instance)
		if architecture := AttributeValue(instance.Attributes, "ecs.cpu-architecture"); architecture != nil {
			t.Attributes = []types.Attribute{{Name: aws.String("ecs.cpu-architecture"), Value: architecture}}
		}
	}
	if subnet := t.SubnetID(); subnet != "" {
		t.SecurityGroups = tx.InterfaceGroups(subnet, t.SecurityGroups)
	}
	for i := range t.Containers {
		for _, g := range p.GPUs {
			if g.Container == *t.Containers[i].Name {
				t.Containers[i].GpuIds = append(t.Containers[i].GpuIds, g.ID)
			}
		}
	}
	if td := tx.TaskDefinitions.Get(*t.TaskDefinitionArn); td != nil {
		t.RoleIDs = tx.RoleIDsOf(t, td)
	}
	tx.CreateVolumes(t, now)
	tx.Tasks.Put(t)
	return t
}

// newTask builds a task as ECS shows it right after RunTask.
func newTask(l *Launch, id string) *state.Task {
	now := l.Now
	t := &state.Task{Trace: l.Trace, ServiceArn: l.ServiceArn, Registry: l.Registry, Connect: l.Connect, Volumes: l.Volumes, Task: types.Task{
		Attachments:          []types.Attachment{},
		Attributes:           []types.Attribute{},
		ClusterArn:           &l.ClusterArn,
		CreatedAt:            &now,
		DesiredStatus:        aws.String("RUNNING"),
		EnableExecuteCommand: l.Exec,
		Group:                &l.Group,
		HealthStatus:         types.HealthStatusUnknown,
		LastStatus:           aws.String("PENDING"),
		LaunchType:           l.launchType(),
		Overrides:            l.Overrides,
		StartedBy:            l.StartedBy,
		Cpu:                  new(strconv.FormatInt(l.Need.Reserved.CPU, 10)),
		Memory:               new(strconv.FormatInt(l.Need.Reserved.MemoryMiB, 10)),
		Tags:                 l.Tags,
		TaskArn:              new(state.InCluster(l.ClusterArn, "task", id)),
		TaskDefinitionArn:    l.TaskDefinition.TaskDefinitionArn,
		Version:              1,
	}}
	t.PlatformVersion, t.PlatformFamily = capacity.Platform(t.LaunchType, nil)
	if l.CapacityProvider != "" {
		t.CapacityProviderName = new(l.CapacityProvider)
	}
	if l.TaskDefinition.NetworkMode == types.NetworkModeAwsvpc {
		t.LastStatus = aws.String("PROVISIONING")
		t.SecurityGroups = groupsOf(l.Network)
		t.Attachments = []types.Attachment{{
			Id:      new(state.NewUUID()),
			Type:    aws.String("ElasticNetworkInterface"),
			Status:  aws.String("PRECREATED"),
			Details: subnetDetails(l.Network),
		}}
	}
	t.Attachments = append(t.Attachments, state.VolumeAttachments(l.Volumes)...)
	for _, c := range l.TaskDefinition.ContainerDefinitions {
		t.Containers = append(t.Containers, newContainer(t, id, &c))
	}
	return t
}

func newContainer(t *state.Task, task string, c *types.ContainerDefinition) types.Container {
	out := types.Container{
		ContainerArn:      new(state.InCluster(*t.ClusterArn, "container", task, state.NewUUID())),
		TaskArn:           t.TaskArn,
		Name:              c.Name,
		Image:             c.Image,
		LastStatus:        aws.String("PENDING"),
		Cpu:               aws.String(strconv.Itoa(int(c.Cpu))),
		HealthStatus:      types.HealthStatusUnknown,
		NetworkInterfaces: []types.NetworkInterface{},
		NetworkBindings:   []types.NetworkBinding{},
	}
	if t.EnableExecuteCommand {
		out.ManagedAgents = []types.ManagedAgent{{Name: types.ManagedAgentNameExecuteCommandAgent, LastStatus: aws.String("PENDING")}}
	}
	if c.Memory != nil {
		out.Memory = aws.String(strconv.Itoa(int(*c.Memory)))
	}
	if c.MemoryReservation != nil {
		out.MemoryReservation = aws.String(strconv.Itoa(int(*c.MemoryReservation)))
	}
	return out
}

func groupsOf(n *types.NetworkConfiguration) []string {
	if n == nil || n.AwsvpcConfiguration == nil {
		return nil
	}
	return n.AwsvpcConfiguration.SecurityGroups
}

func subnetDetails(n *types.NetworkConfiguration) []types.KeyValuePair {
	if n == nil || n.AwsvpcConfiguration == nil || len(n.AwsvpcConfiguration.Subnets) == 0 {
		return []types.KeyValuePair{}
	}
	return []types.KeyValuePair{{Name: aws.String("subnetId"), Value: &n.AwsvpcConfiguration.Subnets[0]}}
}

// Hosts returns the instances that a DAEMON service wants the task on. They are ACTIVE, and eligible by their
// attributes and the task's constraints, whatever is free on them. They are also connected, unless they are in kept.
func (s *Scheduler) Hosts(v *state.View, l *Launch, kept map[string]bool) []string {
	var out []string
	r := s.request(v, l.Request())
	for i := range v.ContainerInstances.By(state.InstancesByCluster, l.ClusterArn) {
		arn := *i.ContainerInstanceArn
		if *i.Status == "ACTIVE" && (i.AgentConnected || kept[arn]) && s.cluster(l.ClusterArn).Eligible(arn, r) {
			out = append(out, arn)
		}
	}
	return out
}

// Closest describes the failure that came nearest to fitting, in the words of a service's event:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-event-messages-list.html
func Closest(failures []types.Failure) string {
	best := Nearest(failures)
	reason := aws.ToString(best.Reason)
	sentence := "Reason: " + strings.TrimSuffix(reason, ".") + "."
	id := aws.ToString(best.Arn)
	if words, ok := shortages[reason]; ok && !strings.Contains(id, ":capacity-provider/") {
		sentence = "The closest matching (container-instance " + state.NameOf(id) + ") " + words + "."
	}
	return withDetail(sentence, best)
}

// Nearest returns the failure that came nearest to fitting.
func Nearest(failures []types.Failure) types.Failure {
	best, rank := types.Failure{}, -1
	for _, f := range failures {
		if r := nearness(aws.ToString(f.Reason)); r > rank {
			best, rank = f, r
		}
	}
	return best
}

func withDetail(sentence string, f types.Failure) string {
	return strings.TrimSuffix(sentence+" "+aws.ToString(f.Detail), " ")
}

// Hopeless words a refusal as a stopped reason.
func Hopeless(refusal *types.Failure) string {
	return withDetail(strings.TrimSuffix(*refusal.Reason, ".")+".", *refusal)
}

// Shortage returns why a task that waited for its capacity provider to grow found no instance there, as a stopped
// reason: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
func Shortage(v *state.View, t *state.Task, failures []types.Failure) string {
	there, active := map[string]bool{}, false
	for i := range v.ContainerInstances.By(state.InstancesByCluster, *t.ClusterArn) {
		if aws.ToString(i.CapacityProviderName) == aws.ToString(t.CapacityProviderName) && *i.Status != "INACTIVE" {
			there[*i.ContainerInstanceArn] = true
			active = active || *i.Status == "ACTIVE"
		}
	}
	switch {
	case len(there) == 0:
		return "EMPTY CAPACITY PROVIDER"
	case !active:
		return "NO ACTIVE INSTANCES"
	}
	reason, rank := "RESOURCE:*", -1
	for _, f := range failures {
		if r := nearness(aws.ToString(f.Reason)); there[aws.ToString(f.Arn)] && r > rank {
			reason, rank = *f.Reason, r
		}
	}
	return reason
}

// shortages words the reasons of instances that would do but for one thing.
var shortages = map[string]string{
	"RESOURCE:GPU":    "has insufficient GPU resource available",
	"RESOURCE:CPU":    "has insufficient CPU units available",
	"RESOURCE:MEMORY": "has insufficient memory available",
	"RESOURCE:PORTS":  "is already using a port required by your task",
	"ATTRIBUTE":       "is missing an attribute required by your task",
	"AGENT":           "has the agent disconnected",
}

func nearness(reason string) int {
	switch {
	case strings.HasPrefix(reason, "RESOURCE:"):
		return 3
	case reason == "ATTRIBUTE":
		return 2
	case reason == "AGENT":
		return 1
	}
	return 0
}
