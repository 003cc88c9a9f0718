package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
)

// targets is what load balancers say of a task.
type targets int

const (
	targetsNone      targets = iota // it has no load balancers
	targetsUnknown                  // it isn't registered yet, or not yet checked everywhere
	targetsHealthy                  // with all of them
	targetsUnhealthy                // with one of them
)

// loadBalancers returns where a task is to be registered: as its own deployment says.
func (s *step) loadBalancers(t *state.Task) []types.LoadBalancer {
	if d := s.row.Deployment(aws.ToString(t.StartedBy)); d != nil {
		return d.Balancers()
	}
	return nil
}

// registered returns a task's targets that don't drain.
func (s *step) registered(t *state.Task) (out []*state.Target) {
	for target := range s.tx.Targets.By(state.TargetsByTask, *t.TaskArn) {
		if target.Draining == nil {
			out = append(out, target)
		}
	}
	return out
}

// balanced returns what load balancers say of a task.
func (s *step) balanced(t *state.Task) targets {
	wanted := s.loadBalancers(t)
	if len(wanted) == 0 {
		return targetsNone
	}
	gone := func(b types.LoadBalancer) bool { return s.tx.TargetGroups.Get(aws.ToString(b.TargetGroupArn)) == nil }
	if slices.ContainsFunc(wanted, gone) { // whatever is left of its targets, as after the repair of a damaged store
		return targetsUnknown
	}
	switch healthy, unhealthy := s.tx.TargetHealth(*t.TaskArn); {
	case unhealthy > 0:
		return targetsUnhealthy
	case healthy < len(wanted):
		return targetsUnknown
	}
	return targetsHealthy
}

// register registers the tasks that run with the load balancers of their deployments.
func (s *step) register() {
	counts := map[string]int{}
	for _, t := range s.tasks {
		if *t.LastStatus != "RUNNING" || *t.DesiredStatus != "RUNNING" {
			continue
		}
		wanted := s.loadBalancers(t)
		if len(wanted) == 0 {
			continue
		}
		has := s.registered(t)
		for _, b := range wanted {
			group := aws.ToString(b.TargetGroupArn)
			if s.tx.TargetGroups.Get(group) == nil {
				s.eventOnce("failed to register targets in (target-group "+group+") with (error One or more target groups not found)", state.Steady)
				continue
			}
			isThere := func(target *state.Target) bool { return target.Group == group && s.isFor(t, &b, target) }
			if slices.ContainsFunc(has, isThere) {
				continue
			}
			id, port := s.address(t, &b)
			if id == "" {
				continue // its node hasn't told yet
			}
			isNew := s.tx.RegisterTarget(state.Target{
				Group:      group,
				ID:         id,
				Port:       port,
				Registered: s.now,
				Task:       *t.TaskArn,
				Service:    *s.row.ServiceArn,
			})
			if isNew {
				counts[group]++
			}
		}
	}
	for _, group := range sorted(counts) {
		s.event(fmt.Sprintf("registered %d targets in (target-group %s)", counts[group], group))
	}
}

// isFor reports whether a target is a task's for one of its load balancers.
func (s *step) isFor(t *state.Task, b *types.LoadBalancer, target *state.Target) bool {
	id, port := s.address(t, b)
	return target.ID == id && target.Port == port
}

// address returns what a task is registered as, or nothing while that isn't known: its own address in network mode awsvpc, otherwise its
// instance with the port that the container's is bound to. In network mode host that's the container's itself, of which no binding tells.
func (s *step) address(t *state.Task, b *types.LoadBalancer) (id string, port int32) {
	g := s.tx.TargetGroups.Get(aws.ToString(b.TargetGroupArn))
	if g == nil {
		return "", 0
	}
	td := s.definition(*t.TaskDefinitionArn)
	if td != nil && td.NetworkMode == types.NetworkModeAwsvpc {
		return t.PrivateIPv4(), aws.ToInt32(b.ContainerPort)
	}
	if port = aws.ToInt32(b.ContainerPort); td == nil || td.NetworkMode != types.NetworkModeHost {
		port = t.BoundPort(aws.ToString(b.ContainerName), port, g.Transport())
	}
	node := s.tx.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
	switch {
	case port == 0 || node == nil:
		return "", 0
	case g.TargetType == elb.TargetTypeEnumInstance:
		return aws.ToString(node.Ec2InstanceId), port
	}
	return node.PrivateIPAddress, port
}

// unhealthy returns why an unhealthy task is stopped, and adds the event that says so.
func (s *step) unhealthy(t *state.Task) string {
	for _, target := range s.registered(t) {
		if !target.IsUnhealthy() {
			continue
		}
		s.event(fmt.Sprintf("(port %d) is unhealthy in (target-group %s) due to (reason %s)",
			target.Port, target.Group, strings.TrimSuffix(aws.ToString(target.Health.Description), ".")))
		return FailedTargetChecks + "(target-group " + target.Group + ")"
	}
	s.event("(task " + state.NameOf(*t.TaskArn) + ") failed container health checks.")
	return FailedContainerChecks
}

// announceDeregistration adds the event about the target groups that a task leaves.
func (s *step) announceDeregistration(t *state.Task) {
	counts := map[string]int{}
	for _, target := range s.registered(t) {
		counts[target.Group]++
	}
	for _, group := range sorted(counts) {
		s.event(fmt.Sprintf("deregistered %d targets in (target-group %s)", counts[group], group))
	}
}

func sorted(counts map[string]int) []string {
	groups := make([]string, 0, len(counts))
	for group := range counts {
		groups = append(groups, group)
	}
	slices.Sort(groups)
	return groups
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
