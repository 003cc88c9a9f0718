package alarm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// datapoints parses the notation of CloudWatch's tables, newest on the right: 0 is within the threshold
// of 3, X breaches it, - is missing.
func datapoints(text string, period time.Duration) (out []Datapoint) {
	fields := strings.Fields(text)
	for i, f := range fields {
		value := map[string]float64{"0": 1, "X": 5}[f]
		if f != "-" {
			at := now.Truncate(period).Add(-time.Duration(len(fields)-i) * period)
			out = append(out, Datapoint{Timestamp: at, Value: value, SampleCount: 1})
		}
	}
	return out
}

func metric(m, n int) Metric {
	return Metric{
		ComparisonOperator: "GreaterThanThreshold",
		Threshold:          3,
		DatapointsToAlarm:  m,
		EvaluationPeriods:  n,
		Period:             5 * time.Minute,
		Statistic:          "Average",
	}
}

const keeps State = "whatever it was"

// The tables of the CloudWatch User Guide's page "Configuring how CloudWatch alarms treat missing data",
// section "How alarm state is evaluated when data is missing", and the examples of its section "Avoiding
// premature transitions to alarm state". The result of - - - - X with "missing" is from an older edition's table.
func TestMissingData(t *testing.T) {
	for _, table := range []struct {
		m, n int
		rows []missingData
	}{
		{3, 3, []missingData{
			{"0 - X - X", OK, OK, OK, OK},
			{"0 - - - -", OK, OK, OK, OK},
			{"- - - - -", InsufficientData, keeps, Alarming, OK},
			{"0 X X - X", Alarming, Alarming, Alarming, Alarming},
			{"- - X - -", Alarming, keeps, Alarming, OK},
			{"X - - - -", Alarming, keeps, Alarming, OK},
			{"- - - - X", InsufficientData, keeps, Alarming, OK},
			{"- - - X -", InsufficientData, keeps, Alarming, OK},
			{"- - - X 0", OK, OK, OK, OK},
			{"- - X - 0", OK, OK, OK, OK},
		}},
		{2, 3, []missingData{
			{"0 - X - X", Alarming, Alarming, Alarming, Alarming},
			{"0 0 X 0 X", Alarming, Alarming, Alarming, Alarming},
			{"0 - X - -", OK, OK, Alarming, OK},
			{"- - - - 0", OK, OK, Alarming, OK},
			{"- - - X -", Alarming, keeps, Alarming, OK},
			{"- - - - X", InsufficientData, keeps, Alarming, OK},
		}},
	} {
		for _, row := range table.rows {
			for treatment, want := range map[string]State{
				AsMissing:    row.missing,
				"":           row.missing,
				Ignore:       row.ignore,
				Breaching:    row.breaching,
				NotBreaching: row.notBreaching,
			} {
				a := metric(table.m, table.n)
				a.TreatMissingData = treatment
				if want == keeps {
					want = "before"
				}
				got := a.Evaluate("before", datapoints(row.points, a.Period), now)
				if got.State != want || (got.Reason == "") != (want == "before") {
					t.Errorf("%d of %d, %s, %q: got %s (%s), want %s", table.m, table.n, row.points, treatment, got.State, got.Reason, want)
				}
			}
		}
	}
}

type missingData struct {
	points                                   string
	missing, ignore, breaching, notBreaching State
}

// The figure on the page "Alarm evaluation": 3 of 3 data points above 3. M of N is added.
func TestOverTime(t *testing.T) {
	for _, c := range []struct {
		m, n   int
		points string
		want   string // the state after each data point, from the n-th on
	}{
		{3, 3, "0 0 X X X 0 0 0 X 0", "OK OK ALARM OK OK OK OK OK"},
		{2, 3, "0 X 0 X X 0 0 0", "OK ALARM ALARM ALARM OK OK"},
		{1, 1, "0 X 0", "OK ALARM OK"},
	} {
		a := metric(c.m, c.n)
		points := strings.Fields(c.points)
		var got []string
		for end := c.n; end <= len(points); end++ {
			got = append(got, string(a.Evaluate(OK, datapoints(strings.Join(points[:end], " "), a.Period), now).State))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d of %d, %s: got %s, want %s", c.m, c.n, c.points, got, c.want)
		}
	}
}

