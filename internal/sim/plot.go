package sim

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Named is the result of one of the compared policies.
type Named struct {
	Name   string
	Result *Result
}

// colors are from Okabe and Ito's palette, which people with any color vision can tell apart. Further lines reuse them dashed.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// maxPoints is the largest number of points in a line. More points than the plot has pixels across add nothing.
const maxPoints = 1200

// The plot's measures in pixels.
const (
	plotWidth   = 1056
	leftEdge    = 70
	rightEdge   = plotWidth - 20
	titleHeight = 26
	legendRow   = 18
	panelHeight = 250
	panelGap    = 34 // the numbers below a panel
)

// Plot draws results in one diagram as SVG. The upper panel shows tasks over time, along with a clairvoyant's need. The lower
// panel shows waiting requests.
func Plot(w io.Writer, s Scenario, runs []Named) error {
	need := []point{{at: 0}} // it begins and ends on the axis, because it's filled
	need = append(need, points(needed(s), func(m Moment) int { return m.Running })...)
	need = append(need, point{at: s.Length})
	tasks := panel{
		title:  "Tasks running",
		unit:   "tasks",
		length: s.Length,
		top:    2*titleHeight + legendRow*(1+len(runs)),
		lines:  []line{{points: need, style: `fill="#e1e1e1"`}},
	}
	waiting := panel{
		title:  "Requests waiting",
		unit:   "requests",
		length: s.Length,
		top:    tasks.top + panelHeight + panelGap + titleHeight,
	}
	for i, run := range runs {
		tasks.lines = append(tasks.lines, line{points(run.Result.Timeline, func(m Moment) int { return m.Running }), runStyle(i)})
		waiting.lines = append(waiting.lines, line{points(run.Result.Timeline, func(m Moment) int { return m.Waiting }), runStyle(i)})
	}
	height := waiting.top + panelHeight + panelGap + titleHeight
	var b bytes.Buffer
	fmt.Fprintf(&b,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" "+
			"font-family=\"sans-serif\" font-size=\"12\">\n",
		plotWidth, height)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", plotWidth, height)
	legend(&b, runs)
	tasks.draw(&b)
	waiting.draw(&b)
	text(&b, (leftEdge+rightEdge)/2, height-titleHeight/2, "middle", "minutes")
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// runStyle returns how a policy's lines are drawn.
func runStyle(i int) string {
	style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.6"`, colors[i%len(colors)])
	if round := i / len(colors); round > 0 {
		style += fmt.Sprintf(` stroke-dasharray="%d 3"`, 3+3*round)
	}
	return style
}

// legend explains the lines, above the panels where no line crosses it.
func legend(b *bytes.Buffer, runs []Named) {
	const middle = titleHeight + legendRow/2 - 4
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"28\" height=\"10\" fill=\"#e1e1e1\"/>\n", leftEdge, middle-5)
	text(b, leftEdge+36, middle+4, "start", "needed so that none waits")
	for i, run := range runs {
		y := middle + legendRow*(i+1)
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%[3]d\" %s/>\n", leftEdge, leftEdge+28, y, runStyle(i))
		text(b, leftEdge+36, y+4, "start", fmt.Sprintf("%s: %.1f %% within the SLO, %.2f GPU-hours",
			run.Name, 100*run.Result.Attainment(), run.Result.GPUHours()))
	}
}

// text writes a line of text. anchor says which part of the text is at x.
func text(b *bytes.Buffer, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">`, x, y, anchor)
	xml.EscapeText(b, []byte(s)) //nolint:errcheck // writing to a buffer doesn't fail
	b.WriteString("</text>\n")
}

// point is a value from a time on.
type point struct {
	at    time.Duration
	value int
}

type line struct {
	points []point
	style  string // attributes of the path
}

// panel is one of the plot's two diagrams: lines over time, with axes.
type panel struct {
	title  string
	unit   string
	length time.Duration
	top    int // its upper edge, in pixels
	lines  []line
}

// draw draws the grid and the lines.
func (p panel) draw(b *bytes.Buffer) {
	most := 1
	for _, l := range p.lines {
		for _, at := range l.points {
			most = max(most, at.value)
		}
	}
	x := func(at time.Duration) float64 { return leftEdge + (rightEdge-leftEdge)*float64(at)/float64(p.length) }
	y := func(value int) float64 { return float64(p.top+panelHeight) - panelHeight*float64(value)/float64(most) }
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"14\">%s</text>\n", (leftEdge+rightEdge)/2, p.top-9, p.title)
	fmt.Fprintf(b, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", p.top+panelHeight/2, p.unit)
	for _, l := range p.lines {
		l.draw(b, x, y)
	}
	for value := 0; value <= most; value += tick(most, 6) {
		fmt.Fprintf(b, "<path d=\"M%d %.1fH%d\" stroke=\"black\" stroke-opacity=\"0.15\"/>\n", leftEdge, y(value), rightEdge)
		text(b, leftEdge-6, int(y(value))+4, "end", fmt.Sprint(value))
	}
	minutes := int(p.length / time.Minute)
	for minute := 0; minute <= minutes; minute += tick(minutes, 12) {
		at := x(time.Duration(minute) * time.Minute)
		fmt.Fprintf(b, "<path d=\"M%.1f %dV%d\" stroke=\"black\" stroke-opacity=\"0.15\"/>\n", at, p.top, p.top+panelHeight)
		text(b, int(at), p.top+panelHeight+16, "middle", fmt.Sprint(minute))
	}
	fmt.Fprintf(b, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n", leftEdge, p.top, p.top+panelHeight, rightEdge)
}

// draw draws steps: each value holds until the next point.
func (l line) draw(b *bytes.Buffer, x func(time.Duration) float64, y func(int) float64) {
	first := l.points[0] // a scenario lasts at least a minute
	fmt.Fprintf(b, `<path class="steps" %s d="M%.1f %.1f`, l.style, x(first.at), y(first.value))
	for _, p := range l.points[1:] {
		fmt.Fprintf(b, "H%.1fV%.1f", x(p.at), y(p.value))
	}
	fmt.Fprintf(b, "H%d\"/>\n", rightEdge)
}

// tick returns the distance between an axis's numbers: 1, 2 or 5 times a power of ten, so that there are no more steps than most.
func tick(length, most int) int {
	for power := 1; ; power *= 10 {
		for _, step := range []int{1, 2, 5} {
			if length/(step*power) <= most {
				return step * power
			}
		}
	}
}

// points divides a timeline into stretches and returns the highest value of each.
func points(timeline []Moment, value func(Moment) int) []point {
	stretch := (len(timeline) + maxPoints - 1) / maxPoints
	var out []point
	for i := 0; i < len(timeline); i += stretch {
		most := 0
		for _, m := range timeline[i:min(i+stretch, len(timeline))] {
			most = max(most, value(m))
		}
		out = append(out, point{timeline[i].At, most})
	}
	return out
}

// needed returns, for each second, how many tasks must run so that no request waits.
func needed(s Scenario) []Moment {
	timeline := make([]Moment, int(s.Length/time.Second))
	changes := demand(s)
	tasks := 0
	for i := range timeline {
		at := time.Duration(i) * time.Second
		most := tasks
		for ; len(changes) > 0 && changes[0].at < at+time.Second; changes = changes[1:] {
			tasks = changes[0].tasks
			most = max(most, tasks)
		}
		timeline[i] = Moment{At: at, Running: most}
	}
	return timeline
}
