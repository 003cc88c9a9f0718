// Package metricquery answers GetMetricData's queries from the metric store: metrics and statistics,
// and metric math over them. It checks queries, too. The CloudWatch service and the alarms' loop call
// it; how a query reached them, and what its answer is for, it does not know.
package metricquery

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricmath"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/pattern"
)

// Answer is one time series; an expression may give several.
type Answer struct {
	ID, Label string
	Points    []Point // in order of time
}

// Result is what queries come to.
type Result struct {
	Answers []Answer // of the queries that return data, in their order
	// Cut says that searches would have found more time series than a request may have.
	Cut bool
}

// Point is the value for the period that begins at a time.
type Point struct {
	At          time.Time
	Value       float64
	SampleCount float64 // 0 for what an expression gave
}

// Query is a set of queries that may refer to each other, checked.
type Query struct {
	queries     []types.MetricDataQuery
	statistics  map[string]metrics.Statistic      // of the metrics, by id
	expressions map[string]*metricmath.Expression // by id
	searches    []search                          // of the expressions
	banded      []string                          // ids of which an expression asks for a band
	detectors   map[string]*types.AnomalyDetectorConfiguration
	order       []string      // of the expressions, so that each comes after those that it names
	period      time.Duration // of expressions
	end         time.Time     // of a period; the zero time is as good as any multiple
}

// search is a SEARCH function with its statistic.
type search struct {
	*metricmath.Search
	statistic metrics.Statistic
}

// id is what a query may be called: MetricDataQuery's Id.
var id = pattern.New(`^[a-z][A-Za-z0-9_]*$`, 255)

// New checks queries. Its errors name the query and the member.
func New(queries []types.MetricDataQuery) (*Query, error) {
	q := &Query{queries: queries, statistics: map[string]metrics.Statistic{}, expressions: map[string]*metricmath.Expression{}, detectors: map[string]*types.AnomalyDetectorConfiguration{}}
	for i := range queries {
		if err := q.add(&queries[i], i); err != nil {
			return nil, err
		}
	}
	if q.period == 0 {
		return nil, errors.New("there is no Period: an expression without metrics needs one")
	}
	return q, q.sort()
}

func (q *Query) add(in *types.MetricDataQuery, i int) error {
	name := aws.ToString(in.Id)
	if !id.MatchString(name) {
		return fmt.Errorf("MetricDataQueries[%d].Id must begin with a lower-case letter and consist of letters, digits and underscores, not %q", i, name)
	}
	if _, twice := q.statistics[name]; twice || q.expressions[name] != nil {
		return fmt.Errorf("the Id %s comes twice", name)
	}
	if (in.MetricStat == nil) == (in.Expression == nil) {
		return fmt.Errorf("the query %s must have one of MetricStat and Expression", name)
	}
	if in.Expression != nil {
		return q.addExpression(in)
	}
	return q.addMetric(in)
}

func (q *Query) addExpression(in *types.MetricDataQuery) error {
	e, err := metricmath.Parse(*in.Expression)
	if err != nil {
		return fmt.Errorf("Error in expression '%s': %w", *in.Id, err) //nolint:staticcheck // AWS's words
	}
	if in.Period != nil && !ValidPeriod(*in.Period) {
		return fmt.Errorf("the Period of %s must be 1, 5, 10, 20, 30 or a multiple of 60, not %d", *in.Id, *in.Period)
	}
	q.expressions[*in.Id] = e
	q.banded = append(q.banded, e.Banded()...)
	q.period = max(q.period, time.Duration(aws.ToInt32(in.Period))*time.Second)
	return q.addSearches(in, e.Searches())
}

// addSearches checks the searches of an expression. Their periods count where the query has none.
func (q *Query) addSearches(in *types.MetricDataQuery, searches []*metricmath.Search) error {
	for _, s := range searches {
		st, err := metrics.ParseStatistic(s.Statistic)
		if err != nil {
			return fmt.Errorf("Error in expression '%s': SEARCH: %w", *in.Id, err) //nolint:staticcheck // AWS's words
		}
		if seconds := int32(s.Period / time.Second); in.Period == nil && s.Period != 0 {
			if !ValidPeriod(seconds) {
				return fmt.Errorf("the period of the search in %s must be 1, 5, 10, 20, 30 or a multiple of 60, not %d", *in.Id, seconds)
			}
			q.period = max(q.period, s.Period)
		}
		q.searches = append(q.searches, search{s, st})
	}
	if len(q.searches) > maxSearches {
		return fmt.Errorf("there are more than %d searches", maxSearches)
	}
	return nil
}

