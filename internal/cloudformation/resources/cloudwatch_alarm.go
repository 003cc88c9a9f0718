package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// metricAlarm has the properties of AWS::CloudWatch::Alarm. Its physical ID is the name.
type metricAlarm struct {
	AlarmName                        *string `cfn:"create"`
	ActionsEnabled                   *bool
	AlarmActions                     []string
	AlarmDescription                 *string
	ComparisonOperator               types.ComparisonOperator `cfn:"required"`
	DatapointsToAlarm                *int32
	Dimensions                       []types.Dimension
	EvaluateLowSampleCountPercentile *string
	EvaluationPeriods                *int32 `cfn:"required"`
	ExtendedStatistic                *string
	InsufficientDataActions          []string
	MetricName                       *string
	Metrics                          []types.MetricDataQuery
	Namespace                        *string
	OKActions                        []string
	Period                           *int32
	Statistic                        types.Statistic
	Tags                             []Tag
	Threshold                        *float64
	ThresholdMetricId                *string
	TreatMissingData                 *string
	Unit                             types.StandardUnit
}

var _ = add(&kind[*metricAlarm]{
	name:       "AWS::CloudWatch::Alarm",
	live:       liveMetricAlarm,
	list:       listMetricAlarms,
	identifier: []string{"AlarmName"},
	attributes: []string{"Arn"},
	id:         func(s Step, a *metricAlarm) string { return s.named(a.AlarmName, 255) },
	create: func(ctx context.Context, s Step, a *metricAlarm) (string, error) {
		name := s.named(a.AlarmName, 255)
		return name, putMetricAlarm(ctx, s, name, a)
	},
	update: func(ctx context.Context, s Step, name string, before, after *metricAlarm) error {
		if err := putMetricAlarm(ctx, s, name, after); err != nil {
			return err
		}
		return tagAlarm(ctx, s, name, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, name string, _ *metricAlarm) error { return deleteAlarm(ctx, s, name) },
	read: func(ctx context.Context, s Step, name string, _ *metricAlarm) (Made, error) {
		return readAlarm(ctx, s, name, types.AlarmTypeMetricAlarm)
	},
})

func putMetricAlarm(ctx context.Context, s Step, name string, a *metricAlarm) error {
	return did[cloudwatch.PutMetricAlarmOutput](ctx, s, &cloudwatch.PutMetricAlarmInput{
		AlarmName:                        &name,
		ActionsEnabled:                   a.ActionsEnabled,
		AlarmActions:                     a.AlarmActions,
		AlarmDescription:                 a.AlarmDescription,
		ComparisonOperator:               a.ComparisonOperator,
		DatapointsToAlarm:                a.DatapointsToAlarm,
		Dimensions:                       a.Dimensions,
		EvaluateLowSampleCountPercentile: a.EvaluateLowSampleCountPercentile,
		EvaluationPeriods:                a.EvaluationPeriods,
		ExtendedStatistic:                a.ExtendedStatistic,
		InsufficientDataActions:          a.InsufficientDataActions,
		MetricName:                       a.MetricName,
		Metrics:                          a.Metrics,
		Namespace:                        a.Namespace,
		OKActions:                        a.OKActions,
		Period:                           a.Period,
		Statistic:                        a.Statistic,
		Tags:                             tagList(a.Tags, alarmTag),
		Threshold:                        a.Threshold,
		ThresholdMetricId:                a.ThresholdMetricId,
		TreatMissingData:                 a.TreatMissingData,
		Unit:                             a.Unit,
	})
}

func alarmTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func tagAlarm(ctx context.Context, s Step, name string, before, after []Tag) error {
	arn := s.Account.ARN("cloudwatch", "alarm:"+name)
	return retag(before, after, func(gone []string) error {
		return did[cloudwatch.UntagResourceOutput](ctx, s, &cloudwatch.UntagResourceInput{ResourceARN: &arn, TagKeys: gone})
	}, func() error {
		return did[cloudwatch.TagResourceOutput](ctx, s, &cloudwatch.TagResourceInput{ResourceARN: &arn, Tags: tagList(after, alarmTag)})
	})
}

// deleteAlarm deletes an alarm of either kind.
func deleteAlarm(ctx context.Context, s Step, name string) error {
	return did[cloudwatch.DeleteAlarmsOutput](ctx, s, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{name}})
}

func readAlarm(ctx context.Context, s Step, name string, kind types.AlarmType) (Made, error) {
	in := &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{kind}}
	out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, s.Services, in)
	if err == nil && len(out.MetricAlarms)+len(out.CompositeAlarms) == 0 {
		err = errMissing
	}
	return Made{Attributes: map[string]any{"Arn": s.Account.ARN("cloudwatch", "alarm:"+name)}}, err
}

func liveMetricAlarm(ctx context.Context, s Step, name string, _ *metricAlarm) (*metricAlarm, error) {
	in := &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}}
	out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, s.Services, in)
	if err == nil && len(out.MetricAlarms) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	a := out.MetricAlarms[0]
	live := &metricAlarm{
		AlarmName:                        a.AlarmName,
		ActionsEnabled:                   a.ActionsEnabled,
		AlarmActions:                     a.AlarmActions,
		AlarmDescription:                 a.AlarmDescription,
		ComparisonOperator:               a.ComparisonOperator,
		DatapointsToAlarm:                a.DatapointsToAlarm,
		Dimensions:                       a.Dimensions,
		EvaluateLowSampleCountPercentile: a.EvaluateLowSampleCountPercentile,
		EvaluationPeriods:                a.EvaluationPeriods,
		ExtendedStatistic:                a.ExtendedStatistic,
		InsufficientDataActions:          a.InsufficientDataActions,
		MetricName:                       a.MetricName,
		Metrics:                          a.Metrics,
		Namespace:                        a.Namespace,
		OKActions:                        a.OKActions,
		Period:                           a.Period,
		Statistic:                        a.Statistic,
		Threshold:                        a.Threshold,
		ThresholdMetricId:                a.ThresholdMetricId,
		TreatMissingData:                 a.TreatMissingData,
		Unit:                             a.Unit,
	}
	live.Tags, err = tagsOfAlarm(ctx, s, a.AlarmArn)
	return live, err
}

// tagsOfAlarm returns the tags of an alarm of either kind.
func tagsOfAlarm(ctx context.Context, s Step, arn *string) ([]Tag, error) {
	out, err := call.Do[cloudwatch.ListTagsForResourceOutput](ctx, s.Services, &cloudwatch.ListTagsForResourceInput{ResourceARN: arn})
	if err != nil {
		return nil, err
	}
	return ownTags(out.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value }), nil
}

func listMetricAlarms(ctx context.Context, s Step, _ *metricAlarm) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[cloudwatch.DescribeAlarmsOutput](ctx, s.Services, &cloudwatch.DescribeAlarmsInput{NextToken: token, AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.MetricAlarms {
			ids = append(ids, *x.AlarmName)
		}
		return ids, out.NextToken, nil
	})
}
