package insights

import (
	"math"
	"slices"
)

// stats is the command: it groups rows, and makes one row of each group.
type stats struct {
	by         []column
	columns    []column
	aggregates []aggregate
}

// column is a field that a command makes.
type column struct {
	name string
	of   formula
}

// aggregate is a call such as avg(latency). of is nil in count(*).
type aggregate struct {
	of  formula
	new func() accumulator
}

// accumulator adds up the values of a group. add returns about how many bytes it holds more.
type accumulator interface {
	add(r *row, v value) int
	result() value
}

// grouped is the sink of stats.
type grouped struct {
	*stats
	run    *Run
	groups map[string]*group
}

type group struct {
	by     []value
	sums   []accumulator
	newest row // only its place
}

func (g *grouped) add(r *row) {
	values := make([]value, len(g.by))
	for i, c := range g.by {
		values[i] = c.of(r)
	}
	key := keyOf(values)
	in := g.groups[key]
	if in == nil {
		for i, v := range values {
			values[i] = v.owned()
		}
		in = &group{by: values, newest: row{at: r.at, place: r.place}}
		for _, a := range g.aggregates {
			in.sums = append(in.sums, a.new())
		}
		g.run.hold(perRow + 2*len(key) + perValue*(len(g.by)+len(g.aggregates)))
		g.groups[key] = in
	}
	if newer(r, &in.newest) < 0 {
		in.newest = row{at: r.at, place: r.place}
	}
	for i, a := range g.aggregates {
		v := truth(true)
		if a.of != nil {
			v = a.of(r)
		}
		if v.kind != missing {
			g.run.hold(in.sums[i].add(r, v))
		}
	}
}

// rows returns a row for each group, in the order of their newest events.
func (g *grouped) rows() []*row {
	var groups []*group
	for _, in := range g.groups {
		groups = append(groups, in)
	}
	slices.SortFunc(groups, func(a, b *group) int { return newer(&a.newest, &b.newest) })
	out := make([]*row, len(groups))
	for i, in := range groups {
		r := &row{run: g.run}
		for j, c := range g.by {
			r.set(c.name, in.by[j])
		}
		for _, sum := range in.sums {
			r.sums = append(r.sums, sum.result())
		}
		for _, c := range g.columns {
			r.set(c.name, c.of(r))
		}
		r.sums = nil
		r.size = perRow + r.made
		if g.run.hold(r.size); g.run.err != nil {
			return nil
		}
		out[i] = r
	}
	return out
}

// aggregations are the functions of stats. Of pct's two arguments the second is a number; the others have one, which count may leave out.
var aggregations = map[string]func(percent float64) accumulator{
	"count":          func(float64) accumulator { return &counter{} },
	"count_distinct": func(float64) accumulator { return &distinct{seen: map[string]bool{}} },
	"sum":            func(float64) accumulator { return &moments{of: func(m *moments) float64 { return m.sum }} },
	"avg":            func(float64) accumulator { return &moments{of: func(m *moments) float64 { return m.sum / m.count }} },
	"stddev": func(float64) accumulator {
		return &moments{of: func(m *moments) float64 { return math.Sqrt(m.squares / m.count) }}
	},
	"min": func(float64) accumulator {
		return &best{numbers: true, better: func(a, b value) bool { return less(a, b) }}
	},
	"max": func(float64) accumulator {
		return &best{numbers: true, better: func(a, b value) bool { return less(b, a) }}
	},
	"sortsfirst": func(float64) accumulator { return &best{better: func(a, b value) bool { return compare(a, b) < 0 }} },
	"sortslast":  func(float64) accumulator { return &best{better: func(a, b value) bool { return compare(a, b) > 0 }} },
	"earliest":   func(float64) accumulator { return &edge{latest: false} },
	"latest":     func(float64) accumulator { return &edge{latest: true} },
	"pct":        func(percent float64) accumulator { return &percentile{percent: percent} },
}

// counter counts values.
type counter struct{ n float64 }

func (c *counter) add(*row, value) int {
	c.n++
	return 0
}

func (c *counter) result() value { return numberOf(c.n) }

// distinct counts different values.
type distinct struct{ seen map[string]bool }

func (d *distinct) add(_ *row, v value) int {
	s := v.String()
	if d.seen[s] {
		return 0
	}
	d.seen[s] = true
	return perValue + len(s)
}

func (d *distinct) result() value { return numberOf(float64(len(d.seen))) }

// moments adds numbers up, and the squares of their distances from the mean.
type moments struct {
	of                        func(*moments) float64
	count, sum, mean, squares float64
}

func (m *moments) add(_ *row, v value) int {
	n, ok := v.number()
	if !ok {
		return 0
	}
	m.count++
	m.sum += n
	before := n - m.mean
	m.mean += before / m.count
	m.squares += before * (n - m.mean)
	return 0
}

func (m *moments) result() value {
	if m.count == 0 {
		return value{}
	}
	return numberOf(m.of(m))
}

// best keeps the value that is before all others.
type best struct {
	numbers bool // only these count
	better  func(a, b value) bool
	value   value
}

func (b *best) add(_ *row, v value) int {
	if _, ok := v.number(); b.numbers && !ok {
		return 0
	}
	if b.value.kind != missing && !b.better(v, b.value) {
		return 0
	}
	grown := len(v.text) - len(b.value.text)
	b.value = v.owned()
	return grown
}

func (b *best) result() value { return b.value }

// edge keeps the value of the earliest or the latest event.
type edge struct {
	latest bool
	from   row // only its place
	value  value
}

func (e *edge) add(r *row, v value) int {
	if e.value.kind != missing && (newer(r, &e.from) < 0) != e.latest {
		return 0
	}
	grown := len(v.text) - len(e.value.text)
	e.value = v.owned()
	e.from = row{at: r.at, place: r.place}
	return grown
}

func (e *edge) result() value { return e.value }

// percentile keeps all numbers. The result is one of them: the first that enough of them don't exceed.
type percentile struct {
	percent float64
	values  []float64
}

func (p *percentile) add(_ *row, v value) int {
	n, ok := v.number()
	if !ok {
		return 0
	}
	p.values = append(p.values, n)
	return 16 // a slice that grows has room for about twice as many
}

func (p *percentile) result() value {
	if len(p.values) == 0 {
		return value{}
	}
	slices.Sort(p.values)
	i := int(math.Ceil(p.percent/100*float64(len(p.values)))) - 1
	return numberOf(p.values[max(i, 0)])
}
