package pages

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// TestFigure: a plot has a title, a description and a table for those who don't see it, and whatever users call things is text.
func TestFigure(t *testing.T) {
	d := drawing{id: "p", title: "Load of " + nasty, unit: "%", Plot: plot.Plot{
		From: noon, To: minute(60),
		Lines:  []plot.Line{{Name: nasty, Points: []plot.Point{{At: noon, Value: 12.345}, {At: minute(60), Value: 80}}}, {Name: "none"}},
		Levels: []plot.Level{{Name: "target", Value: 75}},
		Spans:  []plot.Span{{From: minute(10), To: minute(20)}},
		Marks:  []time.Time{minute(30)},
	}, spans: []string{"ALARM"}, marks: "scaled"}
	html := markup.String(d.figure())
	for _, want := range []string{
		`<title id="p-title">Load of &lt;script&gt;`, `aria-labelledby="p-title"`, "between 12.3 and 80, 80 at last. target: 75.", `<rect class="span"`,
		`class="threshold s2" d="M52`, `class="mark"`, "Mar 1 13:00Z", `<td class="number">80</td>`, "ALARM", "target: 75",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the plot lacks %s: %s", want, html)
		}
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "none: ") || strings.Contains(html, "style=") {
		t.Errorf("the plot is %s", html)
	}
	if html := markup.String(drawing{title: "x"}.figure()); strings.Contains(html, "<svg") || !strings.Contains(html, "No values") {
		t.Errorf("a plot of nothing is %s", html)
	}
}

// TestAlarmSpans: an alarm's history says when it was in ALARM, also before its first change and after its last.
func TestAlarmSpans(t *testing.T) {
	change := func(at int, from, to string) types.AlarmHistoryItem {
		return types.AlarmHistoryItem{Timestamp: aws.Time(minute(at)), HistorySummary: aws.String("Alarm updated from " + from + " to " + to)}
	}
	span := func(from, to int) plot.Span { return plot.Span{From: minute(from), To: minute(to)} }
	for name, c := range map[string]struct {
		history []types.AlarmHistoryItem
		atEnd   bool
		want    []plot.Span
	}{
		"never":           {nil, false, nil},
		"all the time":    {nil, true, []plot.Span{span(0, 60)}},
		"it ended":        {[]types.AlarmHistoryItem{change(10, "ALARM", "OK")}, false, []plot.Span{span(0, 10)}},
		"it began":        {[]types.AlarmHistoryItem{change(10, "OK", "ALARM")}, true, []plot.Span{span(10, 60)}},
		"twice":           {[]types.AlarmHistoryItem{change(10, "OK", "ALARM"), change(20, "ALARM", "OK"), change(40, "OK", "ALARM"), change(50, "ALARM", "INSUFFICIENT_DATA")}, false, []plot.Span{span(10, 20), span(40, 50)}},
		"other summaries": {[]types.AlarmHistoryItem{{Timestamp: aws.Time(minute(5)), HistorySummary: aws.String("Alarm created")}}, false, nil},
	} {
		if got := spansOf(c.history, c.atEnd, noon, minute(60)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestInstancesOver: what a group had follows from what it has and what was done.
func TestInstancesOver(t *testing.T) {
	act := func(at int, what string, status grouptypes.ScalingActivityStatusCode) grouptypes.Activity {
		return grouptypes.Activity{Description: &what, StatusCode: status, EndTime: aws.Time(minute(at))}
	}
	const done = grouptypes.ScalingActivityStatusCodeSuccessful
	got := instancesOver(stretch{from: noon, to: minute(60)}, []grouptypes.Activity{ // the newest first
		act(50, "Terminating EC2 instance: i-1", done),
		act(40, "Launching a new EC2 instance: i-3", grouptypes.ScalingActivityStatusCodeFailed),
		act(20, "Launching a new EC2 instance: i-2", done),
		act(-10, "Launching a new EC2 instance: i-1", done),
	}, 1)
	want := []plot.Point{{At: noon, Value: 1}, {At: minute(20), Value: 2}, {At: minute(50), Value: 1}, {At: minute(60), Value: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestQueriesOf: an alarm's metric is drawn with points as far apart as the plot's, never closer than the alarm's own.
func TestQueriesOf(t *testing.T) {
	for period, want := range map[int32]int32{10: 30, 60: 60} {
		a := types.MetricAlarm{MetricName: aws.String("m"), Namespace: aws.String("n"), Statistic: types.StatisticSum, Period: &period}
		if got := queriesOf(a, 30*time.Second)[0].MetricStat; *got.Period != want || *got.Stat != "Sum" || *got.Metric.MetricName != "m" {
			t.Errorf("a period of %d: got %v every %d s", period, *got.Stat, *got.Period)
		}
		math := types.MetricAlarm{Metrics: []types.MetricDataQuery{{Id: aws.String("e"), Expression: aws.String("m*2")},
			{Id: aws.String("m"), ReturnData: aws.Bool(false), MetricStat: &types.MetricStat{Period: &period}}}}
		if got := queriesOf(math, 30*time.Second); *got[1].MetricStat.Period != want || *math.Metrics[1].MetricStat.Period != period {
			t.Errorf("a period of %d in an expression: got %d", period, *got[1].MetricStat.Period)
		}
	}
}
