package pages

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/pintle/pintle/internal/console/bill"
	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
)

// usage is the namespace of what package metering keeps of machines.
const usage = "Pintle/Usage"

// moneyView shows what machines cost by the list of prices, and what was made of them.
func (p *Pages) moneyView() view {
	return view{
		path:  "/console/money",
		nav:   "Money",
		title: func(*visit) string { return "Money" },
		body:  p.moneyBody,
		every: plotsEvery,
	}
}

func (p *Pages) moneyBody(v *visit) ([]live.Fragment, error) {
	types, err := v.usedTypes()
	if err != nil {
		return nil, err
	}
	now := p.opts.Now().UTC()
	parts := []live.Fragment{}
	if len(p.opts.Prices) == 0 {
		parts = append(parts, section("prices", "No prices", markup.E("p", markup.Class("why"), "Start Pintle with --prices FILE, a JSON object of prices an hour by instance type. Hours are counted without it.")))
	}
	rate, err := p.rate(v, types, now)
	if err != nil {
		return nil, err
	}
	parts = append(parts, rate)
	for _, t := range []struct {
		id, title string
		from      time.Time
		period    time.Duration
	}{
		{"today", "Today", bill.StartOfDay(now), 5 * time.Minute},
		{"month", "This month", bill.StartOfMonth(now), time.Hour},
	} {
		part, err := p.bill(v, t.id, t.title, types, stretch{from: t.from, to: now, period: t.period})
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// usedTypes returns the instance types that there were machines of.
func (v *visit) usedTypes() (types []string, err error) {
	in := &cloudwatch.ListMetricsInput{Namespace: aws.String(usage), MetricName: aws.String("InstanceSeconds")}
	for {
		out, err := ask[cloudwatch.ListMetricsOutput](v, in)
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
	for name := range v.pages.opts.Prices { // ListMetrics forgets what hasn't been told of for two weeks
		types = append(types, name)
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// byType returns a metric of each type.
func (v *visit) byType(s stretch, types []string, name, stat string) ([]plot.Line, error) {
	var lines []plot.Line
	for part := range slices.Chunk(types, 100) {
		var all []metric
		for _, t := range part {
			all = append(all, metric{label: t, namespace: usage, name: name, by: []string{"InstanceType", t}, stat: stat})
		}
		some, err := v.lines(s, all...)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	return lines, nil
}

// rate shows the machines that there are, and what an hour of them costs.
func (p *Pages) rate(v *visit, types []string, now time.Time) (live.Fragment, error) {
	s := stretch{from: now.Add(-time.Hour), to: now, period: time.Minute}
	lines, err := v.byType(s, types, "Instances", "Maximum")
	if err != nil {
		return live.Fragment{}, err
	}
	machines := map[string]float64{}
	var rows []markup.Node
	d := drawing{id: "machines", title: "Machines", Plot: plot.Plot{From: s.from, To: s.to}}
	for i, l := range lines {
		if len(l.Points) == 0 {
			continue
		}
		d.Lines = append(d.Lines, l)
		n, has := l.At(now)
		if last := l.Points[len(l.Points)-1]; !has || now.Sub(last.At) > 2*time.Minute {
			continue
		}
		machines[types[i]] = n
		rows = append(rows, row(types[i], int(n), priceOf(p.opts.Prices, types[i]), amount(n*p.opts.Prices[types[i]])))
	}
	return plots("now", "Now", []drawing{d}, nil,
		markup.E("ul", markup.Class("figures"), markup.E("li", markup.E("b", string(amount(bill.Rate(machines, p.opts.Prices)))), " an hour")),
		table("Machines that there are", columns("Instance type", "#Machines", "#Price an hour", "#Cost an hour"), rows...)), nil
}

// bill shows what a time has cost.
func (p *Pages) bill(v *visit, id, title string, types []string, s stretch) (live.Fragment, error) {
	seconds, err := v.byType(s, types, "InstanceSeconds", "Sum")
	if err != nil {
		return live.Fragment{}, err
	}
	most, err := v.byType(s, types, "Instances", "Maximum")
	if err != nil {
		return live.Fragment{}, err
	}
	var uses []bill.Use
	for i, t := range types {
		if i < len(seconds) && i < len(most) {
			uses = append(uses, bill.Use{Type: t, Hours: sum(seconds[i]) / 3600, Most: highest(most[i])})
		}
	}
	since := first(s.to, seconds) // nothing is known of what was there before
	b := bill.Of(uses, p.opts.Prices, s.to.Sub(since))
	gpus, err := v.lines(s, metric{label: "paid for", namespace: usage, name: "GPUSeconds", stat: "Sum"}, metric{label: "held by tasks", namespace: usage, name: "GPUSecondsHeld", stat: "Sum"})
	if err != nil {
		return live.Fragment{}, err
	}
	figures := []markup.Node{
		markup.E("li", markup.E("b", string(amount(b.Cost))), " cost"),
		markup.E("li", markup.E("b", string(amount(b.AtPeak))), " with as many machines as at the busiest moment all the time"),
		markup.E("li", markup.E("b", string(amount(b.Saved()))), " saved by scaling, to zero and otherwise"),
	}
	if len(gpus) == 2 {
		paid, held := sum(gpus[0])/3600, sum(gpus[1])/3600
		figures = append(figures, markup.E("li", markup.E("b", short(held)), " of ", markup.E("b", short(paid)), " GPU-hours were held by tasks", share(held, paid)))
	}
	var rows []markup.Node
	for _, i := range b.Items {
		rows = append(rows, row(i.Type, amount(i.Hours), numeric(short(i.Most)), priceOf(p.opts.Prices, i.Type), amount(i.Cost), amount(i.AtPeak)))
	}
	more := ""
	if len(b.Unpriced) > 0 && len(p.opts.Prices) > 0 {
		more = "The list of prices doesn't have " + strings.Join(b.Unpriced, ", ") + "."
	}
	return section(id, title, markup.E("p", "Counted since ", moment(&since)), markup.E("ul", markup.Class("figures"), figures),
		table("What machines cost: "+title, columns("Instance type", "#Hours", "#Most at once", "#Price an hour", "#Cost", "#At the peak"), rows...), markup.E("p", more)), nil
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

// amount writes hours, or a sum of money in whatever currency prices are.
func amount(sum float64) numeric { return numeric(strconv.FormatFloat(sum, 'f', 2, 64)) }

func priceOf(prices map[string]float64, name string) numeric {
	if price, has := prices[name]; has {
		return numeric(number(price))
	}
	return "–"
}

func share(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*part/whole)
}
