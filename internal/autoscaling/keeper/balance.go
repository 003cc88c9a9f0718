package keeper

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

// takeOut takes an unhealthy instance out of service.
func (s *step) takeOut(i *state.Instance, because string) {
	s.leave(i, "an instance was taken out of service in response to "+because)
	s.unhealthy++
}

// replaceUnhealthy takes out instances that a user marked unhealthy, those that fail their load balancers' checks, and those whose agent has
// been away for too long.
func (s *step) replaceUnhealthy() {
	if s.group.IsSuspended("ReplaceUnhealthy") || s.group.IsSuspended("HealthCheck") {
		return
	}
	for _, i := range s.tx.ActiveMembers(s.group.Name()) {
		if i.Member.LifecycleState != types.LifecycleStateInService {
			continue
		}
		c := containerInstance(s.tx.View, *i.InstanceId)
		lost := c != nil && !c.AgentConnected && c.DisconnectedAt != nil && s.now.Sub(*c.DisconnectedAt) >= s.opts.Lost
		switch {
		case i.Member.Unhealthy:
			s.takeOut(i, "a user health-check.")
		case s.failsTargetChecks(i):
			s.takeOut(i, "an ELB system health check failure.")
		case lost:
			s.takeOut(i,
				"an EC2 health check indicating it has been terminated or stopped: its agent has been away for "+s.opts.Lost.String()+".")
		}
	}
}

// balance launches missing instances and terminates surplus ones.
func (s *step) balance() {
	active, desired := s.tx.ActiveMembers(s.group.Name()), int(*s.group.DesiredCapacity)+s.surplus
	switch {
	case len(active) < desired && !s.group.Deleting:
		s.launch(len(active), desired)
	case len(active) > desired:
		s.shrink(active, desired)
	default:
		s.group.Cause = "" // the next change has another cause
	}
}

// capacityCause words why the group's capacity changes: first what changed the desired capacity, if known, then what happens now.
func (s *step) capacityCause(what string, from, to int) string {
	change := "shrinking"
	if to > from {
		change = "increasing"
	}
	cause := "At " + state.Stamp(s.now) + " " + what + ", " + change + " the capacity from " + itoa(from) + " to " + itoa(to) + "."
	if s.group.Cause != "" {
		return s.group.Cause + "  " + cause
	}
	return cause
}

// launchCause words why the n-th missing instance is launched.
func (s *step) launchCause(n, have, desired int) string {
	switch {
	case n < s.unhealthy:
		return "At " + state.Stamp(s.now) + " an instance was launched in response to an unhealthy instance needing to be replaced."
	case s.refreshing:
		return "At " + state.Stamp(s.now) + " an instance was launched in response to an instance refresh."
	}
	return s.capacityCause("an instance was started in response to a difference between desired and actual capacity", have, desired)
}

func (s *step) launch(have, desired int) {
	if s.group.IsSuspended("Launch") || s.group.NotBefore != nil && s.now.Before(*s.group.NotBefore) {
		return
	}
	fitting := s.fittingSizes()
	in := map[string]int{} // instances by zone
	for _, i := range s.tx.ActiveMembers(s.group.Name()) {
		in[*i.Placement.AvailabilityZone]++
	}
	for n := range desired - have {
		cause := s.launchCause(n, have, desired)
		if s.takeWarm(fitting, in, cause) {
			continue
		}
		zone, size := group.Place(s.group.AvailabilityZones, in, fitting, s.group.FailedPools, wantsCheapest(s.group))
		in[zone]++
		if !s.start(zone, size, types.LifecycleStatePending, "Launching a new EC2 instance", cause) {
			return
		}
	}
}

// start launches an instance. It reports false, and delays the next launch, if there's nothing to launch it from.
func (s *step) start(zone string, size group.Size, into types.LifecycleState, description, cause string) bool {
	row, err := s.newInstance(zone, size)
	if err != nil {
		s.group.Failures++
		s.group.NotBefore = new(s.now.Add(min(maxPause, time.Second<<min(s.group.Failures, 6))))
		if s.group.Failures == 1 { // later ones fail for the same reason until somebody changes the group
			a := s.tx.StartGroupActivity(s.group, description, cause, types.ScalingActivityStatusCodeInProgress, 0, s.now)
			s.tx.EndGroupActivity(*a.ActivityId, types.ScalingActivityStatusCodeFailed,
				err.Error()+". Launching EC2 instance failed.", s.now)
		}
		return false
	}
	a := s.tx.StartInstanceActivity(s.group, row, description, cause, types.ScalingActivityStatusCodePreInService, 30, s.now)
	row.Member.LifecycleState = into
	row.Member.Activity = *a.ActivityId
	s.tx.Instances.Put(row)
	return true
}

