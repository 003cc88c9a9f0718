package cloudwatch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxDetectors     = 1000 // per account
	maxDetectorsPage = 100  // that one call returns: AWS's limit
)

// PutAnomalyDetector creates an anomaly detector, or replaces the one for the same metric. Bands work without a detector:
// a detector only excludes times from the model and sets the time zone of its hours.
func (s *Service) PutAnomalyDetector(
	ctx context.Context, in *cloudwatch.PutAnomalyDetectorInput,
) (*cloudwatch.PutAnomalyDetectorOutput, error) {
	if in.MetricCharacteristics != nil {
		return nil, validationError("Pintle's models have no MetricCharacteristics.")
	}
	d, err := s.detector(in.Namespace, in.MetricName, in.Dimensions, in.Stat, in.SingleMetricAnomalyDetector, in.MetricMathAnomalyDetector)
	if err := cmp.Or(err, checkDetectorConfiguration(in.Configuration)); err != nil {
		return nil, err
	}
	d.Configuration = in.Configuration
	if d.Configuration == nil {
		d.Configuration = &types.AnomalyDetectorConfiguration{}
	}
	if _, err := s.trained(d); err != nil { // for example, metric math that returns several time series
		return nil, err
	}
	return &cloudwatch.PutAnomalyDetectorOutput{}, s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.AnomalyDetectors.Get(d.Key()) == nil && len(slices.Collect(tx.AnomalyDetectors.All())) >= maxDetectors {
			return &types.LimitExceededException{Message: aws.String("The account has the most anomaly detectors allowed; delete some first.")}
		}
		tx.AnomalyDetectors.Put(d)
		return nil
	})
}

// detector returns a row without a configuration. Calls name it by a single metric, whose members stand at the top level in
// older calls, or by metric math.
func (s *Service) detector(
	namespace, name *string, dimensions []types.Dimension, stat *string,
	single *types.SingleMetricAnomalyDetector, math *types.MetricMathAnomalyDetector,
) (*state.AnomalyDetector, error) {
	alone := namespace != nil || name != nil || dimensions != nil || stat != nil
	switch {
	case alone && (single != nil || math != nil) || single != nil && math != nil:
		return nil, invalidCombination(
			"The parameters SingleMetricAnomalyDetector, MetricMathAnomalyDetector and those of a metric " +
				"(Namespace, MetricName, Dimensions, Stat) are mutually exclusive and you have specified more than one.",
		)
	case single != nil && single.AccountId != nil && *single.AccountId != s.opts.ID:
		return nil, invalid("The value %s for parameter SingleMetricAnomalyDetector.AccountId is invalid: no other account is linked.",
			*single.AccountId)
	case math != nil:
		if err := s.checkAccounts("MetricMathAnomalyDetector.MetricDataQueries", math.MetricDataQueries); err != nil {
			return nil, err
		}
		d := &state.AnomalyDetector{AnomalyDetector: types.AnomalyDetector{MetricMathAnomalyDetector: math}}
		return d, checkDetectorMath(math.MetricDataQueries)
	case single == nil:
		single = &types.SingleMetricAnomalyDetector{Namespace: namespace, MetricName: name, Dimensions: dimensions, Stat: stat}
	}
	own := types.SingleMetricAnomalyDetector{
		Namespace:  single.Namespace,
		MetricName: single.MetricName,
		Dimensions: filled(single.Dimensions),
		Stat:       single.Stat,
	}
	if err := cmp.Or(
		checkNamespace(own.Namespace),
		checkMetricName(own.MetricName, "MetricName"),
		checkDimensions(own.Dimensions, "Dimensions"),
	); err != nil {
		return nil, err
	}
	if own.Stat == nil {
		return nil, missing("Stat")
	}
	if _, err := metrics.ParseStatistic(*own.Stat); err != nil {
		return nil, invalid("The value %s for parameter Stat is invalid.", *own.Stat)
	}
	return &state.AnomalyDetector{AnomalyDetector: types.AnomalyDetector{
		Namespace:                   own.Namespace,
		MetricName:                  own.MetricName,
		Dimensions:                  own.Dimensions,
		Stat:                        own.Stat,
		SingleMetricAnomalyDetector: &own,
	}}, nil
}

func checkDetectorMath(queries []types.MetricDataQuery) error {
	if len(queries) == 0 {
		return missing("MetricMathAnomalyDetector.MetricDataQueries")
	}
	_, err := alarmMath(queries, "")
	return err
}

func checkDetectorConfiguration(c *types.AnomalyDetectorConfiguration) error {
	if c == nil {
		return nil
	}
	if speed := c.AdaptationSpeed; speed != "" && speed != types.AnomalyDetectorAdaptationSpeedNormal {
		return validationError("Configuration.AdaptationSpeed: Pintle's models have the speed NORMAL, not %s.", speed)
	}
	if s := c.OutlierFilteringStrength; s != "" && s != types.AnomalyDetectorOutlierFilteringStrengthModerate {
		return validationError("Configuration.OutlierFilteringStrength: Pintle's models have the strength MODERATE, not %s.", s)
	}
	if _, err := time.LoadLocation(aws.ToString(c.MetricTimezone)); err != nil || aws.ToString(c.MetricTimezone) == "Local" {
		return invalid("The value %s for parameter Configuration.MetricTimezone is invalid: it isn't a time zone.", *c.MetricTimezone)
	}
	for i, r := range c.ExcludedTimeRanges {
		parameter := member("Configuration.ExcludedTimeRanges", i)
		switch {
		case r.StartTime == nil:
			return missing(parameter + ".StartTime")
		case r.EndTime == nil:
			return missing(parameter + ".EndTime")
		case !r.StartTime.Before(*r.EndTime):
			return invalid("The parameter %s.StartTime must be less than its EndTime.", parameter)
		}
	}
	return nil
}

