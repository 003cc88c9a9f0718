package keeper

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/state"
)

// step is one step of one group, in a transaction.
type step struct {
	tx    *state.Tx
	opts  *Options
	now   time.Time
	old   *state.AutoScalingGroup
	group *state.AutoScalingGroup // our own copy
	// unhealthy is how many instances this step took out because they were unhealthy.
	unhealthy int
	// refreshing is set while an instance refresh replaces instances.
	refreshing bool
	// surplus is how many instances above the desired capacity the refresh wants meanwhile.
	surplus int
}

const (
	launching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
	terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	// maxPause is the longest pause after a failed launch.
	maxPause = time.Minute
	// managedTag is the tag that ECS gives its groups.
	managedTag = "AmazonECSManaged"
	// drainsFor is how long an instance's tasks may take to end. ECS prolongs its hook until then, the maximum for a hook.
	drainsFor = 48 * time.Hour
)

func itoa(n int) string { return strconv.Itoa(n) }

// run makes one step. Each part builds on what the parts before it wrote. attach adds ECS's own hook before an instance reaches
// it. advance moves each instance along, by the state of its machine and hooks. balanceTargets
// registers those in service with load balancers. replaceUnhealthy and refresh take instances out;
// refresh also sets how many surplus ones the group needs meanwhile. Then balance launches or terminates the difference. The step
// waits for nothing: an answer from a machine or a hook brings the next step.
func (s *step) run() {
	s.attach()
	for _, i := range slices.Collect(s.tx.Instances.By(state.InstancesByGroup, s.group.Name())) {
		s.advance(i)
	}
	s.balanceTargets()
	s.replaceUnhealthy()
	s.refresh()
	s.balance()
	s.balancePool()
	if s.group.Deleting && len(slices.Collect(s.tx.Instances.By(state.InstancesByGroup, s.group.Name()))) == 0 {
		s.tx.AutoScalingGroups.Delete(s.group.Name())
		return
	}
	if !reflect.DeepEqual(s.old, s.group) {
		s.tx.AutoScalingGroups.Put(s.group)
	}
}

// attach adds to the group what ECS adds to a capacity provider's group: its tag, and while the provider has managed draining,
// the lifecycle hook that drains instances.
func (s *step) attach() {
	if s.group.Deleting { // a deletion waits for no hook
		return
	}
	p := providerOf(s.tx.View, s.group)
	if p != nil && !slices.ContainsFunc(s.group.Tags, func(t types.TagDescription) bool { return aws.ToString(t.Key) == managedTag }) {
		s.group.Tags = append(s.group.Tags, types.TagDescription{
			Key:               aws.String(managedTag),
			Value:             aws.String(""),
			PropagateAtLaunch: aws.Bool(true),
			ResourceId:        s.group.AutoScalingGroupName,
			ResourceType:      aws.String("auto-scaling-group"),
		})
	}
	drains := p != nil && p.AutoScalingGroupProvider.ManagedDraining == ecstypes.ManagedDrainingEnabled
	switch there := s.group.Hook(state.DrainingHook) != nil; {
	case drains && !there:
		s.group.Hooks = append(s.group.Hooks, types.LifecycleHook{
			AutoScalingGroupName: s.group.AutoScalingGroupName,
			LifecycleHookName:    aws.String(state.DrainingHook),
			LifecycleTransition:  aws.String(terminating),
			DefaultResult:        aws.String("CONTINUE"),
			HeartbeatTimeout:     aws.Int32(3600),
			GlobalTimeout:        aws.Int32(int32(drainsFor.Seconds())),
		})
	case !drains && there:
		s.group.Hooks = slices.DeleteFunc(s.group.Hooks, func(h types.LifecycleHook) bool { return *h.LifecycleHookName == state.DrainingHook })
	}
}

