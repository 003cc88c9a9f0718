// Package metricmath is CloudWatch's metric math: Parse parses an expression, and Eval computes it over time
// series that share one grid of timestamps. It is pure: it fetches nothing and knows no API. GetMetricData and
// the evaluation of alarms use it, by way of package metricquery. It follows
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
package metricmath

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/anomaly"
)

// Series is one time series on the grid: a value for each timestamp, or NaN for a missing data point.
type Series struct {
	ID     string // of the metric that it is or derives from
	Label  string
	Values []float64
	// Period is the metric's period, for PERIOD. It is zero for an expression's result.
	Period time.Duration
}

// Missing stands for a missing data point.
var Missing = math.NaN()

// IsMissing reports whether v stands for a missing data point.
func IsMissing(v float64) bool { return math.IsNaN(v) }

// Grid holds the timestamps that all series share.
type Grid struct {
	Start  time.Time
	Period time.Duration
	Count  int
}

// At returns the i-th timestamp.
func (g Grid) At(i int) time.Time { return g.Start.Add(time.Duration(i) * g.Period) }

// Data is an expression's input.
type Data struct {
	Grid
	// Metrics are the request's metrics in its order, which METRICS() returns.
	Metrics []Series
	// Expressions are the results of the request's other expressions, by id.
	Expressions map[string]Result
	// Found are the time series of the metrics that searches found.
	Found map[*Search][]Series
	// Models are the models of the metrics and expressions that ANOMALY_DETECTION_BAND names, by id.
	Models map[string]*anomaly.Model

	work int // see maxWork
}

// Result is an expression's result: one time series, or an array of them.
type Result struct {
	Series []Series
	Array  bool
}

// Expression is a parsed expression. It is safe for concurrent use.
type Expression struct {
	root     node
	text     string
	ids      []string
	searches []*Search
	banded   []string
}

// String returns the text that the expression was parsed from.
func (e *Expression) String() string { return e.text }

// IDs returns the ids of the metrics and expressions that it names, sorted. METRICS() names none.
func (e *Expression) IDs() []string { return e.ids }

// Searches returns its SEARCH functions. Eval needs their results in Data.Found.
func (e *Expression) Searches() []*Search { return e.searches }

// Banded returns the ids that its ANOMALY_DETECTION_BAND functions name. Eval needs their models in Data.Models.
func (e *Expression) Banded() []string { return e.banded }

// Eval computes the expression. Its errors tell what's wrong and at which character.
func (e *Expression) Eval(data *Data) (Result, error) {
	v, err := data.eval(e.root)
	if err != nil {
		return Result{}, err
	}
	if v.kind == scalar {
		return Result{}, fmt.Errorf("the expression gives a single number; it must give a time series or an array of time series")
	}
	return Result{Series: v.series, Array: v.kind == array}, nil
}

// kind is one of CloudWatch's types of data.
type kind int

const (
	scalar kind = iota
	series
	array
)

func (k kind) String() string {
	return [...]string{"a number", "a time series", "an array of time series"}[k]
}

// value is the value of a part of an expression.
type value struct {
	kind   kind
	number float64
	series []Series
}

func number(f float64) value      { return value{kind: scalar, number: finite(f)} }
func one(s Series) value          { return value{kind: series, series: []Series{s}} }
func many(s []Series) value       { return value{kind: array, series: s} }
func (v value) first() Series     { return v.series[0] }
func (v value) is(k ...kind) bool { return slices.Contains(k, v.kind) }

// at returns the value at a timestamp. A number is the same at all of them.
func (v value) at(i int) float64 {
	if v.kind == scalar {
		return v.number
	}
	return v.series[0].Values[i]
}

// finite drops values that no data point can have: results of a division by zero, an overflow or an
// undefined logarithm.
func finite(f float64) float64 {
	if math.IsInf(f, 0) {
		return Missing
	}
	return f
}

// series computes a series on the grid.
func (g Grid) series(at func(i int) float64) Series {
	values := make([]float64, g.Count)
	for i := range values {
		values[i] = finite(at(i))
	}
	return Series{Values: values}
}

// place is the offset of a part of an expression in the text. It makes the errors about that part.
type place int

func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", int(p)+1, fmt.Sprintf(format, args...))
}

