package engine

import (
	"time"

	"github.com/pintle/pintle/internal/histogram"
)

// Figures are what the engine has done since the agent began, and what it has to do.
type Figures struct {
	Tasks      map[string]int // by RUNNING, or PENDING before that and STOPPING after that
	Unreported int            // tasks of which the control plane doesn't know the newest yet
	// Pulls and Starts are how long pulls of images, and starts of containers, took.
	Pulls, Starts map[string]*histogram.Histogram // by succeeded, failed
}

// outcomes are how long attempts took, by how they ended.
type outcomes map[string]*histogram.Histogram

var (
	// PullBounds and StartBounds are the bounds of the classes of Figures, in seconds.
	PullBounds  = []float64{0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	StartBounds = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180}
)

func newOutcomes(bounds []float64) outcomes {
	return outcomes{"succeeded": histogram.New(bounds), "failed": histogram.New(bounds)}
}

// observe counts an attempt that began at a time and has ended with err.
func (o outcomes) observe(began time.Time, err error) {
	outcome := "succeeded"
	if err != nil {
		outcome = "failed"
	}
	o[outcome].Observe(time.Since(began))
}

// Figures returns the engine's figures.
func (e *Engine) Figures() Figures {
	f := Figures{Tasks: map[string]int{"PENDING": 0, "RUNNING": 0, "STOPPING": 0}, Pulls: e.pulls, Starts: e.starts}
	for _, t := range e.all() {
		t.mu.Lock()
		if _, due := t.nextReport(); due {
			f.Unreported++
		}
		switch {
		case t.rec.stopped():
		case t.rec.Halting():
			f.Tasks["STOPPING"]++
		case t.rec.ran():
			f.Tasks["RUNNING"]++
		default:
			f.Tasks["PENDING"]++
		}
		t.mu.Unlock()
	}
	return f
}
