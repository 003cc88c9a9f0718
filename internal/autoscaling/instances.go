package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// The most instances per call, from API_SetInstanceProtection, API_EnterStandby and API_AttachInstances.
const (
	maxProtected = 50
	maxMoved     = 20
)

func noInstance(id string) error {
	return invalid("Instance Id not found - No managed instance found for instance ID: %s", id)
}

// memberOf returns an instance that belongs to a group, and the group.
func memberOf(v *state.View, id *string) (*state.Instance, *state.AutoScalingGroup, error) {
	i := v.Instances.Get(*id)
	if i == nil || i.Member == nil {
		return nil, nil, noInstance(*id)
	}
	return i, v.AutoScalingGroups.Get(i.Member.Group), nil
}

// TerminateInstanceInAutoScalingGroup terminates an instance of a group. The group launches another one unless the call
// also lowers the desired capacity.
func (s *Service) TerminateInstanceInAutoScalingGroup(
	ctx context.Context, in *api.TerminateInstanceInAutoScalingGroupInput,
) (*api.TerminateInstanceInAutoScalingGroupOutput, error) {
	if len(in.InstanceIds) > 0 {
		return nil, invalid("InstanceIds: Pintle supports only InstanceId, one per call")
	}
	var out types.Activity
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		i, old, err := memberOf(tx.View, in.InstanceId)
		if err != nil {
			return err
		}
		if name := aws.ToString(in.AutoScalingGroupName); name != "" && name != old.Name() {
			return invalid("The instance %s is not part of Auto Scaling group %s.", *in.InstanceId, name)
		}
		if i.Member.IsLeaving() {
			return invalid("The instance %s is not in InService or Standby or Pending: it is %s", *in.InstanceId, i.Member.LifecycleState)
		}
		g := old.Clone()
		if *in.ShouldDecrementDesiredCapacity && !i.Member.IsWarm() { // the capacity doesn't count it
			if *g.DesiredCapacity <= *g.MinSize {
				return invalid("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate "+
					"group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
					*g.MinSize)
			}
			g.DesiredCapacity = new(*g.DesiredCapacity - 1)
			tx.AutoScalingGroups.Put(g)
		}
		now := s.now()
		out = tx.Leave(g, i, userCause("was taken out of service")(now, i, *old.DesiredCapacity, *g.DesiredCapacity), now).Activity
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.TerminateInstanceInAutoScalingGroupOutput{Activity: &out}, nil
}

// userCause returns a function that words why something happens to an instance: a user asked for it, and the desired capacity may
// have changed with it.
func userCause(what string) func(now time.Time, i *state.Instance, before, after int32) string {
	return func(now time.Time, i *state.Instance, before, after int32) string {
		because := "At " + state.Stamp(now) + " instance " + *i.InstanceId + " " + what + " in response to a user request"
		switch {
		case after < before:
			return fmt.Sprintf("%s, shrinking the capacity from %d to %d.", because, before, after)
		case after > before:
			return fmt.Sprintf("%s, increasing the capacity from %d to %d.", because, before, after)
		}
		return because + "."
	}
}

// SetInstanceProtection sets or clears the protection of instances from scale-in.
func (s *Service) SetInstanceProtection(ctx context.Context, in *api.SetInstanceProtectionInput) (*api.SetInstanceProtectionOutput, error) {
	if len(in.InstanceIds) > maxProtected {
		return nil, invalid("InstanceIds: at most %d are allowed", maxProtected)
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		for _, id := range in.InstanceIds {
			i, _, err := memberOf(tx.View, &id)
			if err != nil || i.Member.Group != g.Name() {
				return invalid("The instance %s is not part of Auto Scaling group %s.", id, g.Name())
			}
			row := i.Clone()
			row.Member.Protected = *in.ProtectedFromScaleIn
			tx.Instances.Put(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetInstanceProtectionOutput{}, nil
}

// SetInstanceHealth sets an instance's health. The loop replaces an Unhealthy one.
func (s *Service) SetInstanceHealth(ctx context.Context, in *api.SetInstanceHealthInput) (*api.SetInstanceHealthOutput, error) {
	status := aws.ToString(in.HealthStatus)
	if status != "Healthy" && status != "Unhealthy" {
		return nil, invalid("HealthStatus must be Healthy or Unhealthy, not %q", status)
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		i, g, err := memberOf(tx.View, in.InstanceId)
		if err != nil {
			return err
		}
		respects := in.ShouldRespectGracePeriod == nil || *in.ShouldRespectGracePeriod
		if status == "Unhealthy" && respects && g.IsInGrace(i.Member, s.now()) {
			return nil
		}
		row := i.Clone()
		row.Member.Unhealthy = status == "Unhealthy"
		tx.Instances.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetInstanceHealthOutput{}, nil
}

// DescribeAutoScalingInstances lists the instances of all groups, or some of them.
func (s *Service) DescribeAutoScalingInstances(
	_ context.Context, in *api.DescribeAutoScalingInstancesInput,
) (*api.DescribeAutoScalingInstancesOutput, error) {
	var rows []*state.Instance
	for i := range s.store.View().Instances.All() {
		if i.Member != nil && (len(in.InstanceIds) == 0 || slices.Contains(in.InstanceIds, *i.InstanceId)) {
			rows = append(rows, i)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeAutoScalingInstances", 50, 50), rows, in.MaxRecords, in.NextToken,
		func(i *state.Instance) string { return *i.InstanceId })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeAutoScalingInstancesOutput{AutoScalingInstances: []types.AutoScalingInstanceDetails{}, NextToken: next}
	for _, row := range rows {
		i := instanceOf(row)
		health := "HEALTHY"
		if row.Member.Unhealthy {
			health = "UNHEALTHY"
		}
		out.AutoScalingInstances = append(out.AutoScalingInstances, types.AutoScalingInstanceDetails{
			AutoScalingGroupName: &row.Member.Group,
			InstanceId:           i.InstanceId,
			AvailabilityZone:     i.AvailabilityZone,
			HealthStatus:         &health,
			LifecycleState:       new(string(i.LifecycleState)),
			ProtectedFromScaleIn: i.ProtectedFromScaleIn,
			InstanceType:         i.InstanceType,
			LaunchTemplate:       i.LaunchTemplate,

			LaunchConfigurationName: i.LaunchConfigurationName,

			ImageId: i.ImageId,
		})
	}
	return out, nil
}
