package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// anomalyDetector has the properties of AWS::CloudWatch::AnomalyDetector. Its physical ID is made up: CloudWatch knows a detector by what it
// watches.
type anomalyDetector struct {
	Dimensions                  []types.Dimension                  `cfn:"create"`
	MetricMathAnomalyDetector   *types.MetricMathAnomalyDetector   `cfn:"create"`
	MetricName                  *string                            `cfn:"create"`
	Namespace                   *string                            `cfn:"create"`
	SingleMetricAnomalyDetector *types.SingleMetricAnomalyDetector `cfn:"create"`
	Stat                        *string                            `cfn:"create"`
	Configuration               *types.AnomalyDetectorConfiguration
	MetricCharacteristics       *types.MetricCharacteristics
}

var _ = add(&kind[*anomalyDetector]{
	name:       "AWS::CloudWatch::AnomalyDetector",
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, d *anomalyDetector) (string, error) {
		return s.generated(255), putDetector(ctx, s, d)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *anomalyDetector) error {
		return putDetector(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, _ string, d *anomalyDetector) error {
		return did[cloudwatch.DeleteAnomalyDetectorOutput](ctx, s, &cloudwatch.DeleteAnomalyDetectorInput{
			Dimensions:                  d.Dimensions,
			MetricMathAnomalyDetector:   d.MetricMathAnomalyDetector,
			MetricName:                  d.MetricName,
			Namespace:                   d.Namespace,
			SingleMetricAnomalyDetector: d.SingleMetricAnomalyDetector,
			Stat:                        d.Stat,
		})
	},
	read: func(_ context.Context, _ Step, id string, _ *anomalyDetector) (Made, error) {
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

func putDetector(ctx context.Context, s Step, d *anomalyDetector) error {
	return did[cloudwatch.PutAnomalyDetectorOutput](ctx, s, &cloudwatch.PutAnomalyDetectorInput{
		Configuration:               d.Configuration,
		Dimensions:                  d.Dimensions,
		MetricCharacteristics:       d.MetricCharacteristics,
		MetricMathAnomalyDetector:   d.MetricMathAnomalyDetector,
		MetricName:                  d.MetricName,
		Namespace:                   d.Namespace,
		SingleMetricAnomalyDetector: d.SingleMetricAnomalyDetector,
		Stat:                        d.Stat,
	})
}