// newInstance makes an instance from the group's launch template or launch configuration, in a zone and of a size.
func (s *step) newInstance(zone string, size group.Size) (*state.Instance, error) {
	if s.opts.NoFleet {
		return nil, errors.New("there is nowhere to launch machines: name their source with --fleet")
	}
	source, err := s.tx.LaunchSource(s.group)
	if err != nil {
		return nil, err
	}
	data := source.Data
	if size.Type != "" {
		data.InstanceType = ec2types.InstanceType(size.Type)
	}
	if _, err := instancetype.Lookup(string(data.InstanceType)); err != nil {
		return nil, fmt.Errorf("invalid value '%s' for InstanceType", data.InstanceType)
	}
	if s.opts.Image != nil {
		image, err := s.opts.Image(aws.ToString(data.ImageId))
		if err != nil {
			return nil, err
		}
		data.ImageId = &image
	}
	row := state.NewInstance(&data, zone, s.now)
	if err := s.join(row); err != nil {
		return nil, err
	}
	row.Member = &state.Member{
		Group:               s.group.Name(),
		LifecycleState:      types.LifecycleStatePending,
		Protected:           aws.ToBool(s.group.NewInstancesProtectedFromScaleIn),
		LaunchTemplate:      source.Template,
		LaunchConfiguration: source.Configuration,
	}
	for _, tag := range s.group.Tags {
		if aws.ToBool(tag.PropagateAtLaunch) {
			row.Tags = append(row.Tags, ec2types.Tag{Key: tag.Key, Value: tag.Value})
		}
	}
	return row, nil
}

// fittingSizes returns the candidates for the next instance: the group's types that fit the waiting tasks.
func (s *step) fittingSizes() []group.Size {
	d := demandOf(s.tx.View, providerOf(s.tx.View, s.group), s.group, s.opts.Prices)
	return group.Fitting(d.sizes, group.Need(d.sizes, d.needs))
}

// wantsCheapest reports whether a group launches the cheapest of its types, rather than the first.
func wantsCheapest(g *state.AutoScalingGroup) bool {
	m := g.MixedInstancesPolicy
	return m != nil && m.InstancesDistribution != nil && aws.ToString(m.InstancesDistribution.OnDemandAllocationStrategy) == "lowest-price"
}

// version orders instances by what they were launched from, for termination policies: first from launch configurations that the group has
// left, then from other templates, then by version or by the age of the launch configuration.
func (s *step) version(m *state.Member) int64 {
	const configuration, other = -2, -1
	template, from := s.group.Template(), m.LaunchTemplate
	switch {
	case m.LaunchConfiguration != "" && template == nil:
		if c := s.tx.LaunchConfigurations.Get(m.LaunchConfiguration); c != nil {
			return c.CreatedTime.UnixMilli()
		}
		return configuration
	case m.LaunchConfiguration != "":
		return configuration
	case template == nil || from == nil || aws.ToString(from.LaunchTemplateId) != aws.ToString(template.LaunchTemplateId):
		return other
	}
	n, _ := strconv.ParseInt(aws.ToString(from.Version), 10, 64)
	return n
}

// shrink terminates instances down to the desired capacity, except protected ones.
func (s *step) shrink(active []*state.Instance, desired int) {
	if s.group.IsSuspended("Terminate") && !s.group.Deleting {
		return
	}
	p := providerOf(s.tx.View, s.group)
	var all []group.Instance
	for _, i := range active {
		d := group.Instance{
			ID:         *i.InstanceId,
			Zone:       *i.Placement.AvailabilityZone,
			LaunchedAt: *i.LaunchTime,
			Protected:  i.Member.Protected,
			Version:    s.version(i.Member),
		}
		if p != nil {
			d.Busy = busy(s.tx.View, containerInstance(s.tx.View, d.ID), false)
			if p.AutoScalingGroupProvider.ManagedTerminationProtection == ecstypes.ManagedTerminationProtectionEnabled {
				d.Protected = d.Busy
			}
		}
		d.Protected = d.Protected && !s.group.Deleting
		all = append(all, d)
	}
	victims := group.Victims(all, len(active)-desired, s.group.TerminationPolicies, s.now)
	cause := s.capacityCause("an instance was taken out of service in response to a difference between desired and actual capacity",
		len(active), len(active)-len(victims))
	for _, id := range victims {
		row := s.tx.Instances.Get(id)
		if s.reuses() {
			s.putBack(row, cause)
			s.group.CoolsFrom = &s.now
			continue
		}
		s.tx.Leave(s.group, row, cause+"  At "+state.Stamp(s.now)+" instance "+id+" was selected for termination.", s.now)
		if p != nil && (p.AutoScalingGroupProvider.ManagedDraining == ecstypes.ManagedDrainingEnabled ||
			p.AutoScalingGroupProvider.ManagedTerminationProtection == ecstypes.ManagedTerminationProtectionEnabled) {
			s.drain(row) // now, or it might still get a task
		}
		s.group.CoolsFrom = &s.now
	}
}
