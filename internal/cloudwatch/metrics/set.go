package metrics

import (
	"cmp"
	"math"
	"slices"
)

// Set is what was reported for a span of time: a statistic set and, if known, the values themselves. Sets can be added
// in any order.
type Set struct {
	Count, Sum, Min, Max float64
	// Values are sorted and distinct. They're left out if all are equal, which Min and Max show, and lost if
	// a statistic set came without them. The slice is never changed in place.
	Values []Value
}

// Value is a value and how often it was reported.
type Value struct{ Value, Count float64 }

// maxValues limits the distinct values in a set. It is more than one datum can bring. Beyond it, close values
// count as one.
const maxValues = 160

// Of returns the set of the values with their counts.
func Of(values []Value) Set {
	var s Set
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b Value) int { return cmp.Compare(a.Value, b.Value) })
	for _, v := range sorted {
		s.Count += v.Count
		s.Sum += v.Value * v.Count
	}
	if len(sorted) == 0 {
		return s
	}
	s.Min, s.Max = sorted[0].Value, sorted[len(sorted)-1].Value
	if s.Min != s.Max {
		s.Values = shrink(add(nil, sorted))
	}
	return s
}

// One returns the set of one value.
func One(value float64) Set { return Set{Count: 1, Sum: value, Min: value, Max: value} }

// Known reports whether the values, and so percentiles, are known.
func (s *Set) Known() bool { return s.Min == s.Max || s.Values != nil }

// Add adds o to the set.
func (s *Set) Add(o Set) {
	if o.Count == 0 {
		return
	}
	if s.Count == 0 {
		*s = o
		return
	}
	values := s.union(&o)
	s.Count += o.Count
	s.Sum += o.Sum
	s.Min = min(s.Min, o.Min)
	s.Max = max(s.Max, o.Max)
	s.Values = values
}

// union returns the values of both, or nil if all are equal or not all are known.
func (s *Set) union(o *Set) []Value {
	if !s.Known() || !o.Known() || s.Min == s.Max && o.Min == o.Max && s.Min == o.Min {
		return nil
	}
	return shrink(add(s.values(), o.values()))
}

// values returns the values of a set that knows them, even if all are equal.
func (s *Set) values() []Value {
	if s.Min == s.Max && s.Count > 0 {
		return []Value{{s.Min, s.Count}}
	}
	return s.Values
}

// add merges two sorted lists.
func add(a, b []Value) []Value {
	out := make([]Value, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Value < a[0].Value {
			from = &b
		}
		out = join(out, (*from)[0])
		*from = (*from)[1:]
	}
	return out
}

func join(values []Value, v Value) []Value {
	if n := len(values); n > 0 && values[n-1].Value == v.Value {
		values[n-1].Count += v.Count
		return values
	}
	return append(values, v)
}

// shrink counts close values as one until there are few enough. It drops bits of their mantissas: three are left
// for values over twenty octaves, an error of at most 6 %.
func shrink(values []Value) []Value {
	for bits := 10; len(values) > maxValues && bits >= 0; bits-- {
		var out []Value
		for _, v := range values {
			out = join(out, Value{round(v.Value, bits), v.Count})
		}
		values = out
	}
	if len(values) <= maxValues {
		return values
	}
	return halve(values)
}

// round keeps some bits of a value's mantissa and sets the rest to the middle of its range. It preserves the order of
// values.
func round(f float64, bits int) float64 {
	if f == 0 {
		return 0
	}
	mask := uint64(1)<<(52-bits) - 1
	return math.Float64frombits(math.Float64bits(f)&^mask | (mask+1)>>1)
}

// halve counts neighbors as one, for values too far apart for rounding.
func halve(values []Value) []Value {
	for len(values) > maxValues {
		var out []Value
		for i := 0; i < len(values); i += 2 {
			v := values[i]
			if i+1 < len(values) {
				v.Count += values[i+1].Count
			}
			out = append(out, v)
		}
		values = out
	}
	return values
}
