package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// move is what EnterStandby, ExitStandby, AttachInstances or DetachInstances does with each instance.
type move struct {
	to          types.LifecycleState
	description string
	cause       func(now time.Time, i *state.Instance, before, after int32) string
	code        types.ScalingActivityStatusCode
	progress    int32
	purpose     string // for the error message if the group has no room
	by          int32  // the change of the desired capacity per instance
	check       func(*state.Instance, *state.AutoScalingGroup) error
}

// move moves instances into, within or out of a group: all of them, or none after an error. The loop does the rest.
func (s *Service) move(ctx context.Context, groupName *string, ids []string, m move) (out []types.Activity, err error) {
	switch {
	case len(ids) == 0:
		return nil, missing("instanceIds")
	case len(ids) > maxMoved:
		return nil, invalid("InstanceIds: at most %d are allowed", maxMoved)
	}
	err = s.change(ctx, groupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		out = []types.Activity{}
		if after := *g.DesiredCapacity + m.by*int32(len(ids)); after < *g.MinSize || after > *g.MaxSize {
			instances := "instances"
			if len(ids) == 1 {
				instances = "instance"
			}
			return invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To %s %d %s, please update the "+
				"AutoScalingGroup sizes appropriately.",
				g.Name(), *g.MinSize, *g.MaxSize, *g.DesiredCapacity, m.purpose, len(ids), instances)
		}
		for _, id := range ids {
			i := tx.Instances.Get(id)
			if i == nil {
				return noInstance(id)
			}
			if err := m.check(i, g); err != nil {
				return err
			}
			now, before := s.now(), *g.DesiredCapacity
			g.DesiredCapacity = new(before + m.by)
			a := tx.StartInstanceActivity(g, i, m.description, m.cause(now, i, before, *g.DesiredCapacity), m.code, m.progress, now)
			out = append(out, a.Activity)
			row := i.Clone()
			if row.Member == nil {
				row.Member = &state.Member{Group: g.Name(), Protected: aws.ToBool(g.NewInstancesProtectedFromScaleIn)}
			}
			row.Member.LifecycleState = m.to
			row.Member.Activity = *a.ActivityId
			row.Member.InServiceAt = nil
			tx.Instances.Put(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// checkMember refuses an instance that isn't in the group, or isn't in one of the ok states.
func checkMember(i *state.Instance, g *state.AutoScalingGroup, states string, ok ...types.LifecycleState) error {
	if i.Member == nil || i.Member.Group != g.Name() {
		return invalid("The instance %s is not part of Auto Scaling group %s.", *i.InstanceId, g.Name())
	}
	for _, s := range ok {
		if i.Member.LifecycleState == s {
			return nil
		}
	}
	return invalid("The instance %s is not in %s.", *i.InstanceId, states)
}

func checkInService(i *state.Instance, g *state.AutoScalingGroup) error {
	return checkMember(i, g, "InService", types.LifecycleStateInService)
}

// EnterStandby takes instances out of service but keeps them in their group. Their tasks stay.
func (s *Service) EnterStandby(ctx context.Context, in *api.EnterStandbyInput) (*api.EnterStandbyOutput, error) {
	activities, err := s.move(ctx, in.AutoScalingGroupName, in.InstanceIds, move{
		to:          types.LifecycleStateEnteringStandby,
		description: "Moving EC2 instance to Standby",
		cause:       userCause("was moved to standby"),
		code:        types.ScalingActivityStatusCodeInProgress,
		progress:    50,
		purpose:     "place into standby",
		by:          decrement(*in.ShouldDecrementDesiredCapacity),
		check:       checkInService,
	})
	if err != nil {
		return nil, err
	}
	return &api.EnterStandbyOutput{Activities: activities}, nil
}

func decrement(should bool) int32 {
	if should {
		return -1
	}
	return 0
}

// ExitStandby puts instances back into service, through the launch hooks. The desired capacity grows with them.
func (s *Service) ExitStandby(ctx context.Context, in *api.ExitStandbyInput) (*api.ExitStandbyOutput, error) {
	activities, err := s.move(ctx, in.AutoScalingGroupName, in.InstanceIds, move{
		to:          types.LifecycleStatePending,
		description: "Moving EC2 instance out of Standby",
		cause:       userCause("was moved out of standby"),
		code:        types.ScalingActivityStatusCodePreInService,
		progress:    30,
		purpose:     "move out of standby",
		by:          1,
		check: func(i *state.Instance, g *state.AutoScalingGroup) error {
			return checkMember(i, g, "Standby", types.LifecycleStateStandby)
		},
	})
	if err != nil {
		return nil, err
	}
	return &api.ExitStandbyOutput{Activities: activities}, nil
}

// DetachInstances takes instances out of their group. They keep running.
func (s *Service) DetachInstances(ctx context.Context, in *api.DetachInstancesInput) (*api.DetachInstancesOutput, error) {
	activities, err := s.move(ctx, in.AutoScalingGroupName, in.InstanceIds, move{
		to:          types.LifecycleStateDetaching,
		description: "Detaching EC2 instance",
		cause:       userCause("was detached"),
		code:        types.ScalingActivityStatusCodeInProgress,
		progress:    50,
		purpose:     "detach",
		by:          decrement(*in.ShouldDecrementDesiredCapacity),
		check: func(i *state.Instance, g *state.AutoScalingGroup) error {
			return checkMember(i, g, "InService or Standby", types.LifecycleStateInService, types.LifecycleStateStandby)
		},
	})
	if err != nil {
		return nil, err
	}
	return &api.DetachInstancesOutput{Activities: activities}, nil
}

// AttachInstances puts instances into a group, through the launch hooks. They must be running in one of the group's zones and
// belong to no group. The desired capacity grows with them:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-detach-attach-instances.html
func (s *Service) AttachInstances(ctx context.Context, in *api.AttachInstancesInput) (*api.AttachInstancesOutput, error) {
	_, err := s.move(ctx, in.AutoScalingGroupName, in.InstanceIds, move{
		to:          types.LifecycleStatePending,
		description: "Attaching an existing EC2 instance",
		code:        types.ScalingActivityStatusCodePreInService,
		progress:    30,
		purpose:     "attach",
		by:          1,
		cause: func(now time.Time, _ *state.Instance, _, after int32) string {
			return fmt.Sprintf("At %s an instance was added in response to user request. Keeping the capacity at the new %d.",
				state.Stamp(now), after)
		},
		check: func(i *state.Instance, g *state.AutoScalingGroup) error {
			switch {
			case i.Member != nil:
				return invalid("Instance %s is already part of AutoScalingGroup:%s", *i.InstanceId, i.Member.Group)
			case i.Name() != ec2types.InstanceStateNameRunning:
				return invalid("Instance %s is not in correct state. Instance(s) must be in 'running' state.", *i.InstanceId)
			case !slices.Contains(g.AvailabilityZones, *i.Placement.AvailabilityZone):
				return invalid("The availability zone %s of the instance %s is not one of AutoScalingGroup %s.",
					*i.Placement.AvailabilityZone, *i.InstanceId, g.Name())
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &api.AttachInstancesOutput{}, nil
}
