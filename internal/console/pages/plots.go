package pages

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
)

// plotsEvery is how often pages with plots look for new values.
const plotsEvery = 10 * time.Second

// stretch is the time that plots show, and how far their values are apart.
type stretch struct {
	name     string
	length   time.Duration
	period   time.Duration
	from, to time.Time
}

var stretches = []stretch{
	{name: "1 h", length: time.Hour, period: 30 * time.Second},
	{name: "6 h", length: 6 * time.Hour, period: time.Minute},
	{name: "1 day", length: 24 * time.Hour, period: 5 * time.Minute},
	{name: "1 week", length: 7 * 24 * time.Hour, period: time.Hour},
}

// stretch is the one that was chosen, until now.
func (v *visit) stretch() stretch {
	chosen := stretches[0]
	for _, s := range stretches {
		if v.query("last") == s.name {
			chosen = s
		}
	}
	chosen.to = v.pages.opts.Now().UTC()
	chosen.from = chosen.to.Add(-chosen.length)
	return chosen
}

// chooseStretch leads to the same page with plots of other lengths.
func chooseStretch(v *visit) (markup.Node, error) {
	var pairs []string
	for _, s := range stretches {
		pairs = append(pairs, s.name, with(v.r.URL.EscapedPath(), "last", s.name))
	}
	return markup.E("div", markup.Class("tools"), choice("The last", v.stretch().name, pairs...)), nil
}

// metric is what a line is of.
type metric struct {
	label           string
	namespace, name string
	by              []string // dimensions: names and values in turn
	stat            string
	steps           bool
}

func (m metric) query(id string, period time.Duration) types.MetricDataQuery {
	stat := &types.MetricStat{Metric: &types.Metric{Namespace: &m.namespace, MetricName: &m.name}, Stat: &m.stat, Period: aws.Int32(int32(period / time.Second))}
	for i := 0; i+1 < len(m.by); i += 2 {
		stat.Metric.Dimensions = append(stat.Metric.Dimensions, types.Dimension{Name: &m.by[i], Value: &m.by[i+1]})
	}
	return types.MetricDataQuery{Id: &id, MetricStat: stat, Label: &m.label}
}

// lines returns the values of metrics.
func (v *visit) lines(s stretch, all ...metric) ([]plot.Line, error) {
	var queries []types.MetricDataQuery
	for i, m := range all {
		queries = append(queries, m.query("m"+strconv.Itoa(i), s.period))
	}
	lines, err := v.answers(s, queries)
	for i := range lines {
		lines[i].Steps = all[i].steps
	}
	return lines, err
}

