package keeper

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/state"
)

// patience is how long an instance refresh may go without replacing an instance before it fails.
const patience = time.Hour

// refresh advances the group's instance refresh: instances older than the refresh leave, as many at a time as its
// preferences allow. Their age shows which are done, so nothing else needs to be remembered.
func (s *step) refresh() {
	old := s.tx.ActiveRefresh(s.group.Name())
	if old == nil || s.group.Deleting {
		return
	}
	row := *old
	defer func() {
		if !reflect.DeepEqual(old, &row) {
			s.tx.GroupRefreshes.Put(&row)
		}
	}()
	if row.Status == types.InstanceRefreshStatusCancelling {
		row.End(types.InstanceRefreshStatusCancelled, "Cancelled due to user request.", s.now)
		return
	}
	if s.group.IsSuspended("InstanceRefresh") || s.group.IsSuspended("Launch") || s.group.IsSuspended("Terminate") {
		return
	}
	row.Status = types.InstanceRefreshStatusInProgress
	ready, left, waiting := s.outdated(&row)
	healthy, warming := s.healthy(&row)
	row.InstancesToUpdate = new(int32(left))
	if row.Of > 0 {
		row.PercentageComplete = new(100 * max(0, row.Of-int32(left)) / row.Of)
	}
	if left == 0 && !warming && healthy >= int(*s.group.DesiredCapacity) {
		row.PercentageComplete = aws.Int32(100)
		row.End(types.InstanceRefreshStatusSuccessful, "", s.now)
		return
	}
	if s.now.Sub(row.Since) > patience+s.refreshWarmup(&row) {
		row.End(types.InstanceRefreshStatusFailed, "No instance could be replaced for an hour."+waiting, s.now)
		return
	}
	s.refreshing = true
	plan := group.Refresh{
		Desired:    int(*s.group.DesiredCapacity),
		MinHealthy: int(*row.Preferences.MinHealthyPercentage),
		MaxHealthy: int(*row.Preferences.MaxHealthyPercentage),
		Healthy:    healthy,
		Old:        len(ready),
	}
	s.surplus = plan.Surplus()
	for _, i := range ready[:plan.Leave()] {
		s.leave(i, "an instance was taken out of service in response to an instance refresh.  At "+
			state.Stamp(s.now)+" instance "+*i.InstanceId+" was selected for termination.")
		row.Since = s.now
	}
}

// outdated returns the instances that a refresh can replace now, how many it still has to replace in all, and what it
// waits for, if anything.
func (s *step) outdated(r *state.GroupRefresh) (ready []*state.Instance, left int, waiting string) {
	for _, i := range slices.Collect(s.tx.Instances.By(state.InstancesByGroup, s.group.Name())) {
		if i.Member.IsLeaving() || !i.LaunchTime.Before(*r.StartTime) || aws.ToBool(r.Preferences.SkipMatching) && s.matches(i) {
			continue
		}
		if i.Member.IsWarm() { // nobody misses it
			s.leave(i, "an instance was taken out of the warm pool in response to an instance refresh.")
			continue
		}
		switch {
		case i.Member.IsOnStandby() && r.Preferences.StandbyInstances == types.StandbyInstancesIgnore,
			s.isProtected(i) && r.Preferences.ScaleInProtectedInstances == types.ScaleInProtectedInstancesIgnore:
			continue
		case i.Member.IsOnStandby() && r.Preferences.StandbyInstances == types.StandbyInstancesTerminate:
			s.leave(i, "an instance was taken out of service in response to an instance refresh.")
		case i.Member.IsOnStandby():
			waiting = " There are instances on standby."
		case s.isProtected(i) && r.Preferences.ScaleInProtectedInstances != types.ScaleInProtectedInstancesRefresh:
			waiting = " There are instances that are protected from scale in."
		case i.Member.LifecycleState == types.LifecycleStateInService:
			ready = append(ready, i)
		}
		left++
	}
	return ready, left, waiting
}

// isProtected reports whether an instance is protected from scale-in: by hand, or by its tasks if a capacity provider manages that.
func (s *step) isProtected(i *state.Instance) bool {
	p := providerOf(s.tx.View, s.group)
	if p == nil || p.AutoScalingGroupProvider.ManagedTerminationProtection != ecstypes.ManagedTerminationProtectionEnabled {
		return i.Member.Protected
	}
	return busy(s.tx.View, containerInstance(s.tx.View, *i.InstanceId), false)
}

// healthy returns how many instances are in service and warmed up, and whether any is still warming up, or hasn't passed its load balancers' checks
// yet. Old ones count as warm.
func (s *step) healthy(r *state.GroupRefresh) (n int, warming bool) {
	checking := s.checking()
	for _, i := range s.tx.ActiveMembers(s.group.Name()) {
		at := i.Member.InServiceAt
		warm := at != nil && !s.now.Before(at.Add(s.refreshWarmup(r))) && s.passesTargetChecks(i, checking)
		if warm || at != nil && i.LaunchTime.Before(*r.StartTime) {
			n++
			continue
		}
		warming = true
	}
	return n, warming
}

// refreshWarmup is how long a refresh lets a new instance in service warm up.
func (s *step) refreshWarmup(r *state.GroupRefresh) time.Duration {
	seconds := cmp.Or(r.Preferences.InstanceWarmup, s.group.DefaultInstanceWarmup, s.group.HealthCheckGracePeriod)
	return time.Duration(max(0, aws.ToInt32(seconds))) * time.Second
}

// matches reports whether an instance has what the group's next one would be launched from.
func (s *step) matches(i *state.Instance) bool {
	source, err := s.tx.LaunchSource(s.group)
	return err == nil && source.Made(i.Member)
}