// advance takes an instance as far through its lifecycle as it can go now. See the user guide's page "Amazon EC2 Auto
// Scaling instance lifecycle".
func (s *step) advance(i *state.Instance) {
	switch m := i.Member; m.LifecycleState {
	case types.LifecycleStatePending, types.LifecycleStatePendingWait, types.LifecycleStatePendingProceed:
		s.arrive(i)
	case types.LifecycleStateInService:
		if i.IsOver() {
			s.takeOut(i, "an EC2 health check indicating it has been terminated or stopped.")
		}
	case types.LifecycleStateEnteringStandby:
		if !s.deregistered(i) {
			return
		}
		row := i.Clone()
		row.Member.TargetGroups = nil
		row.Member.LifecycleState = types.LifecycleStateStandby
		s.tx.Instances.Put(row)
		s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeSuccessful, "", s.now)
	case types.LifecycleStateStandby:
		if i.IsOver() || s.group.Deleting {
			s.leave(i, "instance "+*i.InstanceId+" was taken out of service: it has ended on standby, or its group is deleted.")
		}
	case types.LifecycleStateDetaching:
		if !s.deregistered(i) {
			return
		}
		row := i.Clone()
		row.Member = nil
		s.tx.Instances.Put(row)
		s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeSuccessful, "", s.now)
	case types.LifecycleStateTerminating, types.LifecycleStateTerminatingWait, types.LifecycleStateTerminatingProceed,
		types.LifecycleStateWarmedTerminating, types.LifecycleStateWarmedTerminatingWait, types.LifecycleStateWarmedTerminatingProceed:
		s.depart(i)
	default:
		s.warmUp(i)
	}
}

// arrive takes an instance from its launch to InService.
func (s *step) arrive(i *state.Instance) {
	if i.IsOver() { // it never came up, or somebody ended it
		s.fail(i)
		return
	}
	if i.Name() != ec2types.InstanceStateNameRunning {
		if i.StateReason != nil { // the launch failed and will be retried
			s.tx.SetGroupActivityMessage(i.Member.Activity, aws.ToString(i.StateReason.Message))
		}
		return
	}
	waits, abandoned := s.hooks(i, launching)
	if abandoned != "" {
		s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeCancelled,
			"Instance failed to complete user's Lifecycle Action: "+abandoned, s.now)
		s.leave(i, "instance "+*i.InstanceId+" was taken out of service in response to a lifecycle action that was abandoned.")
		return
	}
	row := i.Clone()
	row.Member.Waits = waits
	if waits != nil {
		row.Member.LifecycleState = types.LifecycleStatePendingWait
		s.put(i, row)
		s.tx.SetGroupActivityProgress(i.Member.Activity, types.ScalingActivityStatusCodeMidLifecycleAction, 40)
		return
	}
	row.Member.LifecycleState = types.LifecycleStateInService
	row.Member.InServiceAt = &s.now
	s.put(i, row)
	s.tx.EndGroupActivity(row.Member.Activity, types.ScalingActivityStatusCodeSuccessful, "", s.now)
	s.group.Failures = 0
	s.group.NotBefore = nil
	s.group.FailedPools = nil
	s.group.CoolsFrom = &s.now
}

// fail ends a failed launch and delays the next one.
func (s *step) fail(i *state.Instance) {
	reason := "The instance was terminated before it came into service."
	if i.StateReason != nil {
		reason = aws.ToString(i.StateReason.Message)
	}
	s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeFailed, reason+" Launching EC2 instance failed.", s.now)
	s.group.Failures++
	s.group.NotBefore = new(s.now.Add(min(maxPause, time.Second<<min(s.group.Failures, 6))))
	s.avoid(group.Pool(*i.Placement.AvailabilityZone, string(i.InstanceType)))
	row := i.Clone()
	row.Member = nil
	s.tx.Instances.Put(row)
}

// avoid makes the next launches skip a pool that failed, until every pool has failed once.
func (s *step) avoid(pool string) {
	failed := append(slices.Clone(s.group.FailedPools), pool)
	s.group.FailedPools = nil
	for _, zone := range s.group.AvailabilityZones {
		if len(group.Working(zone, s.fittingSizes(), failed)) > 0 {
			s.group.FailedPools = slices.Compact(slices.Sorted(slices.Values(failed)))
		}
	}
}

// hooks returns the lifecycle action that an instance waits for in a transition, or nil if none is left. abandoned says why
// an action was given up, if it was.
func (s *step) hooks(i *state.Instance, transition string) (waits *state.LifecycleAction, abandoned string) {
	w := i.Member.Waits
	var done []string
	if w != nil {
		h := s.group.Hook(w.Hook)
		ended := w.Proceed || h == nil || !s.now.Before(w.Until) || w.Hook == state.DrainingHook && s.isDrained(i)
		if !ended {
			return w, ""
		}
		switch {
		case w.Abandon:
			return nil, "Lifecycle Action with token " + w.Token + " was abandoned: Lifecycle Action Completed with ABANDON Result"
		case !w.Proceed && h != nil && aws.ToString(h.DefaultResult) == "ABANDON":
			return nil, "Lifecycle Action with token " + w.Token + " was abandoned: Heartbeat Timeout"
		}
		done = append(slices.Clone(w.Done), w.Hook)
	}
	for _, name := range s.group.HooksOf(transition) {
		if !slices.Contains(done, name) {
			lasts := time.Duration(*s.group.Hook(name).HeartbeatTimeout) * time.Second
			if name == state.DrainingHook {
				lasts = drainsFor
				s.drain(i)
			}
			w = &state.LifecycleAction{
				Hook:  name,
				Token: state.NewUUID(),
				Since: s.now,
				Until: s.now.Add(lasts),
				Done:  done,
			}
			s.notify(i, w)
			return w, ""
		}
	}
	return nil, ""
}

