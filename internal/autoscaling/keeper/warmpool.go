package keeper

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/state"
)

// The warm pool of a group: instances that were launched ahead, went through the launch hooks, and wait, stopped or running, until the group
// needs one more: https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html

// warmUp takes an instance of the pool as far as it can go now: from its launch, or from its service, to where it waits.
func (s *step) warmUp(i *state.Instance) {
	switch {
	case !i.Member.IsWarm():
		return
	case !s.deregistered(i): // it was in service
		return
	case i.Member.IsReady():
		if i.IsOver() || i.Member.Unhealthy {
			s.leave(i, "an instance was taken out of the warm pool in response to an EC2 health check indicating it has been terminated or stopped.")
		}
		return
	case i.IsOver() && i.Member.FromPool || i.Member.Unhealthy:
		s.leave(i, "an instance was taken out of the warm pool because it is unhealthy.")
		return
	case i.IsOver(): // it never came up, or somebody ended it
		s.fail(i)
		return
	case i.Name() == ec2types.InstanceStateNameStopped:
		s.isWarmed(i, types.LifecycleStateWarmedStopped)
		return
	case i.Name() != ec2types.InstanceStateNameRunning: // it starts, or stops
		if i.StateReason != nil {
			s.tx.SetGroupActivityMessage(i.Member.Activity, aws.ToString(i.StateReason.Message))
		}
		return
	}
	s.prepare(i)
}

// prepare takes an instance that runs through the launch hooks and into the state in which it waits.
func (s *step) prepare(i *state.Instance) {
	if !s.isDrained(i) && s.group.Hook(state.DrainingHook) != nil {
		return // it was in service, and its tasks may end first
	}
	waits, abandoned := s.hooks(i, launching)
	if abandoned != "" {
		s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeCancelled,
			"Instance failed to complete user's Lifecycle Action: "+abandoned, s.now)
		s.leave(i, "instance "+*i.InstanceId+" was taken out of the warm pool in response to a lifecycle action that was abandoned.")
		return
	}
	row := i.Clone()
	row.Member.Waits = waits
	switch pool := s.group.WarmPoolConfiguration; {
	case waits != nil:
		row.Member.LifecycleState = types.LifecycleStateWarmedPendingWait
		s.put(i, row)
		s.tx.SetGroupActivityProgress(i.Member.Activity, types.ScalingActivityStatusCodeMidLifecycleAction, 40)
	case pool != nil && pool.PoolState == types.WarmPoolStateRunning:
		s.isWarmed(row, types.LifecycleStateWarmedRunning)
	default:
		row.Member.LifecycleState = types.LifecycleStateWarmedPendingProceed
		s.tx.Instances.Put(row.In(ec2types.InstanceStateNameStopping))
	}
}

// isWarmed notes that an instance waits in the pool from now on.
func (s *step) isWarmed(i *state.Instance, in types.LifecycleState) {
	row := i.Clone()
	row.Member.LifecycleState = in
	row.Member.Waits = nil
	row.Member.TargetGroups = nil
	s.tx.Instances.Put(row)
	s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeSuccessful, "", s.now)
	s.group.Failures = 0
	s.group.NotBefore = nil
	s.group.FailedPools = nil
}