// DeleteAnomalyDetector removes an anomaly detector.
func (s *Service) DeleteAnomalyDetector(
	ctx context.Context, in *cloudwatch.DeleteAnomalyDetectorInput,
) (*cloudwatch.DeleteAnomalyDetectorOutput, error) {
	if in.AnomalyDetectorId != nil {
		return nil, notFound("anomaly detector", *in.AnomalyDetectorId) // they have no ids here
	}
	d, err := s.detector(in.Namespace, in.MetricName, in.Dimensions, in.Stat, in.SingleMetricAnomalyDetector, in.MetricMathAnomalyDetector)
	if err != nil {
		return nil, err
	}
	return &cloudwatch.DeleteAnomalyDetectorOutput{}, s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.AnomalyDetectors.Get(d.Key()) == nil {
			return notFound("anomaly detector", cmp.Or(aws.ToString(d.MetricName), "on metric math"))
		}
		tx.AnomalyDetectors.Delete(d.Key())
		return nil
	})
}

// DescribeAnomalyDetectors lists anomaly detectors: those on single metrics, unless the call asks for others.
func (s *Service) DescribeAnomalyDetectors(
	_ context.Context, in *cloudwatch.DescribeAnomalyDetectorsInput,
) (*cloudwatch.DescribeAnomalyDetectorsOutput, error) {
	if len(in.AnomalyDetectorIds) > 0 {
		return nil, invalid("The value %s for parameter AnomalyDetectorIds is invalid: Pintle's detectors have no ids.", in.AnomalyDetectorIds[0])
	}
	for _, t := range in.AnomalyDetectorTypes {
		if !slices.Contains(t.Values(), t) {
			return nil, invalid("The value %s for parameter AnomalyDetectorTypes is invalid.", t)
		}
	}
	if err := checkDimensions(in.Dimensions, "Dimensions"); err != nil {
		return nil, err
	}
	page, next, err := account.Behind(
		listing("DescribeAnomalyDetectors", "maxResults", maxDetectorsPage),
		in.MaxResults,
		in.NextToken,
		s.store.View().AnomalyDetectors.Behind,
		(*state.AnomalyDetector).Key,
		func(d *state.AnomalyDetector) bool { return describes(in, d) },
	)
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.DescribeAnomalyDetectorsOutput{AnomalyDetectors: []types.AnomalyDetector{}, NextToken: next}
	for _, d := range page {
		described := d.AnomalyDetector
		if described.StateValue, err = s.trained(d); err != nil {
			return nil, err
		}
		out.AnomalyDetectors = append(out.AnomalyDetectors, described)
	}
	return out, nil
}

func describes(in *cloudwatch.DescribeAnomalyDetectorsInput, d *state.AnomalyDetector) bool {
	kind, kinds := types.AnomalyDetectorTypeMetricMath, in.AnomalyDetectorTypes
	if d.SingleMetricAnomalyDetector != nil {
		kind = types.AnomalyDetectorTypeSingleMetric
	}
	if len(kinds) == 0 {
		kinds = []types.AnomalyDetectorType{types.AnomalyDetectorTypeSingleMetric}
	}
	return slices.Contains(kinds, kind) &&
		(in.Namespace == nil || *in.Namespace == aws.ToString(d.Namespace)) &&
		(in.MetricName == nil || *in.MetricName == aws.ToString(d.MetricName)) &&
		!slices.ContainsFunc(in.Dimensions, func(w types.Dimension) bool {
			return !slices.ContainsFunc(d.Dimensions, func(h types.Dimension) bool { return *h.Name == *w.Name && *h.Value == *w.Value })
		})
}

// trained returns a detector's state. It depends only on the amount of data, since models are trained on demand.
func (s *Service) trained(d *state.AnomalyDetector) (types.AnomalyDetectorStateValue, error) {
	queries := []types.MetricDataQuery{{Id: aws.String("m1"), MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: d.Namespace, MetricName: d.MetricName, Dimensions: d.Dimensions},
		Period: aws.Int32(60),
		Stat:   d.Stat,
	}}}
	if d.MetricMathAnomalyDetector != nil {
		queries = slices.Clone(d.MetricMathAnomalyDetector.MetricDataQueries)
	}
	i := slices.IndexFunc(queries, func(q types.MetricDataQuery) bool { return q.ReturnData == nil || *q.ReturnData })
	queries = append(
		queries,
		types.MetricDataQuery{Id: aws.String("pintleBand"), Expression: aws.String("ANOMALY_DETECTION_BAND(" + *queries[i].Id + ")")},
	)
	q, err := metricquery.New(queries)
	if err != nil {
		return "", validationError("%v", err)
	}
	q.Detect(*queries[i].Id, d.Configuration)
	enough, err := q.Trained(s.metrics, s.opts.Now())
	switch {
	case err != nil:
		return "", expressionError(err)
	case !enough:
		return types.AnomalyDetectorStateValueTrainedInsufficientData, nil
	}
	return types.AnomalyDetectorStateValueTrained, nil
}
