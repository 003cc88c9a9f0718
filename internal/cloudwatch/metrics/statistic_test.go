package metrics

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The values 1 to 10, each once, except 10 twice.
var ten = Of([]Value{{10, 2}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}})

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name string
		want float64
	}{
		{"SampleCount", 10},
		{"Sum", 56},
		{"Average", 5.6},
		{"Minimum", 1},
		{"Maximum", 10},
		{"p50", 5},
		{"p99.9", 10},
		{"p0", 1},
		{"P100", 10},
		{"tm80", 4.5},                          // the lowest eight
		{"TM(10%:80%)", 5},                     // 2 to 8
		{"tm(:85%)", (36 + 0.5*10) / 8.5},      // half of the value at the bound
		{"TM(2:5)", 4},                         // 3, 4, 5
		{"IQM", (1.5 + 4 + 5 + 6 + 7 + 4) / 5}, // half of 3, 4 to 7, half of 8
		{"wm80", (36 + 2*8) / 10.0},
		{"WM(10%:80%)", (1 + 35 + 2*8) / 10.0},
		{"WM(3:6)", (3*3 + 4 + 5 + 6*5) / 10.0},
		{"tc80", 8},
		{"TC(:3)", 3},
		{"ts(80%:)", 20},
		{"TS(4:6)", 11},
		{"PR(:3)", 30},
		{"pr(3:5)", 20},
	} {
		st, err := ParseStatistic(c.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, ok := st.Of(ten); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", c.name, got, c.want)
		}
	}
}

func TestNoStatistics(t *testing.T) {
	for _, name := range []string{
		"", "p", "p101", "p-1", "p99.12345678901", "q50", "average", "tm", "tm(", "TM(:)", "TM()", "TM(5)", "TM(90%:10%)",
		"TM(10%:90)", "PR(10%:90%)", "pr50", "p(1:2)", "tm(NaN:1)", "p1e1",
	} {
		if st, err := ParseStatistic(name); err == nil {
			t.Errorf("%q was taken as %+v", name, st)
		}
	}
}

// Percentiles need the values, so a statistic set has percentiles only if it tells the values.
func TestStatisticSetsHaveNoPercentiles(t *testing.T) {
	p, _ := ParseStatistic("p50")
	unknown := Set{Count: 3, Sum: 6, Min: 1, Max: 3}
	if _, ok := p.Of(unknown); ok {
		t.Error("there is a percentile of values that are not known")
	}
	mixed := One(2)
	mixed.Add(unknown)
	if _, ok := p.Of(mixed); ok || mixed.Count != 4 || mixed.Sum != 8 || mixed.Min != 1 || mixed.Max != 3 {
		t.Errorf("mixed it is %+v", mixed)
	}
	equal := Set{Count: 3, Sum: 6, Min: 2, Max: 2}
	if got, ok := p.Of(equal); !ok || got != 2 {
		t.Errorf("of equal values it is %g", got)
	}
	if _, ok := p.Of(Set{}); ok {
		t.Error("there is a percentile of nothing")
	}
}

// However many values there are, the set keeps few, and percentiles stay close.
func TestManyValuesAreSketched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.Float64Range(1e-3, 1e6).Draw(t, "scale")
		var s Set
		for i := range 1000 {
			s.Add(One(scale * float64((i*7919)%1000+1)))
		}
		if len(s.Values) > maxValues || s.Count != 1000 || s.Min != scale || s.Max != 1000*scale {
			t.Fatalf("%d values, %g of them", len(s.Values), s.Count)
		}
		for _, p := range []string{"p10", "p50", "p90", "p99"} {
			st, _ := ParseStatistic(p)
			got, _ := st.Of(s)
			if want := scale * 10 * st.high; math.Abs(got-want) > 0.065*want {
				t.Errorf("%s: got %g, want %g", p, got, want)
			}
		}
	})
}
