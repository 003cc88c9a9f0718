// Package explain reads the rows that say why a task or a service isn't where it should be. Where a task finds no place, package why says so in
// words. It changes nothing: the console calls it for whoever asks.
package explain

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/why"
	"github.com/pintle/pintle/internal/state"
)

// Answer is what is said of a task or a service.
type Answer struct {
	Subject string // task ID, or service NAME
	Status  string
	why.Answer
}

// Options are what rows don't tell.
type Options struct {
	Now        time.Time
	Serverless string // the ARN of the cluster whose instances run Fargate's tasks of all clusters, or ""
}

// question asks why a request finds no place. t is the task that waits, or nil if there is none yet.
func question(v *state.View, r scheduler.Request, t *state.Task, o Options) why.Question {
	serverless := o.Serverless
	if !r.Fargate || serverless == r.ClusterArn || v.Clusters.Get(serverless) == nil {
		serverless = ""
	}
	s := scheduler.Picture(v, r.ClusterArn, serverless, o.Now)
	q := why.Question{Now: o.Now, Wants: wants(r), Provider: providerOf(v, r.CapacityProvider, t), Waits: t != nil}
	if serverless != "" {
		q.Clusters = names([]string{r.ClusterArn, serverless})
	}
	for _, short := range s.Shortfalls(v, r) {
		row := v.ContainerInstances.Get(short.InstanceID)
		if row == nil {
			continue // a task of it is still known
		}
		for i := range short.Lacks {
			short.Lacks[i].Holders = names(short.Lacks[i].Holders)
		}
		q.Instances = append(q.Instances, why.Instance{
			ID: state.NameOf(short.InstanceID), Arn: short.InstanceID, Type: row.Type(), Lacks: short.Lacks, GPUTasks: gpuTasks(v, short.InstanceID),
		})
	}
	slices.SortFunc(q.Instances, func(a, b why.Instance) int { return cmp.Compare(a.ID, b.ID) })
	if t != nil {
		q.Ahead = ahead(s.InTurn(v, r.ClusterArn), t)
	}
	return q
}

// ahead counts the tasks of a task's capacity provider that are tried before it.
func ahead(inTurn []*state.Task, t *state.Task) (n int) {
	for _, other := range inTurn {
		if *other.TaskArn == *t.TaskArn {
			return n
		}
		if aws.ToString(other.CapacityProviderName) == aws.ToString(t.CapacityProviderName) {
			n++
		}
	}
	return n
}

func wants(r scheduler.Request) why.Wants {
	w := why.Wants{CPU: r.Need.Reserved.CPU, MemoryMiB: r.Need.Reserved.MemoryMiB, Provider: r.CapacityProvider}
	for _, g := range r.Need.GPUs {
		w.GPUs += g.Count
	}
	for _, p := range r.Need.Reserved.PortsTCP {
		w.Ports = append(w.Ports, strconv.Itoa(int(p))+"/tcp")
	}
	for _, p := range r.Need.Reserved.PortsUDP {
		w.Ports = append(w.Ports, strconv.Itoa(int(p))+"/udp")
	}
	for _, c := range r.TaskDefinition.PlacementConstraints {
		w.Constraints = append(w.Constraints, aws.ToString(c.Expression))
	}
	for _, c := range r.Constraints {
		w.Constraints = append(w.Constraints, cmp.Or(aws.ToString(c.Expression), string(c.Type)))
	}
	return w
}

// gpuTasks returns the tasks that hold GPUs of an instance.
func gpuTasks(v *state.View, instance string) (out []string) {
	for t := range v.Tasks.By(state.TasksByInstance, instance) {
		if t.Holds() && len(t.GPUs) > 0 {
			out = append(out, state.NameOf(*t.TaskArn))
		}
	}
	slices.Sort(out)
	return out
}

// providerOf describes a capacity provider that has a group, or returns nil.
func providerOf(v *state.View, name string, t *state.Task) *why.Provider {
	row := v.CapacityProviderNamed(name)
	if row == nil {
		return nil
	}
	p := &why.Provider{Name: name, Grows: scheduler.Grows(v, name)}
	g := v.GroupOf(row)
	if g == nil {
		return p
	}
	p.Group = g.Name()
	p.Desired = int(aws.ToInt32(g.DesiredCapacity))
	p.Max = int(aws.ToInt32(g.MaxSize))
	p.IsSuspended = g.IsSuspended("Launch")
	for _, i := range v.ActiveMembers(g.Name()) {
		if joined(v, *i.InstanceId) != nil {
			continue
		}
		p.Starting++
		if at := aws.ToTime(i.LaunchTime); p.StartingSince.IsZero() || at.Before(p.StartingSince) {
			p.StartingSince = at
		}
	}
	p.UsualStart = usualStart(v, g.Name())
	if g.Failures > 0 {
		p.Failure = lastFailure(v, g.Name())
		p.NextTry = aws.ToTime(g.NotBefore)
	}
	if t != nil && t.Waiting != nil {
		if refusal := scheduler.Refusal(v, t); refusal != nil {
			p.Refusal = scheduler.Hopeless(refusal)
		}
	}
	return p
}

// joined returns the container instance that a machine has become, or nil.
func joined(v *state.View, machine string) *state.ContainerInstance {
	for c := range v.ContainerInstances.By(state.InstancesByMachine, machine) {
		if aws.ToString(c.Status) != "INACTIVE" {
			return c
		}
	}
	return nil
}

// usualStart returns how long a group's machines took from their launch until they were nodes: the median of those that are there.
func usualStart(v *state.View, group string) time.Duration {
	var took []time.Duration
	for i := range v.Instances.By(state.InstancesByGroup, group) {
		if c := joined(v, *i.InstanceId); c != nil && i.LaunchTime != nil && c.RegisteredAt != nil {
			took = append(took, c.RegisteredAt.Sub(*i.LaunchTime))
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// lastFailure returns what a group's last failed activity says.
func lastFailure(v *state.View, group string) (message string) {
	for a := range v.GroupActivities.By(state.GroupActivitiesByGroup, group) { // the oldest first
		if a.StatusCode == autoscaling.ScalingActivityStatusCodeFailed {
			message = cmp.Or(aws.ToString(a.StatusMessage), aws.ToString(a.Description))
		}
	}
	return message
}

// names returns the last parts of ARNs.
func names(arns []string) (out []string) {
	for _, arn := range arns {
		out = append(out, state.NameOf(arn))
	}
	return out
}