// TestOperators: PutMetricAlarm's ComparisonOperator.
func TestOperators(t *testing.T) {
	for operator, breaches := range map[string][3]bool{ // by 2, 3, 4
		"GreaterThanOrEqualToThreshold": {false, true, true}, "GreaterThanThreshold": {false, false, true},
		"LessThanThreshold": {true, false, false}, "LessThanOrEqualToThreshold": {true, true, false},
	} {
		a := metric(1, 1)
		a.ComparisonOperator = operator
		for i, want := range breaches {
			points := []Datapoint{{Timestamp: now.Add(-6 * time.Minute), Value: float64(2 + i)}}
			if got := a.Evaluate(OK, points, now).State == Alarming; got != want {
				t.Errorf("%v %s 3: %v", points[0].Value, operator, got)
			}
		}
	}
}

// TestBandOperators: an alarm on an anomaly detection band breaches below it, above it, or both, but not at its limits.
func TestBandOperators(t *testing.T) {
	for operator, breaches := range map[string][4]bool{ // by 1, 2, 4, 5
		"LessThanLowerOrGreaterThanUpperThreshold": {true, false, false, true},
		"LessThanLowerThreshold":                   {true, false, false, false},
		"GreaterThanUpperThreshold":                {false, false, false, true},
	} {
		a := metric(1, 1)
		a.ComparisonOperator = operator
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		for i, want := range breaches {
			p := Datapoint{Timestamp: now.Add(-6 * time.Minute), Value: []float64{1, 2, 4, 5}[i], Lower: 2, Upper: 4}
			e := a.Evaluate(InsufficientData, []Datapoint{p}, now)
			if got := e.State == Alarming; got != want || !strings.Contains(e.Reason, "(2.0 to 4.0)") || e.Data.Threshold != nil {
				t.Errorf("%v %s: %s", p.Value, operator, e.Reason)
			}
		}
	}
}

// TestRange: the pages' "evaluation range", for periods of the sections "Evaluating an alarm" and
// "High-resolution alarms".
func TestRange(t *testing.T) {
	for period, first := range map[time.Duration]string{
		10 * time.Second: "11:59:40", 30 * time.Second: "11:58:00", time.Minute: "11:55:00", 5 * time.Minute: "11:35:00",
	} {
		a := metric(3, 3)
		a.Period = period
		from, to := a.Range(now)
		if got := from.Format("15:04:05"); got != first || !to.Equal(now.Truncate(period)) {
			t.Errorf("%v: from %s to %s, want from %s", period, got, to, first)
		}
		points := datapoints("- - X - -", period)
		if got := a.Evaluate(OK, points, now).State; got != Alarming || !points[0].Timestamp.Equal(from.Add(2*period)) {
			t.Errorf("%v: %s at %s", period, got, points[0].Timestamp)
		}
	}
}

// The page "Percentile-based alarms and low data samples": fewer than 10/(1-percentile) samples from the median up,
// fewer than 10/percentile below it.
func TestFewSamples(t *testing.T) {
	for _, c := range []struct {
		statistic, setting string
		samples            float64
		want               State
	}{
		{"p99", "ignore", 999, OK}, {"p99", "ignore", 1000, Alarming},
		{"p99", "evaluate", 1, Alarming}, {"p99", "", 1, Alarming},
		{"p50", "ignore", 19, OK}, {"p50", "ignore", 20, Alarming},
		{"p10", "ignore", 99, OK}, {"p10", "ignore", 100, Alarming},
		{"Average", "ignore", 1, Alarming},
	} {
		a := metric(1, 1)
		a.Statistic = c.statistic
		a.EvaluateLowSampleCountPercentile = c.setting
		points := []Datapoint{{Timestamp: now.Add(-5 * time.Minute), Value: 5, SampleCount: c.samples}}
		if got := a.Evaluate(OK, points, now).State; got != c.want {
			t.Errorf("%s of %v samples, %q: got %s, want %s", c.statistic, c.samples, c.setting, got, c.want)
		}
	}
}