// depart lets an instance that leaves drain, takes it through its hooks and then terminates its machine. If a capacity provider drains
// the instance, one of the hooks waits for its tasks.
func (s *step) depart(i *state.Instance) {
	if !s.deregistered(i) {
		return
	}
	if i.Name() == ec2types.InstanceStateNameTerminated {
		s.tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeSuccessful, "", s.now)
		row := i.Clone()
		row.Member = nil
		s.tx.Instances.Put(row)
		return
	}
	if i.IsOver() {
		return
	}
	row := i.Clone()
	wait, proceed := types.LifecycleStateTerminatingWait, types.LifecycleStateTerminatingProceed
	if i.Member.IsWarm() {
		wait, proceed = types.LifecycleStateWarmedTerminatingWait, types.LifecycleStateWarmedTerminatingProceed
	}
	if i.Member.LifecycleState != proceed {
		waits, abandoned := s.hooks(i, terminating) // even if the action is abandoned, the instance goes
		if row.Member.Waits = waits; waits != nil && abandoned == "" {
			row.Member.LifecycleState = wait
			s.put(i, row)
			s.tx.SetGroupActivityProgress(i.Member.Activity, types.ScalingActivityStatusCodeMidLifecycleAction, 60)
			return
		}
		row.Member.LifecycleState = proceed
		row.Member.Waits = nil
		s.put(i, row)
	}
	s.tx.Instances.Put(row.Terminating("Server.ScheduledStop", "Server.ScheduledStop: taken out of the Auto Scaling group "+s.group.Name()))
}

// drain sets an instance's container instance to DRAINING, so that it takes no more tasks.
func (s *step) drain(i *state.Instance) {
	c := containerInstance(s.tx.View, *i.InstanceId)
	if c == nil || *c.Status == "DRAINING" {
		return
	}
	s.tx.ContainerInstances.Put(c.In(ecstypes.ContainerInstanceStatusDraining))
}

// isDrained keeps an instance draining and reports whether all its tasks have ended.
func (s *step) isDrained(i *state.Instance) bool {
	s.drain(i)
	return !busy(s.tx.View, containerInstance(s.tx.View, *i.InstanceId), true)
}

// providerOf returns a group's capacity provider, or nil.
func providerOf(v *state.View, g *state.AutoScalingGroup) *state.CapacityProvider {
	for p := range v.CapacityProviders.All() {
		if p.Uses(g) {
			return p
		}
	}
	return nil
}

// containerInstance returns the container instance that an instance last registered, or nil. An agent that lost its state registers
// again, so there may be several.
func containerInstance(v *state.View, id string) (last *state.ContainerInstance) {
	for c := range v.ContainerInstances.By(state.InstancesByMachine, id) {
		if *c.Status != "INACTIVE" && (last == nil || aws.ToTime(c.RegisteredAt).After(aws.ToTime(last.RegisteredAt))) {
			last = c
		}
	}
	return last
}

// busy reports whether a container instance has tasks. Daemons only count if asked for.
func busy(v *state.View, c *state.ContainerInstance, daemons bool) bool {
	if c == nil {
		return false
	}
	for t := range v.Tasks.By(state.TasksByInstance, *c.ContainerInstanceArn) {
		if t.Holds() && (daemons || !isDaemon(v, t)) {
			return true
		}
	}
	return false
}

func isDaemon(v *state.View, t *state.Task) bool {
	row := v.Services.Get(t.ServiceArn)
	return row != nil && row.SchedulingStrategy == ecstypes.SchedulingStrategyDaemon
}

func (s *step) put(before, after *state.Instance) {
	if !reflect.DeepEqual(before, after) {
		s.tx.Instances.Put(after)
	}
}

func (s *step) leave(i *state.Instance, cause string) {
	s.tx.Leave(s.group, i, "At "+state.Stamp(s.now)+" "+cause, s.now)
}
