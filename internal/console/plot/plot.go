// Package plot computes what a plot of values over time looks like: paths, levels, spans and ticks in the units of an SVG. It is pure, and knows
// neither what the values are of nor how they are drawn.
package plot

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The size of a plot, and where in it values are drawn.
const (
	Width, Height = 640, 170
	Left, Right   = 52, Width - 12
	Top, Bottom   = 10, Height - 24
)

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Line is values over time, oldest first.
type Line struct {
	Name   string
	Points []Point
	// Gap is how long values may be missing until the line is broken; 0 means forever.
	Gap time.Duration
	// Steps means that each value lasts until the next, and the last one until the end of the plot.
	Steps bool
}

// Level is a value that doesn't change, such as a target.
type Level struct {
	Name  string
	Value float64
}

// Span is a stretch of time in which something was so. Spans with the same row share it.
type Span struct {
	Row      int
	From, To time.Time
}

// Plot is what is to be drawn.
type Plot struct {
	From, To time.Time
	Lines    []Line
	Levels   []Level
	Spans    []Span
	Marks    []time.Time // moments at which something was done
}

// Tick is a mark on an axis: where it is, and what it says.
type Tick struct {
	At   float64
	Text string
}

// Box is a rectangle.
type Box struct{ X, Y, Width, Height float64 }

// Drawing is what a plot looks like.
type Drawing struct {
	Lines  []string // the path of each line; "" of one that has no values
	Levels []float64
	Spans  []Box
	Marks  []float64
	X, Y   []Tick
}

// spanHeight is how high a row of spans is, at the top of the plot.
const spanHeight = 5

// Draw computes a plot's looks.
func (p Plot) Draw() Drawing {
	least, most := p.bounds()
	step := stepOf(most-least, 4)
	least, most = math.Floor(least/step)*step, math.Ceil(most/step)*step
	top := p.top()
	y := func(v float64) float64 { return Bottom - (Bottom-top)*(v-least)/(most-least) }
	d := Drawing{X: p.times()}
	for i := range int(math.Round((most-least)/step)) + 1 {
		v := least + float64(i)*step
		d.Y = append(d.Y, Tick{y(v), number(v, step)})
	}
	for _, l := range p.Lines {
		d.Lines = append(d.Lines, p.path(l, y))
	}
	for _, l := range p.Levels {
		d.Levels = append(d.Levels, y(l.Value))
	}
	for _, s := range p.Spans {
		from, to := p.x(s.From), p.x(s.To)
		d.Spans = append(d.Spans, Box{from, float64(Top + s.Row*(spanHeight+2)), max(1, to-from), spanHeight})
	}
	for _, at := range p.Marks {
		d.Marks = append(d.Marks, p.x(at))
	}
	return d
}

// top is where the largest value is: below the spans.
func (p Plot) top() float64 {
	top := float64(Top)
	for _, s := range p.Spans {
		top = max(top, float64(Top+(s.Row+1)*(spanHeight+2)))
	}
	return top
}

// bounds returns the least and the largest value, 0 included, and never two that are the same.
func (p Plot) bounds() (least, most float64) {
	see := func(v float64) {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			least, most = min(least, v), max(most, v)
		}
	}
	for _, l := range p.Lines {
		for _, v := range l.Points {
			see(v.Value)
		}
	}
	for _, l := range p.Levels {
		see(l.Value)
	}
	if least == most {
		most = 1
	}
	return least, most
}

// x returns where a time is, or the edge that it is beyond.
func (p Plot) x(at time.Time) float64 {
	part := float64(at.Sub(p.From)) / float64(max(1, p.To.Sub(p.From)))
	return Left + (Right-Left)*min(max(part, 0), 1)
}

// path returns a line's path.
func (p Plot) path(l Line, y func(float64) float64) string {
	var b strings.Builder
	var last Point
	begun := false
	for _, v := range l.Points {
		switch {
		case math.IsNaN(v.Value) || math.IsInf(v.Value, 0):
			continue
		case !begun || l.Gap > 0 && v.At.Sub(last.At) > l.Gap:
			write(&b, 'M', p.x(v.At), y(v.Value))
			b.WriteString("h.1") // so that a lone value is seen, too
		case l.Steps:
			write(&b, 'H', p.x(v.At))
			write(&b, 'V', y(v.Value))
		default:
			write(&b, 'L', p.x(v.At), y(v.Value))
		}
		last, begun = v, true
	}
	if l.Steps && begun {
		write(&b, 'H', Right)
	}
	return b.String()
}

func write(b *strings.Builder, command byte, at ...float64) {
	b.WriteByte(command)
	for i, v := range at {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(Decimal(v))
	}
}

// Decimal writes a number of an SVG, which needs no more than a tenth.
func Decimal(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// stepOf returns the distance between an axis's numbers: 1, 2 or 5 times a power of ten, so that there are no more steps than most.
func stepOf(length float64, most int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(length/float64(most))))
	for _, n := range []float64{1, 2, 5} {
		if length/(n*power) <= float64(most) {
			return n * power
		}
	}
	return 10 * power
}

// number writes a number of an axis whose numbers are a step apart.
func number(v, step float64) string {
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	switch {
	case math.Abs(v) >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case math.Abs(v) >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + " M"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// distances are those that an axis's times may have.
var distances = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour,
}

// times returns the ticks of the axis of times, which are UTC.
func (p Plot) times() (all []Tick) {
	length := p.To.Sub(p.From)
	distance := distances[len(distances)-1]
	for _, d := range distances {
		if length/d <= 6 {
			distance = d
			break
		}
	}
	layout := "15:04"
	if distance >= 24*time.Hour {
		layout = "Jan 2"
	}
	from := p.From.UTC().Truncate(distance)
	for at := from; !at.After(p.To); at = at.Add(distance) {
		if !at.Before(p.From) {
			all = append(all, Tick{p.x(at), at.Format(layout)})
		}
	}
	return all
}

// At returns the value that a line has at a time: the last one by then. A line with gaps has none in them.
func (l Line) At(t time.Time) (value float64, has bool) {
	for _, v := range l.Points {
		if v.At.After(t) {
			break
		}
		value, has = v.Value, l.Gap == 0 || t.Sub(v.At) <= l.Gap
	}
	return value, has
}
