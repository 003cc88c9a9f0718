// Package insights is the query language of CloudWatch Logs Insights: Parse parses a query, and a Run evaluates it over events that are
// given to it in any order. It is pure, and follows
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html
// What a query costs is bounded: its length, its regular expressions, and the memory that a run holds.
package insights

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits of queries.
const (
	maxLength = 10000  // characters: API_StartQuery
	maxLimit  = 100000 // of the command limit, and of the parameter of the same name
	// DefaultLimit is how many results a query has that names no number.
	DefaultLimit = 10000
)

// Query is a parsed query. It is safe for concurrent use.
type Query struct {
	stages  []*stage
	columns []string // of the results
	events  bool     // results are events, which have a @ptr
}

// stage is a part of a query: steps that take row by row, and then a sink that must see all rows before it gives any. The sink puts
// rows in order or, with stats, makes new ones of them.
type stage struct {
	steps   []step
	filters bool // some step drops rows
	stats   *stats
	order   order
	reads   []string // the fields that its expressions read
	keeps   []string // the fields that later stages and the results need
}

// step changes a row, and reports whether the query goes on with it.
type step func(*row) bool

// order is what a stage does with all its rows: sort, then dedup, then limit.
type order struct {
	by    []sortKey
	dedup []formula
	limit int // 0 for none
}

type sortKey struct {
	of         formula
	descending bool
}

// Error is what is wrong with a query, and where: from the character Start up to End.
type Error struct {
	Message    string
	Start, End int
}

func (e *Error) Error() string { return e.Message }

// Parse parses a query. limit bounds its results, as the command limit does; 0 means DefaultLimit.
func Parse(query string, limit int) (*Query, error) {
	if n := utf8.RuneCountInString(query); n > maxLength || !utf8.ValidString(query) {
		return nil, &Error{Message: fmt.Sprintf("a query has at most %d characters, all of them UTF-8", maxLength)}
	}
	p := &parser{text: query, query: &Query{events: true}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	p.finish(cmp.Or(limit, DefaultLimit))
	return p.query, nil
}

// finish adds what a query does without being told: it shows columns, and limits its results.
func (p *parser) finish(limit int) {
	q := p.query
	q.columns = unique(p.columns())
	last := p.stage((*stage).isStats)
	last.order.limit = min(cmp.Or(last.order.limit, limit), limit)
	keeps := slices.Clone(q.columns)
	if q.events {
		keeps = append(keeps, "@ptr")
	}
	for i, s := range slices.Backward(q.stages) {
		s.keeps = keeps
		keeps = unique(append(slices.Clone(keeps), s.reads...))
		if s.stats == nil && s.order.limit == 0 {
			s.order.limit = q.limitAfter(i)
		}
	}
}

// columns returns the columns that the results have.
func (p *parser) columns() []string {
	switch {
	case p.display != nil:
		return p.display
	case p.known != nil:
		return p.known
	case p.hasFields:
		return p.shown
	}
	return append([]string{"@timestamp", "@message"}, p.shown...)
}

// limitAfter returns the limit that a later stage certainly sets, or 0. The stage before it needn't hold more rows.
func (q *Query) limitAfter(i int) int {
	for _, s := range q.stages[i+1:] {
		if s.filters || s.stats != nil || s.order.by != nil || s.order.dedup != nil {
			return 0
		}
		if s.order.limit > 0 {
			return s.order.limit
		}
	}
	return 0
}

func unique(names []string) (out []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			out = append(out, name)
		}
		seen[name] = true
	}
	return out
}
