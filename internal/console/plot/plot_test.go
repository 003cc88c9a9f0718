package plot

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hour is a plot of an hour, whose minutes are 576/60 = 9.6 units apart.
func hour(lines ...Line) Plot { return Plot{From: noon, To: noon.Add(time.Hour), Lines: lines} }

func at(minute int, value float64) Point {
	return Point{noon.Add(time.Duration(minute) * time.Minute), value}
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		line Line
		want string
	}{
		"none":        {Line{}, ""},
		"one value":   {Line{Points: []Point{at(30, 4)}}, "M340 10h.1"},
		"a slope":     {Line{Points: []Point{at(0, 0), at(60, 4)}}, "M52 146h.1L628 10"},
		"steps":       {Line{Steps: true, Points: []Point{at(0, 4), at(30, 2)}}, "M52 10h.1H340V78H628"},
		"a gap":       {Line{Gap: 5 * time.Minute, Points: []Point{at(0, 4), at(5, 4), at(30, 4)}}, "M52 10h.1L100 10M340 10h.1"},
		"below 0":     {Line{Points: []Point{at(0, -2), at(60, 2)}}, "M52 146h.1L628 10"},
		"no number":   {Line{Points: []Point{at(0, 4), at(10, math.NaN()), at(20, math.Inf(1)), at(60, 4)}}, "M52 10h.1L628 10"},
		"before it":   {Line{Steps: true, Points: []Point{at(-30, 4), at(60, 4)}}, "M52 10h.1H628V10H628"},
		"nothing yet": {Line{Points: []Point{at(0, 0), at(60, 0)}}, "M52 146h.1L628 146"},
	} {
		if got := hour(c.line).Draw().Lines[0]; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestAxes(t *testing.T) {
	texts := func(ticks []Tick) string {
		var all []string
		for _, tick := range ticks {
			all = append(all, tick.Text)
		}
		return strings.Join(all, " ")
	}
	for most, want := range map[float64]string{
		0: "0.0 0.5 1.0", 1: "0.0 0.5 1.0", 3: "0 1 2 3", 100: "0 50 100", 87: "0 50 100", 0.03: "0.00 0.01 0.02 0.03", 1e7: "0 5 M 10 M", 7: "0 2 4 6 8",
		math.Inf(1): "0.0 0.5 1.0",
	} {
		if got := texts(hour(Line{Points: []Point{at(0, most)}}).Draw().Y); got != want {
			t.Errorf("to %v: got %s, want %s", most, got, want)
		}
	}
	for length, want := range map[time.Duration]string{
		time.Hour:          "12:00 12:10 12:20 12:30 12:40 12:50 13:00",
		6 * time.Hour:      "12:00 13:00 14:00 15:00 16:00 17:00 18:00",
		24 * time.Hour:     "12:00 18:00 00:00 06:00 12:00",
		7 * 24 * time.Hour: "Mar 2 Mar 4 Mar 6 Mar 8",
	} {
		if got := texts((Plot{From: noon, To: noon.Add(length)}).Draw().X); got != want {
			t.Errorf("%s: got %s, want %s", length, got, want)
		}
	}
}

func TestWhatIsAround(t *testing.T) {
	p := hour(Line{Points: []Point{at(0, 1)}})
	p.Levels = []Level{{"target", 4}}
	p.Spans = []Span{{0, noon.Add(-time.Hour), noon.Add(30 * time.Minute)}, {1, noon.Add(time.Hour), noon.Add(2 * time.Hour)}}
	p.Marks = []time.Time{noon.Add(15 * time.Minute)}
	d := p.Draw()
	if want := []float64{Top + 14}; !reflect.DeepEqual(d.Levels, want) {
		t.Errorf("levels are at %v: the plot is as high as they are, below two rows of spans", d.Levels)
	}
	if want := []Box{{Left, Top, 288, spanHeight}, {Right, Top + 7, 1, spanHeight}}; !reflect.DeepEqual(d.Spans, want) {
		t.Errorf("spans are %v, want %v", d.Spans, want)
	}
	if want := []float64{196}; !reflect.DeepEqual(d.Marks, want) {
		t.Errorf("marks are at %v, want %v", d.Marks, want)
	}
}

func TestAt(t *testing.T) {
	l := Line{Points: []Point{at(0, 1), at(10, 2)}, Gap: 5 * time.Minute}
	for minute, want := range map[int]float64{-1: 0, 0: 1, 5: 1, 6: 0, 10: 2, 12: 2, 16: 0} {
		if got, has := l.At(noon.Add(time.Duration(minute) * time.Minute)); has != (want > 0) || has && got != want {
			t.Errorf("minute %d: got %v, %v, want %v", minute, got, has, want)
		}
	}
}
