// Package costs asks CloudWatch what the machines cost, as whoever is in the context: now, today and this month. The console's page and
// /pintle/cost, for pintle cost, show it. It knows no prices but those that it's given, and counts nothing itself: package metering does.
package costs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/console/bill"
	"github.com/pintle/pintle/internal/console/plot"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Path is where pintle cost asks for a Report.
const Path = "/pintle/cost"

// Report is what machines cost.
type Report struct {
	Priced bool `json:"hasPrices"` // there is a list of prices
	Now    Rate `json:"now"`
	Today  Time `json:"today"`
	Month  Time `json:"month"`
}

// Rate is what an hour of the machines costs that there are.
type Rate struct {
	Cost     float64     `json:"costPerHour"`
	Machines []Machines  `json:"machines"`
	Over     []plot.Line `json:"-"` // how many there were in the last hour, by instance type
	From, To time.Time   `json:"-"`
}

// Machines are those of an instance type.
type Machines struct {
	Type  string   `json:"instanceType"`
	Count int      `json:"count"`
	Price *float64 `json:"pricePerHour"` // nil if the list doesn't have the type
	Cost  float64  `json:"costPerHour"`
}

// Time is what a time has cost.
type Time struct {
	Since time.Time `json:"since"` // nothing is known of what was there before
	bill.Bill
	Saved        float64 `json:"saved"`
	GPUHours     float64 `json:"gpuHoursPaidFor"`
	GPUHoursHeld float64 `json:"gpuHoursHeldByTasks"`
}

// query asks for one report.
type query struct {
	ctx    context.Context
	caller call.Caller
	prices map[string]float64
	now    time.Time
	types  []string // that there were machines of
}

// Of returns what machines cost by prices of instance types.
func Of(ctx context.Context, caller call.Caller, prices map[string]float64, now time.Time) (r Report, err error) {
	q := &query{ctx: ctx, caller: caller, prices: prices, now: now.UTC()}
	r.Priced = len(prices) > 0
	if q.types, err = q.usedTypes(); err != nil {
		return r, err
	}
	if r.Now, err = q.rate(); err != nil {
		return r, err
	}
	if r.Today, err = q.bill(bill.StartOfDay(q.now), 5*time.Minute); err != nil {
		return r, err
	}
	r.Month, err = q.bill(bill.StartOfMonth(q.now), time.Hour)
	return r, err
}

