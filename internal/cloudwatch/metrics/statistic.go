package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Statistic is a figure that can be read off a set: Average, p99, TM(10%:90%) and their kin, as the
// CloudWatch User Guide's page on statistics definitions has them.
type Statistic struct {
	kind      string
	low, high float64
	percent   bool // whether the bounds are percentages of the values rather than values
}

// ParseStatistic reads a statistic's name.
func ParseStatistic(name string) (Statistic, error) {
	switch name {
	case "SampleCount", "Average", "Sum", "Minimum", "Maximum":
		return Statistic{kind: name}, nil
	}
	lower := strings.ToLower(name)
	if lower == "iqm" {
		return Statistic{"tm", 25, 75, true}, nil
	}
	for _, kind := range []string{"p", "tm", "wm", "tc", "ts", "pr"} {
		rest, ok := strings.CutPrefix(lower, kind)
		if !ok {
			continue
		}
		if s, ok := parseBounds(kind, rest); ok {
			return s, nil
		}
	}
	return Statistic{}, fmt.Errorf("%q is no statistic: it is SampleCount, Average, Sum, Minimum, Maximum, IQM, or as p99, tm90, TM(10%%:90%%), WM, TC, TS or PR(0:100)", name)
}

// parseBounds reads what follows a statistic's name: 99.9, (10%:90%) or (:300).
func parseBounds(kind, s string) (Statistic, bool) {
	if n, ok := percentage(s); ok {
		return Statistic{kind, 0, n, true}, kind != "pr"
	}
	inner, ok := strings.CutPrefix(s, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	low, high, colon := strings.Cut(inner, ":")
	if !ok || !closed || !colon || kind == "p" || low+high == "" {
		return Statistic{}, false
	}
	if strings.HasSuffix(low, "%") || strings.HasSuffix(high, "%") {
		return percentBounds(kind, low, high)
	}
	from, okFrom := bound(low, math.Inf(-1))
	to, okTo := bound(high, math.Inf(1))
	return Statistic{kind, from, to, false}, okFrom && okTo && from < to
}

func percentBounds(kind, low, high string) (Statistic, bool) {
	from, to, okFrom, okTo := 0.0, 100.0, true, true
	if low != "" {
		from, okFrom = percentage(strings.TrimSuffix(low, "%"))
		okFrom = okFrom && strings.HasSuffix(low, "%")
	}
	if high != "" {
		to, okTo = percentage(strings.TrimSuffix(high, "%"))
		okTo = okTo && strings.HasSuffix(high, "%")
	}
	return Statistic{kind, from, to, true}, okFrom && okTo && from < to && kind != "pr"
}

// percentage reads digits, with at most ten behind the point.
func percentage(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	_, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n <= 100 && len(fraction) <= 10
}

func bound(s string, open float64) (float64, bool) {
	if s == "" {
		return open, true
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Plain reports whether the statistic is one of the five that every set has.
func (st Statistic) Plain() bool { return len(st.kind) > 2 }

// Of reads the statistic off a set. It is not there where the set is empty, where its values are not
// known, and where the bounds leave none.
func (st Statistic) Of(s Set) (value float64, ok bool) {
	if s.Count <= 0 {
		return 0, false
	}
	switch st.kind {
	case "SampleCount":
		return s.Count, true
	case "Average":
		return s.Sum / s.Count, true
	case "Sum":
		return s.Sum, true
	case "Minimum":
		return s.Min, true
	case "Maximum":
		return s.Max, true
	}
	if !s.Known() || s.Min < 0 { // percentiles of negative values are not to be had: API_GetMetricStatistics
		return 0, false
	}
	return st.ofValues(s.values(), s.Count)
}

func (st Statistic) ofValues(values []Value, count float64) (float64, bool) {
	if st.kind == "p" {
		return quantile(values, st.high/100*count), true
	}
	if st.kind == "wm" {
		return st.winsorized(values, count), true
	}
	n, sum := st.within(values, count)
	switch st.kind {
	case "tc":
		return n, true
	case "ts":
		return sum, true
	case "pr":
		return 100 * n / count, true
	}
	return sum / n, n > 0
}

// quantile is the first value with at least so many at or below it.
func quantile(values []Value, rank float64) float64 {
	seen := 0.0
	for _, v := range values {
		if seen += v.Count; seen >= rank {
			return v.Value
		}
	}
	return values[len(values)-1].Value
}

// within counts and sums the values between the bounds. Of a value on a percentage's bound, the part
// within counts.
func (st Statistic) within(values []Value, count float64) (n, sum float64) {
	from, to, seen := st.low/100*count, st.high/100*count, 0.0
	for _, v := range values {
		part := 0.0
		switch {
		case st.percent:
			part = max(0, min(seen+v.Count, to)-max(seen, from))
		case v.Value > st.low && v.Value <= st.high:
			part = v.Count
		}
		seen += v.Count
		n, sum = n+part, sum+part*v.Value
	}
	return n, sum
}

// winsorized is the mean with the values beyond the bounds taken for the bounds.
func (st Statistic) winsorized(values []Value, count float64) float64 {
	low, high := st.low, st.high
	if st.percent {
		low, high = quantile(values, st.low/100*count), quantile(values, st.high/100*count)
	}
	sum := 0.0
	for _, v := range values {
		sum += v.Count * max(low, min(high, v.Value))
	}
	return sum / count
}
