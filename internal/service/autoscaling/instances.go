package autoscaling

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// The limits of lifecycle hooks: API_PutLifecycleHook, and the user guide's page on them.
const (
	maxHooks         = 50
	defaultHeartbeat = 3600
	minHeartbeat     = 30
	maxHeartbeat     = 7200
	maxWait          = 48 * time.Hour // or 100 times the heartbeat, whichever is less
)

func noInstance(id string) error {
	return invalid("Instance Id not found - No managed instance found for instance ID: %s", id)
}

// member is an instance that belongs to a group.
func member(v *state.View, id *string) (*state.Instance, *state.AutoScalingGroup, error) {
	if aws.ToString(id) == "" {
		return nil, nil, missing("instanceId")
	}
	i := v.Instances.Get(*id)
	if i == nil || i.Member == nil {
		return nil, nil, noInstance(*id)
	}
	return i, v.AutoScalingGroups.Get(i.Member.Group), nil
}

// TerminateInstanceInAutoScalingGroup ends an instance of a group, which launches another one unless the desired
// capacity goes down with it.
func (s *Service) TerminateInstanceInAutoScalingGroup(ctx context.Context, in *api.TerminateInstanceInAutoScalingGroupInput) (*api.TerminateInstanceInAutoScalingGroupOutput, error) {
	if in.ShouldDecrementDesiredCapacity == nil {
		return nil, missing("shouldDecrementDesiredCapacity")
	}
	if len(in.InstanceIds) > 0 {
		return nil, invalid("InstanceIds: Pintle takes one InstanceId")
	}
	var out types.Activity
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		i, old, err := member(tx.View, in.InstanceId)
		if err != nil {
			return err
		}
		if i.Member.Leaving() {
			return invalid("The instance %s is not in InService or Standby or Pending: it is %s", *in.InstanceId, i.Member.LifecycleState)
		}
		g := old.Clone()
		if *in.ShouldDecrementDesiredCapacity {
			if *g.DesiredCapacity <= *g.MinSize {
				return invalid("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", *g.MinSize)
			}
			g.DesiredCapacity = new(*g.DesiredCapacity - 1)
			tx.AutoScalingGroups.Put(g)
		}
		now := s.now()
		out = tx.Leave(g, i, "At "+state.Stamp(now)+" instance "+*i.InstanceId+" was taken out of service in response to a user request.", now).Activity
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.TerminateInstanceInAutoScalingGroupOutput{Activity: &out}, nil
}