func (q *Query) addMetric(in *types.MetricDataQuery) error {
	m := in.MetricStat
	if m.Metric == nil || aws.ToString(m.Metric.MetricName) == "" || aws.ToString(m.Metric.Namespace) == "" {
		return fmt.Errorf("the MetricStat of %s needs a Metric with a Namespace and a MetricName", *in.Id)
	}
	if !ValidPeriod(aws.ToInt32(m.Period)) {
		return fmt.Errorf("the MetricStat.Period of %s must be 1, 5, 10, 20, 30 or a multiple of 60, not %d", *in.Id, aws.ToInt32(m.Period))
	}
	st, err := metrics.ParseStatistic(aws.ToString(m.Stat))
	if err != nil {
		return fmt.Errorf("the MetricStat.Stat of %s: %w", *in.Id, err)
	}
	q.statistics[*in.Id] = st
	q.period = max(q.period, time.Duration(*m.Period)*time.Second)
	return nil
}

// ValidPeriod reports whether a period can be asked for.
func ValidPeriod(seconds int32) bool {
	switch seconds {
	case 1, 5, 10, 20, 30:
		return true
	}
	return seconds > 0 && seconds%60 == 0
}

// sort finds the order of the expressions. It refuses circles and names of nothing.
func (q *Query) sort() error {
	const visiting, visited = 1, 2
	seen := map[string]int{}
	var visit func(name string) error
	visit = func(name string) error {
		switch e := q.expressions[name]; {
		case seen[name] == visiting:
			return fmt.Errorf("the expression %s refers to itself", name)
		case e == nil || seen[name] == visited:
			return nil
		default:
			seen[name] = visiting
			for _, other := range e.IDs() {
				if _, metric := q.statistics[other]; !metric && q.expressions[other] == nil {
					return fmt.Errorf("Error in expression '%s': there is no query with the Id %s", name, other) //nolint:staticcheck // AWS's words
				}
				if err := visit(other); err != nil {
					return err
				}
			}
		}
		seen[name] = visited
		q.order = append(q.order, name)
		return nil
	}
	for _, in := range q.queries {
		if err := visit(*in.Id); err != nil {
			return err
		}
	}
	return nil
}

// Searches reports whether a query searches for metrics.
func (q *Query) Searches() bool { return len(q.searches) > 0 }

// Period is that of the expressions: the longest of all.
func (q *Query) Period() time.Duration { return q.period }

// Ending is the query with periods that end at a time, and not at multiples of their length.
func (q *Query) Ending(at time.Time) *Query {
	c := *q
	c.end = at
	return &c
}

// begin is when the period begins that a time is in.
func (q *Query) begin(t time.Time, period time.Duration) time.Time {
	if q.end.IsZero() {
		return t.Truncate(period)
	}
	phase := q.end.Sub(q.end.Truncate(period))
	return t.Add(-phase).Truncate(period).Add(phase)
}

// Run answers the queries for [start, end). Periods begin at multiples of their length, but for Ending.
func (q *Query) Run(store *metrics.Store, start, end time.Time) (Result, error) {
	data, cut, err := q.data(store, start, end)
	if err != nil {
		return Result{}, err
	}
	out := Result{Cut: cut}
	for i := range q.queries {
		in := &q.queries[i]
		if in.ReturnData != nil && !*in.ReturnData {
			continue
		}
		if in.Expression != nil {
			out.Answers = append(out.Answers, q.answer(in, data.Expressions[*in.Id], data.Grid)...)
			continue
		}
		points, err := q.metric(store, in, time.Duration(*in.MetricStat.Period)*time.Second, start, end)
		if err != nil {
			return Result{}, err
		}
		out.Answers = append(out.Answers, Answer{ID: *in.Id, Label: label(in, *in.MetricStat.Metric.MetricName), Points: points})
	}
	return out, nil
}

func label(in *types.MetricDataQuery, otherwise string) string {
	if in.Label != nil {
		return *in.Label
	}
	return otherwise
}

// answer is an expression's time series without what is missing.
func (q *Query) answer(in *types.MetricDataQuery, r metricmath.Result, g metricmath.Grid) []Answer {
	var answers []Answer
	for _, s := range r.Series {
		a := Answer{ID: *in.Id, Label: label(in, *in.Id)}
		if r.Array {
			a.Label = strings.TrimSpace(aws.ToString(in.Label) + " " + s.Label)
		}
		for i, v := range s.Values {
			if !metricmath.IsMissing(v) && !math.IsInf(v, 0) {
				a.Points = append(a.Points, Point{At: g.At(i), Value: v})
			}
		}
		answers = append(answers, a)
	}
	return answers
}

