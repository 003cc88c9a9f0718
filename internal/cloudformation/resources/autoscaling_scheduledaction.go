package resources

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/pintle/pintle/internal/wire/call"
)

// groupAction has the properties of AWS::AutoScaling::ScheduledAction. Its physical ID is the name, which is always generated.
type groupAction struct {
	AutoScalingGroupName *string `cfn:"required,create"`
	DesiredCapacity      *int32
	EndTime              *time.Time
	MaxSize              *int32
	MinSize              *int32
	Recurrence           *string
	StartTime            *time.Time
	TimeZone             *string
}

var _ = add(&kind[*groupAction]{
	name:       "AWS::AutoScaling::ScheduledAction",
	live:       liveGroupAction,
	identifier: []string{"ScheduledActionName", "AutoScalingGroupName"},
	physical:   "ScheduledActionName",
	attributes: []string{"ScheduledActionName"},
	create: func(ctx context.Context, s Step, a *groupAction) (string, error) {
		name := s.generated(255)
		return name, putGroupAction(ctx, s, name, a)
	},
	update: func(ctx context.Context, s Step, name string, _, after *groupAction) error {
		return putGroupAction(ctx, s, name, after)
	},
	delete: func(ctx context.Context, s Step, name string, a *groupAction) error {
		if _, err := readGroupAction(ctx, s, name, a); err != nil {
			return err
		}
		in := &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: a.AutoScalingGroupName, ScheduledActionName: &name}
		return did[autoscaling.DeleteScheduledActionOutput](ctx, s, in)
	},
	read: readGroupAction,
})

func putGroupAction(ctx context.Context, s Step, name string, a *groupAction) error {
	in := &autoscaling.PutScheduledUpdateGroupActionInput{
		AutoScalingGroupName: a.AutoScalingGroupName,
		ScheduledActionName:  &name,
		DesiredCapacity:      a.DesiredCapacity,
		EndTime:              a.EndTime,
		MaxSize:              a.MaxSize,
		MinSize:              a.MinSize,
		Recurrence:           a.Recurrence,
		StartTime:            a.StartTime,
		TimeZone:             a.TimeZone,
	}
	return did[autoscaling.PutScheduledUpdateGroupActionOutput](ctx, s, in)
}

// readGroupAction reads an action. One that was due once, and is over, is there no more.
func readGroupAction(ctx context.Context, s Step, name string, a *groupAction) (Made, error) {
	if _, err := describeGroup(ctx, s, *a.AutoScalingGroupName); err != nil {
		return Made{}, err
	}
	out, err := call.Do[autoscaling.DescribeScheduledActionsOutput](ctx, s.Services, &autoscaling.DescribeScheduledActionsInput{
		AutoScalingGroupName: a.AutoScalingGroupName,
		ScheduledActionNames: []string{name},
	})
	if err == nil && len(out.ScheduledUpdateGroupActions) == 0 {
		err = errMissing
	}
	return Made{Attributes: map[string]any{"ScheduledActionName": name}}, err
}

func liveGroupAction(ctx context.Context, s Step, name string, a *groupAction) (*groupAction, error) {
	if _, err := describeGroup(ctx, s, *a.AutoScalingGroupName); err != nil {
		return nil, err
	}
	out, err := call.Do[autoscaling.DescribeScheduledActionsOutput](ctx, s.Services, &autoscaling.DescribeScheduledActionsInput{
		AutoScalingGroupName: a.AutoScalingGroupName,
		ScheduledActionNames: []string{name},
	})
	if err == nil && len(out.ScheduledUpdateGroupActions) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	is := out.ScheduledUpdateGroupActions[0]
	return &groupAction{
		AutoScalingGroupName: is.AutoScalingGroupName,
		DesiredCapacity:      is.DesiredCapacity,
		EndTime:              is.EndTime,
		MaxSize:              is.MaxSize,
		MinSize:              is.MinSize,
		Recurrence:           is.Recurrence,
		StartTime:            is.StartTime,
		TimeZone:             is.TimeZone,
	}, nil
}
