// Package scheduler joins the store and the pure placement. It keeps a placement.Cluster per ECS cluster equal to the
// store's rows, even inside a running transaction, and turns task definitions into placement requests. Services call
// Place within their transactions. It decides nothing itself but the order in which waiting tasks are tried.
package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/state"
)

// Scheduler observes the store. It's used only inside transactions, so by one goroutine at a time.
type Scheduler struct {
	// NewID makes the ids of tasks and container instances. It's state.NewID, except in a simulation, which must be
	// repeatable.
	NewID func() string
	// Placed, unless nil, is told of each search for a place: how long it took, and whether there was one.
	Placed func(took time.Duration, found bool)
	// Serverless, unless empty, is the ARN of the cluster whose instances run Fargate's tasks of all clusters.
	Serverless string

	clusters map[string]*placement.Cluster         // by cluster ARN
	zones    map[string]map[string]map[string]bool // instances that take tasks, by cluster ARN and Availability Zone
	rnd      *rand.Rand
	hasNews  bool // waiting tasks may find room that they didn't find when they were last tried
}

// New returns a scheduler. The seed breaks ties between equally good instances.
func New(seed uint64) *Scheduler {
	return &Scheduler{
		NewID:    state.NewID,
		clusters: map[string]*placement.Cluster{},
		zones:    map[string]map[string]map[string]bool{},
		rnd:      rand.New(rand.NewPCG(seed, seed)),
	}
}

// Change implements state.Observer.
func (s *Scheduler) Change(before, after any) {
	if isProgress(before, after) {
		return
	}
	s.hasNews = s.hasNews || isNews(before, after)
	switch old := before.(type) {
	case *state.Task:
		s.release(old)
		if row, _ := after.(*state.Task); !isWaiting(row) {
			s.hasNews = s.cluster(*old.ClusterArn).Unkeep(*old.TaskArn) || s.hasNews
		}
	case *state.ContainerInstance:
		s.leaveZone(old)
		if after == nil {
			s.cluster(old.ClusterArn).Remove(*old.ContainerInstanceArn)
		}
	}
	switch row := after.(type) {
	case *state.Task:
		if before == nil {
			s.learn(row)
		}
		s.reserve(row)
	case *state.ContainerInstance:
		s.joinZone(row)
		s.upsert(row)
	}
}

// isProgress reports whether a change leaves what a task holds as it was.
func isProgress(before, after any) bool {
	a, ok := before.(*state.Task)
	b, also := after.(*state.Task)
	return ok && also && a.Holds() && b.Holds() && *a.ContainerInstanceArn == *b.ContainerInstanceArn
}

func (s *Scheduler) cluster(arn string) *placement.Cluster {
	c := s.clusters[arn]
	if c == nil {
		c = placement.New(nil)
		s.clusters[arn] = c
	}
	return c
}

func (s *Scheduler) upsert(row *state.ContainerInstance) {
	arn := *row.ContainerInstanceArn
	if aws.ToString(row.Status) == "INACTIVE" {
		s.cluster(row.ClusterArn).Remove(arn)
		return
	}
	i := placement.Instance{
		ID:         arn,
		Attributes: attributes(row),
		CPU:        row.Capacity.CPU,
		MemoryMiB:  row.Capacity.MemoryMiB,
		PortsTCP:   row.Capacity.PortsTCP,
		PortsUDP:   row.Capacity.PortsUDP,
		Active:     aws.ToString(row.Status) == "ACTIVE",
		Connected:  row.AgentConnected,
	}
	for _, g := range row.GPUs {
		i.GPUs = append(i.GPUs, placement.GPU{ID: g.ID, NUMA: g.NUMA, Links: g.Links, Faulty: g.Fault != nil})
		i.GPUModel = g.Model
	}
	s.cluster(row.ClusterArn).Upsert(i)
}

// learn tells placement what a new task wanted. When the store opens, it does so for every task that the store
// remembers, even ended ones, so a restart doesn't forget what the cluster is used for.
func (s *Scheduler) learn(t *state.Task) {
	r := &placement.Request{CPU: t.Reserved.CPU, MemoryMiB: t.Reserved.MemoryMiB}
	for _, g := range t.GPUs {
		if g.Milli < placement.WholeGPU {
			r.MilliGPU = g.Milli
			continue
		}
		r.GPUs = append(r.GPUs, placement.ContainerGPUs{Container: g.Container, Count: 1})
	}
	s.cluster(t.Home()).Learn(r)
}

