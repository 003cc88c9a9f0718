package metricmath

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/anomaly"
)

// parse parses a series in the notation of CloudWatch's documentation: "30 - 0", where - is a missing value.
func parse(text string) []float64 {
	var out []float64
	for f := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			v = Missing
		}
		out = append(out, v)
	}
	return out
}

func format(values []float64) string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = strconv.FormatFloat(v, 'g', 6, 64); IsMissing(v) {
			out[i] = "-"
		}
	}
	return strings.Join(out, " ")
}

// data returns a request's metrics, given as "m1: 1 2 3", one minute apart, starting at noon on a Saturday.
func data(metrics ...string) *Data {
	d := &Data{Grid: Grid{Start: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Period: time.Minute}}
	for _, m := range metrics {
		id, values, _ := strings.Cut(m, ":")
		d.Metrics = append(d.Metrics, Series{ID: id, Label: "label of " + id, Values: parse(values), Period: 5 * time.Minute})
		d.Count = len(d.Metrics[0].Values)
	}
	return d
}

// run returns the result's series, joined by "; ", or the error.
func run(t *testing.T, text string, d *Data) string {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		return err.Error()
	}
	r, err := e.Eval(d)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, s := range r.Series {
		out = append(out, format(s.Values))
	}
	return strings.Join(out, "; ")
}

