package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// compositeAlarm has the properties of AWS::CloudWatch::CompositeAlarm. Its physical ID is the name.
type compositeAlarm struct {
	AlarmName                        *string `cfn:"create"`
	AlarmRule                        *string `cfn:"required"`
	ActionsEnabled                   *bool
	ActionsSuppressor                *string
	ActionsSuppressorExtensionPeriod *int32
	ActionsSuppressorWaitPeriod      *int32
	AlarmActions                     []string
	AlarmDescription                 *string
	InsufficientDataActions          []string
	OKActions                        []string
	Tags                             []Tag
}

var _ = add(&kind[*compositeAlarm]{
	name:       "AWS::CloudWatch::CompositeAlarm",
	attributes: []string{"Arn"},
	id:         func(s Step, a *compositeAlarm) string { return s.named(a.AlarmName, 255) },
	create: func(ctx context.Context, s Step, a *compositeAlarm) (string, error) {
		name := s.named(a.AlarmName, 255)
		return name, putCompositeAlarm(ctx, s, name, a)
	},
	update: func(ctx context.Context, s Step, name string, before, after *compositeAlarm) error {
		if err := putCompositeAlarm(ctx, s, name, after); err != nil {
			return err
		}
		return tagAlarm(ctx, s, name, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, name string, _ *compositeAlarm) error {
		return deleteAlarm(ctx, s, name)
	},
	read: func(ctx context.Context, s Step, name string, _ *compositeAlarm) (Made, error) {
		return readAlarm(ctx, s, name, types.AlarmTypeCompositeAlarm)
	},
})

func putCompositeAlarm(ctx context.Context, s Step, name string, a *compositeAlarm) error {
	return did[cloudwatch.PutCompositeAlarmOutput](ctx, s, &cloudwatch.PutCompositeAlarmInput{
		AlarmName:                        &name,
		AlarmRule:                        a.AlarmRule,
		ActionsEnabled:                   a.ActionsEnabled,
		ActionsSuppressor:                a.ActionsSuppressor,
		ActionsSuppressorExtensionPeriod: a.ActionsSuppressorExtensionPeriod,
		ActionsSuppressorWaitPeriod:      a.ActionsSuppressorWaitPeriod,
		AlarmActions:                     a.AlarmActions,
		AlarmDescription:                 a.AlarmDescription,
		InsufficientDataActions:          a.InsufficientDataActions,
		OKActions:                        a.OKActions,
		Tags:                             tagList(a.Tags, alarmTag),
	})
}
