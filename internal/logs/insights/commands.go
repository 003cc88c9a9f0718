package insights

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// commands are those that there are. where is another name of filter.
var commands = map[string]func(*parser) error{
	"fields":  (*parser).fields,
	"display": (*parser).displayed,
	"filter":  (*parser).filter,
	"where":   (*parser).filter,
	"parse":   (*parser).extract,
	"stats":   (*parser).stats,
	"sort":    (*parser).sort,
	"dedup":   (*parser).dedup,
	"limit":   (*parser).limit,
}

// refused are commands of AWS's that are not here.
var refused = []string{
	"addtotals", "anomaly", "diff", "eventstats", "filterindex", "join", "lookup", "pattern", "source", "streamstats", "unmask", "unnest",
}

// Limits of a query that are not AWS's.
const (
	maxExpressions = 20
	maxSteps       = 1000 // of the regular expressions' programs
)

// maxStats is how many stats a query may have: CWL_QuerySyntax-Stats.
const maxStats = 2

func (p *parser) parse() error {
	p.expressions.Most = maxExpressions
	p.expressions.Steps = maxSteps
	p.query.stages = []*stage{{}}
	for {
		if err := p.command(); err != nil {
			return err
		}
		if p.peek() == 0 {
			return nil
		}
		if !p.take("|") {
			return p.unexpected()
		}
	}
}

func (p *parser) command() error {
	p.blank()
	start := p.at
	name, quoted, err := p.name()
	if err != nil {
		return err
	}
	name = strings.ToLower(name)
	if slices.Contains(refused, name) {
		return p.wrong(start, "the command %s is not supported", name)
	}
	parse := commands[name]
	switch {
	case parse == nil || quoted:
		p.at = start
		return p.unexpected()
	case p.afterDedup && name != "limit":
		return p.wrong(start, "only limit may follow dedup, not %s", name)
	}
	p.reads = nil
	return parse(p)
}

// What a stage has decides which commands it is closed to: all but limit come before a limit, for instance.
func (s *stage) isStats() bool  { return s.stats != nil }
func (s *stage) hasLimit() bool { return s.isStats() || s.order.limit > 0 || s.order.dedup != nil }
func (s *stage) hasSink() bool  { return s.hasLimit() || s.order.by != nil }

// stage returns the last stage, or a new one if the last is closed to what the command does. What the command read belongs to it.
func (p *parser) stage(closed func(*stage) bool) *stage {
	q := p.query
	if closed(q.stages[len(q.stages)-1]) {
		q.stages = append(q.stages, &stage{})
	}
	last := q.stages[len(q.stages)-1]
	last.reads = append(last.reads, p.reads...)
	p.reads = nil
	return last
}

func (p *parser) step(s step) *stage {
	last := p.stage((*stage).hasSink)
	last.steps = append(last.steps, s)
	return last
}

// list parses parts between commas.
func (p *parser) list(part func() error) error {
	for {
		if err := part(); err != nil {
			return err
		}
		if !p.take(",") {
			return nil
		}
	}
}

// column parses an expression, and the name that it may get with as. Otherwise its text is its name.
func (p *parser) column() (c column, plain bool, err error) {
	p.blank()
	start := p.at
	before := len(p.reads)
	if c.of, err = p.expression(); err != nil {
		return c, false, err
	}
	c.name = p.text[start:p.behind()]
	if len(p.reads) == before+1 && strings.ReplaceAll(c.name, "`", "") == p.reads[before] {
		c.name = p.reads[before]
		plain = true
	}
	if p.word("as") {
		plain = false
		c.name, _, err = p.name()
	}
	return c, plain, err
}

func (p *parser) fields() error {
	p.hasFields = true
	return p.list(func() error {
		name, err := p.shownColumn()
		p.shown = append(p.shown, name)
		return err
	})
}

func (p *parser) displayed() error {
	p.display = nil
	return p.list(func() error {
		name, err := p.shownColumn()
		p.display = append(p.display, name)
		return err
	})
}

// shownColumn parses a column of fields or display, and has it made where it is not just a field.
func (p *parser) shownColumn() (string, error) {
	c, plain, err := p.column()
	if err != nil || plain {
		return c.name, err
	}
	p.step(func(r *row) bool {
		r.set(c.name, c.of(r))
		return true
	})
	if p.known != nil && !slices.Contains(p.known, c.name) {
		p.known = append(p.known, c.name)
	}
	return c.name, nil
}

func (p *parser) filter() error {
	condition, err := p.expression()
	if err != nil {
		return err
	}
	p.step(func(r *row) bool { return condition(r).isTrue() }).filters = true
	return nil
}

