package resources

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// schedule has the properties of AWS::Scheduler::Schedule. Its physical ID is the name.
type schedule struct {
	Name                       *string `cfn:"create"`
	GroupName                  *string `cfn:"create"`
	Description                *string
	EndDate                    *time.Time
	FlexibleTimeWindow         *types.FlexibleTimeWindow `cfn:"required"`
	KmsKeyArn                  *string
	ScheduleExpression         *string `cfn:"required"`
	ScheduleExpressionTimezone *string
	StartDate                  *time.Time
	State                      types.ScheduleState
	Target                     *types.Target `cfn:"required"`
}

var _ = add(&kind[*schedule]{
	name:       "AWS::Scheduler::Schedule",
	live:       liveSchedule,
	identifier: []string{"Name"},
	attributes: []string{"Arn"},
	after:      []string{"AWS::SQS::QueuePolicy", "AWS::IAM::Policy", "AWS::IAM::RolePolicy"},
	id: func(s Step, r *schedule) string {
		if r.Name != nil {
			return *r.Name
		}
		return s.generated(64)
	},
	create: func(ctx context.Context, s Step, r *schedule) (string, error) {
		name := aws.ToString(r.Name)
		if name == "" {
			name = s.generated(64)
		}
		in := &scheduler.CreateScheduleInput{
			Name:                       &name,
			GroupName:                  r.GroupName,
			ClientToken:                some(s.Token),
			Description:                r.Description,
			EndDate:                    r.EndDate,
			FlexibleTimeWindow:         r.FlexibleTimeWindow,
			KmsKeyArn:                  r.KmsKeyArn,
			ScheduleExpression:         r.ScheduleExpression,
			ScheduleExpressionTimezone: r.ScheduleExpressionTimezone,
			StartDate:                  r.StartDate,
			State:                      r.State,
			Target:                     r.Target,
		}
		return name, did[scheduler.CreateScheduleOutput](ctx, s, in)
	},
	update: func(ctx context.Context, s Step, name string, _, after *schedule) error {
		return did[scheduler.UpdateScheduleOutput](ctx, s, &scheduler.UpdateScheduleInput{
			Name:                       &name,
			GroupName:                  after.GroupName,
			Description:                after.Description,
			EndDate:                    after.EndDate,
			FlexibleTimeWindow:         after.FlexibleTimeWindow,
			KmsKeyArn:                  after.KmsKeyArn,
			ScheduleExpression:         after.ScheduleExpression,
			ScheduleExpressionTimezone: after.ScheduleExpressionTimezone,
			StartDate:                  after.StartDate,
			State:                      after.State,
			Target:                     after.Target,
		})
	},
	delete: func(ctx context.Context, s Step, name string, r *schedule) error {
		return did[scheduler.DeleteScheduleOutput](ctx, s, &scheduler.DeleteScheduleInput{Name: &name, GroupName: r.GroupName})
	},
	read: func(ctx context.Context, s Step, name string, r *schedule) (Made, error) {
		out, err := call.Do[scheduler.GetScheduleOutput](ctx, s.Services, &scheduler.GetScheduleInput{Name: &name, GroupName: r.GroupName})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *out.Arn}}, nil
	},
})

// groupOf returns the group of a schedule: the one that is asked for, or else the first that has one of the name, which is all that identifies
// a schedule in CloudFormation's schemas.
func groupOf(ctx context.Context, s Step, name string, r *schedule) (*string, error) {
	if r.GroupName != nil {
		return r.GroupName, nil
	}
	out, err := call.Do[scheduler.ListSchedulesOutput](ctx, s.Services, &scheduler.ListSchedulesInput{NamePrefix: &name})
	if err != nil {
		return nil, err
	}
	for _, one := range out.Schedules {
		if *one.Name == name {
			return one.GroupName, nil
		}
	}
	return nil, nil
}

