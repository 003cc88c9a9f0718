package metricquery

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// filled returns a store with ten minutes of two metrics: a counts 1 to 10; b is 100 in one unit and 1 in another.
func filled(t *testing.T) *metrics.Store {
	t.Helper()
	store, err := metrics.Open(t.TempDir(), metrics.Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
	var samples []metrics.Sample
	for i := range 10 {
		at := noon.Add(time.Duration(i-10) * time.Minute).Unix()
		samples = append(samples,
			metrics.Sample{Metric: metrics.NewMetric("n", "a"), Unit: "Percent", At: at, Set: metrics.One(float64(i + 1))},
			metrics.Sample{Metric: metrics.NewMetric("n", "b"), Unit: "Percent", At: at, Set: metrics.One(100)},
			metrics.Sample{Metric: metrics.NewMetric("n", "b"), Unit: "Count", At: at, Set: metrics.One(1)})
	}
	if err := store.Put(samples); err != nil {
		t.Fatal(err)
	}
	return store
}

func metric(id, name string, period int32, stat string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String("n"), MetricName: &name},
		Period: &period,
		Stat:   &stat,
	}}
}

func expression(id, text string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, Expression: &text}
}

func hidden(q types.MetricDataQuery) types.MetricDataQuery {
	q.ReturnData = aws.Bool(false)
	return q
}

type queries = []types.MetricDataQuery

