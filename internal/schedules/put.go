package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// CreateSchedule makes a schedule. Another call with its client token returns it.
func (s *Service) CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput) (*scheduler.CreateScheduleOutput, error) {
	row, err := s.row(in)
	if err != nil {
		return nil, err
	}
	row.Token = aws.ToString(in.ClientToken)
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.group(tx.View, row.Group); err != nil {
			return err
		}
		old := tx.Schedules.Get(row.Key())
		if old != nil && old.Token != "" && old.Token == row.Token {
			return nil
		}
		if old != nil {
			return refuse(409, "ConflictException", "Schedule %s already exists.", row.Name)
		}
		tx.Schedules.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &scheduler.CreateScheduleOutput{ScheduleArn: &row.ARN}, nil
}

// UpdateSchedule replaces all that a schedule has.
func (s *Service) UpdateSchedule(ctx context.Context, in *scheduler.UpdateScheduleInput) (*scheduler.UpdateScheduleOutput, error) {
	row, err := s.row(&scheduler.CreateScheduleInput{
		ActionAfterCompletion:      in.ActionAfterCompletion,
		Description:                in.Description,
		EndDate:                    in.EndDate,
		FlexibleTimeWindow:         in.FlexibleTimeWindow,
		GroupName:                  in.GroupName,
		KmsKeyArn:                  in.KmsKeyArn,
		Name:                       in.Name,
		ScheduleExpression:         in.ScheduleExpression,
		ScheduleExpressionTimezone: in.ScheduleExpressionTimezone,
		StartDate:                  in.StartDate,
		State:                      in.State,
		Target:                     in.Target,
	})
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.schedule(tx.View, in.GroupName, in.Name)
		if err != nil {
			return err
		}
		row.Created, row.Token = old.Created, old.Token
		if row.Expression == old.Expression && old.State == row.State { // a rate goes on counting
			s.plan(row, s.opts.Now())
		}
		tx.Schedules.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &scheduler.UpdateScheduleOutput{ScheduleArn: &row.ARN}, nil
}

// row checks what a call says of a schedule and returns its row.
func (s *Service) row(in *scheduler.CreateScheduleInput) (*state.Schedule, error) {
	now := s.now()
	row := &state.Schedule{
		Group:           groupOf(in.GroupName),
		Name:            *in.Name,
		Description:     in.Description,
		Expression:      *in.ScheduleExpression,
		Timezone:        cmp.Or(aws.ToString(in.ScheduleExpressionTimezone), "UTC"),
		State:           cmp.Or(in.State, types.ScheduleStateEnabled),
		Target:          *in.Target,
		Window:          *in.FlexibleTimeWindow,
		StartDate:       in.StartDate,
		EndDate:         in.EndDate,
		AfterCompletion: cmp.Or(in.ActionAfterCompletion, types.ActionAfterCompletionNone),
		Created:         now,
		Changed:         now,
	}
	row.ARN = s.opts.ARN("scheduler", "schedule/"+row.Key())
	if aws.ToString(in.KmsKeyArn) != "" {
		return nil, invalid("KmsKeyArn: Pintle encrypts no schedules.")
	}
	if err := checkWindow(row.Window); err != nil {
		return nil, err
	}
	if err := checkTimes(row); err != nil {
		return nil, err
	}
	if d := row.Target.DeadLetterConfig; d != nil && d.Arn == nil {
		row.Target.DeadLetterConfig = nil
	}
	if err := s.checkTarget(&row.Target); err != nil {
		return nil, err
	}
	if row.Target.RetryPolicy == nil {
		row.Target.RetryPolicy = &types.RetryPolicy{}
	}
	policy := *row.Target.RetryPolicy
	policy.MaximumEventAgeInSeconds = cmp.Or(policy.MaximumEventAgeInSeconds, aws.Int32(86400))
	policy.MaximumRetryAttempts = cmp.Or(policy.MaximumRetryAttempts, aws.Int32(185))
	row.Target.RetryPolicy = &policy
	s.plan(row, now.Add(-time.Nanosecond)) // a rate is due at once
	return row, nil
}

