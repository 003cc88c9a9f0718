package logs

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	metrictypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/logs/emf"
	"github.com/pintle/pintle/internal/logs/streams"
)

// Metrics is where the metrics go that events carry: CloudWatch.
type Metrics interface {
	PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error)
}

// maxData is the most metrics of one call of PutMetricData.
const maxData = 1000

// extract hands on the metrics of events that are in the embedded metric format. What CloudWatch refuses
// stays what it was, a line of a log.
func (s *Service) extract(ctx context.Context, events []streams.Event) error {
	if s.opts.Metrics == nil {
		return nil
	}
	found := map[string][]metrictypes.MetricDatum{} // by namespace
	for _, e := range events {
		for _, m := range emf.Parse(e.Message) {
			found[m.Namespace] = append(found[m.Namespace], datum(m))
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		for data := range slices.Chunk(found[namespace], maxData) {
			if err := s.put(ctx, namespace, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// put puts metrics, one by one where CloudWatch refuses them together.
func (s *Service) put(ctx context.Context, namespace string, data []metrictypes.MetricDatum) error {
	_, err := s.opts.Metrics.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data})
	var refused smithy.APIError
	if err == nil || !errors.As(err, &refused) {
		return err
	}
	if len(data) == 1 {
		return nil
	}
	for _, d := range data {
		if err := s.put(ctx, namespace, []metrictypes.MetricDatum{d}); err != nil {
			return err
		}
	}
	return nil
}

func datum(m emf.Metric) metrictypes.MetricDatum {
	d := metrictypes.MetricDatum{MetricName: &m.Name, Timestamp: &m.At, Values: m.Values, Unit: metrictypes.StandardUnit(m.Unit)}
	if m.Resolution != 0 {
		d.StorageResolution = aws.Int32(int32(m.Resolution))
	}
	for _, dimension := range m.Dimensions {
		d.Dimensions = append(d.Dimensions, metrictypes.Dimension{Name: &dimension.Name, Value: &dimension.Value})
	}
	return d
}