func TestRun(t *testing.T) {
	store := filled(t)
	percent := metric("m1", "b", 300, "Sum")
	percent.MetricStat.Unit = types.StandardUnitPercent
	labelled := metric("m1", "a", 300, "Maximum")
	labelled.Label = aws.String("highest")
	labelled2 := labelled
	labelled2.Id = aws.String("m3")
	named := expression("e1", "SEARCH('MetricName=a', 'Sum', 600)")
	named.Label = aws.String("found")
	named.Period = aws.Int32(300)
	for _, c := range []struct {
		name    string
		queries queries
		want    string
	}{
		{"a metric", queries{metric("m1", "a", 300, "Sum")}, "m1 a [11:50 15, 11:55 40]"},
		{"a label", queries{labelled}, "m1 highest [11:50 5, 11:55 10]"},
		{
			"statistics of one metric", queries{metric("m1", "a", 300, "Sum"), metric("m2", "a", 300, "Minimum"), metric("m3", "b", 600, "Sum")},
			"m1 a Sum [11:50 15, 11:55 40]; m2 a Minimum [11:50 1, 11:55 6]; m3 b [11:50 1010]",
		},
		{
			"periods of one metric", queries{metric("m1", "a", 300, "Sum"), metric("m2", "a", 600, "Sum")},
			"m1 a 300 [11:50 15, 11:55 40]; m2 a 600 [11:50 55]",
		},
		{
			"statistics and periods of one metric", queries{metric("m1", "a", 300, "Sum"), metric("m2", "a", 600, "Minimum")},
			"m1 a Sum 300 [11:50 15, 11:55 40]; m2 a Minimum 600 [11:50 1]",
		},
		{
			"only what is returned counts, and what has no label", queries{metric("m1", "a", 300, "Sum"), hidden(metric("m2", "a", 600, "Sum")), labelled2},
			"m1 a [11:50 15, 11:55 40]; m3 highest [11:50 5, 11:55 10]",
		},
		{"no data", queries{metric("m1", "none", 300, "Sum")}, "m1 none []"},
		{"all units", queries{metric("m1", "b", 300, "Sum")}, "m1 b [11:50 505, 11:55 505]"},
		{"one unit", queries{percent}, "m1 b [11:50 500, 11:55 500]"},
		{
			"an expression", queries{hidden(metric("m1", "a", 300, "Average")), expression("e1", "m1 * 2")},
			"e1 e1 [11:50 6, 11:55 16]",
		},
		{
			"expressions in any order",
			queries{expression("e2", "e1 + 1"), hidden(expression("e1", "m1 * 2")), hidden(metric("m1", "a", 300, "Sum"))},
			"e2 e2 [11:50 31, 11:55 81]",
		},
		{
			"the longest period is the expression's",
			queries{metric("m1", "a", 60, "Maximum"), hidden(metric("m2", "a", 600, "Sum")), expression("e1", "m1 + m2")},
			"m1 a [11:50 1, 11:51 2, 11:52 3, 11:53 4, 11:54 5, 11:55 6, 11:56 7, 11:57 8, 11:58 9, 11:59 10]; e1 e1 [11:50 65]",
		},
		{
			"several time series",
			queries{
				hidden(metric("m1", "a", 600, "Sum")), hidden(metric("m2", "b", 600, "Maximum")), expression("e1", "METRICS() * 2"),
			},
			"e1 a [11:50 110]; e1 b [11:50 200]",
		},
		{"a search", queries{expression("e1", "SEARCH('{n}', 'Sum', 600)")}, "e1 a [11:50 55]; e1 b [11:50 1010]"},
		{"a search with a label and a period of its own", queries{named}, "e1 found a [11:50 15, 11:55 40]"},
		{"a search that finds nothing", queries{expression("e1", "SEARCH('{other}', 'Sum', 600)")}, ""},
		{"a search in an expression", queries{expression("e1", "SUM(SEARCH('{n}', 'Maximum', 600))")}, "e1 e1 [11:50 110]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := New(c.queries)
			if err != nil {
				t.Fatal(err)
			}
			result, err := q.Run(store, noon.Add(-10*time.Minute), noon)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range result.Answers {
				var points []string
				for _, p := range a.Points {
					points = append(points, fmt.Sprintf("%s %g", p.At.Format("15:04"), p.Value))
				}
				got = append(got, fmt.Sprintf("%s %s [%s]", a.ID, a.Label, strings.Join(points, ", ")))
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestEnding: the periods of metrics and expressions may end at any second.
func TestEnding(t *testing.T) {
	store, err := metrics.Open(t.TempDir(), metrics.Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	var samples []metrics.Sample
	for second := range 60 {
		samples = append(samples, metrics.Sample{
			Metric: metrics.NewMetric("n", "a"),
			At:     noon.Unix() - 60 + int64(second),
			Fine:   true,
			Set:    metrics.One(float64(second)),
		})
	}
	if err := store.Put(samples); err != nil {
		t.Fatal(err)
	}
	q, err := New([]types.MetricDataQuery{metric("m1", "a", 10, "Average"), expression("e1", "m1 * 10")})
	if err != nil {
		t.Fatal(err)
	}
	end := noon.Add(-7 * time.Second) // after second 52
	r, err := q.Ending(end).Run(store, end.Add(-20*time.Second), end)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"37.5 47.5", "375 475"} {
		var got []string
		for n, p := range r.Answers[i].Points {
			got = append(got, fmt.Sprint(p.Value))
			if at := end.Add(time.Duration(n-2) * 10 * time.Second); !p.At.Equal(at) {
				t.Errorf("point %d begins at %v, want %v", n, p.At, at)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", r.Answers[i].ID, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	long, err := New([]types.MetricDataQuery{metric("m1", "a", 1, "Sum"), expression("e1", "m1 + TIME_SERIES(1)")})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := long.Run(filled(t), time.Time{}, noon.AddDate(5000, 0, 0)); err != nil || len(result.Answers) != 2 {
		t.Errorf("all of time: got %v", err)
	}
	for _, c := range []struct {
		name    string
		queries []types.MetricDataQuery
		says    string
	}{
		{"an id", queries{metric("M", "a", 60, "Sum")}, "MetricDataQueries[0].Id"},
		{"an id twice", queries{metric("m", "a", 60, "Sum"), expression("m", "1")}, "twice"},
		{"neither", queries{{Id: aws.String("m")}}, "one of MetricStat and Expression"},
		{"a period", queries{metric("m", "a", 61, "Sum")}, "Period"},
		{"a statistic", queries{metric("m", "a", 60, "Mean")}, "Stat"},
		{"no name", queries{metric("m", "", 60, "Sum")}, "MetricName"},
		{"what cannot be read", queries{expression("e", "SUM(")}, "Error in expression 'e'"},
		{"no period", queries{expression("e", "TIME_SERIES(1)")}, "Period"},
		{"a search's statistic", queries{expression("e", "SEARCH('x', 'Mean', 60)")}, "Mean"},
		{"a search's period", queries{expression("e", "SEARCH('x', 'Sum', 61)")}, "61"},
		{"a search without a period", queries{expression("e", "SEARCH('x', 'Sum')")}, "Period"},
		{"nothing", queries{metric("m", "a", 60, "Sum"), expression("e", "m1")}, "m1"},
		{"itself", queries{metric("m", "a", 60, "Sum"), expression("e", "f"), expression("f", "e")}, "itself"},
	} {
		if _, err := New(c.queries); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	q, err := New([]types.MetricDataQuery{metric("m1", "a", 60, "Sum"), expression("e1", "AVG(m1)")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.Run(filled(t), noon.Add(-10*time.Minute), noon)
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "e1") {
		t.Errorf("a single number: got %v", err)
	}
}

// Searches together find at most as many time series as a graph may have. The first searches come first.
func TestSearchIsBounded(t *testing.T) {
	store := filled(t)
	var samples []metrics.Sample
	for i := range maxFound + 1 {
		m := metrics.NewMetric("many", "m", metrics.Dimension{Name: "D", Value: fmt.Sprintf("%04d", i)})
		samples = append(samples, metrics.Sample{Metric: m, Unit: "None", At: noon.Add(-time.Minute).Unix(), Set: metrics.One(1)})
	}
	if err := store.Put(samples); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		queries []types.MetricDataQuery
		found   int
		cut     bool
	}{
		{[]types.MetricDataQuery{expression("e1", "SEARCH('{many,D}', 'Sum', 60)")}, maxFound, true},
		{[]types.MetricDataQuery{expression("e1", `SEARCH('{many,D} NOT D="0007"', 'Sum', 60)`)}, maxFound, false},
		{
			queries{
				expression("e1", `SEARCH('{many,D} NOT D="0007"', 'Sum', 60)`), expression("e2", "SEARCH('{n}', 'Sum', 60)"),
			},
			maxFound, true,
		},
	} {
		q, err := New(c.queries)
		if err != nil {
			t.Fatal(err)
		}
		result, err := q.Run(store, noon.Add(-10*time.Minute), noon)
		if err != nil || len(result.Answers) != c.found || result.Cut != c.cut {
			t.Errorf("found %d, cut %v, %v", len(result.Answers), result.Cut, err)
		}
	}
}

// A band comes from the two weeks before the range, without the times that a detector excludes, or from the range itself
// if there is nothing before it.
func TestBand(t *testing.T) {
	store := filled(t)
	run := func(start time.Time, c *types.AnomalyDetectorConfiguration) (lower, upper float64) {
		t.Helper()
		q, err := New([]types.MetricDataQuery{
			metric("m1", "a", 60, "Maximum"),
			hidden(expression("twice", "m1 * 2")),
			expression("e1", "ANOMALY_DETECTION_BAND(twice, 1)"),
		})
		if err != nil || len(q.Banded()) != 1 {
			t.Fatal(q, err)
		}
		q.Detect("twice", c)
		result, err := q.Run(store, start, noon)
		if err != nil || len(result.Answers) != 3 || result.Answers[1].Label != "twice (expected) High" ||
			result.Answers[2].Label != "twice (expected) Low" {
			t.Fatalf("got %+v, %v", result, err)
		}
		high, low := result.Answers[1].Points, result.Answers[2].Points
		if len(high) == 0 || len(high) != len(low) {
			t.Fatalf("got %d and %d points", len(high), len(low))
		}
		return low[0].Value, high[0].Value
	}
	for _, c := range []struct {
		name         string
		start        time.Time
		without      int // excluded minutes before noon
		middle, half float64
	}{
		{"of the nine minutes before", noon.Add(-time.Minute), 0, 10, 5.163977794943222},
		{"without the first six", noon.Add(-time.Minute), 4, 16, 1.632993161855452},
		{"of the range", noon.Add(-10 * time.Minute), 0, 11, 5.744562646538029},
	} {
		var detector *types.AnomalyDetectorConfiguration
		if c.without > 0 {
			detector = &types.AnomalyDetectorConfiguration{
				MetricTimezone: aws.String("Asia/Tokyo"),
				ExcludedTimeRanges: []types.Range{
					{StartTime: aws.Time(noon.Add(-time.Hour)), EndTime: aws.Time(noon.Add(-4 * time.Minute))},
				},
			}
		}
		lower, upper := run(c.start, detector)
		if math.Abs((lower+upper)/2-c.middle) > 1e-9 || math.Abs((upper-lower)/2-c.half) > 1e-9 {
			t.Errorf("%s: %v to %v", c.name, lower, upper)
		}
	}
}

// The period of an alarm on metric math is its queries' longest, including expressions'.
func TestPeriodOfAlarm(t *testing.T) {
	slow := expression("e1", "m1 * 2")
	slow.Period = aws.Int32(300)
	for want, alarm := range map[time.Duration]types.MetricAlarm{
		20 * time.Second: {MetricName: aws.String("m"), Period: aws.Int32(20)},
		time.Minute:      {Metrics: []types.MetricDataQuery{metric("m1", "a", 60, "Sum"), expression("e1", "m1 * 2")}},
		5 * time.Minute:  {Metrics: []types.MetricDataQuery{metric("m1", "a", 60, "Sum"), slow}},
	} {
		q, err := New(OfAlarm(&alarm))
		if alarm.MetricName == nil && (err != nil || q.Period() != want) || PeriodOfAlarm(&alarm) != want {
			t.Errorf("got %v, want %v: %v", PeriodOfAlarm(&alarm), want, err)
		}
	}
}

// BenchmarkSearch searches 100,000 series and finds 500 or none.
func BenchmarkSearch(b *testing.B) {
	store, err := metrics.Open(b.TempDir(), metrics.Options{Now: func() time.Time { return noon }})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the benchmark is over
	var samples []metrics.Sample
	for i := range 100_000 {
		m := metrics.NewMetric(
			"AWS/ECS", "CPUUtilization",
			metrics.Dimension{Name: "ClusterName", Value: fmt.Sprintf("cluster-%d", i/1000)},
			metrics.Dimension{Name: "ServiceName", Value: fmt.Sprintf("service-%d", i)},
		)
		samples = append(samples, metrics.Sample{Metric: m, Unit: "Percent", At: noon.Add(-time.Minute).Unix(), Set: metrics.One(1)})
	}
	if err := store.Put(samples); err != nil {
		b.Fatal(err)
	}
	for name, query := range map[string]string{
		"found=500": `{AWS/ECS,ClusterName,ServiceName} utilization`,
		"found=0":   `MetricName="none" OR ServiceName=web`,
	} {
		b.Run(name, func(b *testing.B) {
			q, err := New([]types.MetricDataQuery{expression("e1", "SEARCH('"+query+"', 'Average', 60)")})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := q.Run(store, noon.Add(-10*time.Minute), noon); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestValuesAreBounded: a small request can't fill the memory with what its expressions compute.
func TestValuesAreBounded(t *testing.T) {
	store := filled(t)
	minutes := func(id, text string) types.MetricDataQuery {
		e := expression(id, text)
		e.Period = aws.Int32(60)
		return e
	}
	many := queries{minutes("a0", "TIME_SERIES(1)")}
	for i := 1; i < 500; i++ {
		many = append(many, minutes(fmt.Sprintf("a%d", i), fmt.Sprintf("a%d + 1", i-1)))
	}
	arrays := queries{metric("m1", "a", 60, "Sum"), metric("m2", "b", 60, "Sum"), minutes("a0", "[m1, m2]")}
	for i := 1; i < 8; i++ {
		arrays = append(arrays, minutes(fmt.Sprintf("a%d", i), fmt.Sprintf("[a%d, a%d, a%d]", i-1, i-1, i-1)))
	}
	for name, c := range map[string]struct {
		queries queries
		days    int
		refused bool
	}{
		"500 expressions of five days":    {many, 5, false},
		"500 expressions of two weeks":    {many, 14, true},
		"expressions that make an array":  {arrays[:6], 14, false},
		"expressions that multiply a lot": {arrays[:8], 14, true},
	} {
		q, err := New(c.queries)
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		_, err = q.Each(store, noon.AddDate(0, 0, -c.days), noon, func(a Answer) bool {
			answers++
			return answers < 2
		})
		if wrong, ok := errors.AsType[*Error](err); ok != c.refused || !c.refused && (err != nil || answers != 2) {
			t.Errorf("%s: %d answers, %v %v", name, answers, err, wrong)
		}
	}
}