// takeWarm takes an instance of the pool into service, in the zone that has the fewest. It reports false if none waits there that fits.
func (s *step) takeWarm(fitting []group.Size, in map[string]int, cause string) bool {
	ready := slices.DeleteFunc(s.tx.WarmMembers(s.group.Name()), func(i *state.Instance) bool {
		fits := func(size group.Size) bool { return size.Type == string(i.InstanceType) }
		return !i.Member.IsReady() || i.IsOver() || i.Member.Unhealthy || len(fitting) > 0 && !slices.ContainsFunc(fitting, fits)
	})
	if len(ready) == 0 {
		return false
	}
	next := slices.MinFunc(ready, func(a, b *state.Instance) int {
		return cmp.Or(
			cmp.Compare(in[*a.Placement.AvailabilityZone], in[*b.Placement.AvailabilityZone]),
			a.LaunchTime.Compare(*b.LaunchTime), cmp.Compare(*a.InstanceId, *b.InstanceId))
	})
	in[*next.Placement.AvailabilityZone]++
	a := s.tx.StartInstanceActivity(s.group, next, "Launching a new EC2 instance from warm pool", cause,
		types.ScalingActivityStatusCodePreInService, 30, s.now)
	row := next.Clone()
	if next.Name() == ec2types.InstanceStateNameStopped {
		row = next.In(ec2types.InstanceStateNamePending)
	}
	row.Member.LifecycleState = types.LifecycleStatePending
	row.Member.Activity = *a.ActivityId
	row.Member.FromPool = true
	s.tx.Instances.Put(row)
	if c := containerInstance(s.tx.View, *row.InstanceId); c != nil && *c.Status == string(ecstypes.ContainerInstanceStatusDraining) {
		s.tx.ContainerInstances.Put(c.In(ecstypes.ContainerInstanceStatusActive))
	}
	return true
}

// reuses reports whether an instance that the group has too many of goes into the pool rather than away.
func (s *step) reuses() bool {
	pool := s.group.WarmPoolConfiguration
	return !s.group.Deleting && pool != nil && pool.Status == "" && pool.InstanceReusePolicy != nil &&
		aws.ToBool(pool.InstanceReusePolicy.ReuseOnScaleIn) && len(s.tx.WarmMembers(s.group.Name())) < s.group.WarmPoolTarget()
}

// putBack takes an instance out of service and into the pool. Its tasks end as if it went, and so does its agent if the pool is stopped.
func (s *step) putBack(i *state.Instance, cause string) {
	s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeCancelled, "", s.now)
	a := s.tx.StartInstanceActivity(s.group, i, "Returning EC2 instance to warm pool",
		cause+"  At "+state.Stamp(s.now)+" instance "+*i.InstanceId+" was selected to return to the warm pool.",
		types.ScalingActivityStatusCodeInProgress, 0, s.now)
	row := i.Clone()
	row.Member.LifecycleState = types.LifecycleStateWarmedPending
	row.Member.Activity = *a.ActivityId
	row.Member.Waits = nil
	row.Member.InServiceAt = nil
	row.Member.FromPool = true
	s.tx.Instances.Put(row)
	s.drain(row)
}

// balancePool launches instances that the pool lacks, and gives up those that it has too many of. A pool that is deleted is gone with its
// last instance.
func (s *step) balancePool() {
	warm, size := s.tx.WarmMembers(s.group.Name()), s.group.WarmPoolTarget()
	for _, i := range warm[min(size, len(warm)):] {
		s.leave(i, "an instance was taken out of the warm pool in response to a difference between desired and actual capacity.")
	}
	if pool := s.group.WarmPoolConfiguration; pool != nil && pool.Status == types.WarmPoolStatusPendingDelete && !s.hasPool() {
		s.group.WarmPoolConfiguration = nil
	}
	if s.group.IsSuspended("Launch") || s.group.NotBefore != nil && s.now.Before(*s.group.NotBefore) {
		return
	}
	in := map[string]int{} // instances by zone
	for _, i := range warm {
		in[*i.Placement.AvailabilityZone]++
	}
	for n := len(warm); n < size; n++ {
		zone, kind := group.Place(s.group.AvailabilityZones, in, s.fittingSizes(), s.group.FailedPools, wantsCheapest(s.group))
		in[zone]++
		cause := "At " + state.Stamp(s.now) + " an instance was started in response to a difference between the warm pool's desired and actual capacity."
		if !s.start(zone, kind, types.LifecycleStateWarmedPending, "Launching a new EC2 instance into warm pool", cause) {
			return
		}
	}
}

// hasPool reports whether instances are left in the pool, leaving ones too.
func (s *step) hasPool() bool {
	for i := range s.tx.Instances.By(state.InstancesByGroup, s.group.Name()) {
		if i.Member.IsWarm() {
			return true
		}
	}
	return false
}