// answers returns the values of queries that return data.
func (v *visit) answers(s stretch, queries []types.MetricDataQuery) (lines []plot.Line, err error) {
	out, err := ask[cloudwatch.GetMetricDataOutput](v, &cloudwatch.GetMetricDataInput{
		MetricDataQueries: queries, StartTime: &s.from, EndTime: &s.to, ScanBy: types.ScanByTimestampAscending,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range out.MetricDataResults {
		l := plot.Line{Name: aws.ToString(r.Label), Gap: max(3*s.period, 3*time.Minute)}
		for i, at := range r.Timestamps {
			l.Points = append(l.Points, plot.Point{At: at, Value: r.Values[i]})
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// drawing is a plot with its words.
type drawing struct {
	id    string // unique in the page
	title string
	unit  string
	none  string // what to say where there are no values
	plot.Plot
	spans []string // what each row of spans is
	marks string   // what the marks are
}

// plots is a part of a page with plots. One that can't be shown says why.
func plots(id, title string, all []drawing, err error, more ...any) live.Fragment {
	if err != nil {
		return section(id, title, failed(err))
	}
	var parts []markup.Node
	for _, d := range all {
		parts = append(parts, d.figure())
	}
	return section(id, title, append([]any{markup.E("div", markup.Class("plots"), parts)}, more...)...)
}

// figure is a plot with its legend, and its values as a table.
func (d drawing) figure() markup.Node {
	caption := []any{markup.E("b", d.title)}
	if d.unit != "" {
		caption = append(caption, " ", d.unit)
	}
	has := false
	for i, l := range d.Plot.Lines {
		if len(l.Points) == 0 {
			continue
		}
		has = true
		caption = append(caption, legend("line s"+strconv.Itoa(i%4+1), l.Name+": "+short(l.Points[len(l.Points)-1].Value)))
	}
	for _, l := range d.Levels {
		caption = append(caption, legend("threshold s2", l.Name+": "+short(l.Value)))
	}
	for _, s := range d.spans {
		caption = append(caption, legend("span", s))
	}
	if d.marks != "" && len(d.Marks) > 0 {
		caption = append(caption, legend("mark", d.marks))
	}
	if !has && len(d.Spans) == 0 {
		none := d.none
		if none == "" {
			none = "No values in this time."
		}
		return markup.E("figure", markup.Class("plot"), markup.E("figcaption", markup.E("b", d.title)), markup.E("p", markup.Class("none"), none))
	}
	return markup.E("figure", markup.Class("plot"), markup.E("figcaption", caption...), d.svg(), d.table())
}

// legend explains a line: what it looks like, and what it is.
func legend(class, text string) markup.Node {
	return markup.E("span", markup.Class("legend"), markup.E("svg", markup.A("viewBox", "0 0 18 8"), markup.A("aria-hidden", "true"),
		markup.E("path", markup.A("d", "M0 4H18"), markup.Class(class))), text)
}

func (d drawing) svg() markup.Node {
	looks := d.Draw()
	parts := []any{
		markup.A("viewBox", fmt.Sprintf("0 0 %d %d", plot.Width, plot.Height)), markup.A("role", "img"),
		markup.A("aria-labelledby", d.id+"-title"), markup.A("aria-describedby", d.id+"-desc"),
		markup.E("title", markup.ID(d.id+"-title"), d.title), markup.E("desc", markup.ID(d.id+"-desc"), d.describe()),
	}
	path := func(class, d string) { parts = append(parts, markup.E("path", markup.Class(class), markup.A("d", d))) }
	text := func(x, y float64, anchor, s string) {
		parts = append(parts, markup.E("text", markup.A("x", plot.Decimal(x)), markup.A("y", plot.Decimal(y)), markup.A("text-anchor", anchor), s))
	}
	for _, t := range looks.Y {
		path("grid", fmt.Sprintf("M%d %sH%d", plot.Left, plot.Decimal(t.At), plot.Right))
		text(plot.Left-6, t.At+4, "end", t.Text)
	}
	for _, t := range looks.X {
		path("grid", fmt.Sprintf("M%s %dV%d", plot.Decimal(t.At), plot.Bottom, plot.Bottom+4))
		text(t.At, plot.Height-6, "middle", t.Text)
	}
	for _, b := range looks.Spans {
		parts = append(parts, markup.E("rect", markup.Class("span"), markup.A("x", plot.Decimal(b.X)), markup.A("y", plot.Decimal(b.Y)),
			markup.A("width", plot.Decimal(b.Width)), markup.A("height", plot.Decimal(b.Height))))
	}
	for _, x := range looks.Marks {
		path("mark", fmt.Sprintf("M%s %dV%d", plot.Decimal(x), plot.Top, plot.Bottom))
	}
	for _, y := range looks.Levels {
		path("threshold s2", fmt.Sprintf("M%d %sH%d", plot.Left, plot.Decimal(y), plot.Right))
	}
	for i, l := range looks.Lines {
		path("line s"+strconv.Itoa(i%4+1), l)
	}
	return markup.E("div", markup.Class("scroll"), markup.A("tabindex", "0"), markup.A("role", "region"), markup.A("aria-label", d.title), markup.E("svg", parts...))
}

// describe says what a plot shows to those who don't see it.
func (d drawing) describe() string {
	words := []string{fmt.Sprintf("From %s to %s.", d.From.UTC().Format("Jan 2 15:04"), d.To.UTC().Format("Jan 2 15:04Z"))}
	for _, l := range d.Plot.Lines {
		if len(l.Points) == 0 {
			continue
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, p := range l.Points {
			least, most = min(least, p.Value), max(most, p.Value)
		}
		words = append(words, fmt.Sprintf("%s: between %s and %s, %s at last.", l.Name, short(least), short(most), short(l.Points[len(l.Points)-1].Value)))
	}
	for _, l := range d.Levels {
		words = append(words, l.Name+": "+short(l.Value)+".")
	}
	return strings.Join(words, " ")
}

// rowsOfPlot is how many rows a plot's table has.
const rowsOfPlot = 12

// table has a plot's values, some of them.
func (d drawing) table() markup.Node {
	heads := []string{"Until"}
	for _, l := range d.Plot.Lines {
		heads = append(heads, "#"+l.Name)
	}
	var rows []markup.Node
	for n := rowsOfPlot; n > 0; n-- {
		at := d.To.Add(-d.To.Sub(d.From) / rowsOfPlot * time.Duration(n-1))
		cells := []any{at.UTC().Format("Jan 2 15:04Z")}
		for _, l := range d.Plot.Lines {
			said := "–"
			if value, has := l.At(at); has {
				said = short(value)
			}
			cells = append(cells, numeric(said))
		}
		rows = append(rows, row(cells...))
	}
	return markup.E("details", markup.E("summary", "As a table"), table(d.title, columns(heads...), rows...))
}

// short writes a number with three digits or four.
func short(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// gpuPlots are the plots of GPUs' load over time, of whatever the dimensions say.
func (v *visit) gpuPlots(by ...string) live.Fragment {
	const namespace = "ECS/ContainerInsights/Prometheus"
	s := v.stretch()
	of := func(label, name, stat string) metric {
		return metric{label: label, namespace: namespace, name: name, by: by, stat: stat}
	}
	lines, err := v.lines(s, of("mean", "DCGM_FI_DEV_GPU_UTIL", "Average"), of("most", "DCGM_FI_DEV_GPU_UTIL", "Maximum"),
		of("most", "DCGM_FI_DEV_FB_USED", "Maximum"), of("most", "DCGM_FI_DEV_GPU_TEMP", "Maximum"))
	if err != nil || len(lines) < 4 || len(lines[2].Points) == 0 {
		return plots("gpuplots", "GPUs over time", nil, err, markup.E("p", markup.Class("none"), "CloudWatch has nothing of its GPUs in this time."))
	}
	for i, p := range lines[2].Points {
		lines[2].Points[i].Value = p.Value / 1024
	}
	over := func(all ...plot.Line) plot.Plot { return plot.Plot{From: s.from, To: s.to, Lines: all} }
	return plots("gpuplots", "GPUs over time", []drawing{
		{id: "gpu-load", title: "GPU load", unit: "%", Plot: over(lines[0], lines[1])},
		{id: "gpu-memory", title: "GPU memory", unit: "GiB", Plot: over(lines[2])},
		{id: "gpu-temperature", title: "GPU temperature", unit: "°C", Plot: over(lines[3])},
	}, nil)
}
