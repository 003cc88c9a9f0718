package exposition

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

// TestPrometheusReadsPages: Prometheus's own parser reads each page as what was added to it, and so does ours.
func TestPrometheusReadsPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Page
		want := map[string][]Sample{}
		for i := range rapid.IntRange(0, 5).Draw(t, "metrics") {
			m := Metric{
				Name:    "m_" + string(rune('a'+i)),
				Help:    rapid.String().Draw(t, "help"),
				Counter: rapid.Bool().Draw(t, "counter"),
			}
			for j := range rapid.IntRange(1, 3).Draw(t, "samples") {
				labels := []Label{
					{"n", string(rune('0' + j))},
					{"text", rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`\`, `\\n`, `"`, "a\nb", `}`, `",x="`})).Draw(t, "text")},
				}
				v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Inf(1), math.Inf(-1)})).Draw(t, "value")
				p.Add(m, v, labels...)
				want[m.Name] = append(want[m.Name], Sample{m.Name, labels, v})
			}
		}
		var page bytes.Buffer
		if err := p.Write(&page); err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(page.Bytes()))
		if err != nil {
			t.Fatalf("%v: %s", err, &page)
		}
		if len(families) != len(want) {
			t.Fatalf("Prometheus reads %d metrics, not %d: %s", len(families), len(want), &page)
		}
		for name, f := range families {
			for i, m := range f.Metric {
				check(t, fromPrometheus(name, m), want[name][i])
			}
		}
		own, err := Parse(&page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range own {
			check(t, s, want[s.Metric][0])
			want[s.Metric] = want[s.Metric][1:]
		}
	})
}

func check(t *rapid.T, got, want Sample) {
	t.Helper()
	if got.Metric != want.Metric || !slices.Equal(got.Labels, want.Labels) || got.Value != want.Value {
		t.Fatalf("read %+v, not %+v", got, want)
	}
}

func fromPrometheus(name string, m *dto.Metric) Sample {
	s := Sample{Metric: name}
	for _, l := range m.Label {
		s.Labels = append(s.Labels, Label{l.GetName(), l.GetValue()})
	}
	switch {
	case m.Gauge != nil:
		s.Value = m.Gauge.GetValue()
	case m.Counter != nil:
		s.Value = m.Counter.GetValue()
	case m.Untyped != nil:
		s.Value = m.Untyped.GetValue()
	}
	return s
}

// TestRefuses: what isn't a page is refused, with the line.
func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a 1\nb":           "line 2: b has no value",
		"a 1 2 3":          "line 1: a has no value, or more",
		"a x":              "its value \"x\" is no number",
		"a 1 x":            "its time \"x\" is no number",
		"a{b} 1":           "neither a label nor the end",
		`a{b="c" d="e"} 1`: "neither a label nor the end",
		`a{b="c} 1`:        "neither a label nor the end",
		`{"a",b="c"} 1`:    "does not begin with a metric's name",
		"<html>":           "does not begin with a metric's name",
		"a{" + longLabel(): "token too long",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func longLabel() string { return `b="` + strings.Repeat("c", maxLine) + `"} 1` }

// FuzzParse: what both our parser and Prometheus's take as gauges, counters or untyped samples, they read alike. Theirs takes more.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"# HELP a b\n# TYPE a gauge\na{b=\"c\"} 1 2\n", "a 1e3\n", "a{ b = \"c\\\\\\\"\\n\" , } NaN\n", "a{} +Inf\n", "\t a \t 1 \n", "# EOF\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		own, err := Parse(strings.NewReader(text))
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, theirs := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil || theirs != nil {
			return
		}
		n := 0
		for name, f := range families {
			if t := f.GetType(); t == dto.MetricType_HISTOGRAM || t == dto.MetricType_SUMMARY {
				return
			}
			for _, m := range f.Metric {
				n++
				want := fromPrometheus(name, m)
				if !slices.ContainsFunc(own, func(s Sample) bool { return isSame(s, want) }) {
					t.Fatalf("%+v isn't read: %v", want, own)
				}
			}
		}
		if n != len(own) {
			t.Fatalf("%d samples are read, not %d", len(own), n)
		}
	})
}

func isSame(a, b Sample) bool {
	return a.Metric == b.Metric && slices.Equal(a.Labels, b.Labels) && (a.Value == b.Value || math.IsNaN(a.Value) && math.IsNaN(b.Value))
}

// TestHistogram: Prometheus reads the classes of a histogram, each with all that is below its bound.
func TestHistogram(t *testing.T) {
	var p Page
	m := Metric{Name: "took_seconds", Help: "how long", Bounds: []float64{0.5, 1}}
	p.AddClasses(m, []uint64{3, 0, 2}, 7.5, Label{"operation", "RunTask"})
	p.AddClasses(m, []uint64{0, 1, 0}, 1, Label{"operation", "StopTask"})
	var page bytes.Buffer
	if err := p.Write(&page); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&page)
	if err != nil {
		t.Fatal(err)
	}
	read := families["took_seconds"].GetMetric()
	if len(read) != 2 {
		t.Fatalf("Prometheus reads %v", families)
	}
	h := read[0].GetHistogram()
	if h.GetSampleCount() != 5 || h.GetSampleSum() != 7.5 || len(h.GetBucket()) != 3 || h.GetBucket()[1].GetCumulativeCount() != 3 || h.GetBucket()[1].GetUpperBound() != 1 {
		t.Errorf("Prometheus reads %v", h)
	}
}
