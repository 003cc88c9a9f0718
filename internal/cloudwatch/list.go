package cloudwatch

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
)

// maxListed is the page size of ListMetrics: API_ListMetrics.
const maxListed = 500

// ListMetrics lists the metrics of the last two weeks.
func (s *Service) ListMetrics(_ context.Context, in *cloudwatch.ListMetricsInput) (*cloudwatch.ListMetricsOutput, error) {
	l := listing("ListMetrics", "maxResults", maxListed)
	l.BadToken = func() error { return invalid("The parameter NextToken is invalid.") }
	limit, after, err := l.Start(nil, in.NextToken)
	if err != nil {
		return nil, err
	}
	since, err := s.listSince(in)
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.ListMetricsOutput{Metrics: []types.Metric{}}
	if owner := in.OwningAccount; owner != nil && *owner != s.opts.ID {
		return out, nil // no other account is linked
	}
	found, more := s.metrics.Metrics(after, since, limit, matcher(in))
	for _, m := range found {
		listed := types.Metric{Namespace: aws.String(m.Namespace), MetricName: aws.String(m.Name), Dimensions: []types.Dimension{}}
		for _, d := range m.Dimensions {
			listed.Dimensions = append(listed.Dimensions, types.Dimension{Name: aws.String(d.Name), Value: aws.String(d.Value)})
		}
		out.Metrics = append(out.Metrics, listed)
		if aws.ToBool(in.IncludeLinkedAccounts) {
			out.OwningAccounts = append(out.OwningAccounts, s.opts.ID)
		}
	}
	if more {
		out.NextToken = l.Token(found[len(found)-1].Key())
	}
	return out, nil
}

// listSince checks the call and returns the earliest time, in Unix seconds, at which a listed metric may last have been reported.
func (s *Service) listSince(in *cloudwatch.ListMetricsInput) (int64, error) {
	if in.Namespace != nil {
		if err := checkNamespace(in.Namespace); err != nil {
			return 0, err
		}
	}
	if len(in.Dimensions) > 10 {
		return 0, invalid("The collection Dimensions must not have a size greater than 10.")
	}
	for i, d := range in.Dimensions {
		if aws.ToString(d.Name) == "" {
			return 0, missing(member("Dimensions", i) + ".Name")
		}
	}
	switch in.RecentlyActive {
	case "":
		return 0, nil
	case types.RecentlyActivePt3h:
		return s.opts.Now().Add(-3 * time.Hour).Unix(), nil
	}
	return 0, invalid("The value %s for parameter RecentlyActive is invalid: it must be PT3H.", in.RecentlyActive)
}

// matcher returns a function that reports whether the call asks for a metric. It compares the namespace, the name,
// the names of dimensions and, if given, their values.
func matcher(in *cloudwatch.ListMetricsInput) func(*metrics.Metric) bool {
	return func(m *metrics.Metric) bool {
		if in.Namespace != nil && *in.Namespace != m.Namespace || in.MetricName != nil && *in.MetricName != m.Name {
			return false
		}
		for _, filter := range in.Dimensions {
			if !slices.ContainsFunc(m.Dimensions, func(d metrics.Dimension) bool {
				return d.Name == *filter.Name && (filter.Value == nil || d.Value == *filter.Value)
			}) {
				return false
			}
		}
		return true
	}
}
