package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Statistic is a figure computed from a set, such as Average, p99 or TM(10%:90%), as the CloudWatch User Guide's page on
// statistics definitions defines them.
type Statistic struct {
	kind      string
	low, high float64
	percent   bool // the bounds are percentages of the values, not values
}

// ParseStatistic parses a statistic's name.
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
	return Statistic{}, fmt.Errorf(
		"%q is no statistic: it is SampleCount, Average, Sum, Minimum, Maximum, IQM, "+
			"or as p99, tm90, TM(10%%:90%%), WM, TC, TS or PR(0:100)",
		name,
	)
}

// parseBounds parses what follows a statistic's kind: 99.9, (10%:90%) or (:300).
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

// percentage parses a number from 0 to 100 with at most ten decimals.
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

// Of computes the statistic of a set. ok is false if the set is empty, its values aren't known, or none lie within the
// bounds.
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
	if !s.Known() || s.Min < 0 { // CloudWatch has no percentiles of negative values: API_GetMetricStatistics
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

// quantile returns the first value with at least rank values at or below it.
func quantile(values []Value, rank float64) float64 {
	seen := 0.0
	for _, v := range values {
		if seen += v.Count; seen >= rank {
			return v.Value
		}
	}
	return values[len(values)-1].Value
}

// within counts and sums the values between the bounds. A value at a percentage's bound counts in part.
func (st Statistic) within(values []Value, count float64) (n, sum float64) {
	from, to := st.low/100*count, st.high/100*count
	seen := 0.0
	for _, v := range values {
		part := 0.0
		switch {
		case st.percent:
			part = max(0, min(seen+v.Count, to)-max(seen, from))
		case v.Value > st.low && v.Value <= st.high:
			part = v.Count
		}
		seen += v.Count
		n += part
		sum += part * v.Value
	}
	return n, sum
}

// winsorized returns the mean in which values beyond a bound count as the bound.
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
