package cloudwatch

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
)

// Limits on GetMetricData: API_GetMetricData.
const (
	maxQueries        = 500
	maxDataDatapoints = 100800
)

// GetMetricData answers queries for metrics and metric math. A page ends wherever it is full, even inside an answer.
// The next page's token holds the number of data points returned so far.
func (s *Service) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput) (*cloudwatch.GetMetricDataOutput, error) {
	query, limit, given, err := checkData(in)
	if err := cmp.Or(err, s.checkAccounts("MetricDataQueries", in.MetricDataQueries), checkLabelOptions(in.LabelOptions)); err != nil {
		return nil, err
	}
	before := given
	s.store.View().Detect(query.Detect, in.MetricDataQueries, query.Banded())
	out := &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{}, Messages: []types.MessageData{}}
	left := limit
	end := roundEnd(*in.EndTime, shortest(in.MetricDataQueries))
	cut, err := query.Each(s.metrics, *in.StartTime, end, func(a metricquery.Answer) bool {
		if given > 0 && given >= len(a.Points) {
			given -= len(a.Points) // returned on an earlier page
			return true
		}
		points := a.Points
		if in.ScanBy != types.ScanByTimestampAscending {
			slices.Reverse(points)
		}
		points = points[given:]
		given = 0
		out.MetricDataResults = append(out.MetricDataResults, result(a, points, left))
		if len(points) > left {
			out.NextToken = listing("GetMetricData", "maxDatapoints", maxDataDatapoints).Token(strconv.Itoa(limit + before))
			return false
		}
		left -= len(points)
		return true
	})
	if err != nil {
		return nil, expressionError(err)
	}
	if cut {
		out.Messages = []types.MessageData{
			{Code: aws.String("MaxMetricsExceeded"), Value: aws.String("Maximum number of allowed metrics exceeded")},
		}
	}
	return out, nil
}

// shortest returns the shortest period that queries name, in seconds, or 1 if none does.
func shortest(queries []types.MetricDataQuery) int32 {
	var periods []int32
	for _, q := range queries {
		if q.MetricStat != nil {
			q.Period = q.MetricStat.Period
		}
		if q.Period != nil {
			periods = append(periods, *q.Period)
		}
	}
	if len(periods) == 0 {
		return 1
	}
	return slices.Min(periods)
}

// expressionError turns an error in the caller's expressions into a ValidationError and returns all others unchanged.
func expressionError(err error) error {
	var wrong *metricquery.Error
	if errors.As(err, &wrong) {
		return validationError("%v", err)
	}
	return err
}

func result(a metricquery.Answer, points []metricquery.Point, most int) types.MetricDataResult {
	r := types.MetricDataResult{
		Id:         &a.ID,
		Label:      &a.Label,
		StatusCode: types.StatusCodeComplete,
		Timestamps: []time.Time{},
		Values:     []float64{},
	}
	if len(points) > most {
		points, r.StatusCode = points[:most], types.StatusCodePartialData
	}
	for _, p := range points {
		r.Timestamps = append(r.Timestamps, p.At)
		r.Values = append(r.Values, p.Value)
	}
	return r
}

func checkData(in *cloudwatch.GetMetricDataInput) (query *metricquery.Query, limit, given int, err error) {
	switch n := len(in.MetricDataQueries); {
	case n == 0:
		return nil, 0, 0, missing("MetricDataQueries")
	case n > maxQueries:
		return nil, 0, 0, validationError("The collection MetricDataQueries must not have a size greater than %d.", maxQueries)
	case in.StartTime == nil:
		return nil, 0, 0, missing("StartTime")
	case in.EndTime == nil:
		return nil, 0, 0, missing("EndTime")
	case !in.StartTime.Before(*in.EndTime):
		return nil, 0, 0, validationError("The parameter StartTime must be less than the parameter EndTime.")
	case in.ScanBy != "" && !slices.Contains(in.ScanBy.Values(), in.ScanBy):
		return nil, 0, 0, validationError("The value %s for parameter ScanBy is invalid.", in.ScanBy)
	}
	limit, behind, err := listing("GetMetricData", "maxDatapoints", maxDataDatapoints).Start(in.MaxDatapoints, in.NextToken)
	if err != nil {
		return nil, 0, 0, err
	}
	if behind != "" {
		given, err = strconv.Atoi(behind)
	}
	if err != nil || given < 0 {
		return nil, 0, 0, badToken()
	}
	if query, err = metricquery.New(in.MetricDataQueries); err != nil {
		return nil, 0, 0, validationError("%v", err)
	}
	return query, limit, given, checkQueries(in.MetricDataQueries)
}

// checkAccounts refuses metrics of other accounts: none is linked.
func (s *Service) checkAccounts(parameter string, queries []types.MetricDataQuery) error {
	for i, q := range queries {
		if q.AccountId != nil && *q.AccountId != s.opts.ID {
			return validationError("The value %s for parameter %s.AccountId is invalid: this account is %s, and no other is linked.",
				*q.AccountId, member(parameter, i), s.opts.ID)
		}
	}
	return nil
}

// labelZone is the form of LabelOptions.Timezone.
var labelZone = regexp.MustCompile(`^[+-]\d{4}$`)

// checkLabelOptions checks the time zone of labels. It shows nowhere: labels have no times in them here.
func checkLabelOptions(o *types.LabelOptions) error {
	if o != nil && o.Timezone != nil && !labelZone.MatchString(*o.Timezone) {
		return validationError("The value %s for parameter LabelOptions.Timezone is invalid: it must be + or - with four digits.", *o.Timezone)
	}
	return nil
}

// checkQueries checks the parameters that queries share with other calls.
func checkQueries(queries []types.MetricDataQuery) error {
	for i, q := range queries {
		if q.MetricStat == nil {
			continue
		}
		parameter := member("MetricDataQueries", i) + ".MetricStat"
		m := q.MetricStat.Metric
		for _, err := range []error{
			checkNamespace(m.Namespace),
			checkMetricName(m.MetricName, parameter+".Metric.MetricName"),
			checkDimensions(m.Dimensions, parameter+".Metric.Dimensions"),
			checkUnit(q.MetricStat.Unit, parameter+".Unit"),
		} {
			if err != nil {
				return err
			}
		}
	}
	return nil
}
