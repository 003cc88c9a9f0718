package autoscaling

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// PutScheduledUpdateGroupAction creates or changes a scheduled action of a group.
func (s *Service) PutScheduledUpdateGroupAction(
	ctx context.Context, in *api.PutScheduledUpdateGroupActionInput,
) (*api.PutScheduledUpdateGroupActionOutput, error) {
	if err := s.checkAction(in); err != nil {
		return nil, err
	}
	start := cmp.Or(in.StartTime, in.Time)
	a := &state.GroupAction{ScheduledUpdateGroupAction: types.ScheduledUpdateGroupAction{
		AutoScalingGroupName: in.AutoScalingGroupName,
		ScheduledActionName:  in.ScheduledActionName,
		MinSize:              in.MinSize,
		MaxSize:              in.MaxSize,
		DesiredCapacity:      in.DesiredCapacity,
		Recurrence:           in.Recurrence,
		StartTime:            start,
		Time:                 start,
		EndTime:              in.EndTime,
		TimeZone:             in.TimeZone,
	}}
	due, err := scaling.NextOfGroup(&a.ScheduledUpdateGroupAction, s.now())
	if err != nil {
		return nil, invalid("%v", err)
	}
	a.DueAt = due
	if a.StartTime == nil {
		a.StartTime = due
		a.Time = due
	}
	err = s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		old, all := tx.GroupActions.Get(a.Key()), slices.Collect(tx.GroupActions.By(state.GroupActionsByGroup, g.Name()))
		if old != nil {
			a.ScheduledActionARN = old.ScheduledActionARN
		} else if len(all) >= maxActions {
			return &types.LimitExceededFault{Message: new("The group already has the maximum number of scheduled actions")}
		}
		if start != nil && (old == nil || !start.Equal(aws.ToTime(old.StartTime))) && slices.ContainsFunc(all, startsAt(*start, a.Key())) {
			return &types.AlreadyExistsFault{Message: new("Scheduled action with this scheduled start time already exists")}
		}
		id := account.UUID(*g.AutoScalingGroupARN, *a.ScheduledActionName)
		a.ScheduledActionARN = cmp.Or(a.ScheduledActionARN,
			s.arn("scheduledUpdateGroupAction:"+id+":autoScalingGroupName/"+g.Name()+":scheduledActionName/"+*a.ScheduledActionName))
		tx.GroupActions.Put(a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutScheduledUpdateGroupActionOutput{}, nil
}

// checkAction refuses an action whose parts contradict each other.
func (s *Service) checkAction(in *api.PutScheduledUpdateGroupActionInput) error {
	if !groupName.MatchString(aws.ToString(in.ScheduledActionName)) {
		return invalid("ScheduledActionName %q must have 1 to 255 characters, none of them :, /, | or a control character",
			aws.ToString(in.ScheduledActionName))
	}
	start := cmp.Or(in.StartTime, in.Time)
	switch {
	case in.MinSize == nil && in.MaxSize == nil && in.DesiredCapacity == nil:
		return invalid("At least one of MinSize, MaxSize and DesiredCapacity must be given")
	case aws.ToInt32(in.MinSize) < 0 || aws.ToInt32(in.MaxSize) < 0 || in.DesiredCapacity != nil && *in.DesiredCapacity < -1:
		return invalid("MinSize, MaxSize and DesiredCapacity must not be negative")
	case in.MinSize != nil && in.MaxSize != nil && *in.MaxSize < *in.MinSize:
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", *in.MaxSize, *in.MinSize)
	case start == nil && in.Recurrence == nil:
		return invalid("Either StartTime or Recurrence must be given")
	case start != nil && !start.After(s.now()) && in.Recurrence == nil:
		return invalid("Given start time is in the past")
	case start != nil && in.EndTime != nil && !in.EndTime.After(*start):
		return invalid("EndTime must be after StartTime")
	}
	return nil
}

// startsAt returns a test for the actions with other keys that start at a time. Those that only recur start when they are next due,
// so an action that a client reads and puts again with that time isn't asked.
func startsAt(at time.Time, key string) func(*state.GroupAction) bool {
	return func(a *state.GroupAction) bool { return a.Key() != key && a.StartTime != nil && a.StartTime.Equal(at) }
}

// maxBatch is the most actions per call, from API_BatchPutScheduledUpdateGroupAction.
const maxBatch = 50

// failedAction describes why one action of a batch failed.
func failedAction(name *string, err error) types.FailedScheduledUpdateGroupActionRequest {
	f := types.FailedScheduledUpdateGroupActionRequest{
		ScheduledActionName: name,
		ErrorCode:           aws.String("InternalFailure"),
		ErrorMessage:        new(err.Error()),
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		f.ErrorCode = new(refused.ErrorCode())
		f.ErrorMessage = new(refused.ErrorMessage())
	}
	return f
}

// BatchPutScheduledUpdateGroupAction creates or changes scheduled actions of a group. Each succeeds or fails by itself.
func (s *Service) BatchPutScheduledUpdateGroupAction(
	ctx context.Context, in *api.BatchPutScheduledUpdateGroupActionInput,
) (*api.BatchPutScheduledUpdateGroupActionOutput, error) {
	if err := s.checkBatch(in.AutoScalingGroupName, len(in.ScheduledUpdateGroupActions)); err != nil {
		return nil, err
	}
	out := &api.BatchPutScheduledUpdateGroupActionOutput{
		FailedScheduledUpdateGroupActions: []types.FailedScheduledUpdateGroupActionRequest{},
	}
	for _, a := range in.ScheduledUpdateGroupActions {
		_, err := s.PutScheduledUpdateGroupAction(ctx, &api.PutScheduledUpdateGroupActionInput{
			AutoScalingGroupName: in.AutoScalingGroupName,
			ScheduledActionName:  a.ScheduledActionName,
			MinSize:              a.MinSize,
			MaxSize:              a.MaxSize,
			DesiredCapacity:      a.DesiredCapacity,
			Recurrence:           a.Recurrence,
			StartTime:            a.StartTime,
			EndTime:              a.EndTime,
			TimeZone:             a.TimeZone,
		})
		if err != nil {
			out.FailedScheduledUpdateGroupActions = append(out.FailedScheduledUpdateGroupActions, failedAction(a.ScheduledActionName, err))
		}
	}
	return out, nil
}

// BatchDeleteScheduledAction deletes scheduled actions of a group. Each succeeds or fails by itself.
func (s *Service) BatchDeleteScheduledAction(
	ctx context.Context, in *api.BatchDeleteScheduledActionInput,
) (*api.BatchDeleteScheduledActionOutput, error) {
	if err := s.checkBatch(in.AutoScalingGroupName, len(in.ScheduledActionNames)); err != nil {
		return nil, err
	}
	out := &api.BatchDeleteScheduledActionOutput{FailedScheduledActions: []types.FailedScheduledUpdateGroupActionRequest{}}
	for _, name := range in.ScheduledActionNames {
		if _, err := s.DeleteScheduledAction(ctx, &api.DeleteScheduledActionInput{
			AutoScalingGroupName: in.AutoScalingGroupName,
			ScheduledActionName:  &name,
		}); err != nil {
			out.FailedScheduledActions = append(out.FailedScheduledActions, failedAction(&name, err))
		}
	}
	return out, nil
}

func (s *Service) checkBatch(name *string, n int) error {
	if n == 0 || n > maxBatch {
		return invalid("A batch must have 1 to %d scheduled actions, not %d", maxBatch, n)
	}
	_, err := findGroup(s.store.View(), name)
	return err
}

// DeleteScheduledAction deletes a scheduled action.
func (s *Service) DeleteScheduledAction(ctx context.Context, in *api.DeleteScheduledActionInput) (*api.DeleteScheduledActionOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		key := g.Name() + "/" + aws.ToString(in.ScheduledActionName)
		if tx.GroupActions.Get(key) == nil {
			return invalid("Scheduled action name not found - %s", aws.ToString(in.ScheduledActionName))
		}
		tx.GroupActions.Delete(key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteScheduledActionOutput{}, nil
}

// DescribeScheduledActions lists the scheduled actions that are still to come.
func (s *Service) DescribeScheduledActions(
	_ context.Context, in *api.DescribeScheduledActionsInput,
) (*api.DescribeScheduledActionsOutput, error) {
	within := func(at *time.Time) bool {
		return (in.StartTime == nil || at != nil && !at.Before(*in.StartTime)) && (in.EndTime == nil || at != nil && !at.After(*in.EndTime))
	}
	var rows []*state.GroupAction
	for a := range s.store.View().GroupActions.All() {
		if (in.AutoScalingGroupName == nil || *a.AutoScalingGroupName == *in.AutoScalingGroupName) &&
			(len(in.ScheduledActionNames) == 0 || slices.Contains(in.ScheduledActionNames, *a.ScheduledActionName)) && within(a.StartTime) {
			rows = append(rows, a)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeScheduledActions", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.GroupAction).Key)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScheduledActionsOutput{ScheduledUpdateGroupActions: []types.ScheduledUpdateGroupAction{}, NextToken: next}
	for _, row := range rows {
		out.ScheduledUpdateGroupActions = append(out.ScheduledUpdateGroupActions, row.ScheduledUpdateGroupAction)
	}
	return out, nil
}
