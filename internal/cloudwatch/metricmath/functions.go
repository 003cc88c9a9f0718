package metricmath

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// call is a function with its arguments.
type call struct {
	place
	name string
	function
	args []node
}

// keyword is an argument such as REPEAT, AVG or DESC.
type keyword string

func (keyword) eval(*Data) (value, error) { panic("metricmath: a keyword has no value") }

// function describes a function.
type function struct {
	min, max int              // number of arguments
	takes    []kind           // of the first argument
	words    map[int][]string // allowed keywords, by the argument's index
	do       func(c call, data *Data, args []value) (value, error)
}

// unsupported holds CloudWatch's functions on data that Pintle doesn't have.
var unsupported = map[string]bool{
	"DB_PERF_INSIGHTS": true, "INSIGHT_RULE_METRIC": true, "LAMBDA": true, "SERVICE_QUOTA": true,
}

var functions = map[string]function{
	"ABS":   points(math.Abs),
	"CEIL":  points(math.Ceil),
	"FLOOR": points(math.Floor),
	"LOG":   points(math.Log),
	"LOG10": points(math.Log10),

	"AVG":             aggregate(average, averageAcross),
	"DATAPOINT_COUNT": aggregate(count, count),
	"MAX":             aggregate(highest, highest),
	"MIN":             aggregate(lowest, lowest),
	"STDDEV":          aggregate(deviation, deviation),
	"SUM":             aggregate(sum, sumAcross),

	"DIFF":        alongTime(func(_ float64, v, before float64) float64 { return v - before }),
	"DIFF_TIME":   alongTime(func(seconds, _, _ float64) float64 { return seconds }),
	"RATE":        alongTime(func(seconds, v, before float64) float64 { return (v - before) / seconds }),
	"RUNNING_SUM": {min: 1, max: 1, takes: anySeries, do: runningSum},

	"EPOCH":  clock(func(t time.Time) int64 { return t.Unix() }),
	"MINUTE": clock(func(t time.Time) int64 { return int64(t.Minute()) }),
	"HOUR":   clock(func(t time.Time) int64 { return int64(t.Hour()) }),
	"DATE":   clock(func(t time.Time) int64 { return int64(t.Day()) }),
	"DAY":    clock(func(t time.Time) int64 { return int64(t.Weekday()+6)%7 + 1 }), // Monday is 1, Sunday 7
	"MONTH":  clock(func(t time.Time) int64 { return int64(t.Month()) }),
	"YEAR":   clock(func(t time.Time) int64 { return int64(t.Year()) }),

	"ANOMALY_DETECTION_BAND": {min: 1, max: 2, takes: []kind{series}, do: band},

	"FILL":         {min: 2, max: 2, takes: anySeries, words: map[int][]string{1: {"REPEAT", "LINEAR"}}, do: fill},
	"FIRST":        {min: 1, max: 1, takes: []kind{array}, do: pick(func(s []Series) int { return 0 })},
	"LAST":         {min: 1, max: 1, takes: []kind{array}, do: pick(func(s []Series) int { return len(s) - 1 })},
	"IF":           {min: 2, max: 3, takes: []kind{scalar, series}, do: choose},
	"METRIC_COUNT": {min: 1, max: 1, takes: []kind{array}, do: metricCount},
	"PERIOD":       {min: 1, max: 1, takes: []kind{series}, do: period},
	"REMOVE_EMPTY": {min: 1, max: 1, takes: []kind{array}, do: removeEmpty},
	"SLICE":        {min: 2, max: 3, takes: []kind{array}, do: slice},
	"SORT": {
		min:   3,
		max:   4,
		takes: []kind{array},
		words: map[int][]string{1: {"AVG", "MIN", "MAX", "SUM"}, 2: {"ASC", "DESC"}},
		do:    sort,
	},
	"TIME_SERIES": {min: 1, max: 1, takes: []kind{scalar}, do: timeSeries},
}

var anySeries = []kind{series, array}

// check refuses a call with too few or too many arguments, or without required keywords or ids.
func (c call) check() error {
	switch {
	case len(c.args) < c.min:
		return c.errorf("%s takes at least %d arguments, not %d", c.name, c.min, len(c.args))
	case len(c.args) > c.max:
		return c.errorf("%s takes at most %d arguments, not %d", c.name, c.max, len(c.args))
	case c.name == "ANOMALY_DETECTION_BAND":
		if _, ok := c.args[0].(reference); !ok {
			return c.errorf("ANOMALY_DETECTION_BAND takes the id of a metric or an expression")
		}
		return nil
	case c.name != "SORT":
		return nil
	}
	for i := 1; i <= 2; i++ {
		if _, ok := c.args[i].(keyword); !ok {
			return c.errorf("argument %d of SORT must be one of %s", i+1, strings.Join(c.words[i], ", "))
		}
	}
	return nil
}