// extract parses the command parse: a field, a glob or a regular expression, and the names of what they find.
func (p *parser) extract() error {
	of := p.field("@message")
	if c := p.peek(); c != '"' && c != '\'' && c != '/' {
		p.reads = nil
		var err error
		if of, err = p.primary(); err != nil {
			return err
		}
	}
	start := p.at
	find, names, err := p.finder()
	if err != nil {
		return err
	}
	if p.word("as") {
		var given []string
		err := p.list(func() error {
			name, _, err := p.name()
			given = append(given, name)
			return err
		})
		if err != nil {
			return err
		}
		if len(given) != len(names) {
			return p.wrong(start, "the pattern finds %d fields, and %d names are given", len(names), len(given))
		}
		names = given
	}
	if len(names) == 0 || slices.Contains(names, "") {
		return p.wrong(start, "the fields that parse finds need names")
	}
	p.step(func(r *row) bool {
		for i, found := range find(of(r).String()) {
			r.set(names[i], textOf(found))
		}
		return true
	})
	p.shown = append(p.shown, names...)
	if p.known != nil {
		p.known = unique(append(p.known, names...))
	}
	return nil
}

// finder parses a glob or a regular expression. names has the name of each text that it finds, or "".
func (p *parser) finder() (find func(string) []string, names []string, err error) {
	if p.peek() == '/' {
		expr, err := p.regexp()
		if err != nil {
			return nil, nil, err
		}
		return func(s string) []string { return submatches(expr, s) }, expr.SubexpNames()[1:], nil
	}
	glob, err := p.quotation()
	if err != nil {
		return nil, nil, err
	}
	parts := strings.Split(glob, "*")
	return func(s string) []string { return between(parts, s) }, make([]string, len(parts)-1), nil
}

func submatches(expr *regexp.Regexp, s string) []string {
	if m := expr.FindStringSubmatch(s); m != nil {
		return m[1:]
	}
	return nil
}

// between returns the texts between a glob's parts, or nil if s doesn't have all of them, one after the other.
func between(parts []string, s string) []string {
	_, s, ok := strings.Cut(s, parts[0])
	if !ok {
		return nil
	}
	out := make([]string, 0, len(parts)-1)
	for i, part := range parts[1:] {
		if i == len(parts)-2 && part == "" { // the last asterisk takes the rest
			return append(out, s)
		}
		before, after, ok := strings.Cut(s, part)
		if !ok {
			return nil
		}
		out = append(out, before)
		s = after
	}
	return out
}

func (p *parser) stats() error {
	start := p.at
	if p.statsCount++; p.statsCount > maxStats {
		return p.wrong(start, "a query has at most %d stats commands", maxStats)
	}
	made := &stats{}
	p.aggregates = &made.aggregates
	err := p.list(func() error {
		c, _, err := p.column()
		made.columns = append(made.columns, c)
		return err
	})
	p.aggregates = nil
	if err == nil && p.word("by") {
		err = p.list(func() error {
			c, _, err := p.column()
			made.by = append(made.by, c)
			return err
		})
	}
	if err != nil {
		return err
	}
	if len(made.aggregates) == 0 {
		return p.wrong(start, "stats needs a function such as count(*)")
	}
	p.stage((*stage).hasSink).stats = made
	p.query.events = false
	p.display = nil
	p.known = []string{}
	for _, c := range slices.Concat(made.by, made.columns) {
		p.known = append(p.known, c.name)
	}
	return nil
}

func (p *parser) sort() error {
	var keys []sortKey
	err := p.list(func() error {
		of, err := p.expression()
		key := sortKey{of: of}
		if err == nil && !p.word("asc") {
			key.descending = p.word("desc")
		}
		keys = append(keys, key)
		return err
	})
	if err != nil {
		return err
	}
	p.stage((*stage).hasSink).order.by = keys
	return nil
}

func (p *parser) dedup() error {
	var by []formula
	err := p.list(func() error {
		of, err := p.expression()
		by = append(by, of)
		return err
	})
	if err != nil {
		return err
	}
	p.stage((*stage).hasLimit).order.dedup = by
	p.afterDedup = true
	return nil
}

func (p *parser) limit() error {
	p.blank()
	start := p.at
	n, err := p.number()
	if err != nil {
		return err
	}
	if n < 1 || n > maxLimit || n != math.Trunc(n) {
		return p.wrong(start, "limit must be between 1 and %d", maxLimit)
	}
	o := &p.stage((*stage).isStats).order
	if o.limit == 0 || int(n) < o.limit {
		o.limit = int(n)
	}
	return nil
}
