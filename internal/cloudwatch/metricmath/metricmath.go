// Package metricmath is CloudWatch's metric math: Parse makes an expression, Eval computes it over time
// series that share one grid of timestamps. It is pure, fetches nothing and knows no API; who
// answers GetMetricData or evaluates an alarm calls it. It follows
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
package metricmath

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/anomaly"
)

// Series is one time series on the grid: a value for each of its timestamps, NaN where there is none.
type Series struct {
	ID     string // of the metric that it is, or comes from
	Label  string
	Values []float64
	// Period is the metric's own, for PERIOD; zero for what an expression gave.
	Period time.Duration
}

// Missing is the value where there is no data point.
var Missing = math.NaN()

// IsMissing reports whether there is no data point.
func IsMissing(v float64) bool { return math.IsNaN(v) }

// Grid is the timestamps that all series share.
type Grid struct {
	Start  time.Time
	Period time.Duration
	Count  int
}

// At is the i-th timestamp.
func (g Grid) At(i int) time.Time { return g.Start.Add(time.Duration(i) * g.Period) }

// Data is what an expression is computed from.
type Data struct {
	Grid
	// Metrics are the request's metrics in its order: what METRICS() gives.
	Metrics []Series
	// Expressions are the results of the request's other expressions, by id.
	Expressions map[string]Result
	// Found are the time series of the metrics that searches have found.
	Found map[*Search][]Series
	// Models are what is expected of the metrics and expressions that ANOMALY_DETECTION_BAND names, by id.
	Models map[string]*anomaly.Model
}

// Result is what an expression gives: one time series, or an array of them.
type Result struct {
	Series []Series
	Array  bool
}

// Expression is a parsed expression. It may be used by many goroutines.
type Expression struct {
	root     node
	text     string
	ids      []string
	searches []*Search
	banded   []string
}

// String is the text that the expression was parsed from.
func (e *Expression) String() string { return e.text }

// IDs are the ids of the metrics and expressions that it names, sorted. METRICS() names none.
func (e *Expression) IDs() []string { return e.ids }

// Searches are the SEARCH functions in it: what they find is Data's Found.
func (e *Expression) Searches() []*Search { return e.searches }

// Banded are the ids that ANOMALY_DETECTION_BAND functions in it name: what is expected of these is Data's Models.
func (e *Expression) Banded() []string { return e.banded }

// Eval computes the expression. Its errors say what is wrong and at which character.
func (e *Expression) Eval(data *Data) (Result, error) {
	v, err := e.root.eval(data)
	if err != nil {
		return Result{}, err
	}
	if v.kind == scalar {
		return Result{}, fmt.Errorf("the expression gives a single number; it must give a time series or an array of time series")
	}
	return Result{Series: v.series, Array: v.kind == array}, nil
}

// kind is CloudWatch's types of data.
type kind int

const (
	scalar kind = iota
	series
	array
)

func (k kind) String() string {
	return [...]string{"a number", "a time series", "an array of time series"}[k]
}

// value is what a part of an expression gives.
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

// at is the value at a timestamp; a number has the same at all of them.
func (v value) at(i int) float64 {
	if v.kind == scalar {
		return v.number
	}
	return v.series[0].Values[i]
}

// finite drops what no data point can be: the result of a division by zero, of an overflow, or of a
// logarithm of what has none.
func finite(f float64) float64 {
	if math.IsInf(f, 0) {
		return Missing
	}
	return f
}

// series makes a series on the grid.
func (g Grid) series(at func(i int) float64) Series {
	values := make([]float64, g.Count)
	for i := range values {
		values[i] = finite(at(i))
	}
	return Series{Values: values}
}

// place is where in the text a part of an expression stands; it makes the errors about that part.
type place int

func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", int(p)+1, fmt.Sprintf(format, args...))
}

// node is a part of an expression.
type node interface {
	eval(*Data) (value, error)
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

// maxSeries bounds how many series an array may have.
const maxSeries = 1000

func (n list) eval(data *Data) (value, error) {
	var all []Series
	for _, item := range n.items {
		v, err := item.eval(data)
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
	v, err := n.of.eval(data)
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
	l, err := n.left.eval(data)
	if err != nil {
		return value{}, err
	}
	r, err := n.right.eval(data)
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

// combine puts two values together, timestamp by timestamp. Where only one of two series has a data
// point, the other counts as 0; where neither has, or a series meets a number, there is none.
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

// each changes every series of a value and keeps whose they are.
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