// SetInstanceProtection keeps instances from being terminated as a group shrinks, or no longer does.
func (s *Service) SetInstanceProtection(ctx context.Context, in *api.SetInstanceProtectionInput) (*api.SetInstanceProtectionOutput, error) {
	if in.ProtectedFromScaleIn == nil {
		return nil, missing("protectedFromScaleIn")
	}
	if len(in.InstanceIds) == 0 {
		return nil, missing("instanceIds")
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		for _, id := range in.InstanceIds {
			i, _, err := member(tx.View, &id)
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

// SetInstanceHealth says how an instance is. One that is Unhealthy is replaced.
func (s *Service) SetInstanceHealth(ctx context.Context, in *api.SetInstanceHealthInput) (*api.SetInstanceHealthOutput, error) {
	status := aws.ToString(in.HealthStatus)
	if status != "Healthy" && status != "Unhealthy" {
		return nil, invalid("HealthStatus must be Healthy or Unhealthy, not %q", status)
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		i, g, err := member(tx.View, in.InstanceId)
		if err != nil {
			return err
		}
		grace := time.Duration(aws.ToInt32(g.HealthCheckGracePeriod)) * time.Second
		if status == "Unhealthy" && (in.ShouldRespectGracePeriod == nil || *in.ShouldRespectGracePeriod) && s.now().Before(aws.ToTime(i.Member.InServiceAt).Add(grace)) {
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
func (s *Service) DescribeAutoScalingInstances(_ context.Context, in *api.DescribeAutoScalingInstancesInput) (*api.DescribeAutoScalingInstancesOutput, error) {
	var rows []*state.Instance
	for i := range s.store.View().Instances.All() {
		if i.Member != nil && (len(in.InstanceIds) == 0 || slices.Contains(in.InstanceIds, *i.InstanceId)) {
			rows = append(rows, i)
		}
	}
	rows, next, err := page(rows, in.MaxRecords, in.NextToken, func(i *state.Instance) string { return *i.InstanceId })
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
			AutoScalingGroupName: &row.Member.Group, InstanceId: i.InstanceId, AvailabilityZone: i.AvailabilityZone, HealthStatus: &health,
			LifecycleState: new(string(i.LifecycleState)), ProtectedFromScaleIn: i.ProtectedFromScaleIn, InstanceType: i.InstanceType, LaunchTemplate: i.LaunchTemplate, ImageId: i.ImageId,
		})
	}
	return out, nil
}

// hook is the lifecycle hook that a call makes, or makes of an old one.
func (s *Service) hook(in *api.PutLifecycleHookInput, old *types.LifecycleHook) (*types.LifecycleHook, error) {
	h := types.LifecycleHook{DefaultResult: aws.String("ABANDON"), HeartbeatTimeout: aws.Int32(defaultHeartbeat)}
	if old != nil {
		h = *old
	}
	h.AutoScalingGroupName, h.LifecycleHookName = in.AutoScalingGroupName, in.LifecycleHookName
	h.LifecycleTransition, h.DefaultResult = cmp.Or(in.LifecycleTransition, h.LifecycleTransition), cmp.Or(in.DefaultResult, h.DefaultResult)
	h.HeartbeatTimeout, h.NotificationMetadata = cmp.Or(in.HeartbeatTimeout, h.HeartbeatTimeout), cmp.Or(in.NotificationMetadata, h.NotificationMetadata)
	transition, result, heartbeat := aws.ToString(h.LifecycleTransition), *h.DefaultResult, *h.HeartbeatTimeout
	switch {
	case !groupName.MatchString(aws.ToString(h.LifecycleHookName)):
		return nil, invalid("LifecycleHookName %q must have 1 to 255 letters, numbers, hyphens and underscores", aws.ToString(h.LifecycleHookName))
	case transition != launching && transition != terminating:
		return nil, invalid("LifecycleTransition must be %s or %s, not %q", launching, terminating, transition)
	case result != "CONTINUE" && result != "ABANDON":
		return nil, invalid("DefaultResult must be CONTINUE or ABANDON, not %q", result)
	case heartbeat < minHeartbeat || heartbeat > maxHeartbeat:
		return nil, invalid("HeartbeatTimeout must be between %d and %d seconds, not %d", minHeartbeat, maxHeartbeat, heartbeat)
	case aws.ToString(in.NotificationTargetARN) != "":
		return nil, invalid("Unable to publish test message to notification target %s: Pintle tells no target of a lifecycle action; DescribeAutoScalingInstances shows who waits.", *in.NotificationTargetARN)
	}
	h.GlobalTimeout = new(min(int32(maxWait.Seconds()), 100*heartbeat))
	return &h, nil
}

const (
	launching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
	terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// PutLifecycleHook makes a lifecycle hook, or changes it.
func (s *Service) PutLifecycleHook(ctx context.Context, in *api.PutLifecycleHookInput) (*api.PutLifecycleHookOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		old := g.Hook(aws.ToString(in.LifecycleHookName))
		h, err := s.hook(in, old)
		if err != nil {
			return err
		}
		if old != nil {
			*old = *h
			return nil
		}
		if len(g.Hooks) >= maxHooks {
			return &types.LimitExceededFault{Message: new("The group has as many lifecycle hooks as are allowed")}
		}
		g.Hooks = append(g.Hooks, *h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutLifecycleHookOutput{}, nil
}

func noHook(group, hook string) error {
	return invalid("No Lifecycle Hook found with AutoScalingGroupName %s and LifecycleHookName %s.", group, hook)
}

// DeleteLifecycleHook forgets a lifecycle hook. Instances that wait for it go on.
func (s *Service) DeleteLifecycleHook(ctx context.Context, in *api.DeleteLifecycleHookInput) (*api.DeleteLifecycleHookOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		name := aws.ToString(in.LifecycleHookName)
		if g.Hook(name) == nil {
			return noHook(g.Name(), name)
		}
		g.Hooks = slices.DeleteFunc(g.Hooks, func(h types.LifecycleHook) bool { return *h.LifecycleHookName == name })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteLifecycleHookOutput{}, nil
}

// DescribeLifecycleHooks lists a group's lifecycle hooks.
func (s *Service) DescribeLifecycleHooks(_ context.Context, in *api.DescribeLifecycleHooksInput) (*api.DescribeLifecycleHooksOutput, error) {
	g, err := group(s.store.View(), in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeLifecycleHooksOutput{LifecycleHooks: []types.LifecycleHook{}}
	for _, h := range g.Hooks {
		if len(in.LifecycleHookNames) == 0 || slices.Contains(in.LifecycleHookNames, *h.LifecycleHookName) {
			out.LifecycleHooks = append(out.LifecycleHooks, h)
		}
	}
	return out, nil
}

// waiting changes the lifecycle action that an instance waits for.
func (s *Service) waiting(ctx context.Context, groupName, hook, id, token *string, change func(*state.AutoScalingGroup, *state.LifecycleAction)) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		g, err := group(tx.View, groupName)
		if err != nil {
			return err
		}
		if g.Hook(aws.ToString(hook)) == nil {
			return noHook(g.Name(), aws.ToString(hook))
		}
		for i := range tx.Instances.By(state.InstancesByGroup, g.Name()) {
			w := i.Member.Waits
			if w == nil || w.Hook != *hook || id != nil && *i.InstanceId != *id || token != nil && w.Token != *token || id == nil && token == nil {
				continue
			}
			row := i.Clone()
			change(g, row.Member.Waits)
			tx.Instances.Put(row)
			return nil
		}
		return invalid("No active Lifecycle Action found with instance ID %s", aws.ToString(id))
	})
}

// CompleteLifecycleAction lets an instance go on, or gives it up.
func (s *Service) CompleteLifecycleAction(ctx context.Context, in *api.CompleteLifecycleActionInput) (*api.CompleteLifecycleActionOutput, error) {
	result := aws.ToString(in.LifecycleActionResult)
	if result != "CONTINUE" && result != "ABANDON" {
		return nil, invalid("LifecycleActionResult must be CONTINUE or ABANDON, not %q", result)
	}
	err := s.waiting(ctx, in.AutoScalingGroupName, in.LifecycleHookName, in.InstanceId, in.LifecycleActionToken, func(_ *state.AutoScalingGroup, w *state.LifecycleAction) {
		w.Proceed, w.Abandon = true, result == "ABANDON"
	})
	if err != nil {
		return nil, err
	}
	return &api.CompleteLifecycleActionOutput{}, nil
}

// RecordLifecycleActionHeartbeat gives a lifecycle action more time.
func (s *Service) RecordLifecycleActionHeartbeat(ctx context.Context, in *api.RecordLifecycleActionHeartbeatInput) (*api.RecordLifecycleActionHeartbeatOutput, error) {
	err := s.waiting(ctx, in.AutoScalingGroupName, in.LifecycleHookName, in.InstanceId, in.LifecycleActionToken, func(g *state.AutoScalingGroup, w *state.LifecycleAction) {
		h := g.Hook(w.Hook)
		w.Until = s.now().Add(time.Duration(*h.HeartbeatTimeout) * time.Second)
		if last := w.Since.Add(time.Duration(*h.GlobalTimeout) * time.Second); w.Until.After(last) {
			w.Until = last
		}
	})
	if err != nil {
		return nil, err
	}
	return &api.RecordLifecycleActionHeartbeatOutput{}, nil
}
