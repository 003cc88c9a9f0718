package keeper

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// Instances behind load balancers: those in service are targets of the group's target groups. One that leaves service drains there before
// anything else happens to it, its lifecycle hooks included:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html

// balanceTargets registers the instances in service with the group's target groups, and lets them drain in those that it left.
func (s *step) balanceTargets() {
	for _, i := range slices.Collect(s.tx.Instances.By(state.InstancesByGroup, s.group.Name())) {
		if i.Member.LifecycleState != types.LifecycleStateInService {
			continue
		}
		has := s.register(i, s.drainDetached(i))
		if !slices.Equal(has, i.Member.TargetGroups) {
			row := i.Clone()
			row.Member.TargetGroups = has
			s.tx.Instances.Put(row)
		}
	}
}

// register registers an instance with those of the group's target groups that aren't among what it has, and returns all. While AddToLoadBalancer
// is suspended the instance isn't registered, and neither later on: the user guide's page on suspending processes.
func (s *step) register(i *state.Instance, has []string) []string {
	for _, arn := range s.group.TargetGroupARNs {
		g := s.tx.TargetGroups.Get(arn)
		if g == nil || slices.Contains(has, arn) {
			continue
		}
		has = append(has, arn)
		if s.group.IsSuspended("AddToLoadBalancer") {
			continue
		}
		s.tx.RegisterTarget(state.Target{
			Group:            arn,
			ID:               *i.InstanceId,
			Port:             aws.ToInt32(g.Port),
			Registered:       s.now,
			AutoScalingGroup: s.group.Name(),
		})
	}
	return has
}

// drainDetached lets an instance drain in the target groups that the group was detached from, and returns what it's still registered with.
func (s *step) drainDetached(i *state.Instance) (has []string) {
	for _, arn := range i.Member.TargetGroups {
		if slices.Contains(s.group.TargetGroupARNs, arn) || !s.hasDrained(i, arn) {
			has = append(has, arn)
		}
	}
	return has
}

// hasDrained lets an instance drain in a target group, and reports whether it has.
func (s *step) hasDrained(i *state.Instance, arn string) bool {
	t := s.tx.MemberTarget(i, arn)
	if t == nil {
		return true
	}
	s.tx.DeregisterTarget(t, s.now)
	return t.Draining != nil && !s.now.Before(*t.Draining)
}

// deregistered takes an instance out of all target groups, and reports whether it has drained. A group that is being deleted doesn't wait.
func (s *step) deregistered(i *state.Instance) bool {
	done := true
	for _, arn := range i.Member.TargetGroups {
		if !s.hasDrained(i, arn) {
			done = false
		}
	}
	if !done && !i.IsOver() && !s.group.Deleting {
		s.tx.SetGroupActivityProgress(i.Member.Activity, types.ScalingActivityStatusCodeWaitingForELBConnectionDraining, 50)
		return false
	}
	return true
}

// failsTargetChecks reports whether an instance fails the health checks of one of the group's target groups, and that counts.
func (s *step) failsTargetChecks(i *state.Instance) bool {
	if !s.group.ChecksTargets() || s.group.IsInGrace(i.Member, s.now) {
		return false
	}
	return slices.ContainsFunc(i.Member.TargetGroups, func(arn string) bool {
		t := s.tx.MemberTarget(i, arn)
		return t != nil && t.IsUnhealthy()
	})
}

// checking returns those of the group's target groups whose health checks its instances must pass: none if they don't count, and none without a
// load balancer, since nobody checks their targets.
func (s *step) checking() (arns []string) {
	if !s.group.ChecksTargets() {
		return nil
	}
	used := s.tx.LoadBalancersOf()
	return slices.DeleteFunc(slices.Clone(s.group.TargetGroupARNs), func(arn string) bool { return len(used[arn]) == 0 })
}

// passesTargetChecks reports whether an instance passes the health checks of target groups, as far as it's registered with them.
func (s *step) passesTargetChecks(i *state.Instance, arns []string) bool {
	return !slices.ContainsFunc(arns, func(arn string) bool {
		t := s.tx.MemberTarget(i, arn)
		return t != nil && !t.IsHealthy()
	})
}
