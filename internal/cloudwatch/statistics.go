package cloudwatch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
)

// maxDatapoints limits the data points of a call: API_GetMetricStatistics.
const maxDatapoints = 1440

// GetMetricStatistics returns statistics of a metric. Periods count from the start time. Data reported in several
// units gets data points for each unit.
func (s *Service) GetMetricStatistics(
	_ context.Context, in *cloudwatch.GetMetricStatisticsInput,
) (*cloudwatch.GetMetricStatisticsOutput, error) {
	extended, err := checkStatistics(in)
	if err != nil {
		return nil, err
	}
	start := s.roundStart(*in.StartTime, *in.Period)
	points, err := s.metrics.Read(metrics.Query{
		Metric: metricquery.NewMetric(in.Namespace, in.MetricName, in.Dimensions),
		Unit:   string(in.Unit),
		Start:  start.Unix(),
		End:    roundEnd(*in.EndTime, *in.Period).Unix(),
		Period: int64(*in.Period),
	})
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.GetMetricStatisticsOutput{Label: in.MetricName, Datapoints: []types.Datapoint{}}
	for _, p := range points {
		if d, ok := datapoint(in, extended, p); ok {
			out.Datapoints = append(out.Datapoints, d)
		}
	}
	return out, nil
}

func checkStatistics(in *cloudwatch.GetMetricStatisticsInput) (extended []metrics.Statistic, err error) {
	if err := cmp.Or(
		checkNamespace(in.Namespace),
		checkMetricName(in.MetricName, "MetricName"),
		checkDimensions(in.Dimensions, "Dimensions"),
		checkUnit(in.Unit, "Unit"),
	); err != nil {
		return nil, err
	}
	switch {
	case in.StartTime == nil:
		return nil, missing("StartTime")
	case in.EndTime == nil:
		return nil, missing("EndTime")
	case in.Period == nil:
		return nil, missing("Period")
	case !in.StartTime.Before(*in.EndTime):
		return nil, invalid("The parameter StartTime must be less than the parameter EndTime.")
	case !metricquery.ValidPeriod(*in.Period):
		return nil, invalid("The value %d for parameter Period is invalid: it must be 1, 5, 10, 20, 30 or a multiple of 60.", *in.Period)
	case len(in.Statistics) == 0 && len(in.ExtendedStatistics) == 0:
		return nil, &types.MissingRequiredParameterException{
			Message: aws.String("At least one of the parameters Statistics and ExtendedStatistics must be specified."),
		}
	case len(in.Statistics) > 5 || len(in.ExtendedStatistics) > 10:
		return nil, invalid("Statistics must not have a size greater than 5, and ExtendedStatistics none greater than 10.")
	}
	for i, name := range in.Statistics {
		if !slices.Contains(name.Values(), name) {
			return nil, invalid("The value %s for parameter %s is invalid.", name, member("Statistics", i))
		}
	}
	for i, name := range in.ExtendedStatistics {
		st, err := metrics.ParseStatistic(name)
		if err != nil || st.Plain() {
			return nil, invalid("The value %s for parameter %s is invalid.", name, member("ExtendedStatistics", i))
		}
		extended = append(extended, st)
	}
	period := time.Duration(*in.Period) * time.Second
	if n := int64((in.EndTime.Sub(*in.StartTime) + period - 1) / period); n > maxDatapoints {
		return nil, invalidCombination(
			"You have requested up to %d datapoints, which exceeds the limit of %d. "+
				"You may reduce the datapoints requested by increasing Period, or decreasing the time range.",
			n, maxDatapoints,
		)
	}
	return extended, nil
}

// roundStart rounds a start time down, more coarsely the older it is: API_GetMetricStatistics, StartTime.
func (s *Service) roundStart(start time.Time, period int32) time.Time {
	const day = 24 * time.Hour
	switch age := s.opts.Now().Sub(start); {
	case age > 63*day:
		return start.Truncate(time.Hour)
	case age > 15*day:
		return start.Truncate(5 * time.Minute)
	case period < 60:
		return start.Truncate(time.Duration(period) * time.Second)
	}
	return start.Truncate(time.Minute)
}

// roundEnd rounds an end time up to a whole minute, or to a whole period if that is shorter. Clients ask for data until
// now, to the second, and expect everything reported in that minute or period.
func roundEnd(end time.Time, period int32) time.Time {
	of := time.Duration(min(period, 60)) * time.Second
	return end.Add(of - 1).Truncate(of)
}

// datapoint returns a point's statistics, or false if none of them can be computed.
func datapoint(in *cloudwatch.GetMetricStatisticsInput, extended []metrics.Statistic, p metrics.Point) (types.Datapoint, bool) {
	d := types.Datapoint{Timestamp: aws.Time(time.Unix(p.At, 0).UTC()), Unit: types.StandardUnit(p.Unit)}
	for _, name := range in.Statistics {
		switch name {
		case types.StatisticSampleCount:
			d.SampleCount = &p.Count
		case types.StatisticAverage:
			d.Average = aws.Float64(p.Sum / p.Count)
		case types.StatisticSum:
			d.Sum = &p.Sum
		case types.StatisticMinimum:
			d.Minimum = &p.Min
		case types.StatisticMaximum:
			d.Maximum = &p.Max
		}
	}
	for i, st := range extended {
		if v, ok := st.Of(p.Set); ok {
			if d.ExtendedStatistics == nil {
				d.ExtendedStatistics = map[string]float64{}
			}
			d.ExtendedStatistics[in.ExtendedStatistics[i]] = v
		}
	}
	return d, len(in.Statistics) > 0 || d.ExtendedStatistics != nil
}
