package sim

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStatic: without a policy the service stays as it is, and the figures match those computed by hand.
func TestStatic(t *testing.T) {
	s := scenario([]Request{{40 * time.Second, 10 * time.Second}, {50 * time.Second, time.Second}, {55 * time.Second, 50 * time.Second}},
		2*time.Minute)
	s.Slots = 1
	s.SLO = 2 * time.Second
	s.Min = 1
	r, err := Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 3 || r.Met != 3 || r.Peak != 1 || r.Held != 2*time.Minute || r.GPUs != 1 || len(r.Scalings) != 0 {
		t.Errorf("%+v", r)
	}
	if got := r.GPUHours(); got != 2.0/60 {
		t.Errorf("%v GPU-hours", got)
	}
	if m := r.Timeline[59]; m.Running != 1 || m.Working != 1 || m.Desired != 1 || m.At != time.Minute {
		t.Errorf("after a minute: %+v", m)
	}
	s.Start = time.Minute // now all wait
	if r, err = Run(t.Context(), s, nil); err != nil || r.Met != 0 || r.Waits[0] != 16*time.Second {
		t.Errorf("%v: %d within the SLO, waits %v", err, r.Met, r.Waits)
	}
}

// TestSameAgain: the same replay gives the same result.
func TestSameAgain(t *testing.T) {
	s := scenario(bursty(7, 20*time.Minute), 20*time.Minute)
	s.Fast = true
	var first *Result
	for range 3 {
		r, err := Run(t.Context(), s, onBacklog())
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = r
		}
		if !reflect.DeepEqual(r, first) {
			t.Fatal("the same replay came out differently")
		}
	}
}

