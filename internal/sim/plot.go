package sim

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Named is the result of one of the policies that are compared.
type Named struct {
	Name   string
	Result *Result
}

// colours are those of Okabe and Ito, which people with any colour vision tell apart.
var colours = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}}

// maxPoints is how many points a line has at most: more than a plot has pixels across adds nothing.
const maxPoints = 1200

// Plot draws results side by side as PNG: tasks over time, with what a clairvoyant would need, and below the
// requests that wait.
func Plot(w io.Writer, s Scenario, runs []Named) error {
	tasks, waiting := plot.New(), plot.New()
	tasks.Title.Text, tasks.Y.Label.Text = "Tasks running", "tasks"
	waiting.Title.Text, waiting.Y.Label.Text, waiting.X.Label.Text = "Requests waiting", "requests", "minutes"
	need, err := line(needed(s), color.RGBA{190, 190, 190, 255})
	if err != nil {
		return err
	}
	need.FillColor, need.Width = color.RGBA{225, 225, 225, 255}, 0
	tasks.Add(need)
	tasks.Legend.Add("needed so that none waits", need)
	for i, run := range runs {
		if err := add(tasks, waiting, run, colours[i%len(colours)]); err != nil {
			return err
		}
	}
	for _, p := range []*plot.Plot{tasks, waiting} {
		p.X.Min, p.X.Max, p.Y.Min = 0, s.Length.Minutes(), 0
		p.Title.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = font.Points(12), font.Points(10)
		p.Legend.Top = true
		p.Add(plotter.NewGrid())
	}
	return encode(w, tasks, waiting)
}

// add draws one policy's lines into both plots.
func add(tasks, waiting *plot.Plot, run Named, c color.Color) error {
	running, err := line(points(run.Result.Timeline, func(m Moment) int { return m.Running }), c)
	if err != nil {
		return err
	}
	queued, err := line(points(run.Result.Timeline, func(m Moment) int { return m.Waiting }), c)
	if err != nil {
		return err
	}
	tasks.Add(running)
	waiting.Add(queued)
	tasks.Legend.Add(fmt.Sprintf("%s: %.1f %% within the SLO, %.2f GPU-hours", run.Name, 100*run.Result.Attainment(), run.Result.GPUHours()), running)
	return nil
}

func line(points plotter.XYs, c color.Color) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.StepStyle, l.Color, l.Width = plotter.PostStep, c, vg.Points(1.2)
	return l, nil
}

// points are a timeline's, of each stretch the highest.
func points(timeline []Moment, value func(Moment) int) plotter.XYs {
	stretch := (len(timeline) + maxPoints - 1) / maxPoints
	var out plotter.XYs
	for i := 0; i < len(timeline); i += stretch {
		most := 0
		for _, m := range timeline[i:min(i+stretch, len(timeline))] {
			most = max(most, value(m))
		}
		out = append(out, plotter.XY{X: timeline[i].At.Minutes(), Y: float64(most)})
	}
	return out
}

// needed is how many tasks must be there so that none waits, second by second.
func needed(s Scenario) plotter.XYs {
	timeline := make([]Moment, int(s.Length/time.Second))
	changes, tasks := demand(s), 0
	for i := range timeline {
		at := time.Duration(i) * time.Second
		most := tasks
		for ; len(changes) > 0 && changes[0].at < at+time.Second; changes = changes[1:] {
			tasks = changes[0].tasks
			most = max(most, tasks)
		}
		timeline[i] = Moment{At: at, Running: most}
	}
	return points(timeline, func(m Moment) int { return m.Running })
}

// encode writes two plots, one above the other, with their axes aligned.
func encode(w io.Writer, above, below *plot.Plot) error {
	canvas := vgimg.New(11*vg.Inch, 7*vg.Inch)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(12), PadY: vg.Points(12)}
	parts := plot.Align([][]*plot.Plot{{above}, {below}}, tiles, draw.New(canvas))
	above.Draw(parts[0][0])
	below.Draw(parts[1][0])
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