func (c call) eval(data *Data) (value, error) {
	args := make([]value, len(c.args))
	for i, arg := range c.args {
		if _, ok := arg.(keyword); ok {
			continue
		}
		var err error
		if args[i], err = data.eval(arg); err != nil {
			return value{}, err
		}
	}
	if !args[0].is(c.takes...) {
		return value{}, c.errorf("%s does not take %s", c.name, args[0].kind)
	}
	return c.do(c, data, args)
}

// word returns the i-th argument if it is a keyword, or "".
func (c call) word(i int) string {
	w, _ := c.args[i].(keyword)
	return string(w)
}

// metrics is METRICS() for the ids that contain part.
type metrics struct {
	place
	part string
}

func (n metrics) eval(data *Data) (value, error) {
	var out []Series
	for _, s := range data.Metrics {
		if strings.Contains(s.ID, n.part) {
			out = append(out, s)
		}
	}
	return many(out), nil
}

// points makes a function that maps each data point.
func points(f func(float64) float64) function {
	return function{min: 1, max: 1, takes: anySeries, do: func(_ call, _ *Data, args []value) (value, error) {
		return each(args[0], func(s Series) []float64 { return apply(s.Values, f) }), nil
	}}
}

// aggregate makes a function that turns one series into a number with along, and an array into one series with across,
// timestamp by timestamp. Both get the existing data points and the number that there could be.
func aggregate(along, across func(values []float64, of int) float64) function {
	return function{min: 1, max: 1, takes: anySeries, do: func(_ call, data *Data, args []value) (value, error) {
		if args[0].kind == series {
			return number(along(present(args[0].first().Values), data.Count)), nil
		}
		column := make([]float64, 0, len(args[0].series))
		return one(data.series(func(i int) float64 {
			column = column[:0]
			for _, s := range args[0].series {
				if !IsMissing(s.Values[i]) {
					column = append(column, s.Values[i])
				}
			}
			return across(column, len(args[0].series))
		})), nil
	}}
}

// present returns the existing data points.
func present(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), IsMissing)
}

func sum(values []float64, _ int) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// sumAcross is missing if no series has a data point.
func sumAcross(values []float64, of int) float64 {
	if len(values) == 0 {
		return Missing
	}
	return sum(values, of)
}

func average(values []float64, _ int) float64 { return divide(sum(values, 0), float64(len(values))) }

// averageAcross counts a missing value as 0, as CloudWatch does for arrays.
func averageAcross(values []float64, of int) float64 {
	return divide(sumAcross(values, of), float64(of))
}

func count(values []float64, _ int) float64 { return float64(len(values)) }

func highest(values []float64, _ int) float64 {
	if len(values) == 0 {
		return Missing
	}
	return slices.Max(values)
}

func lowest(values []float64, _ int) float64 {
	if len(values) == 0 {
		return Missing
	}
	return slices.Min(values)
}

func deviation(values []float64, _ int) float64 {
	mean, squares := average(values, 0), 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(divide(squares, float64(len(values))))
}

// alongTime makes a function of each data point and the one before it, which lies seconds back.
func alongTime(f func(seconds, v, before float64) float64) function {
	return function{min: 1, max: 1, takes: anySeries, do: func(_ call, data *Data, args []value) (value, error) {
		return each(args[0], func(s Series) []float64 {
			last := -1
			return data.series(func(i int) float64 {
				if IsMissing(s.Values[i]) {
					return Missing
				}
				before := last
				if last = i; before < 0 {
					return Missing
				}
				return f(data.At(i).Sub(data.At(before)).Seconds(), s.Values[i], s.Values[before])
			}).Values
		}), nil
	}}
}

func runningSum(_ call, _ *Data, args []value) (value, error) {
	return each(args[0], func(s Series) []float64 {
		total := 0.0
		return apply(s.Values, func(v float64) float64 { total += v; return total })
	}), nil
}

// clock makes a function of each timestamp, in UTC, whether or not there is a data point.
func clock(f func(time.Time) int64) function {
	return function{min: 1, max: 1, takes: []kind{series}, do: func(_ call, data *Data, _ []value) (value, error) {
		return one(data.series(func(i int) float64 { return float64(f(data.At(i).UTC())) })), nil
	}}
}

func fill(c call, data *Data, args []value) (value, error) {
	if args[1].kind == array {
		return value{}, c.errorf("FILL does not fill with an array of time series")
	}
	return each(args[0], func(s Series) []float64 {
		switch c.word(1) {
		case "REPEAT":
			return repeat(s.Values)
		case "LINEAR":
			return interpolate(s.Values)
		}
		return data.series(func(i int) float64 {
			if IsMissing(s.Values[i]) {
				return args[1].at(i)
			}
			return s.Values[i]
		}).Values
	}), nil
}

// repeat fills gaps with the last data point before them.
func repeat(values []float64) []float64 {
	out := slices.Clone(values)
	for i := 1; i < len(out); i++ {
		if IsMissing(out[i]) {
			out[i] = out[i-1]
		}
	}
	return out
}