func checkWindow(w types.FlexibleTimeWindow) error {
	switch minutes := aws.ToInt32(w.MaximumWindowInMinutes); {
	case w.Mode == types.FlexibleTimeWindowModeOff && w.MaximumWindowInMinutes != nil:
		return invalid("MaximumWindowInMinutes must not be specified when the FlexibleTimeWindow's Mode is OFF.")
	case w.Mode == types.FlexibleTimeWindowModeFlexible && (minutes < 1 || minutes > 1440):
		return invalid("MaximumWindowInMinutes must be from 1 to 1440 when the FlexibleTimeWindow's Mode is FLEXIBLE.")
	}
	return nil
}

// checkTimes refuses an expression that isn't one, and dates in the wrong order.
func checkTimes(row *state.Schedule) error {
	if _, err := time.LoadLocation(row.Timezone); err != nil || row.Timezone == "Local" {
		return invalid("Invalid Schedule Expression Timezone %s.", row.Timezone)
	}
	if _, err := parse(row); err != nil {
		return invalid("Invalid Schedule Expression %s.", row.Expression)
	}
	if row.StartDate != nil && row.EndDate != nil && !row.StartDate.Before(*row.EndDate) {
		return invalid("The StartDate must come before the EndDate.")
	}
	return nil
}

// parse reads a schedule's expression.
func parse(row *state.Schedule) (scaling.Schedule, error) {
	parsed, err := scaling.ParseSchedule(row.Expression, row.Timezone)
	if err == nil && (strings.Contains(row.Expression, "( ") || strings.Contains(row.Expression, " )")) {
		err = invalid("Invalid Schedule Expression %s.", row.Expression)
	}
	if err != nil {
		return parsed, err
	}
	if row.EndDate != nil {
		parsed.End = *row.EndDate
	}
	return parsed, nil
}

// plan sets when a schedule is next due after a time. A rate is first due at its start, or when it's made; cron and at are due as they say.
func (s *Service) plan(row *state.Schedule, after time.Time) {
	row.Next, row.Due = nil, nil
	parsed, err := parse(row)
	if err != nil || row.State != types.ScheduleStateEnabled {
		return
	}
	start := row.Created
	if row.StartDate != nil {
		start = *row.StartDate
	}
	switch isRate := strings.HasPrefix(row.Expression, "rate("); {
	case isRate:
		parsed.Start = start
	case strings.HasPrefix(row.Expression, "cron(") && row.StartDate != nil && after.Before(start):
		after = start.Add(-time.Nanosecond)
	}
	at, ok := parsed.Next(after)
	if !ok {
		return
	}
	row.Next, row.Due = &at, &at
	if row.Window.Mode == types.FlexibleTimeWindowModeFlexible {
		window := time.Duration(*row.Window.MaximumWindowInMinutes) * time.Minute
		row.Due = aws.Time(at.Add(time.Duration(s.opts.Chance() * float64(window))))
	}
}

