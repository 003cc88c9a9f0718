package logs

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/filterpattern"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
)

// Limits of metric filters: API_PutMetricFilter and API_MetricTransformation.
const (
	maxMetricFilters    = 100 // of a group
	maxFilterDimensions = 3
	maxDimensionName    = 255
)

// PutMetricFilter creates a metric filter of a group, or replaces the one with its name. It applies to events that arrive from now on.
func (s *Service) PutMetricFilter(
	_ context.Context, in *cloudwatchlogs.PutMetricFilterInput,
) (*cloudwatchlogs.PutMetricFilterOutput, error) {
	request := filterRequest{in.FilterPattern, in.ApplyOnTransformedLogs, in.FieldSelectionCriteria, in.EmitSystemFieldDimensions}
	if _, err := request.check(); err != nil {
		return nil, err
	}
	f := types.MetricFilter{
		FilterName:            in.FilterName,
		FilterPattern:         in.FilterPattern,
		LogGroupName:          in.LogGroupName,
		MetricTransformations: in.MetricTransformations,
		CreationTime:          aws.Int64(s.now()),
	}
	if err := checkTransformation(in.MetricTransformations[0]); err != nil {
		return nil, err
	}
	if _, err := compileMetricFilter(&f); err != nil {
		return nil, err
	}
	if err := s.checkClass(*in.LogGroupName); err != nil {
		return nil, err
	}
	err := s.changeFilters(*in.LogGroupName, func(filters *streams.Filters) error {
		if !putFilter(&filters.Metric, f, maxMetricFilters, metricFilterKey) {
			return limitExceeded()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.PutMetricFilterOutput{}, nil
}

func metricFilterKey(f *types.MetricFilter) (name *string, created **int64) {
	return f.FilterName, &f.CreationTime
}

// checkTransformation checks what doesn't depend on the pattern.
func checkTransformation(t types.MetricTransformation) error {
	switch {
	case *t.MetricName == "":
		return invalidParameter("Invalid metric transformation: metricName is empty.")
	case *t.MetricNamespace == "":
		return invalidParameter("Invalid metric transformation: metricNamespace is empty.")
	case strings.HasPrefix(*t.MetricNamespace, "AWS/"):
		return invalidParameter("Invalid metric transformation: namespaces that begin with AWS/ are reserved for AWS.")
	case state.IsOwnNamespace(*t.MetricNamespace): // PutMetricData would refuse them
		return invalidParameter("Invalid metric transformation: the control plane alone puts metrics into the namespace " + *t.MetricNamespace + ".")
	case t.DefaultValue != nil && len(t.Dimensions) > 0:
		return invalidParameter("Invalid metric transformation: dimensions and default value are mutually exclusive properties.")
	case t.DefaultValue != nil && !isFinite(*t.DefaultValue):
		return invalidParameter("Invalid metric transformation: the default value is not a finite number.")
	case len(t.Dimensions) > maxFilterDimensions:
		return invalidParameter("Invalid metric transformation: at most %d dimensions are allowed.", maxFilterDimensions)
	}
	for name := range t.Dimensions {
		if strings.TrimSpace(name) == "" || len(name) > maxDimensionName || strings.HasPrefix(name, ":") {
			return invalidParameter("Invalid metric transformation: %q can't be the name of a dimension.", name)
		}
	}
	return nil
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// DescribeMetricFilters lists metric filters by name, of a group or of all.
func (s *Service) DescribeMetricFilters(
	_ context.Context, in *cloudwatchlogs.DescribeMetricFiltersInput,
) (*cloudwatchlogs.DescribeMetricFiltersOutput, error) {
	if (in.MetricName == nil) != (in.MetricNamespace == nil) {
		return nil, invalidParameter("metricName and metricNamespace must be given together.")
	}
	found, err := filtersOf(s, in.LogGroupName, func(f *streams.Filters) []types.MetricFilter { return f.Metric })
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(f types.MetricFilter) bool {
		t := f.MetricTransformations[0]
		// As API_DescribeMetricFilters says, the prefix counts only together with a group.
		return in.LogGroupName != nil && !strings.HasPrefix(*f.FilterName, aws.ToString(in.FilterNamePrefix)) ||
			in.MetricName != nil && (*t.MetricName != *in.MetricName || *t.MetricNamespace != *in.MetricNamespace)
	})
	key := func(f types.MetricFilter) string { return *f.FilterName + ":" + *f.LogGroupName }
	sortFilters(found, key)
	page, next, err := account.Sorted(listing("DescribeMetricFilters", maxListed), found, in.Limit, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DescribeMetricFiltersOutput{MetricFilters: orEmpty(page), NextToken: next}, nil
}

// orEmpty returns an empty list for nil, which would be left out of an answer.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// DeleteMetricFilter deletes a metric filter.
func (s *Service) DeleteMetricFilter(
	_ context.Context, in *cloudwatchlogs.DeleteMetricFilterInput,
) (*cloudwatchlogs.DeleteMetricFilterOutput, error) {
	err := s.changeFilters(*in.LogGroupName, func(filters *streams.Filters) error {
		return deleteFilter(&filters.Metric, "metric", *in.FilterName, metricFilterKey)
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DeleteMetricFilterOutput{}, nil
}

// TestMetricFilter tries a pattern on messages.
func (s *Service) TestMetricFilter(
	ctx context.Context, in *cloudwatchlogs.TestMetricFilterInput,
) (*cloudwatchlogs.TestMetricFilterOutput, error) {
	pattern, err := filterpattern.Parse(aws.ToString(in.FilterPattern))
	if err != nil {
		return nil, invalidParameter("Invalid filter pattern: %v", err)
	}
	out := &cloudwatchlogs.TestMetricFilterOutput{Matches: []types.MetricFilterMatchRecord{}}
	for i, m := range in.LogEventMessages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if found, ok := pattern.Find(m); ok {
			out.Matches = append(out.Matches, types.MetricFilterMatchRecord{
				EventNumber:     int64(i + 1),
				EventMessage:    aws.String(m),
				ExtractedValues: pattern.Values(found),
			})
		}
	}
	return out, nil
}

// compileMetricFilter parses a filter's pattern, and the selectors of its value and its dimensions.
func compileMetricFilter(f *types.MetricFilter) (*metricFilter, error) {
	t := f.MetricTransformations[0]
	pattern, err := filterpattern.Parse(aws.ToString(f.FilterPattern))
	if err != nil {
		return nil, invalidParameter("Invalid filter pattern: %v", err)
	}
	m := &metricFilter{id: "metric-filter:" + *f.LogGroupName + ":" + *f.FilterName, pattern: pattern, to: t}
	if m.value, err = valueReader(pattern, *t.MetricValue); err != nil {
		return nil, invalidParameter("Invalid metric transformation: metricValue: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Dimensions)) {
		read, err := pattern.Selector(t.Dimensions[name])
		if err != nil {
			return nil, invalidParameter("Invalid metric transformation: dimension %s: %v", name, err)
		}
		m.dimensions = append(m.dimensions, dimensionReader{name, read})
	}
	return m, nil
}

// valueReader returns what reads the value of an event: a number, or a selector of the pattern's.
func valueReader(pattern *filterpattern.Pattern, text string) (func(filterpattern.Found) (float64, bool), error) {
	if number, err := strconv.ParseFloat(text, 64); err == nil && isFinite(number) {
		return func(filterpattern.Found) (float64, bool) { return number, true }, nil
	}
	read, err := pattern.Selector(text)
	if err != nil {
		return nil, err
	}
	return func(f filterpattern.Found) (float64, bool) {
		v, ok := read(f)
		if !ok {
			return 0, false
		}
		number, err := strconv.ParseFloat(v, 64)
		return number, err == nil && isFinite(number)
	}, nil
}