// node is a part of an expression.
type node interface {
	eval(*Data) (value, error)
}

// maxWork bounds the values of all parts of the expressions that are computed with one Data, those that only other parts see among them:
// a second or two of work.
const maxWork = 1 << 28

// eval computes a part of an expression.
func (d *Data) eval(n node) (value, error) {
	v, err := n.eval(d)
	if err != nil {
		return value{}, err
	}
	if d.work += len(v.series) * d.Count; d.work > maxWork {
		return value{}, fmt.Errorf("the expressions compute too many values. Ask for a shorter time, a longer Period or less in one request")
	}
	return v, nil
}

type literal float64

func (n literal) eval(*Data) (value, error) { return number(float64(n)), nil }

// reference names a metric or another expression.
type reference struct {
	place
	id string
}

func (n reference) eval(data *Data) (value, error) {
	if i := slices.IndexFunc(data.Metrics, func(s Series) bool { return s.ID == n.id }); i >= 0 {
		return one(data.Metrics[i]), nil
	}
	r, ok := data.Expressions[n.id]
	switch {
	case !ok:
		return value{}, n.errorf("there is no metric or expression with the id %q", n.id)
	case r.Array:
		return many(r.Series), nil
	}
	return one(r.Series[0]), nil
}

// list is [a, b].
type list struct {
	place
	items []node
}

// maxSeries limits the series in an array.
const maxSeries = 1000

func (n list) eval(data *Data) (value, error) {
	var all []Series
	for _, item := range n.items {
		v, err := data.eval(item)
		if err != nil {
			return value{}, err
		}
		if v.kind == scalar {
			return value{}, n.errorf("an array holds time series, not numbers")
		}
		if all = append(all, v.series...); len(all) > maxSeries {
			return value{}, n.errorf("the array has more than %d time series", maxSeries)
		}
	}
	return many(all), nil
}

// negation is unary minus.
type negation struct {
	place
	of node
}

func (n negation) eval(data *Data) (value, error) {
	v, err := data.eval(n.of)
	if err != nil || v.kind == scalar {
		return number(-v.number), err
	}
	return each(v, func(s Series) []float64 { return apply(s.Values, func(f float64) float64 { return -f }) }), nil
}

// binary is an operator between two values.
type binary struct {
	place
	op          string
	left, right node
}

func (n binary) eval(data *Data) (value, error) {
	l, err := data.eval(n.left)
	if err != nil {
		return value{}, err
	}
	r, err := data.eval(n.right)
	if err != nil {
		return value{}, err
	}
	do := operators[n.op].do
	switch {
	case l.kind == array && r.kind == array:
		return value{}, n.errorf("%s does not take two arrays of time series", n.op)
	case l.kind == scalar && r.kind == scalar:
		return number(do(l.number, r.number)), nil
	case l.kind == array:
		return each(l, func(s Series) []float64 { return data.combine(do, one(s), r) }), nil
	case r.kind == array:
		return each(r, func(s Series) []float64 { return data.combine(do, l, one(s)) }), nil
	}
	return one(Series{Values: data.combine(do, l, r)}), nil
}

// combine combines two values timestamp by timestamp. If only one of two series has a data point, the other
// counts as 0. If neither has one, or a series without one meets a number, the result is missing.
func (g Grid) combine(do func(l, r float64) float64, l, r value) []float64 {
	bothSeries := l.kind == series && r.kind == series
	return g.series(func(i int) float64 {
		a, b := l.at(i), r.at(i)
		if bothSeries && IsMissing(a) != IsMissing(b) {
			a, b = orZero(a), orZero(b)
		}
		if IsMissing(a) || IsMissing(b) {
			return Missing
		}
		return do(a, b)
	}).Values
}

func orZero(f float64) float64 {
	if IsMissing(f) {
		return 0
	}
	return f
}

// each changes every series of a value and keeps their ids and labels.
func each(v value, change func(Series) []float64) value {
	out := make([]Series, len(v.series))
	for i, s := range v.series {
		out[i] = Series{ID: s.ID, Label: s.Label, Values: change(s)}
	}
	return value{kind: v.kind, series: out}
}

// apply changes every data point.
func apply(values []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = Missing
		if !IsMissing(v) {
			out[i] = finite(f(v))
		}
	}
	return out
}