// checkTarget refuses a target that nothing can be sent to.
func (s *Service) checkTarget(t *types.Target) error {
	to := target(t)
	arn := to.ARN
	isQueue, isCluster := strings.HasPrefix(arn, "arn:aws:sqs:"), strings.HasPrefix(arn, "arn:aws:ecs:")
	switch why := s.opts.Targets.Refused(to); {
	case why != "":
		return invalid("Target.Arn: %s", why)
	case t.KinesisParameters != nil || t.SageMakerPipelineParameters != nil:
		return invalid("Target: Pintle has neither Kinesis nor SageMaker.")
	case isQueue && strings.HasSuffix(arn, ".fifo") && to.Group == "":
		return invalid("SqsParameters.MessageGroupId is required for FIFO queues.")
	case t.SqsParameters != nil && !isQueue:
		return invalid("SqsParameters: the target is no queue.")
	case isCluster != (t.EcsParameters != nil):
		return invalid("EcsParameters are required for clusters, and for no other targets.")
	case t.EcsParameters != nil && t.EcsParameters.ReferenceId != nil:
		return invalid("EcsParameters.ReferenceId: ECS uses no reference ids.")
	case strings.HasPrefix(arn, "arn:aws:events:") != (t.EventBridgeParameters != nil):
		return invalid("EventBridgeParameters are required for event buses, and for no other targets.")
	case t.EventBridgeParameters != nil && !json.Valid([]byte(aws.ToString(t.Input))):
		return invalid("Target.Input must be JSON for event buses.")
	case strings.HasPrefix(arn, "arn:aws:lambda:") && t.Input != nil && !json.Valid([]byte(*t.Input)):
		return invalid("Target.Input must be JSON for functions.")
	case t.DeadLetterConfig != nil && !strings.HasPrefix(aws.ToString(t.DeadLetterConfig.Arn), "arn:aws:sqs:"):
		return invalid("DeadLetterConfig.Arn isn't that of a queue.")
	case t.DeadLetterConfig != nil && s.opts.Targets.Foreign(*t.DeadLetterConfig.Arn) != "":
		return invalid("DeadLetterConfig.Arn: %s", s.opts.Targets.Foreign(*t.DeadLetterConfig.Arn))
	}
	if s.opts.Targets.CheckRole(targets.Scheduler, to.Role) != nil {
		return invalid("The execution role you provide must allow AWS EventBridge Scheduler to assume the role.")
	}
	return nil
}

// DeleteSchedule removes a schedule.
func (s *Service) DeleteSchedule(ctx context.Context, in *scheduler.DeleteScheduleInput) (*scheduler.DeleteScheduleOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row, err := s.schedule(tx.View, in.GroupName, in.Name)
		if err != nil {
			return err
		}
		tx.Schedules.Delete(row.Key())
		return nil
	})
	return &scheduler.DeleteScheduleOutput{}, err
}

// GetSchedule describes a schedule.
func (s *Service) GetSchedule(_ context.Context, in *scheduler.GetScheduleInput) (*scheduler.GetScheduleOutput, error) {
	row, err := s.schedule(s.store.View(), in.GroupName, in.Name)
	if err != nil {
		return nil, err
	}
	return &scheduler.GetScheduleOutput{
		ActionAfterCompletion:      row.AfterCompletion,
		Arn:                        &row.ARN,
		CreationDate:               &row.Created,
		Description:                row.Description,
		EndDate:                    row.EndDate,
		FlexibleTimeWindow:         &row.Window,
		GroupName:                  &row.Group,
		LastModificationDate:       &row.Changed,
		Name:                       &row.Name,
		ScheduleExpression:         &row.Expression,
		ScheduleExpressionTimezone: &row.Timezone,
		StartDate:                  row.StartDate,
		State:                      row.State,
		Target:                     &row.Target,
	}, nil
}

// ListSchedules lists the schedules of a group, or of all.
func (s *Service) ListSchedules(_ context.Context, in *scheduler.ListSchedulesInput) (*scheduler.ListSchedulesOutput, error) {
	v := s.store.View()
	if in.GroupName != nil {
		if _, err := s.group(v, *in.GroupName); err != nil {
			return nil, err
		}
	}
	rows, next, err := account.Behind(listing("ListSchedules"), in.MaxResults, in.NextToken, v.Schedules.Behind, (*state.Schedule).Key,
		func(row *state.Schedule) bool {
			return (in.GroupName == nil || row.Group == *in.GroupName) && hasPrefix(row.Name, in.NamePrefix) && (in.State == "" || row.State == in.State)
		})
	if err != nil {
		return nil, err
	}
	out := &scheduler.ListSchedulesOutput{Schedules: []types.ScheduleSummary{}, NextToken: next}
	for _, row := range rows {
		out.Schedules = append(out.Schedules, types.ScheduleSummary{
			Arn:                  &row.ARN,
			CreationDate:         &row.Created,
			GroupName:            &row.Group,
			LastModificationDate: &row.Changed,
			Name:                 &row.Name,
			State:                row.State,
			Target:               &types.TargetSummary{Arn: row.Target.Arn},
		})
	}
	return out, nil
}
