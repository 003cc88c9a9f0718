// Package exposition writes and reads metrics in Prometheus's text format, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats. Prometheus's own packages know its binary format too, and with that they bring
// more of protobuf: 0.7 MB of the program, for a page of a few gauges. The tests read with them.
package exposition

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the media type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Metric is what all samples of a name are.
type Metric struct {
	Name    string
	Help    string
	Counter bool // or else a gauge, unless it's a histogram
	// Bounds are the upper bounds of a histogram's classes. A last class has what is above them.
	Bounds []float64
}

// Label is a name and a value that tell a sample from others of its metric.
type Label struct{ Name, Value string }

// Sample is a value, as it was read.
type Sample struct {
	Metric string
	Labels []Label
	Value  float64
}

// Label returns the value of a label, or "".
func (s *Sample) Label(name string) string {
	for _, l := range s.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Page is the metrics that a program exposes at a moment. Its zero value is an empty page.
type Page struct {
	families map[string]*family
}

type family struct {
	Metric
	lines []string
}

// Add adds a sample of a metric.
func (p *Page) Add(m Metric, value float64, labels ...Label) { p.add(m, "", value, labels) }

func (p *Page) add(m Metric, suffix string, value float64, labels []Label) {
	if p.families == nil {
		p.families = map[string]*family{}
	}
	f := p.families[m.Name]
	if f == nil {
		f = &family{Metric: m}
		p.families[m.Name] = f
	}
	pairs := make([]string, len(labels))
	for i, l := range labels {
		pairs[i] = l.Name + `="` + escapeValue.Replace(l.Value) + `"`
	}
	name := m.Name + suffix
	if len(pairs) > 0 {
		name += "{" + strings.Join(pairs, ",") + "}"
	}
	f.lines = append(f.lines, name+" "+strconv.FormatFloat(value, 'g', -1, 64))
}

// AddClasses adds a sample of a histogram: how many values there were in each class, and their sum.
func (p *Page) AddClasses(m Metric, classes []uint64, sum float64, labels ...Label) {
	below := uint64(0)
	for i, n := range classes {
		below += n
		bound := "+Inf"
		if i < len(m.Bounds) {
			bound = strconv.FormatFloat(m.Bounds[i], 'g', -1, 64)
		}
		p.add(m, "_bucket", float64(below), append(slices.Clone(labels), Label{"le", bound}))
	}
	p.add(m, "_sum", sum, labels)
	p.add(m, "_count", float64(below), labels)
}

var (
	escapeValue   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	escapeHelp    = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	unescapeValue = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
)

// Write writes the page, its metrics in the order of their names.
func (p *Page) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(p.families)) {
		f := p.families[name]
		kind := "gauge"
		switch {
		case f.Bounds != nil:
			kind = "histogram"
		case f.Counter:
			kind = "counter"
		}
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, escapeHelp.Replace(f.Help), name, kind) //nolint:errcheck // Flush returns it
		for _, line := range f.lines {
			fmt.Fprintln(out, line) //nolint:errcheck // Flush returns it
		}
	}
	return out.Flush()
}