// TestFastReasons: the fast reaction's activities say what it computed, and that a backlog drains before a task could start.
func TestFastReasons(t *testing.T) {
	const quiet = 15 * time.Minute
	var requests []Request
	for at := 90 * time.Second; at < quiet+2*time.Minute; at += time.Second / 9 { // to make the arrival rate known
		requests = append(requests, Request{at, time.Second})
	}
	for range 45 { // a burst that three tasks finish in 15 s, while starting a task takes a minute
		requests = append(requests, Request{quiet, time.Second})
	}
	slices.SortStableFunc(requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	s := scenario(requests, quiet+2*time.Minute)
	s.Start = time.Minute
	s.Fast = true
	s.Min = 3
	r, err := Run(t.Context(), s, onBacklog())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, a := range r.Scalings {
		if !strings.HasPrefix(a.Cause, "backlog of queue sim triggered policy ") || !strings.Contains(a.Details, " messages wait and ") {
			t.Errorf("%+v", a)
		}
		found = found || a.Reason == "BacklogDrainsBeforeStart"
	}
	if !found {
		t.Errorf("no activity says that the backlog drains: %+v", r.Scalings)
	}
}

func TestRefused(t *testing.T) {
	good := scenario([]Request{{0, time.Second}}, time.Minute)
	for want, spoil := range map[string]func(*Scenario){
		"no requests":        func(s *Scenario) { s.Requests = nil },
		"at least one slot":  func(s *Scenario) { s.Slots = 0 },
		"cannot be negative": func(s *Scenario) { s.Start = -1 },
		"the bounds":         func(s *Scenario) { s.Min = 21 },
		"at least a minute":  func(s *Scenario) { s.Length = time.Second },
	} {
		s := good
		spoil(&s)
		if _, err := Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	policy := onGPUs()
	policy.TargetTrackingScalingPolicyConfiguration.TargetValue = nil
	if _, err := Run(t.Context(), good, policy); err == nil {
		t.Error("a policy without a target was taken")
	}
}

func TestByMinute(t *testing.T) {
	var seconds []Moment
	for i := range 90 {
		seconds = append(seconds, Moment{At: time.Duration(i+1) * time.Second, Waiting: i, Arrived: 1})
	}
	got := ByMinute(seconds)
	if len(got) != 2 || got[0].At != time.Minute || got[0].Waiting != 59 || got[0].Arrived != 60 || got[1].Arrived != 30 {
		t.Errorf("%+v", got)
	}
}

// TestPlot: every line is drawn within its own panel, and names with XML's special characters come through.
func TestPlot(t *testing.T) {
	s := scenario(bursty(3, 10*time.Minute), 10*time.Minute)
	r, err := Run(t.Context(), s, onGPUs())
	if err != nil {
		t.Fatal(err)
	}
	var runs []Named
	for _, name := range []string{"GPUs", `a < b & "c"`, "3", "4", "5", "6", "7"} {
		runs = append(runs, Named{name, r})
	}
	var b bytes.Buffer
	if err := Plot(&b, s, runs); err != nil {
		t.Fatal(err)
	}
	picture := readPlot(t, &b)
	if len(picture.steps) != 1+2*len(runs) {
		t.Errorf("%d lines, want two for each of %d policies and what was needed", len(picture.steps), len(runs))
	}
	styles := map[string]bool{}
	for i, path := range picture.steps {
		styles[path.style] = true
		if lowest := path.bottom - path.top; lowest <= 0 || lowest > panelHeight {
			t.Errorf("line %d goes from %v up to %v, a panel is %d high", i, path.bottom, path.top, panelHeight)
		}
	}
	if len(styles) != 1+len(runs) {
		t.Errorf("%d ways to draw a line, want one for each policy: %v", len(styles), styles)
	}
	for _, want := range []string{"Tasks running", "Requests waiting", "minutes", "needed so that none waits", `a < b & "c": `} {
		if !slices.ContainsFunc(picture.texts, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("nothing says %q: %q", want, picture.texts)
		}
	}
}

// TestTick: an axis has at most the given number of steps, at round numbers.
func TestTick(t *testing.T) {
	for length, want := range map[int]int{0: 1, 1: 1, 6: 1, 7: 2, 13: 2, 14: 5, 34: 5, 35: 10, 60: 10, 1440: 500, math.MaxInt: 2e18} {
		if got := tick(length, 6); got != want {
			t.Errorf("an axis of %d has a number every %d, want %d", length, got, want)
		}
	}
}

type plotRead struct {
	steps []stepsRead
	texts []string
}

type stepsRead struct {
	style       string
	top, bottom float64
}

// readPlot reads an SVG as a browser would.
func readPlot(t *testing.T, r io.Reader) (p plotRead) {
	t.Helper()
	var svg struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Paths   []struct {
			Class  string `xml:"class,attr"`
			Stroke string `xml:"stroke,attr"`
			Dashes string `xml:"stroke-dasharray,attr"`
			Data   string `xml:"d,attr"`
		} `xml:"path"`
		Texts []string `xml:"text"`
	}
	if err := xml.NewDecoder(r).Decode(&svg); err != nil {
		t.Fatal(err)
	}
	p.texts = svg.Texts
	for _, path := range svg.Paths {
		if path.Class != "steps" {
			continue
		}
		steps := stepsRead{style: path.Stroke + path.Dashes, top: math.Inf(1), bottom: math.Inf(-1)}
		for _, v := range regexp.MustCompile(`V([0-9.]+)`).FindAllStringSubmatch(path.Data, -1) {
			y, err := strconv.ParseFloat(v[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			steps.top = min(steps.top, y)
			steps.bottom = max(steps.bottom, y)
		}
		p.steps = append(p.steps, steps)
	}
	return p
}

// BenchmarkReplay replays an hour of a bursty load.
func BenchmarkReplay(b *testing.B) {
	s := scenario(bursty(1, time.Hour), time.Hour)
	for name, fast := range map[string]bool{"faithful": false, "fast": true} {
		b.Run(name, func(b *testing.B) {
			s.Fast = fast
			for b.Loop() {
				if _, err := Run(b.Context(), s, onBacklog()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
