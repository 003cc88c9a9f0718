package environments

import (
	"context"
	"time"
)

// concurrent is the metric of which the functions' values don't add up to that of all: that has values of its own.
const concurrent = "ConcurrentExecutions"

// IsOfAll reports whether a figure counts for all functions together.
func (f Figure) IsOfAll() bool { return f.Function == "" || f.Metric != concurrent }

// Figure is a value of a function's metric, such as Duration, or, without a function, of all functions'.
type Figure struct {
	Function, Metric, Unit string
	Value                  float64
	At                     time.Time
}

// maxFigures is how many figures may wait to be put. Further ones are lost rather than that invocations wait.
const maxFigures = 16384

// measure has a figure put. Whoever counts an invocation holds mu, and must not wait for the disk.
func (m *Manager) measure(function, metric, unit string, value float64) {
	select {
	case m.figures <- Figure{function, metric, unit, value, m.opts.Now()}:
	default:
		m.opts.Log.Warn("a figure of a function's is lost: too many wait", "function", function, "metric", metric)
	}
}

// putFigures puts figures, those that wait together. At the end it puts what is left.
func (m *Manager) putFigures(ctx context.Context) {
	for {
		var all []Figure
		select {
		case <-ctx.Done():
		case first := <-m.figures:
			all = append(all, first)
		}
		for len(m.figures) > 0 {
			all = append(all, <-m.figures)
		}
		if len(all) > 0 {
			m.opts.Measure(all)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
