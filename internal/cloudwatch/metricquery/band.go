package metricquery

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/anomaly"
	"github.com/pintle/pintle/internal/cloudwatch/metricmath"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
)

// Banded returns the ids for which an expression asks for a band.
func (q *Query) Banded() []string { return q.banded }

// Detect sets the anomaly detector's configuration for the model of a metric or an expression. Call it before Run.
func (q *Query) Detect(id string, c *types.AnomalyDetectorConfiguration) { q.detectors[id] = c }

// models trains the models that the bands need, on the two weeks before the range. If those hold too little data, it uses
// the range itself, so the band of a new metric grows with its data.
func (q *Query) models(store *metrics.Store, start, end time.Time) (map[string]*anomaly.Model, error) {
	if len(q.banded) == 0 {
		return nil, nil
	}
	models, err := q.train(store, start.Add(-anomaly.Memory), start)
	if err != nil || !slices.ContainsFunc(q.banded, func(id string) bool { return !models[id].Ready() }) {
		return models, err
	}
	inRange, err := q.train(store, start, end)
	for id, m := range models {
		if !m.Ready() {
			models[id] = inRange[id]
		}
	}
	return models, err
}

// Trained reports whether each band has enough data, as of now.
func (q *Query) Trained(store *metrics.Store, now time.Time) (bool, error) {
	models, err := q.train(store, now.Add(-anomaly.Memory), now)
	return err == nil && !slices.ContainsFunc(q.banded, func(id string) bool { return !models[id].Ready() }), err
}

func (q *Query) train(store *metrics.Store, start, end time.Time) (map[string]*anomaly.Model, error) {
	data := &metricmath.Data{Grid: q.grid(store.Within(start, end, q.period))}
	if err := q.compute(store, data, start, end); err != nil {
		return nil, err
	}
	models := map[string]*anomaly.Model{}
	for _, id := range q.banded {
		models[id] = modelOf(q.detectors[id], data, id)
	}
	return models, nil
}

// modelOf trains the model of one metric or expression. c may be nil.
func modelOf(c *types.AnomalyDetectorConfiguration, data *metricmath.Data, id string) *anomaly.Model {
	zone := time.UTC
	var excluded []types.Range
	if c != nil {
		if z, err := time.LoadLocation(aws.ToString(c.MetricTimezone)); err == nil { // PutAnomalyDetector checked it
			zone = z
		}
		excluded = c.ExcludedTimeRanges
	}
	var points []anomaly.Point
	for i, v := range valuesOf(data, id) {
		at := data.At(i)
		if !metricmath.IsMissing(v) && !slices.ContainsFunc(excluded, func(r types.Range) bool { return within(r, at) }) {
			points = append(points, anomaly.Point{At: at, Value: v})
		}
	}
	return anomaly.Train(points, zone)
}

func within(r types.Range, at time.Time) bool {
	return !at.Before(aws.ToTime(r.StartTime)) && at.Before(aws.ToTime(r.EndTime))
}

// valuesOf returns the values of a metric or an expression. If there are several time series, it returns the first one's.
func valuesOf(data *metricmath.Data, id string) []float64 {
	all := data.Expressions[id].Series
	if i := slices.IndexFunc(data.Metrics, func(s metricmath.Series) bool { return s.ID == id }); i >= 0 {
		all = data.Metrics[i:]
	}
	if len(all) == 0 {
		return nil
	}
	return all[0].Values
}