// The sentences have the form shown on the pages "Alarm events and EventBridge" and DescribeAlarmHistory.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		m, n      int
		treatment string
		points    string
		want      string
	}{
		{
			1, 1, "", "X",
			"Threshold Crossed: 1 out of the last 1 datapoints [5.0 (21/11/26 11:55:00)] " +
				"was greater than the threshold (3.0) (minimum 1 datapoint for OK -> ALARM transition).",
		},
		{
			2, 3, "", "X 0 X",
			"Threshold Crossed: 2 out of the last 3 datapoints [5.0 (21/11/26 11:55:00), 5.0 (21/11/26 11:45:00)] " +
				"were greater than the threshold (3.0) (minimum 2 datapoints for OK -> ALARM transition).",
		},
		{
			2, 3, "", "X 0 0",
			"Threshold Crossed: 2 out of the last 3 datapoints [1.0 (21/11/26 11:55:00), 1.0 (21/11/26 11:50:00)] " +
				"were not greater than the threshold (3.0) (minimum 2 datapoints for ALARM -> OK transition).",
		},
		{1, 1, "", "-", "Insufficient Data: 1 datapoint was unknown."},
		{3, 3, "", "-", "Insufficient Data: 3 datapoints were unknown."},
		{
			1, 1, Breaching, "-",
			"Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as [Breaching].",
		},
		{
			2, 2, NotBreaching, "-",
			"Threshold Crossed: no datapoints were received for 2 periods and 2 missing datapoints were treated as [NonBreaching].",
		},
		{
			2, 2, Breaching, "X",
			"Threshold Crossed: 1 out of the last 1 datapoints [5.0 (21/11/26 11:55:00)] " +
				"was greater than the threshold (3.0) and 1 missing datapoint was treated as [Breaching].",
		},
		{1, 2, Breaching, "0", "Threshold Crossed: 1 missing datapoint was treated as [Breaching]."},
	} {
		a := metric(c.m, c.n)
		a.TreatMissingData = c.treatment
		if got := a.Evaluate("", datapoints(c.points, a.Period), now).Reason; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	for value, want := range map[float64]string{
		0: "0.0", 4: "4.0", -99.5: "-99.5", 1e7: "1.0E7", 12345678.9: "1.23456789E7", 0.0005: "5.0E-4",
	} {
		if got := number(value); got != want {
			t.Errorf("%v is written %s, want %s", value, got, want)
		}
	}
}

func TestReasonData(t *testing.T) {
	a := metric(2, 2)
	a.Unit = "Percent"
	got := a.Evaluate(OK, datapoints("X X", a.Period), now).Data.JSON()
	const want = `{"version":"1.0","queryDate":"2026-11-21T12:00:30.000+0000","startDate":"2026-11-21T11:50:00.000+0000",` +
		`"unit":"Percent","statistic":"Average","period":300,"recentDatapoints":[5,5],"threshold":3,` +
		`"evaluatedDatapoints":[{"timestamp":"2026-11-21T11:55:00.000+0000","sampleCount":1,"value":5},` +
		`{"timestamp":"2026-11-21T11:50:00.000+0000","sampleCount":1,"value":5}]}`
	if got != want {
		t.Errorf("got %s", got)
	}
	var data map[string]any
	err := json.Unmarshal([]byte(a.Evaluate(OK, nil, now).Data.JSON()), &data)
	if err != nil || data["recentDatapoints"] == nil || data["startDate"] != nil {
		t.Errorf("without data points it is %v: %v", data, err)
	}
}

// TestCheck: the constraints of PutMetricAlarm.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Metric)
		says   string
	}{
		{func(a *Metric) {}, ""},
		{func(a *Metric) { a.ComparisonOperator = "Near" }, "ComparisonOperator must be"},
		{func(a *Metric) { a.EvaluationPeriods = 0 }, "EvaluationPeriods"},
		{func(a *Metric) { a.DatapointsToAlarm = 4 }, "DatapointsToAlarm"},
		{func(a *Metric) { a.DatapointsToAlarm = -1 }, "DatapointsToAlarm"},
		{func(a *Metric) { a.TreatMissingData = "maybe" }, "TreatMissingData"},
		{func(a *Metric) { a.EvaluateLowSampleCountPercentile = "maybe" }, "EvaluateLowSampleCountPercentile"},
		{func(a *Metric) { a.Period = 10 * time.Second }, ""},
		{func(a *Metric) { a.Period = 30 * time.Second }, ""},
		{func(a *Metric) { a.Period = 15 * time.Second }, "Period must be 10, 20, 30"},
		{func(a *Metric) { a.Period = 90 * time.Second }, "Period must be 10, 20, 30"},
		{func(a *Metric) { a.Period = 0 }, "Period must be 10, 20, 30"},
		{func(a *Metric) { a.Period, a.EvaluationPeriods = time.Minute, 1440 }, ""},
		{func(a *Metric) { a.Period, a.EvaluationPeriods = time.Minute, 1441 }, "at most 86400 seconds"},
		{func(a *Metric) { a.Period, a.EvaluationPeriods = 24*time.Hour, 7 }, ""},
		{func(a *Metric) { a.Period, a.EvaluationPeriods = 24*time.Hour, 8 }, "at most 604800 seconds"},
	} {
		a := metric(2, 3)
		c.change(&a)
		if err := a.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", a, err, c.says)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	a := metric(3, 3)
	points := datapoints("0 X X - X", a.Period)
	b.ReportAllocs()
	for b.Loop() {
		a.Evaluate(OK, points, now)
	}
}
