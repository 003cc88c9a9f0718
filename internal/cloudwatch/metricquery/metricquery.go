// Package metricquery answers GetMetricData's queries from the metric store: statistics of metrics, and
// metric math over them. It checks queries, too. The CloudWatch service and the alarms' loop call it. It
// doesn't know how a query arrived or what its answer is for.
package metricquery

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metricmath"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/pattern"
)

// Answer is one time series. An expression may return several.
type Answer struct {
	ID, Label string
	Points    []Point // in order of time
}

// Result is the result of a Query.
type Result struct {
	Answers []Answer // of the queries that return data, in their order
	// Cut says that the searches match more time series than a request may return.
	Cut bool
}

// Point is the value for the period that begins at a time.
type Point struct {
	At          time.Time
	Value       float64
	SampleCount float64 // 0 for an expression's result
}

// Query is a checked set of queries, which may refer to each other.
type Query struct {
	queries     []types.MetricDataQuery
	statistics  map[string]metrics.Statistic      // of the metrics, by id
	expressions map[string]*metricmath.Expression // by id
	searches    []search                          // in the expressions
	banded      []string                          // ids for which an expression asks for a band
	detectors   map[string]*types.AnomalyDetectorConfiguration
	order       []string          // of the expressions: each comes after those that it names
	labels      map[string]string // of the metrics without a Label that are returned, by id
	period      time.Duration     // of the expressions
	end         time.Time         // when a period ends; zero means at multiples of its length
}

// search is a SEARCH function with its statistic.
type search struct {
	*metricmath.Search
	statistic metrics.Statistic
}

// id matches valid ids of queries: MetricDataQuery's Id.
var id = pattern.New(`^[a-z][A-Za-z0-9_]*$`, 255)

// New checks queries. Its errors name the query and the member.
func New(queries []types.MetricDataQuery) (*Query, error) {
	q := &Query{
		queries:     queries,
		statistics:  map[string]metrics.Statistic{},
		expressions: map[string]*metricmath.Expression{},
		detectors:   map[string]*types.AnomalyDetectorConfiguration{},
	}
	for i := range queries {
		if err := q.add(&queries[i], i); err != nil {
			return nil, err
		}
	}
	if q.period == 0 {
		return nil, errors.New("there is no Period: an expression without metrics needs one")
	}
	q.labels = labelsOf(queries)
	return q, q.sort()
}