func liveSchedule(ctx context.Context, s Step, name string, r *schedule) (*schedule, error) {
	group, err := groupOf(ctx, s, name, r)
	if err != nil {
		return nil, err
	}
	out, err := call.Do[scheduler.GetScheduleOutput](ctx, s.Services, &scheduler.GetScheduleInput{Name: &name, GroupName: group})
	if err != nil {
		return nil, err
	}
	live := &schedule{
		Name:                       out.Name,
		GroupName:                  out.GroupName,
		Description:                out.Description,
		EndDate:                    out.EndDate,
		FlexibleTimeWindow:         out.FlexibleTimeWindow,
		ScheduleExpression:         out.ScheduleExpression,
		ScheduleExpressionTimezone: out.ScheduleExpressionTimezone,
		StartDate:                  out.StartDate,
		State:                      out.State,
		Target:                     out.Target,
	}
	if r.Target != nil && r.Target.RetryPolicy == nil { // the default one isn't a difference
		target := *live.Target
		target.RetryPolicy = nil
		live.Target = &target
	}
	return live, nil
}

// scheduleGroup has the properties of AWS::Scheduler::ScheduleGroup. Its physical ID is the name.
type scheduleGroup struct {
	Name *string `cfn:"create"`
	Tags []Tag
}

func schedulerTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

var _ = add(&kind[*scheduleGroup]{
	name:       "AWS::Scheduler::ScheduleGroup",
	live:       liveScheduleGroup,
	list:       listScheduleGroups,
	identifier: []string{"Name"},
	attributes: []string{"Arn", "CreationDate", "LastModificationDate", "State"},
	id: func(s Step, g *scheduleGroup) string {
		if g.Name != nil {
			return *g.Name
		}
		return s.generated(64)
	},
	create: func(ctx context.Context, s Step, g *scheduleGroup) (string, error) {
		name := aws.ToString(g.Name)
		if name == "" {
			name = s.generated(64)
		}
		in := &scheduler.CreateScheduleGroupInput{Name: &name, ClientToken: some(s.Token), Tags: tagList(g.Tags, schedulerTag)}
		return name, did[scheduler.CreateScheduleGroupOutput](ctx, s, in)
	},
	update: func(ctx context.Context, s Step, name string, before, after *scheduleGroup) error {
		arn := s.Account.ARN("scheduler", "schedule-group/"+name)
		return retag(before.Tags, after.Tags, func(gone []string) error {
			return did[scheduler.UntagResourceOutput](ctx, s, &scheduler.UntagResourceInput{ResourceArn: &arn, TagKeys: gone})
		}, func() error {
			return did[scheduler.TagResourceOutput](ctx, s, &scheduler.TagResourceInput{ResourceArn: &arn, Tags: tagList(after.Tags, schedulerTag)})
		})
	},
	delete: func(ctx context.Context, s Step, name string, _ *scheduleGroup) error {
		return did[scheduler.DeleteScheduleGroupOutput](ctx, s, &scheduler.DeleteScheduleGroupInput{Name: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *scheduleGroup) (Made, error) {
		out, err := call.Do[scheduler.GetScheduleGroupOutput](ctx, s.Services, &scheduler.GetScheduleGroupInput{Name: &name})
		if err != nil {
			return Made{}, err
		}
		at := func(t *time.Time) string { return aws.ToTime(t).UTC().Format(time.RFC3339) }
		return Made{Attributes: map[string]any{
			"Arn":                  *out.Arn,
			"State":                string(out.State),
			"CreationDate":         at(out.CreationDate),
			"LastModificationDate": at(out.LastModificationDate),
		}}, nil
	},
})

func liveScheduleGroup(ctx context.Context, s Step, name string, _ *scheduleGroup) (*scheduleGroup, error) {
	out, err := call.Do[scheduler.GetScheduleGroupOutput](ctx, s.Services, &scheduler.GetScheduleGroupInput{Name: &name})
	if err != nil {
		return nil, err
	}
	tags, err := call.Do[scheduler.ListTagsForResourceOutput](ctx, s.Services, &scheduler.ListTagsForResourceInput{ResourceArn: out.Arn})
	if err != nil {
		return nil, err
	}
	own := ownTags(tags.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	return &scheduleGroup{Name: out.Name, Tags: own}, nil
}

func listScheduleGroups(ctx context.Context, s Step, _ *scheduleGroup) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[scheduler.ListScheduleGroupsOutput](ctx, s.Services, &scheduler.ListScheduleGroupsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, g := range out.ScheduleGroups {
			ids = append(ids, *g.Name)
		}
		return ids, out.NextToken, nil
	})
}
