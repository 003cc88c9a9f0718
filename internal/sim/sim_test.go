package sim

import (
	"bytes"
	"cmp"
	"image/png"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStatic: without a policy the service stays as it is, and the figures are those that can be reckoned.
func TestStatic(t *testing.T) {
	s := scenario([]Request{{40 * time.Second, 10 * time.Second}, {50 * time.Second, time.Second}, {55 * time.Second, 50 * time.Second}}, 2*time.Minute)
	s.Slots, s.SLO, s.Min = 1, 2*time.Second, 1
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

// TestSameAgain: a replay can be repeated.
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

// TestFastReasons: the fast reaction says in its activities what it has reckoned with, and that a backlog drains before
// a task could start.
func TestFastReasons(t *testing.T) {
	const quiet = 15 * time.Minute
	var requests []Request
	for at := 90 * time.Second; at < quiet+2*time.Minute; at += time.Second / 9 { // so that the flow is known
		requests = append(requests, Request{at, time.Second})
	}
	for range 45 { // a burst that three tasks work off in a quarter of a minute, while it takes a minute to start one
		requests = append(requests, Request{quiet, time.Second})
	}
	slices.SortStableFunc(requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	s := scenario(requests, quiet+2*time.Minute)
	s.Start, s.Fast, s.Min = time.Minute, true, 3
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

func TestPlot(t *testing.T) {
	s := scenario(bursty(3, 10*time.Minute), 10*time.Minute)
	r, err := Run(t.Context(), s, onGPUs())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Plot(&b, s, []Named{{"GPUs", r}, {"again", r}}); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil || picture.Bounds().Dx() < 1000 {
		t.Errorf("no picture: %v", err)
	}
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