func (q *Query) add(in *types.MetricDataQuery, i int) error {
	name := aws.ToString(in.Id)
	if !id.MatchString(name) {
		return fmt.Errorf(
			"MetricDataQueries[%d].Id must begin with a lower-case letter and consist of letters, digits and underscores, not %q",
			i, name,
		)
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

// addSearches checks an expression's searches. Their periods count if the query has none.
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

// ValidPeriod reports whether CloudWatch allows a period.
func ValidPeriod(seconds int32) bool {
	switch seconds {
	case 1, 5, 10, 20, 30:
		return true
	}
	return seconds > 0 && seconds%60 == 0
}

// sort finds the order of the expressions. It refuses cycles and unknown ids.
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
					//nolint:staticcheck // AWS's words
					return fmt.Errorf("Error in expression '%s': there is no query with the Id %s", name, other)
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

// Searches reports whether an expression searches for metrics.
func (q *Query) Searches() bool { return len(q.searches) > 0 }

// Period returns the period of the expressions: the longest of all queries.
func (q *Query) Period() time.Duration { return q.period }

// Ending returns the query with periods that end at a time instead of at multiples of their length.
func (q *Query) Ending(at time.Time) *Query {
	c := *q
	c.end = at
	return &c
}

// periodStart returns the start of the period that contains t.
func (q *Query) periodStart(t time.Time, period time.Duration) time.Time {
	if q.end.IsZero() {
		return t.Truncate(period)
	}
	phase := q.end.Sub(q.end.Truncate(period))
	return t.Add(-phase).Truncate(period).Add(phase)
}

// Run answers the queries for [start, end). Periods begin at multiples of their length, unless Ending set their end.
func (q *Query) Run(store *metrics.Store, start, end time.Time) (out Result, err error) {
	out.Cut, err = q.Each(store, start, end, func(a Answer) bool {
		out.Answers = append(out.Answers, a)
		return true
	})
	return out, err
}

// Each does the same and passes on the answers one at a time, until take returns false. So nobody holds more of them than needed. cut says
// that the searches match more time series than a request may return.
func (q *Query) Each(store *metrics.Store, start, end time.Time, take func(Answer) bool) (cut bool, err error) {
	data, cut, err := q.data(store, start, end)
	if err != nil {
		return false, err
	}
	for i := range q.queries {
		in := &q.queries[i]
		if in.ReturnData != nil && !*in.ReturnData {
			continue
		}
		answers, err := q.answers(store, in, data, start, end)
		if err != nil {
			return false, err
		}
		for a := range answers {
			if !take(a) {
				return cut, nil
			}
		}
	}
	return cut, nil
}

// answers returns a query's answers: one, or one for each series of an array.
func (q *Query) answers(
	store *metrics.Store, in *types.MetricDataQuery, data *metricmath.Data, start, end time.Time,
) (iter.Seq[Answer], error) {
	if in.Expression != nil {
		return q.answer(in, data.Expressions[*in.Id], data.Grid), nil
	}
	points, err := q.metric(store, in, time.Duration(*in.MetricStat.Period)*time.Second, start, end)
	a := Answer{ID: *in.Id, Label: label(in, q.labels[*in.Id]), Points: points}
	return func(yield func(Answer) bool) { yield(a) }, err
}

// labelsOf returns the labels of the metrics that are returned and have none, by id. Those of one metric say what distinguishes them: their
// statistics, their periods, or both.
func labelsOf(queries []types.MetricDataQuery) map[string]string {
	same := map[string][]*types.MetricDataQuery{}
	for i := range queries {
		in := &queries[i]
		if in.MetricStat != nil && in.Label == nil && (in.ReturnData == nil || *in.ReturnData) {
			m := Metric(in.MetricStat.Metric)
			same[m.Key()] = append(same[m.Key()], in)
		}
	}
	labels := map[string]string{}
	for _, all := range same {
		first := all[0].MetricStat
		byStatistic := slices.ContainsFunc(all, func(in *types.MetricDataQuery) bool { return *in.MetricStat.Stat != *first.Stat })
		byPeriod := slices.ContainsFunc(all, func(in *types.MetricDataQuery) bool { return *in.MetricStat.Period != *first.Period })
		for _, in := range all {
			label := *first.Metric.MetricName
			if byStatistic {
				label += " " + *in.MetricStat.Stat
			}
			if byPeriod {
				label += fmt.Sprintf(" %d", *in.MetricStat.Period)
			}
			labels[*in.Id] = label
		}
	}
	return labels
}

func label(in *types.MetricDataQuery, fallback string) string {
	if in.Label != nil {
		return *in.Label
	}
	return fallback
}

// answer returns an expression's time series without missing data points.
func (q *Query) answer(in *types.MetricDataQuery, r metricmath.Result, g metricmath.Grid) iter.Seq[Answer] {
	return func(yield func(Answer) bool) {
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
			if !yield(a) {
				return
			}
		}
	}
}

func (q *Query) grid(start, end time.Time) metricmath.Grid {
	g := metricmath.Grid{Start: q.periodStart(start, q.period), Period: q.period}
	if n := end.Sub(g.Start); n > 0 {
		g.Count = int((n + q.period - 1) / q.period)
	}
	return g
}

// data computes the expressions and returns their results and inputs. cut says that searches found too much.
func (q *Query) data(store *metrics.Store, start, end time.Time) (data *metricmath.Data, cut bool, err error) {
	data = &metricmath.Data{Grid: q.grid(store.Within(start, end, q.period))}
	if len(q.order) == 0 {
		return data, false, nil
	}
	if err := checkValues(len(q.queries), data.Grid); err != nil {
		return nil, false, err
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
	series := len(data.Metrics)
	for _, name := range q.order {
		if data.Expressions[name], err = q.expressions[name].Eval(data); err != nil {
			return &Error{fmt.Sprintf("Error in expression '%s': %v", name, err)}
		}
		series += len(data.Expressions[name].Series)
		if err := checkValues(series, data.Grid); err != nil {
			return err
		}
	}
	return nil
}

// maxValues bounds what the metrics and expressions of one request hold in memory: 32 MiB, and while one is computed a few times that.
const maxValues = 4 << 20

// checkValues refuses more values than a request may hold.
func checkValues(series int, g metricmath.Grid) error {
	if n := series * g.Count; n > maxValues {
		return &Error{fmt.Sprintf(
			"The expressions take at least %d values, and at most %d are computed in one request. Ask for a shorter time or a longer Period.",
			n, maxValues,
		)}
	}
	return nil
}

// metrics reads the queries' metrics with the period of the expressions.
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
			ID:     *in.Id,
			Label:  label(in, *in.MetricStat.Metric.MetricName),
			Values: onGrid(points, grid),
			Period: time.Duration(*in.MetricStat.Period) * time.Second,
		})
	}
	return all, nil
}

// Error says that an expression can't be computed, which is the caller's fault.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// onGrid returns the points' values on the grid, with Missing for the rest.
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

// metric reads a metric's statistic with the given period.
func (q *Query) metric(store *metrics.Store, in *types.MetricDataQuery, period time.Duration, start, end time.Time) ([]Point, error) {
	s := in.MetricStat
	return read(store, Metric(s.Metric), string(s.Unit), q.statistics[*in.Id], period, q.periodStart(start, period), end)
}

// read reads points of a statistic. start is the start of a period.
func read(
	store *metrics.Store, m metrics.Metric, unit string, st metrics.Statistic, period time.Duration, start, end time.Time,
) ([]Point, error) {
	read, err := store.Read(metrics.Query{
		Metric: m,
		Unit:   unit,
		Start:  start.Unix(),
		End:    end.Unix(),
		Period: int64(period / time.Second),
	})
	if err != nil {
		return nil, err
	}
	var points []Point
	for _, p := range mergeUnits(read) {
		if v, ok := st.Of(p.Set); ok {
			points = append(points, Point{time.Unix(p.At, 0).UTC(), v, p.Count})
		}
	}
	return points, nil
}

// mergeUnits adds up points of the same time in different units. There are several only if the query names no unit.
func mergeUnits(points []metrics.Point) []metrics.Point {
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

// Metric returns the store's name for a metric.
func Metric(m *types.Metric) metrics.Metric {
	return NewMetric(m.Namespace, m.MetricName, m.Dimensions)
}

// NewMetric returns the store's name for a metric, from parameters that many calls have.
func NewMetric(namespace, name *string, dimensions []types.Dimension) metrics.Metric {
	out := make([]metrics.Dimension, len(dimensions))
	for i, d := range dimensions {
		out[i] = metrics.Dimension{Name: aws.ToString(d.Name), Value: aws.ToString(d.Value)}
	}
	return metrics.NewMetric(aws.ToString(namespace), aws.ToString(name), out...)
}
