package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// CreateAutoScalingGroup creates a group. The loop launches its instances.
func (s *Service) CreateAutoScalingGroup(
	ctx context.Context, in *api.CreateAutoScalingGroupInput,
) (*api.CreateAutoScalingGroupOutput, error) {
	g, err := s.newGroup(ctx, in)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	if err := cmp.Or(checkNew(v, g), place(v, g.Clone(), in.VPCZoneIdentifier, in.AvailabilityZones)); err != nil {
		return nil, err
	}
	for i := range g.Hooks {
		if err := s.testTarget(ctx, g, &g.Hooks[i]); err != nil {
			return nil, err
		}
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if err := checkNew(tx.View, g); err != nil {
			return err
		}
		if err := place(tx.View, g, in.VPCZoneIdentifier, in.AvailabilityZones); err != nil {
			return err
		}
		if err := checkTargetGroups(tx.View, g, g.TargetGroupARNs); err != nil {
			return err
		}
		tx.AutoScalingGroups.Put(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateAutoScalingGroupOutput{}, nil
}

// newGroup makes a group's row, with the checks that don't need the store.
func (s *Service) newGroup(ctx context.Context, in *api.CreateAutoScalingGroupInput) (*state.AutoScalingGroup, error) {
	name := aws.ToString(in.AutoScalingGroupName)
	if !groupName.MatchString(name) {
		return nil, invalid("AutoScalingGroupName %q must have 1 to 255 characters, none of them :, /, | or a control character", name)
	}
	if err := checkCreate(in); err != nil {
		return nil, err
	}
	if err := s.checkZones(in.AvailabilityZones); err != nil {
		return nil, err
	}
	g := &state.AutoScalingGroup{AutoScalingGroup: s.describe(name, in)}
	sources, err := targetGroups(in.TrafficSources)
	if err != nil {
		return nil, err
	}
	g.TargetGroupARNs = merged(in.TargetGroupARNs, sources)
	if len(g.AvailabilityZones)+len(g.Subnets()) == 0 {
		return nil, invalid("At least one Availability Zone or VPC Subnet is required.")
	}
	if len(g.TerminationPolicies) == 0 {
		g.TerminationPolicies = []string{"Default"}
	}
	g.Cause = fmt.Sprintf("At %s a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.",
		state.Stamp(*g.CreatedTime), *g.DesiredCapacity)
	if g.Tags, err = mergeTags(nil, name, in.Tags, isForStack(ctx)); err != nil {
		return nil, err
	}
	for _, h := range in.LifecycleHookSpecificationList {
		_, err := s.putHook(g, &api.PutLifecycleHookInput{
			AutoScalingGroupName:  &name,
			LifecycleHookName:     h.LifecycleHookName,
			LifecycleTransition:   h.LifecycleTransition,
			DefaultResult:         h.DefaultResult,
			HeartbeatTimeout:      h.HeartbeatTimeout,
			NotificationMetadata:  h.NotificationMetadata,
			NotificationTargetARN: h.NotificationTargetARN,
			RoleARN:               h.RoleARN,
		})
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// describe returns a new group's description, with the defaults filled in.
func (s *Service) describe(name string, in *api.CreateAutoScalingGroupInput) types.AutoScalingGroup {
	return types.AutoScalingGroup{
		AutoScalingGroupName:             &name,
		AutoScalingGroupARN:              s.arn("autoScalingGroup:" + state.NewUUID() + ":autoScalingGroupName/" + name),
		CreatedTime:                      new(s.now()),
		MinSize:                          in.MinSize,
		MaxSize:                          in.MaxSize,
		DesiredCapacity:                  cmp.Or(in.DesiredCapacity, in.MinSize),
		DefaultCooldown:                  cmp.Or(in.DefaultCooldown, aws.Int32(defaultCooldown)),
		AvailabilityZones:                in.AvailabilityZones,
		VPCZoneIdentifier:                in.VPCZoneIdentifier,
		HealthCheckType:                  cmp.Or(in.HealthCheckType, aws.String("EC2")),
		HealthCheckGracePeriod:           cmp.Or(in.HealthCheckGracePeriod, aws.Int32(0)),
		DefaultInstanceWarmup:            in.DefaultInstanceWarmup,
		LaunchConfigurationName:          in.LaunchConfigurationName,
		LaunchTemplate:                   in.LaunchTemplate,
		MixedInstancesPolicy:             withDefaults(in.MixedInstancesPolicy),
		NewInstancesProtectedFromScaleIn: new(aws.ToBool(in.NewInstancesProtectedFromScaleIn)),
		TerminationPolicies:              in.TerminationPolicies,
		CapacityRebalance:                in.CapacityRebalance,
		ServiceLinkedRoleARN: cmp.Or(in.ServiceLinkedRoleARN,
			new(s.opts.GlobalARN("iam", "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"))),
	}
}

// UpdateAutoScalingGroup changes a group. It moves a desired capacity that is outside the new bounds to the nearest one.
func (s *Service) UpdateAutoScalingGroup(
	ctx context.Context, in *api.UpdateAutoScalingGroupInput,
) (*api.UpdateAutoScalingGroupOutput, error) {
	if err := checkUpdate(in); err != nil {
		return nil, err
	}
	if err := s.checkZones(in.AvailabilityZones); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		before := *g.DesiredCapacity
		g.MinSize = cmp.Or(in.MinSize, g.MinSize)
		g.MaxSize = cmp.Or(in.MaxSize, g.MaxSize)
		desired := in.DesiredCapacity
		if desired == nil {
			desired = new(max(min(before, *g.MaxSize), *g.MinSize))
		}
		g.DesiredCapacity = desired
		g.DefaultCooldown = cmp.Or(in.DefaultCooldown, g.DefaultCooldown)
		g.DefaultInstanceWarmup = cmp.Or(in.DefaultInstanceWarmup, g.DefaultInstanceWarmup)
		g.HealthCheckType = cmp.Or(in.HealthCheckType, g.HealthCheckType)
		g.HealthCheckGracePeriod = cmp.Or(in.HealthCheckGracePeriod, g.HealthCheckGracePeriod)
		g.VPCZoneIdentifier = cmp.Or(in.VPCZoneIdentifier, g.VPCZoneIdentifier)
		g.NewInstancesProtectedFromScaleIn = cmp.Or(in.NewInstancesProtectedFromScaleIn, g.NewInstancesProtectedFromScaleIn)
		g.CapacityRebalance = cmp.Or(in.CapacityRebalance, g.CapacityRebalance)
		g.ServiceLinkedRoleARN = cmp.Or(in.ServiceLinkedRoleARN, g.ServiceLinkedRoleARN)
		if len(in.AvailabilityZones) > 0 {
			g.AvailabilityZones = in.AvailabilityZones
		}
		if err := place(tx.View, g, in.VPCZoneIdentifier, in.AvailabilityZones); err != nil {
			return err
		}
		if len(in.TerminationPolicies) > 0 {
			g.TerminationPolicies = in.TerminationPolicies
		}
		setSource(g, in)
		if err := check(tx.View, g); err != nil {
			return err
		}
		g.Failures = 0
		g.NotBefore = nil
		if *desired != before {
			g.Cause = fmt.Sprintf("At %s a user request update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d "+
				"changing the desired capacity from %d to %d.", state.Stamp(s.now()), *g.MinSize, *g.MaxSize, *desired, before, *desired)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateAutoScalingGroupOutput{}, nil
}

// setSource sets what a group's instances are started from, if the call gives one.
func setSource(g *state.AutoScalingGroup, in *api.UpdateAutoScalingGroupInput) {
	if in.LaunchTemplate != nil || in.LaunchConfigurationName != nil || in.MixedInstancesPolicy != nil {
		g.LaunchTemplate = in.LaunchTemplate
		g.LaunchConfigurationName = in.LaunchConfigurationName
		g.MixedInstancesPolicy = withDefaults(in.MixedInstancesPolicy)
	}
}

// DeleteAutoScalingGroup deletes a group. With ForceDelete its instances are terminated first; without, it must have none.
func (s *Service) DeleteAutoScalingGroup(
	ctx context.Context, in *api.DeleteAutoScalingGroupInput,
) (*api.DeleteAutoScalingGroupOutput, error) {
	var alarms []types.Alarm
	if g := s.store.View().AutoScalingGroups.Get(aws.ToString(in.AutoScalingGroupName)); g != nil {
		for p := range s.store.View().GroupPolicies.By(state.GroupPoliciesByGroup, g.Name()) {
			alarms = append(alarms, p.Alarms...)
		}
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findGroup(tx.View, in.AutoScalingGroupName)
		if err != nil {
			return err
		}
		members := slices.Collect(tx.Instances.By(state.InstancesByGroup, old.Name()))
		if len(members) > 0 && !aws.ToBool(in.ForceDelete) {
			return &types.ResourceInUseFault{
				Message: new("You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) " +
					"still in the group."),
			}
		}
		for _, p := range slices.Collect(tx.GroupPolicies.By(state.GroupPoliciesByGroup, old.Name())) {
			tx.GroupPolicies.Delete(p.Key())
		}
		for _, a := range slices.Collect(tx.GroupActions.By(state.GroupActionsByGroup, old.Name())) {
			tx.GroupActions.Delete(a.Key())
		}
		for _, r := range slices.Collect(tx.GroupRefreshes.By(state.GroupRefreshesByGroup, old.Name())) {
			tx.GroupRefreshes.Delete(r.ID())
		}
		if len(members) == 0 {
			tx.AutoScalingGroups.Delete(old.Name())
			return nil
		}
		g := old.Clone()
		g.Deleting = true
		g.Hooks = nil
		g.MinSize = aws.Int32(0)
		g.DesiredCapacity = aws.Int32(0)
		g.Status = aws.String("Delete in progress")
		g.Cause = fmt.Sprintf("At %s a user request force deleted AutoScalingGroup changing the desired capacity from %d to 0.",
			state.Stamp(s.now()), *old.DesiredCapacity)
		tx.AutoScalingGroups.Put(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.deleteAlarms(ctx, alarms); err != nil {
		return nil, err
	}
	return &api.DeleteAutoScalingGroupOutput{}, nil
}

func inProgress(g *state.AutoScalingGroup) error {
	return &types.ScalingActivityInProgressFault{
		Message: new("Scaling activity is in progress for the Auto Scaling group " + g.Name() + ", " +
			"or its cooldown has not ended, and the request honors the cooldown"),
	}
}

// SetDesiredCapacity sets how many instances a group should have.
func (s *Service) SetDesiredCapacity(ctx context.Context, in *api.SetDesiredCapacityInput) (*api.SetDesiredCapacityOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		now, before, desired := s.now(), *g.DesiredCapacity, *in.DesiredCapacity
		switch {
		case desired < *g.MinSize:
			return invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", desired, *g.MinSize)
		case desired > *g.MaxSize:
			return invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", desired, *g.MaxSize)
		case aws.ToBool(in.HonorCooldown) && g.IsCoolingDown(nil, now):
			return inProgress(g)
		}
		g.DesiredCapacity = &desired
		g.Failures = 0
		g.NotBefore = nil
		if desired != before {
			g.Cause = fmt.Sprintf(
				"At %s a user request explicitly set group desired capacity changing the desired capacity from %d to %d.",
				state.Stamp(now), before, desired)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetDesiredCapacityOutput{}, nil
}

// groupType is the only resource type of tags: API_Tag.
const groupType = "auto-scaling-group"