func (s *Scheduler) reserve(t *state.Task) {
	if !t.Holds() {
		return
	}
	a := placement.Allocation{
		CPU:       t.Reserved.CPU,
		MemoryMiB: t.Reserved.MemoryMiB,
		PortsTCP:  t.Reserved.PortsTCP,
		PortsUDP:  t.Reserved.PortsUDP,
		Group:     groupAt(t.Home(), *t.ClusterArn, aws.ToString(t.Group)),
	}
	for _, g := range t.GPUs {
		a.GPUs = append(a.GPUs, placement.Grant{Container: g.Container, ID: g.ID, Milli: g.Milli})
	}
	s.cluster(t.Home()).Reserve(*t.ContainerInstanceArn, *t.TaskArn, a)
}

func (s *Scheduler) release(t *state.Task) {
	if t.Holds() {
		s.cluster(t.Home()).Release(*t.ContainerInstanceArn, *t.TaskArn)
	}
}

// groupAt names a task's group among the instances of a cluster, where another cluster's group may have the same name.
func groupAt(home, cluster, group string) string {
	if home == cluster {
		return group
	}
	return cluster + " " + group
}

// Request describes a task to place.
type Request struct {
	ClusterArn     string
	TaskDefinition *state.TaskDefinition
	Need           Need
	Group          string
	Constraints    []types.PlacementConstraint
	Strategy       []types.PlacementStrategy
	// CapacityProvider is the provider whose instances will do. Fargate's have none: any instance will do.
	CapacityProvider string
	Fargate          bool // on AWS, its machine would be of no cluster
	Exec             bool // commands can be executed in the task
	Volumes          []state.TaskVolume
	Connect          *state.TaskConnect // how it takes part in Service Connect, or nil
	// TaskArn is the task's, if it waits. Room may be kept for it.
	TaskArn string
}

// Placement says where a task goes, and which GPUs it gets there.
type Placement struct {
	InstanceArn string
	GPUs        []state.HeldGPU
}

// homes returns the clusters on whose instances a task may run: its own, which comes first, and for Fargate's tasks the one with instances for
// those of all clusters. They have no GPUs, privileges or volumes of their machine: RegisterTaskDefinition sees to that.
func (s *Scheduler) homes(clusterArn string, fargate bool) []string {
	if !fargate || s.Serverless == "" || s.Serverless == clusterArn {
		return []string{clusterArn}
	}
	return []string{clusterArn, s.Serverless}
}

// Ready reports whether there is an ACTIVE instance for tasks of the cluster.
func (s *Scheduler) Ready(clusterArn string, fargate bool) bool {
	return slices.ContainsFunc(s.homes(clusterArn, fargate), func(home string) bool { return s.cluster(home).Active() })
}

// Place finds an instance and GPUs. If there are none, it returns a failure for each instance that couldn't take the
// task, with ECS's reason.
func (s *Scheduler) Place(v *state.View, r Request) (Placement, []types.Failure) {
	began := time.Now()
	req := s.request(v, r)
	failures := []types.Failure{}
	var plan placement.Plan
	for _, home := range s.homes(r.ClusterArn, r.Fargate) {
		var reasons []placement.Reason
		req.Group = groupAt(home, r.ClusterArn, r.Group)
		if plan, reasons = s.cluster(home).Place(req, s.rnd); plan.InstanceID != "" {
			break
		}
		for _, reason := range reasons {
			failures = append(failures, s.failure(home, req, reason))
		}
	}
	if s.Placed != nil {
		s.Placed(time.Since(began), plan.InstanceID != "")
	}
	if plan.InstanceID != "" {
		return placementOf(plan), nil
	}
	if len(failures) == 0 {
		failures = append(failures, types.Failure{
			Arn:    aws.String(r.ClusterArn),
			Reason: aws.String("No Container Instances were found in your cluster."),
		})
	}
	return Placement{}, failures
}

// PlaceOn places a task on an instance that the caller has chosen.
func (s *Scheduler) PlaceOn(v *state.View, instanceArn string, r Request) (Placement, *types.Failure) {
	req := s.request(v, r)
	plan, reason := s.cluster(r.ClusterArn).PlaceOn(instanceArn, req)
	if reason != "" {
		return Placement{}, new(s.failure(r.ClusterArn, req, placement.Reason{InstanceID: instanceArn, Reason: reason}))
	}
	return placementOf(plan), nil
}

// failure is a reason as ECS reports it. Its detail names the attributes that are missing.
func (s *Scheduler) failure(clusterArn string, r *placement.Request, reason placement.Reason) types.Failure {
	out := types.Failure{Arn: aws.String(reason.InstanceID), Reason: aws.String(reason.Reason)}
	if reason.Reason == placement.NoAttribute {
		var names []string
		for _, a := range s.cluster(clusterArn).Missing(reason.InstanceID, r) {
			names = append(names, a.String())
		}
		out.Detail = aws.String(capacity.MissingAttributes(names))
	}
	return out
}

