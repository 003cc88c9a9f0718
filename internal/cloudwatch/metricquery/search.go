package metricquery

import (
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metricmath"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
)

// Limits of a request. They are a graph's: the CloudWatch User Guide's page "CloudWatch search expression syntax".
const (
	maxSearches = 100
	maxFound    = 500 // time series that all searches together may find; the first matches count
)

// search finds and reads the metrics that the searches match.
func (q *Query) search(
	store *metrics.Store, grid metricmath.Grid, end time.Time,
) (found map[*metricmath.Search][]metricmath.Series, cut bool, err error) {
	found = map[*metricmath.Search][]metricmath.Series{}
	left := maxFound
	for _, s := range q.searches {
		metrics, more := store.Metrics("", 0, left, func(m *metrics.Metric) bool { return s.Matches(searchable(m)) })
		left -= len(metrics)
		cut = cut || more
		if err := checkValues(maxFound-left, grid); err != nil {
			return nil, false, err
		}
		if found[s.Search], err = s.read(store, metrics, grid, end); err != nil {
			return nil, false, err
		}
	}
	return found, cut, nil
}

func (s search) read(store *metrics.Store, metrics []metrics.Metric, grid metricmath.Grid, end time.Time) ([]metricmath.Series, error) {
	names := make([]metricmath.Metric, len(metrics))
	for i := range metrics {
		names[i] = *searchable(&metrics[i])
	}
	var all []metricmath.Series
	for i, label := range metricmath.Labels(names) {
		points, err := read(store, metrics[i], "", s.statistic, grid.Period, grid.Start, end)
		if err != nil {
			return nil, err
		}
		all = append(all, metricmath.Series{Label: label, Values: onGrid(points, grid)})
	}
	return all, nil
}

// searchable converts a metric for searches.
func searchable(m *metrics.Metric) *metricmath.Metric {
	out := &metricmath.Metric{Namespace: m.Namespace, Name: m.Name, Dimensions: make([]metricmath.Dimension, len(m.Dimensions))}
	for i, d := range m.Dimensions {
		out.Dimensions[i] = metricmath.Dimension(d)
	}
	return out
}