// The examples on the CloudWatch User Guide's page "Using math expressions with CloudWatch metrics",
// sections "Comparison and logical operators" and "Using IF expressions".
func TestDocumented(t *testing.T) {
	compared := data("metric1: 30 20 0 0", "metric2: 20 - 20 -")
	chosen := data("metric1: 1 1 0 0 -", "metric2: 30 - 0 0 30", "metric3: 0 0 20 - 20")
	for _, c := range []struct {
		text string
		data *Data
		want string
	}{
		{"metric1 < metric2", compared, "0 0 1 0"},
		{"metric1 >= 30", compared, "1 0 0 0"},
		{"metric1 > 15 AND metric2 > 15", compared, "1 0 0 0"},
		{"IF(metric1, metric2, metric3)", chosen, "30 0 20 - -"},
		{"IF(metric1, 5, metric3)", chosen, "5 5 20 - -"},
		{"IF(metric1, metric2, 5)", chosen, "30 0 5 5 -"},
		{"IF(metric1, metric2)", chosen, "30 0 - - -"},
		{"IF(1, metric2, metric3)", chosen, "30 - 0 0 30"},
		{"IF(0, metric2, metric3)", chosen, "0 0 20 - 20"},
		{"IF(0, metric2)", chosen, "- - - - -"},
		{"IF(metric2<20, metric2)", chosen, "- - 0 0 -"},
		{"IF(metric2<20, 10, 2)", chosen, "2 - 10 10 2"},
	} {
		if got := run(t, c.text, c.data); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// The table of functions on the same page, and the arithmetic above it: what each takes and returns.
func TestEval(t *testing.T) {
	d := data("m1: 1 2 - 4", "m2: 10 - - 0", "errors: -1.5 1.5 0 -")
	for _, c := range []struct{ text, want string }{
		{"m1 + m2", "11 2 - 4"},
		{"m1 - m2", "-9 2 - 4"},
		{"m1 * 2 + 1", "3 5 - 9"},
		{"m1 / m2", "0.1 - - -"},
		{"m2 / m1", "10 0 - 0"},
		{"-m1", "-1 -2 - -4"},
		{"2 ^ m1", "2 4 - 16"},
		{"-m1^2", "-1 -4 - -16"},
		{"TIME_SERIES(2^3^2)", "512 512 512 512"},
		{"TIME_SERIES(1 + 2 * 3 - 8 / 4)", "5 5 5 5"},
		{"TIME_SERIES((1 + 2) * 3)", "9 9 9 9"},
		{"TIME_SERIES(1 / 0)", "- - - -"},
		{"TIME_SERIES(1e-1 + .5)", "0.6 0.6 0.6 0.6"},
		{"m1/PERIOD(m1)", "0.00333333 0.00666667 - 0.0133333"},
		{"SUM(100/[m1, m2])", "110 50 - 25"},
		{"METRICS()*100", "100 200 - 400; 1000 - - 0; -150 150 0 -"},
		{`SUM(METRICS("m"))`, "11 2 - 4"},
		{`SUM([METRICS('err'), METRICS("m2")])`, "8.5 1.5 0 0"},
		{"m1 == 2 || m1 == 4", "0 1 - 1"},
		{"m1 != 2 && m1 <= 4", "1 0 - 1"},
		{"m1 > 1 OR m2 > 1 AND m1 < 0", "0 1 - 1"},
		{"ABS(errors)", "1.5 1.5 0 -"},
		{"CEIL(errors)", "-1 2 0 -"},
		{"FLOOR(errors)", "-2 1 0 -"},
		{"LOG(m1) / LOG(2 * m1 / m1)", "0 1 - 2"},
		{"LOG10(m2)", "1 - - -"},
		{"m1 - AVG(m1)", "-1.33333 -0.333333 - 1.66667"},
		{"AVG([m1, m2])", "5.5 1 - 2"},
		{"MAX(m1)/m1", "4 2 - 1"},
		{"MAX([m1, m2])", "10 2 - 4"},
		{"MIN([m1, m2])", "1 2 - 0"},
		{"m1 - MIN(m1)", "0 1 - 3"},
		{"SUM(METRICS()) / SUM(m1)", "1.35714 0.5 0 0.571429"},
		{"STDDEV([m1, m2])", "4.5 0 - 2"},
		{"m1 * STDDEV(errors) * STDDEV(errors)", "1.5 3 - 6"},
		{"DATAPOINT_COUNT([m1, m2])", "2 1 0 2"},
		{"m1 * DATAPOINT_COUNT(m1)", "3 6 - 12"},
		{"m1/METRIC_COUNT(METRICS())", "0.333333 0.666667 - 1.33333"},
		{"DIFF(m1)", "- 1 - 2"},
		{"DIFF_TIME(m1)", "- 60 - 120"},
		{"RATE(m1) * 60", "- 1 - 1"},
		{"RUNNING_SUM(m1)", "1 3 - 7"},
		{"FILL(m1, 9)", "1 2 9 4"},
		{"FILL(m1, MIN(m1))", "1 2 1 4"},
		{"FILL(m2, m1)", "10 2 - 0"},
		{"FILL(m1, REPEAT)", "1 2 2 4"},
		{"FILL(m1, LINEAR)", "1 2 3 4"},
		{"FILL(METRICS(), LINEAR)", "1 2 3 4; 10 6.66667 3.33333 0; -1.5 1.5 0 -"},
		{"FIRST(METRICS())", "1 2 - 4"},
		{"LAST([m1, m2])", "10 - - 0"},
		{`FIRST(METRICS("none"))`, "- - - -"},
		{"SORT(METRICS(), AVG, DESC)", "10 - - 0; 1 2 - 4; -1.5 1.5 0 -"},
		{"SORT(METRICS(), MAX, ASC, 1)", "-1.5 1.5 0 -"},
		{"SLICE(SORT(METRICS(), SUM, DESC), 0, 1)", "10 - - 0"},
		{"SLICE(SORT(METRICS(), MIN, ASC), 2)", "1 2 - 4"},
		{"IF(FIRST(SORT(METRICS(), AVG, DESC))>5, 1, 0)", "1 - - 0"},
		{"REMOVE_EMPTY([m1, m1/0])", "1 2 - 4"},
		{"TIME_SERIES(MAX(m1))", "4 4 4 4"},
		{"EPOCH(m1) - 1795262400", "0 60 120 180"},
		{"MINUTE(m2)", "0 1 2 3"},
		{"HOUR(m1)*1000000 + DAY(m1)*100000 + DATE(m1)*100 + MONTH(m1)", "1.26021e+07 1.26021e+07 1.26021e+07 1.26021e+07"},
		{"YEAR(m1)", "2026 2026 2026 2026"},
		{"IF(DAY(m1)<6, m1)", "- - - -"},
		{"IF(DAY(m1)==6, m1)", "1 2 0 4"},
	} {
		if got := run(t, c.text, d); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// TestOtherExpressions checks that expressions can use other expressions' results, but METRICS() excludes them.
func TestOtherExpressions(t *testing.T) {
	d := data("m1: 1 2")
	d.Expressions = map[string]Result{
		"e1": {Series: []Series{{Values: parse("5 6")}}},
		"e2": {Series: []Series{{Values: parse("1 1")}, {Values: parse("3 3")}}, Array: true},
	}
	for text, want := range map[string]string{
		"e1 + SUM(METRICS())": "6 8",
		"SUM(e2) + m1":        "5 6",
		"PERIOD(e1) * m1":     "at character 1: PERIOD takes a metric, not the result of an expression",
	} {
		if got := run(t, text, d); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	e, err := Parse("b1 + FILL(a2, REPEAT) + AVG([b1, METRICS()])")
	if err != nil || !slices.Equal(e.IDs(), []string{"a2", "b1"}) {
		t.Errorf("the ids are %v: %v", e.IDs(), err)
	}
}

// TestKeepsLabels checks that the series of an array keep their ids and labels.
func TestKeepsLabels(t *testing.T) {
	e, err := Parse("FILL(METRICS(), 0)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Eval(data("m1: 1", "m2: 2"))
	if err != nil || !r.Array || r.Series[1].Label != "label of m2" || r.Series[1].ID != "m2" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestErrors(t *testing.T) {
	d := data("m1: 1 2", "m2: 3 4")
	for _, c := range []struct{ text, says string }{
		{"", "the expression is empty"},
		{strings.Repeat("1", maxLength+1), "at most 2048"},
		{strings.Repeat("(", maxDepth+1), "at character 65: the expression nests deeper than 64"},
		{strings.Repeat("-", 100) + "m1", "nests deeper"},
		{"m1 +", "at character 5: a value is missing"},
		{"m1 m2", `at character 4: "m2" is not expected here`},
		{"(m1", `at character 4: ")" is missing`},
		{"[m1", `at character 4: "]" is missing`},
		{"[]", "a value is missing"},
		{"1.2.3 + m1", `at character 1: "1.2.3" is no number`},
		{"M1", "at character 1: there is no function M1"},
		{"abs(m1)", "is not expected here"},
		{"m1 + NOPE(m1)", "at character 6: there is no function NOPE"},
		{"ANOMALY_DETECTION_BAND(m1 + 1)", "takes the id of a metric or an expression"},
		{"ANOMALY_DETECTION_BAND(m1, 0)", "argument 2 of ANOMALY_DETECTION_BAND must be a number greater than 0"},
		{"ANOMALY_DETECTION_BAND(m1, m2)", "argument 2 of ANOMALY_DETECTION_BAND must be a number"},
		{"LAMBDA(m1)", "does not support the function LAMBDA"},
		{"AVG", "AVG takes its arguments in parentheses"},
		{"AVG()", "AVG takes at least 1 arguments, not 0"},
		{"AVG(m1, m2)", "AVG takes at most 1 arguments, not 2"},
		{"AVG(m1", `")" is missing`},
		{"METRICS", "parentheses"},
		{`METRICS("m`, "the quotation is not closed"},
		{"SORT(METRICS(), m1, DESC)", "argument 2 of SORT must be one of AVG, MIN, MAX, SUM"},
		{"SORT(METRICS(), AVG, UP)", "there is no function UP"},
		{"m3 + 1", `at character 1: there is no metric or expression with the id "m3"`},
		{"AVG(m1)", "gives a single number"},
		{"5", "gives a single number"},
		{"ABS(5)", "ABS does not take a number"},
		{"FIRST(m1)", "FIRST does not take a time series"},
		{"TIME_SERIES(m1)", "TIME_SERIES does not take a time series"},
		{"MINUTE(METRICS())", "MINUTE does not take an array of time series"},
		{"[m1, 1]", "an array holds time series, not numbers"},
		{"METRICS() + METRICS()", "at character 11: + does not take two arrays"},
		{"IF(METRICS(), 1, 0)", "IF does not take an array"},
		{"IF(m1, METRICS(), 0)", "IF does not choose between arrays"},
		{"SLICE(METRICS(), m1)", "argument 2 of SLICE must be a number"},
		{"FILL(m1, METRICS())", "FILL does not fill with an array"},
		{"PERIOD(m1 + 1) * m1", "PERIOD takes a metric"},
	} {
		if got := run(t, c.text, d); !strings.Contains(got, c.says) {
			t.Errorf("%.60s: got %s, want %s", c.text, got, c.says)
		}
	}
	many := data()
	for i := range 501 {
		many.Metrics = append(many.Metrics, Series{ID: fmt.Sprintf("m%d", i)})
	}
	if got := run(t, "[METRICS(), METRICS()]", many); !strings.Contains(got, "more than 1000") {
		t.Errorf("an array of 1002 gives %s", got)
	}
}

// A band is two time series, the upper one first, according to the page "Using math expressions with CloudWatch metrics".
// Without an expectation it has no data points.
func TestBand(t *testing.T) {
	d := data("m1: 1 2 3")
	model := anomaly.Train(
		[]anomaly.Point{{At: d.Start, Value: 4}, {At: d.Start, Value: 6}, {At: d.Start, Value: 4}, {At: d.Start, Value: 6}},
		time.UTC,
	)
	d.Models = map[string]*anomaly.Model{"m1": model}
	for text, want := range map[string]string{
		"ANOMALY_DETECTION_BAND(m1)":                      "7 7 7; 3 3 3",
		"ANOMALY_DETECTION_BAND(m1, 3)":                   "8 8 8; 2 2 2",
		"FIRST(ANOMALY_DETECTION_BAND(m1, 3)) - m1":       "7 6 5",
		"IF(m1 < LAST(ANOMALY_DETECTION_BAND(m1)), 1, 0)": "1 1 0",
	} {
		e, err := Parse(text)
		if err != nil || !slices.Equal(e.Banded(), []string{"m1"}) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r, err := e.Eval(d)
		var got []string
		for _, s := range r.Series {
			got = append(got, format(s.Values))
		}
		if got := strings.Join(got, "; "); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	d.Models = nil
	if got := run(t, "SUM(ANOMALY_DETECTION_BAND(m1))", d); got != "- - -" {
		t.Errorf("without a model: %s", got)
	}
}

// FuzzParse checks that nothing makes the parser or the evaluator panic, and that results lie on the grid and
// are finite.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"m1 + m2 * 3", "SORT(METRICS(), AVG, DESC, 2)", "IF(m1 > 1 AND m2, m1, FILL(m2, LINEAR))", "SLICE([m1, METRICS('m')], 0, 1)",
		"-m1^-2", "RATE(m1)/PERIOD(m1)", "STDDEV(METRICS()) || LOG(m2)", "EPOCH(m1) == 1e9",
		"LAST(ANOMALY_DETECTION_BAND(m1, 3)) - m1", "SUM(SEARCH('{N} a', 'Sum'))",
	} {
		f.Add(s)
	}
	d := data("m1: 1 2 - -4 1e308", "m2: - - 0 1e-308 7")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		r, err := e.Eval(d)
		if err != nil {
			return
		}
		if !r.Array && len(r.Series) != 1 {
			t.Fatalf("%q gives %d series", text, len(r.Series))
		}
		for _, s := range r.Series {
			if len(s.Values) != d.Count || slices.ContainsFunc(s.Values, func(v float64) bool { return math.IsInf(v, 0) }) {
				t.Fatalf("%q gives %v", text, s.Values)
			}
		}
	})
}

// TestWorkIsBounded: expressions may be few and short, and still be much work.
func TestWorkIsBounded(t *testing.T) {
	long := Series{ID: "m1", Values: make([]float64, 1<<22)}
	d := &Data{Grid: Grid{Count: len(long.Values)}, Metrics: []Series{long}}
	e, err := Parse("m1" + strings.Repeat("+1", 100))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(d); err == nil || !strings.Contains(err.Error(), "compute too many values") {
		t.Errorf("the error is %v", err)
	}
}

func BenchmarkEval(b *testing.B) {
	d := data("m1: "+strings.Repeat("1 2 - 3 ", 360), "m2: "+strings.Repeat("4 - 5 6 ", 360))
	e, err := Parse("IF(FILL(m1, 0) > 1 AND m2 > 4, 100 * m1 / m2, AVG(m1))")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Eval(d); err != nil {
			b.Fatal(err)
		}
	}
}
