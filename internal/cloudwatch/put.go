package cloudwatch

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Limits on PutMetricData: API_PutMetricData.
const (
	maxMetrics = 1000
	maxValues  = 150
	maxAge     = 14 * 24 * time.Hour
	maxAhead   = 2 * time.Hour
)

// namespaceELB is the only AWS namespace that callers may write to. Pintle has no load balancers, so somebody who runs one
// in front of a service reports the RequestCountPerTarget that scales the service.
const namespaceELB = "AWS/ApplicationELB"

// member names a member of a list as CloudWatch's messages do.
func member(list string, i int) string { return list + ".member." + strconv.Itoa(i+1) }

// PutMetricData stores all of the metrics or none. They can be read immediately, while AWS takes minutes.
func (s *Service) PutMetricData(_ context.Context, in *cloudwatch.PutMetricDataInput) (*cloudwatch.PutMetricDataOutput, error) {
	if err := checkNamespace(in.Namespace); err != nil {
		return nil, err
	}
	if strings.HasPrefix(*in.Namespace, "AWS/") && *in.Namespace != namespaceELB {
		return nil, invalid("The value AWS/ for parameter Namespace is invalid: these namespaces are reserved for AWS.")
	}
	if state.IsOwnNamespace(*in.Namespace) {
		return nil, invalid("The value %s for parameter Namespace is invalid: the control plane alone puts these metrics.", *in.Namespace)
	}
	if len(in.MetricData) == 0 && len(in.EntityMetricData) == 0 {
		return nil, &types.MissingRequiredParameterException{
			Message: aws.String("At least one of the parameters MetricData and EntityMetricData must be specified."),
		}
	}
	now := s.opts.Now()
	samples, err := gather(*in.Namespace, in.MetricData, "MetricData", now, nil)
	for i, e := range in.EntityMetricData {
		if err == nil {
			samples, err = gather(*in.Namespace, e.MetricData, member("EntityMetricData", i)+".MetricData", now, samples)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(samples) > maxMetrics {
		return nil, invalid("The collection MetricData must not have a size greater than %d.", maxMetrics)
	}
	return &cloudwatch.PutMetricDataOutput{}, s.metrics.Put(samples)
}

// gather checks the data and appends it to samples.
func gather(
	namespace string, data []types.MetricDatum, parameter string, now time.Time, samples []metrics.Sample,
) ([]metrics.Sample, error) {
	for i := range data {
		d, parameter := &data[i], member(parameter, i)
		if err := cmp.Or(
			checkMetricName(d.MetricName, parameter+".MetricName"),
			checkDimensions(d.Dimensions, parameter+".Dimensions"),
			checkUnit(d.Unit, parameter+".Unit"),
		); err != nil {
			return nil, err
		}
		set, err := setOf(d, parameter)
		if err != nil {
			return nil, err
		}
		at, err := timeOf(d, parameter, now)
		if err != nil {
			return nil, err
		}
		samples = append(samples, metrics.Sample{
			Metric: metricquery.NewMetric(&namespace, d.MetricName, d.Dimensions),
			Unit:   string(cmp.Or(d.Unit, types.StandardUnitNone)),
			At:     at.Unix(),
			Fine:   aws.ToInt32(d.StorageResolution) == 1,
			Set:    set,
		})
	}
	return samples, nil
}

func timeOf(d *types.MetricDatum, parameter string, now time.Time) (time.Time, error) {
	if r := aws.ToInt32(d.StorageResolution); d.StorageResolution != nil && r != 1 && r != 60 {
		return now, invalid("The value %d for parameter %s.StorageResolution is invalid: it must be 1 or 60.", r, parameter)
	}
	if d.Timestamp == nil {
		return now, nil
	}
	if now.Sub(*d.Timestamp) > maxAge {
		return now, invalid("The parameter %s.Timestamp must specify a time no more than two weeks in the past.", parameter)
	}
	if d.Timestamp.Sub(now) > maxAhead {
		return now, invalid("The parameter %s.Timestamp must specify a time no more than two hours in the future.", parameter)
	}
	return *d.Timestamp, nil
}

// setOf returns what a datum reports: a value, values with counts, or a statistic set. AWS takes a statistic set together with values;
// which of the two counts there is not documented, and here the set does.
func setOf(d *types.MetricDatum, parameter string) (metrics.Set, error) {
	switch {
	case d.Value != nil && d.StatisticValues != nil:
		return metrics.Set{}, exclusive(parameter, "Value", "StatisticValues")
	case d.Value != nil && len(d.Values) > 0:
		return metrics.Set{}, exclusive(parameter, "Value", "Values")
	case len(d.Counts) > 0 && len(d.Values) == 0:
		return metrics.Set{}, invalidCombination("The parameter %s.Counts needs %s.Values.", parameter, parameter)
	case d.Value != nil:
		return metrics.One(*d.Value), checkValue(*d.Value, parameter+".Value")
	case d.StatisticValues != nil:
		return statisticSet(d.StatisticValues, parameter+".StatisticValues")
	case len(d.Values) > 0:
		return valueSet(d, parameter)
	}
	return metrics.Set{}, missing(parameter + ".Value")
}

func exclusive(parameter, one, other string) error {
	return invalidCombination(
		"The parameters %s.%s and %s.%s are mutually exclusive and you have specified both.",
		parameter, one, parameter, other,
	)
}

func statisticSet(in *types.StatisticSet, parameter string) (metrics.Set, error) {
	for _, m := range []struct {
		name  string
		value *float64
	}{{"SampleCount", in.SampleCount}, {"Sum", in.Sum}, {"Minimum", in.Minimum}, {"Maximum", in.Maximum}} {
		if m.value == nil {
			return metrics.Set{}, missing(parameter + "." + m.name)
		}
		if err := checkValue(*m.value, parameter+"."+m.name); err != nil {
			return metrics.Set{}, err
		}
	}
	if *in.SampleCount <= 0 {
		return metrics.Set{}, invalid(
			"The value %g for parameter %s.SampleCount is invalid: it must be greater than 0.",
			*in.SampleCount, parameter,
		)
	}
	if *in.Minimum > *in.Maximum {
		return metrics.Set{}, invalid("The parameter %s.Minimum must be at most %s.Maximum.", parameter, parameter)
	}
	return metrics.Set{Count: *in.SampleCount, Sum: *in.Sum, Min: *in.Minimum, Max: *in.Maximum}, nil
}

func valueSet(d *types.MetricDatum, parameter string) (metrics.Set, error) {
	if len(d.Values) > maxValues {
		return metrics.Set{}, invalid("The collection %s.Values must not have a size greater than %d.", parameter, maxValues)
	}
	if len(d.Counts) > 0 && len(d.Counts) != len(d.Values) {
		return metrics.Set{}, invalid("The parameters %s.Values and %s.Counts must be of the same size.", parameter, parameter)
	}
	values := make([]metrics.Value, len(d.Values))
	for i, v := range d.Values {
		values[i] = metrics.Value{Value: v, Count: 1}
		if err := checkValue(v, member(parameter+".Values", i)); err != nil {
			return metrics.Set{}, err
		}
		if len(d.Counts) == 0 {
			continue
		}
		if c := d.Counts[i]; !(c > 0) || c > maxValue {
			return metrics.Set{}, invalid(
				"The value %g for parameter %s is invalid: it must be greater than 0.",
				c, member(parameter+".Counts", i),
			)
		}
		values[i].Count = d.Counts[i]
	}
	return metrics.Of(values), nil
}