func placementOf(p placement.Plan) Placement {
	out := Placement{InstanceArn: p.InstanceID}
	for _, g := range p.GPUs {
		out.GPUs = append(out.GPUs, state.HeldGPU{Container: g.Container, ID: g.ID, Milli: g.Milli})
	}
	return out
}

// executesCommands is the attribute of instances in whose tasks commands can be executed.
const executesCommands = "ecs.capability.execute-command"

// makesVolumes returns the attribute of instances that make a volume: Amazon's agent has one that was attached to its machine, and Pintle has
// none to attach.
func makesVolumes(v state.TaskVolume) string {
	if v.FileSystem == "" {
		return acs.ManagedVolumes
	}
	return acs.ManagedVolumes + "." + v.FileSystem
}

// connects is the attribute of instances whose agent has a proxy for Service Connect. It isn't AWS's ecs.capability.service-connect-v1, which
// Amazon's agent has where its own proxy is installed: that one has a protocol of its own, which Pintle doesn't speak.
const connects = "pintle.service-connect"

// request converts a task for package placement.
func (s *Scheduler) request(v *state.View, r Request) *placement.Request {
	req := &placement.Request{
		CPU:       r.Need.Reserved.CPU,
		MemoryMiB: r.Need.Reserved.MemoryMiB,
		PortsTCP:  r.Need.Reserved.PortsTCP,
		PortsUDP:  r.Need.Reserved.PortsUDP,
		GPUs:      r.Need.GPUs,
		Task:      r.TaskArn,
		Group:     r.Group,
	}
	for _, a := range r.TaskDefinition.RequiredAttributes() {
		req.Attributes = append(req.Attributes, placement.Attribute{Name: *a.Name, Value: aws.ToString(a.Value)})
	}
	if r.Exec {
		req.Attributes = append(req.Attributes, placement.Attribute{Name: executesCommands})
	}
	for _, v := range r.Volumes {
		req.Attributes = append(req.Attributes, placement.Attribute{Name: makesVolumes(v)})
	}
	if r.Connect != nil {
		for _, name := range append([]string{connects}, r.Connect.Attributes...) {
			req.Attributes = append(req.Attributes, placement.Attribute{Name: name})
		}
	}
	if p := r.CapacityProvider; p != "" && capacity.LaunchType(p) == types.LaunchTypeEc2 {
		req.Attributes = append(req.Attributes, placement.Attribute{Name: memberOfProvider(p)})
	}
	for _, c := range r.Constraints {
		req.DistinctInstance = req.DistinctInstance || c.Type == types.PlacementConstraintTypeDistinctInstance
	}
	for _, e := range r.memberOf() {
		req.MemberOf = append(req.MemberOf, member(v, e))
	}
	for _, p := range r.Strategy {
		req.Strategy = append(req.Strategy, placement.Strategy{Type: string(p.Type), Field: aws.ToString(p.Field)})
	}
	return req
}

// memberOf returns the expressions of the memberOf constraints that the task and its definition have.
func (r *Request) memberOf() []string {
	return (&state.Waiting{Constraints: r.Constraints}).MemberOf(r.TaskDefinition)
}

// member builds a memberOf constraint. Its expression has been validated.
func member(v *state.View, expression string) func(*placement.Node) bool {
	q, err := query.Parse(expression)
	if err != nil {
		return func(*placement.Node) bool { return false }
	}
	return func(n *placement.Node) bool {
		row := v.ContainerInstances.Get(n.ID)
		return row != nil && q.Eval(placed{subject{v, row}, n})
	}
}

// CheckStrategy refuses strategies that ECS doesn't have.
func CheckStrategy(p types.PlacementStrategy) error {
	field := aws.ToString(p.Field)
	switch p.Type {
	case types.PlacementStrategyTypeRandom:
		if field != "" {
			return fmt.Errorf("the placement strategy random takes no field, not %q", field)
		}
		return nil
	case types.PlacementStrategyTypeSpread:
		if field == "instanceId" || field == "host" || strings.HasPrefix(field, "attribute:") && len(field) > len("attribute:") {
			return nil
		}
		return fmt.Errorf("the field of the placement strategy spread must be instanceId, host or attribute:NAME, not %q", field)
	case types.PlacementStrategyTypeBinpack:
		if f := strings.ToLower(field); f == "cpu" || f == "memory" || f == "gpu" {
			return nil
		}
		return fmt.Errorf("the field of the placement strategy binpack must be cpu or memory "+
			"(or gpu, which only Pintle knows), not %q", field)
	}
	return fmt.Errorf("the type of a placement strategy must be random, spread or binpack, not %q", p.Type)
}