// usedTypes returns the instance types that there were machines of.
func (q *query) usedTypes() (types []string, err error) {
	in := &cloudwatch.ListMetricsInput{Namespace: aws.String(state.NamespaceUsage), MetricName: aws.String("InstanceSeconds")}
	for {
		out, err := call.Do[cloudwatch.ListMetricsOutput](q.ctx, q.caller, in)
		if err != nil {
			return nil, err
		}
		for _, m := range out.Metrics {
			for _, d := range m.Dimensions {
				types = append(types, aws.ToString(d.Value))
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	for name := range q.prices { // ListMetrics forgets what hasn't been told of for two weeks
		types = append(types, name)
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// byType returns a metric of each type.
func (q *query) byType(from time.Time, period time.Duration, name, stat string) (lines []plot.Line, err error) {
	for part := range slices.Chunk(q.types, 100) {
		var stats []types.MetricStat
		for _, t := range part {
			stats = append(stats, statOf(name, stat, period, types.Dimension{Name: aws.String("InstanceType"), Value: &t}))
		}
		some, err := q.lines(from, period, stats)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	for i := range lines {
		lines[i].Name = q.types[i]
	}
	return lines, nil
}

func statOf(name, stat string, period time.Duration, by ...types.Dimension) types.MetricStat {
	metric := &types.Metric{Namespace: aws.String(state.NamespaceUsage), MetricName: &name, Dimensions: by}
	return types.MetricStat{Metric: metric, Stat: &stat, Period: aws.Int32(int32(period / time.Second))}
}

// lines returns a line for each metric.
func (q *query) lines(from time.Time, period time.Duration, stats []types.MetricStat) (lines []plot.Line, err error) {
	in := &cloudwatch.GetMetricDataInput{StartTime: &from, EndTime: &q.now, ScanBy: types.ScanByTimestampAscending}
	for i := range stats {
		in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{Id: aws.String("m" + strconv.Itoa(i)), MetricStat: &stats[i]})
	}
	out, err := call.Do[cloudwatch.GetMetricDataOutput](q.ctx, q.caller, in)
	if err != nil {
		return nil, err
	}
	if len(out.MetricDataResults) != len(stats) {
		return nil, fmt.Errorf("GetMetricData answered %d of %d queries", len(out.MetricDataResults), len(stats))
	}
	for _, r := range out.MetricDataResults {
		l := plot.Line{Gap: max(3*period, 3*time.Minute)}
		for i, at := range r.Timestamps {
			l.Points = append(l.Points, plot.Point{At: at, Value: r.Values[i]})
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// rate returns the machines that there are.
func (q *query) rate() (r Rate, err error) {
	r.From, r.To = q.now.Add(-time.Hour), q.now
	lines, err := q.byType(r.From, time.Minute, "Instances", "Maximum")
	if err != nil {
		return r, err
	}
	machines := map[string]float64{}
	for _, l := range lines {
		if len(l.Points) == 0 {
			continue
		}
		r.Over = append(r.Over, l)
		n, has := l.At(q.now)
		if last := l.Points[len(l.Points)-1]; !has || q.now.Sub(last.At) > 2*time.Minute {
			continue
		}
		machines[l.Name] = n
		m := Machines{Type: l.Name, Count: int(n)}
		if price, has := q.prices[l.Name]; has {
			m.Price = &price
			m.Cost = n * price
		}
		r.Machines = append(r.Machines, m)
	}
	r.Cost = bill.Rate(machines, q.prices)
	return r, nil
}

// bill returns what the time since then has cost.
func (q *query) bill(from time.Time, period time.Duration) (t Time, err error) {
	seconds, err := q.byType(from, period, "InstanceSeconds", "Sum")
	if err != nil {
		return t, err
	}
	most, err := q.byType(from, period, "Instances", "Maximum")
	if err != nil {
		return t, err
	}
	gpus, err := q.lines(from, period, []types.MetricStat{statOf("GPUSeconds", "Sum", period), statOf("GPUSecondsHeld", "Sum", period)})
	if err != nil {
		return t, err
	}
	var uses []bill.Use
	for i, name := range q.types {
		uses = append(uses, bill.Use{Type: name, Hours: sum(seconds[i]) / 3600, Most: highest(most[i])})
	}
	if t.Since, err = q.since(first(q.now, seconds), period); err != nil {
		return t, err
	}
	t.Bill = bill.Of(uses, q.prices, q.now.Sub(t.Since))
	t.Saved = t.Bill.Saved()
	t.GPUHours, t.GPUHoursHeld = sum(gpus[0])/3600, sum(gpus[1])/3600
	return t, nil
}

// since returns the minute of the first value in a period, where CloudWatch still knows that: most of the period may have been before it.
func (q *query) since(begin time.Time, period time.Duration) (time.Time, error) {
	if !begin.Before(q.now) {
		return begin, nil // there was none yet
	}
	within := *q
	within.now = begin.Add(period)
	if within.now.After(q.now) {
		within.now = q.now
	}
	minutes, err := within.byType(begin, time.Minute, "InstanceSeconds", "Sum")
	if at := first(within.now, minutes); at.Before(within.now) {
		begin = at
	}
	return begin, err
}

// first returns when the first value was, or a time before which there is none.
func first(at time.Time, lines []plot.Line) time.Time {
	for _, l := range lines {
		if len(l.Points) > 0 && l.Points[0].At.Before(at) {
			at = l.Points[0].At
		}
	}
	return at
}

func sum(l plot.Line) (all float64) {
	for _, p := range l.Points {
		all += p.Value
	}
	return all
}

func highest(l plot.Line) (most float64) {
	for _, p := range l.Points {
		most = max(most, p.Value)
	}
	return most
}
