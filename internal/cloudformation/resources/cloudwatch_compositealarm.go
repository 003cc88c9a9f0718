package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/wire/call"
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
	live:       liveCompositeAlarm,
	list:       listCompositeAlarms,
	identifier: []string{"AlarmName"},
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

func liveCompositeAlarm(ctx context.Context, s Step, name string, asked *compositeAlarm) (*compositeAlarm, error) {
	in := &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}}
	out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, s.Services, in)
	if err == nil && len(out.CompositeAlarms) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	a := out.CompositeAlarms[0]
	suppressor := aws.ToString(a.ActionsSuppressor)
	live := &compositeAlarm{
		AlarmName:                        a.AlarmName,
		AlarmRule:                        a.AlarmRule,
		ActionsEnabled:                   a.ActionsEnabled,
		ActionsSuppressor:                asGiven(asked.ActionsSuppressor, suppressor, suppressor[strings.LastIndex(suppressor, ":")+1:]),
		ActionsSuppressorExtensionPeriod: a.ActionsSuppressorExtensionPeriod,
		ActionsSuppressorWaitPeriod:      a.ActionsSuppressorWaitPeriod,
		AlarmActions:                     a.AlarmActions,
		AlarmDescription:                 a.AlarmDescription,
		InsufficientDataActions:          a.InsufficientDataActions,
		OKActions:                        a.OKActions,
	}
	live.Tags, err = tagsOfAlarm(ctx, s, a.AlarmArn)
	return live, err
}

func listCompositeAlarms(ctx context.Context, s Step, _ *compositeAlarm) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, s.Services, &cloudwatch.DescribeAlarmsInput{NextToken: token, AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.CompositeAlarms {
			ids = append(ids, *x.AlarmName)
		}
		return ids, out.NextToken, nil
	})
}
