package console

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/histogram"
	"github.com/pintle/pintle/internal/state"
)

// Workings are the times that the control plane's own work takes. Its stores and loops tell them. The zero value is ready for use.
type Workings struct {
	mu    sync.Mutex
	times map[working]*histogram.Histogram
}

// working is what times are of: a metric, and the value of its label, if it has one.
type working struct{ metric, of string }

// labels are the names of the metrics' labels.
var labels = map[string]string{flushTimes.Name: "store", lagTimes.Name: "loop", placementTimes.Name: "outcome"}

var (
	flushTimes = exposition.Metric{
		Name: "pintle_flush_seconds", Help: "How long a store's group of changes took to get onto the disk.",
		Bounds: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10},
	}
	lagTimes = exposition.Metric{
		Name: "pintle_loop_late_seconds", Help: "How late a loop's step began, against when it was due.",
		Bounds: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
	}
	placementTimes = exposition.Metric{
		Name: "pintle_placement_seconds", Help: "How long it took to find a task's place, or that there is none.",
		Bounds: []float64{0.000001, 0.0000025, 0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1},
	}
	startTimes = exposition.Metric{
		Name: "pintle_task_start_seconds", Help: "How long tasks took from their creation until they were RUNNING, with their images' pulls.",
		Bounds: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800},
	}
	owed = exposition.Metric{
		Name: "pintle_owed_messages", Help: "Messages that wait to be delivered: actions of alarms, notices, events, topics' messages, by the service that they go to.",
	}
	overdue         = exposition.Metric{Name: "pintle_owed_late_seconds", Help: "How long the message that was due first has been due."}
	invocations     = exposition.Metric{Name: "pintle_waiting_invocations", Help: "Asynchronous invocations of functions that aren't over."}
	spans           = exposition.Metric{Name: "pintle_trace_spans_total", Counter: true, Help: "Spans for OpenTelemetry's collector: sent, and dropped because it didn't take them in time."}
	waitingForStore = exposition.Metric{Name: "pintle_waiting_changes", Help: "Changes that wait for their store, which makes one group of them at a time."}
)

// timesOf returns the histogram of a metric's label, made at the first use.
func (w *Workings) timesOf(m *exposition.Metric, of string) *histogram.Histogram {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := working{m.Name, of}
	if w.times == nil {
		w.times = map[working]*histogram.Histogram{}
	}
	if w.times[k] == nil {
		w.times[k] = histogram.New(m.Bounds)
	}
	return w.times[k]
}

// Flushed returns what a store tells of each group of changes: how long it took to get onto the disk.
func (w *Workings) Flushed(store string) func(took time.Duration) {
	return w.timesOf(&flushTimes, store).Observe
}

// Late returns what a loop tells of each step: how late it begins.
func (w *Workings) Late(loop string) func(time.Duration) { return w.timesOf(&lagTimes, loop).Observe }

// Placed counts a search for a task's place.
func (w *Workings) Placed(took time.Duration, found bool) {
	outcome := "placed"
	if !found {
		outcome = "refused"
	}
	w.timesOf(&placementTimes, outcome).Observe(took)
}

// Started counts a task that runs now.
func (w *Workings) Started(took time.Duration) { w.timesOf(&startTimes, "").Observe(took) }

// addTo adds all times to a page.
func (w *Workings) addTo(p *exposition.Page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range []exposition.Metric{flushTimes, lagTimes, placementTimes, startTimes} {
		for k, h := range w.times {
			if k.metric != m.Name {
				continue
			}
			var of []exposition.Label
			if k.of != "" {
				of = []exposition.Label{{Name: labels[m.Name], Value: k.of}}
			}
			classes, sum := h.Counts()
			p.AddClasses(m, classes, sum.Seconds(), of...)
		}
	}
}

// addOwed adds what waits: messages that are owed, invocations, and changes.
func (c *Console) addOwed(p *exposition.Page, v *state.View) {
	counts := map[string]int{}
	now, first := c.opts.Now(), time.Time{}
	for d := range v.Deliveries.All() {
		counts[serviceOf(d.Destination)]++
		if !d.Waits && (first.IsZero() || d.Due.Before(first)) {
			first = d.Due
		}
	}
	for service, n := range counts {
		p.Add(owed, float64(n), exposition.Label{Name: "service", Value: service})
	}
	late := time.Duration(0)
	if !first.IsZero() {
		late = max(0, now.Sub(first))
	}
	p.Add(overdue, late.Seconds())
	p.Add(invocations, float64(v.Invocations.Len()))
	for store, n := range c.opts.Waiting() {
		p.Add(waitingForStore, float64(n), exposition.Label{Name: "store", Value: store})
	}
}

// services are those that anything is owed to. An alarm's action may name any, and a label's values must stay few.
var services = []string{"autoscaling", "cloudwatch", "events", "lambda", "logs", "scheduler", "sns", "sqs"}

// serviceOf returns the service of an ARN, other for one that nothing is told, or url.
func serviceOf(destination string) string {
	parts := strings.SplitN(destination, ":", 4)
	switch {
	case len(parts) < 4 || parts[0] != "arn":
		return "url"
	case !slices.Contains(services, parts[2]):
		return "other"
	}
	return parts[2]
}
