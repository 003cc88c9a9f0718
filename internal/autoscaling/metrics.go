package autoscaling

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// groupMetrics are the metrics that a group can publish, from API_EnableMetricsCollection. The loop in cloudwatch/metering
// puts them.
var groupMetrics = []string{
	"GroupMinSize", "GroupMaxSize", "GroupDesiredCapacity",
	"GroupInServiceInstances", "GroupPendingInstances", "GroupStandbyInstances", "GroupTerminatingInstances", "GroupTotalInstances",
	"GroupInServiceCapacity", "GroupPendingCapacity", "GroupStandbyCapacity", "GroupTerminatingCapacity", "GroupTotalCapacity",
	"WarmPoolDesiredCapacity", "WarmPoolWarmedCapacity", "WarmPoolPendingCapacity", "WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity",
	"GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity",
}

// granularity is the period of group metrics. There is only one.
const granularity = "1Minute"

func checkGroupMetrics(names []string) error {
	for _, name := range names {
		if !slices.Contains(groupMetrics, name) {
			return invalid("Metrics: %q is not one of %s", name, strings.Join(groupMetrics, ", "))
		}
	}
	return nil
}

// EnableMetricsCollection makes a group publish metrics to CloudWatch: those that the call names, or all.
func (s *Service) EnableMetricsCollection(
	ctx context.Context, in *api.EnableMetricsCollectionInput,
) (*api.EnableMetricsCollectionOutput, error) {
	if *in.Granularity != granularity {
		return nil, invalid("Granularity must be %s, not %q", granularity, *in.Granularity)
	}
	if err := checkGroupMetrics(in.Metrics); err != nil {
		return nil, err
	}
	names := in.Metrics
	if len(names) == 0 {
		names = groupMetrics
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		for _, name := range names {
			if !g.MetricEnabled(name) {
				g.EnabledMetrics = append(g.EnabledMetrics, types.EnabledMetric{Metric: &name, Granularity: in.Granularity})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.EnableMetricsCollectionOutput{}, nil
}

// DisableMetricsCollection undoes EnableMetricsCollection.
func (s *Service) DisableMetricsCollection(
	ctx context.Context, in *api.DisableMetricsCollectionInput,
) (*api.DisableMetricsCollectionOutput, error) {
	if err := checkGroupMetrics(in.Metrics); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		g.EnabledMetrics = slices.DeleteFunc(g.EnabledMetrics, func(m types.EnabledMetric) bool {
			return len(in.Metrics) == 0 || slices.Contains(in.Metrics, *m.Metric)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DisableMetricsCollectionOutput{}, nil
}

// DescribeMetricCollectionTypes lists what EnableMetricsCollection takes.
func (s *Service) DescribeMetricCollectionTypes(
	context.Context, *api.DescribeMetricCollectionTypesInput,
) (*api.DescribeMetricCollectionTypesOutput, error) {
	out := &api.DescribeMetricCollectionTypesOutput{Granularities: []types.MetricGranularityType{{Granularity: aws.String(granularity)}}}
	for _, name := range groupMetrics {
		out.Metrics = append(out.Metrics, types.MetricCollectionType{Metric: &name})
	}
	return out, nil
}
