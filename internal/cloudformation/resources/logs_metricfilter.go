package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// metricFilter has the properties of AWS::Logs::MetricFilter. Its physical ID is the name.
type metricFilter struct {
	LogGroupName           *string `cfn:"required,create"`
	FilterName             *string `cfn:"create"`
	ApplyOnTransformedLogs *bool
	FilterPattern          *string                `cfn:"required"`
	MetricTransformations  []metricTransformation `cfn:"required"`
}

type metricTransformation struct {
	MetricName      *string `cfn:"required"`
	MetricNamespace *string `cfn:"required"`
	MetricValue     *string `cfn:"required"`
	DefaultValue    *float64
	Dimensions      []Tag
	Unit            types.StandardUnit
}

var _ = add(&kind[*metricFilter]{
	name:       "AWS::Logs::MetricFilter",
	live:       liveMetricFilter,
	list:       listMetricFilters,
	identifier: []string{"LogGroupName", "FilterName"},
	physical:   "FilterName",
	id:         func(s Step, f *metricFilter) string { return s.named(f.FilterName, 512) },
	create: func(ctx context.Context, s Step, f *metricFilter) (string, error) {
		name := s.named(f.FilterName, 512)
		return name, putMetricFilter(ctx, s, name, f)
	},
	update: func(ctx context.Context, s Step, name string, _, after *metricFilter) error {
		return putMetricFilter(ctx, s, name, after)
	},
	delete: func(ctx context.Context, s Step, name string, f *metricFilter) error {
		in := &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: f.LogGroupName, FilterName: &name}
		return did[cloudwatchlogs.DeleteMetricFilterOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, name string, f *metricFilter) (Made, error) {
		_, err := liveMetricFilter(ctx, s, name, f)
		return Made{}, err
	},
})

func putMetricFilter(ctx context.Context, s Step, name string, f *metricFilter) error {
	in := &cloudwatchlogs.PutMetricFilterInput{LogGroupName: f.LogGroupName, FilterName: &name, FilterPattern: f.FilterPattern}
	if f.ApplyOnTransformedLogs != nil {
		in.ApplyOnTransformedLogs = *f.ApplyOnTransformedLogs
	}
	for _, t := range f.MetricTransformations {
		in.MetricTransformations = append(in.MetricTransformations, types.MetricTransformation{
			MetricName:      t.MetricName,
			MetricNamespace: t.MetricNamespace,
			MetricValue:     t.MetricValue,
			DefaultValue:    t.DefaultValue,
			Dimensions:      tagMap(t.Dimensions),
			Unit:            t.Unit,
		})
	}
	return did[cloudwatchlogs.PutMetricFilterOutput](ctx, s, in)
}

func liveMetricFilter(ctx context.Context, s Step, name string, f *metricFilter) (*metricFilter, error) {
	in := &cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: f.LogGroupName, FilterNamePrefix: &name}
	out, err := call.Do[cloudwatchlogs.DescribeMetricFiltersOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.MetricFilters) == 0 || *out.MetricFilters[0].FilterName != name {
		return nil, errMissing
	}
	is := out.MetricFilters[0]
	live := &metricFilter{
		LogGroupName:           is.LogGroupName,
		FilterName:             is.FilterName,
		ApplyOnTransformedLogs: &is.ApplyOnTransformedLogs,
		FilterPattern:          is.FilterPattern,
	}
	for _, t := range is.MetricTransformations {
		live.MetricTransformations = append(live.MetricTransformations, metricTransformation{
			MetricName:      t.MetricName,
			MetricNamespace: t.MetricNamespace,
			MetricValue:     t.MetricValue,
			DefaultValue:    t.DefaultValue,
			Dimensions:      ownTagMap(t.Dimensions),
			Unit:            t.Unit,
		})
	}
	return live, nil
}

func listMetricFilters(ctx context.Context, s Step, asked *metricFilter) ([]string, error) {
	if asked.LogGroupName == nil {
		return nil, template.Errorf("Missing or invalid ResourceModel property in AWS::Logs::MetricFilter list handler request input. Required property: [LogGroupName]")
	}
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[cloudwatchlogs.DescribeMetricFiltersOutput](ctx, s.Services, &cloudwatchlogs.DescribeMetricFiltersInput{NextToken: token, LogGroupName: asked.LogGroupName})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.MetricFilters {
			ids = append(ids, *x.FilterName)
		}
		return ids, out.NextToken, nil
	})
}