func (q *Query) grid(start, end time.Time) metricmath.Grid {
	g := metricmath.Grid{Start: q.begin(start, q.period), Period: q.period}
	if n := end.Sub(g.Start); n > 0 {
		g.Count = int((n + q.period - 1) / q.period)
	}
	return g
}

// data are the expressions' results, and what they are made of. cut says that searches have found too much.
func (q *Query) data(store *metrics.Store, start, end time.Time) (data *metricmath.Data, cut bool, err error) {
	data = &metricmath.Data{Grid: q.grid(store.Within(start, end, q.period))}
	if len(q.order) == 0 {
		return data, false, nil
	}
	if data.Found, cut, err = q.search(store, data.Grid, end); err != nil {
		return nil, false, err
	}
	if data.Models, err = q.models(store, start, end); err != nil {
		return nil, false, err
	}
	return data, cut, q.compute(store, data, start, end)
}

// compute reads the metrics and computes the expressions.
func (q *Query) compute(store *metrics.Store, data *metricmath.Data, start, end time.Time) (err error) {
	if data.Metrics, err = q.metrics(store, data.Grid, start, end); err != nil {
		return err
	}
	data.Expressions = map[string]metricmath.Result{}
	for _, name := range q.order {
		if data.Expressions[name], err = q.expressions[name].Eval(data); err != nil {
			return &Error{fmt.Sprintf("Error in expression '%s': %v", name, err)}
		}
	}
	return nil
}

// metrics are the queries' metrics by the period of the expressions.
func (q *Query) metrics(store *metrics.Store, grid metricmath.Grid, start, end time.Time) (all []metricmath.Series, err error) {
	for i := range q.queries {
		in := &q.queries[i]
		if in.MetricStat == nil {
			continue
		}
		points, err := q.metric(store, in, q.period, start, end)
		if err != nil {
			return nil, err
		}
		all = append(all, metricmath.Series{
			ID: *in.Id, Label: label(in, *in.MetricStat.Metric.MetricName), Values: onGrid(points, grid), Period: time.Duration(*in.MetricStat.Period) * time.Second,
		})
	}
	return all, nil
}

// Error is an expression that cannot be computed: its sender's fault.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// onGrid is the values of points, with none where there is no point.
func onGrid(points []Point, g metricmath.Grid) []float64 {
	values := make([]float64, g.Count)
	for i := range values {
		values[i] = metricmath.Missing
	}
	for _, p := range points {
		if i := int(p.At.Sub(g.Start) / g.Period); i >= 0 && i < len(values) {
			values[i] = p.Value
		}
	}
	return values
}

// metric reads a metric's statistic by some period.
func (q *Query) metric(store *metrics.Store, in *types.MetricDataQuery, period time.Duration, start, end time.Time) ([]Point, error) {
	return read(store, Metric(in.MetricStat.Metric), string(in.MetricStat.Unit), q.statistics[*in.Id], period, q.begin(start, period), end)
}

// read reads points of a statistic; start is when a period begins.
func read(store *metrics.Store, m metrics.Metric, unit string, st metrics.Statistic, period time.Duration, start, end time.Time) ([]Point, error) {
	read, err := store.Read(metrics.Query{
		Metric: m, Unit: unit, Start: start.Unix(), End: end.Unix(), Period: int64(period / time.Second),
	})
	if err != nil {
		return nil, err
	}
	var points []Point
	for _, p := range units(read) {
		if v, ok := st.Of(p.Set); ok {
			points = append(points, Point{time.Unix(p.At, 0).UTC(), v, p.Count})
		}
	}
	return points, nil
}

// units adds up what was reported in different units, where none was asked for.
func units(points []metrics.Point) []metrics.Point {
	var out []metrics.Point
	for _, p := range points {
		if n := len(out); n > 0 && out[n-1].At == p.At {
			out[n-1].Add(p.Set)
			continue
		}
		out = append(out, p)
	}
	return out
}

// Metric is the store's name of a metric.
func Metric(m *types.Metric) metrics.Metric {
	return NewMetric(m.Namespace, m.MetricName, m.Dimensions)
}

// NewMetric is the store's name of a metric, from the members of many a call.
func NewMetric(namespace, name *string, dimensions []types.Dimension) metrics.Metric {
	out := make([]metrics.Dimension, len(dimensions))
	for i, d := range dimensions {
		out[i] = metrics.Dimension{Name: aws.ToString(d.Name), Value: aws.ToString(d.Value)}
	}
	return metrics.NewMetric(aws.ToString(namespace), aws.ToString(name), out...)
}