// interpolate fills gaps between two data points linearly.
func interpolate(values []float64) []float64 {
	out := slices.Clone(values)
	last := -1
	for i, v := range values {
		if IsMissing(v) {
			continue
		}
		for k := last + 1; last >= 0 && k < i; k++ {
			out[k] = values[last] + (v-values[last])*float64(k-last)/float64(i-last)
		}
		last = i
	}
	return out
}

// pick returns one series of an array, or a series without data points if the array is empty.
func pick(index func([]Series) int) func(call, *Data, []value) (value, error) {
	return func(_ call, data *Data, args []value) (value, error) {
		if len(args[0].series) == 0 {
			return one(data.series(func(int) float64 { return Missing })), nil
		}
		return one(args[0].series[index(args[0].series)]), nil
	}
}

// choose is IF. If the chosen data point is missing, a true condition gives 0, a false one gives no data point.
func choose(c call, data *Data, args []value) (value, error) {
	condition, yes, no := args[0], args[1], value{kind: scalar, number: Missing}
	if len(args) == 3 {
		no = args[2]
	}
	if yes.kind == array || no.kind == array {
		return value{}, c.errorf("IF does not choose between arrays of time series")
	}
	if condition.kind == scalar {
		return chooseOnce(data, condition, yes, no), nil
	}
	return one(data.series(func(i int) float64 {
		switch at := condition.at(i); {
		case IsMissing(at):
			return Missing
		case at != 0:
			return orZero(yes.at(i))
		}
		return no.at(i)
	})), nil
}

// chooseOnce chooses once for all timestamps. If only one of the two is a number, the number becomes a series.
func chooseOnce(data *Data, condition, yes, no value) value {
	chosen := yes
	if condition.number == 0 || IsMissing(condition.number) {
		chosen = no
	}
	if yes.kind == scalar && no.kind == scalar {
		return chosen
	}
	return one(data.series(chosen.at))
}

func metricCount(_ call, _ *Data, args []value) (value, error) {
	return number(float64(len(args[0].series))), nil
}

func period(c call, _ *Data, args []value) (value, error) {
	if _, ok := c.args[0].(reference); !ok || args[0].first().Period == 0 {
		return value{}, c.errorf("PERIOD takes a metric, not the result of an expression")
	}
	return number(args[0].first().Period.Seconds()), nil
}

func removeEmpty(_ call, _ *Data, args []value) (value, error) {
	return many(slices.DeleteFunc(slices.Clone(args[0].series), func(s Series) bool { return len(present(s.Values)) == 0 })), nil
}

func slice(c call, _ *Data, args []value) (value, error) {
	all := args[0].series
	bounds := []int{0, len(all)}
	for i, arg := range args[1:] {
		if arg.kind != scalar || IsMissing(arg.number) {
			return value{}, c.errorf("argument %d of SLICE must be a number", i+2)
		}
		bounds[i] = clamp(arg.number, len(all))
	}
	return many(all[min(bounds[0], bounds[1]):bounds[1]]), nil
}

// clamp turns a number into an index from 0 to most.
func clamp(f float64, most int) int { return int(min(max(f, 0), float64(most))) }

func sort(c call, _ *Data, args []value) (value, error) {
	by := map[string]func([]float64, int) float64{"AVG": average, "MIN": lowest, "MAX": highest, "SUM": sum}[c.word(1)]
	sorted := slices.Clone(args[0].series)
	slices.SortStableFunc(sorted, func(a, b Series) int {
		// Without data points, AVG, MIN and MAX are NaN, which sorts lowest, and SUM is 0.
		order := cmp.Compare(by(present(a.Values), 0), by(present(b.Values), 0))
		if c.word(2) == "DESC" {
			return -order
		}
		return order
	})
	if len(args) == 4 {
		if args[3].kind != scalar || IsMissing(args[3].number) {
			return value{}, c.errorf("argument 4 of SORT must be a number")
		}
		sorted = sorted[:clamp(args[3].number, len(sorted))]
	}
	return many(sorted), nil
}

// band returns the upper and the lower limit of a metric's or an expression's expected values.
func band(c call, data *Data, args []value) (value, error) {
	deviations := 2.0
	if len(args) == 2 {
		if args[1].kind != scalar || !(args[1].number > 0) {
			return value{}, c.errorf("argument 2 of ANOMALY_DETECTION_BAND must be a number greater than 0")
		}
		deviations = args[1].number
	}
	of := args[0].first()
	id := c.args[0].(reference).id
	limits := [2]Series{
		{ID: of.ID, Label: cmp.Or(of.Label, id) + " (expected) High"},
		{ID: of.ID, Label: cmp.Or(of.Label, id) + " (expected) Low"},
	}
	for i := range limits {
		limits[i].Values = data.series(func(at int) float64 {
			model := data.Models[id]
			if model == nil {
				return Missing
			}
			lower, upper, ok := model.Band(data.At(at), deviations)
			switch {
			case !ok:
				return Missing
			case i == 0:
				return upper
			}
			return lower
		}).Values
	}
	return many(limits[:]), nil
}

func timeSeries(_ call, data *Data, args []value) (value, error) {
	return one(data.series(args[0].at)), nil
}
