package metricmath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Search is a SEARCH function in an expression. It follows the CloudWatch User Guide's page "CloudWatch search expression
// syntax".
type Search struct {
	Statistic string
	Period    time.Duration // 0 means the request's

	schema []string // the namespace and the names of the dimensions; nil matches all metrics
	term   term     // nil matches all metrics
}

// Metric is a metric as SEARCH sees it.
type Metric struct {
	Namespace, Name string
	Dimensions      []Dimension
}

// Dimension is one of a metric's dimensions.
type Dimension struct{ Name, Value string }

// Matches reports whether the search finds a metric. A schema with dimensions matches metrics with exactly these. A schema
// with only a namespace matches all metrics in it.
func (s *Search) Matches(m *Metric) bool {
	return (s.schema == nil || inSchema(s.schema, m)) && (s.term == nil || s.term.matches(m))
}

func inSchema(schema []string, m *Metric) bool {
	if schema[0] != m.Namespace {
		return false
	}
	names := schema[1:]
	if len(names) == 0 {
		return true
	}
	return len(names) == len(m.Dimensions) &&
		!slices.ContainsFunc(m.Dimensions, func(d Dimension) bool { return !slices.Contains(names, d.Name) })
}

// term is a condition of a search, or a part of one.
type term interface{ matches(*Metric) bool }

type (
	allOf  []term
	anyOf  []term
	noneOf struct{ of term }
	// property matches the metric's name ("MetricName"), its namespace ("Namespace") or the value of the dimension
	// named of. "" matches any of these, and the dimensions' names.
	property struct {
		of   string
		text text
	}
)

func (t allOf) matches(m *Metric) bool {
	return !slices.ContainsFunc(t, func(t term) bool { return !t.matches(m) })
}

func (t anyOf) matches(m *Metric) bool {
	return slices.ContainsFunc(t, func(t term) bool { return t.matches(m) })
}

func (t noneOf) matches(m *Metric) bool { return !t.of.matches(m) }

func (t property) matches(m *Metric) bool {
	switch t.of {
	case "MetricName":
		return t.text.isIn(m.Name)
	case "Namespace":
		return t.text.isIn(m.Namespace)
	}
	if t.of == "" && (t.text.isIn(m.Name) || t.text.isIn(m.Namespace)) {
		return true
	}
	return slices.ContainsFunc(m.Dimensions, func(d Dimension) bool {
		if t.of != "" {
			return d.Name == t.of && t.text.isIn(d.Value)
		}
		return t.text.isIn(d.Name) || t.text.isIn(d.Value)
	})
}

// text is a text to search for, exactly or by its tokens.
type text struct {
	exact  string // "" means by tokens
	tokens []token
	whole  string // the tokens joined, in lower case
}

// token is a token of the text. If several are joined without a delimiter, as in CustomCount, their case counts.
// A token on its own is in lower case, and fold says that its case doesn't count.
type token struct {
	text string
	fold bool
}

func tokenText(s string) text {
	t := text{whole: joined(s)}
	for _, piece := range strings.FieldsFunc(s, isDelimiter) {
		words := tokens(piece)
		for _, w := range words {
			if len(words) == 1 {
				w = strings.ToLower(w)
			}
			t.tokens = append(t.tokens, token{w, len(words) == 1})
		}
	}
	return t
}

// isIn reports whether a name or value is the text, or has its tokens in a row.
func (t text) isIn(s string) bool {
	if t.exact != "" {
		return s == t.exact
	}
	if len(t.tokens) == 0 || len(s) < len(t.whole) {
		return false
	}
	if !containsFold(s, t.tokens[0].text) { // saves splitting most names
		return t.isWhole(s)
	}
	words := tokens(s)
	for i := 0; i+len(t.tokens) <= len(words); i++ {
		if startWith(words[i:], t.tokens) {
			return true
		}
	}
	return t.isWhole(s)
}

// isWhole reports whether a name's tokens, joined, equal the text's.
func (t text) isWhole(s string) bool {
	n := 0
	for i := range len(s) {
		if !isDelimiter(rune(s[i])) {
			n++
		}
	}
	return n == len(t.whole) && joined(s) == t.whole
}

func containsFold(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func startWith(words []string, wanted []token) bool {
	for i, w := range wanted {
		if words[i] != w.text && !(w.fold && strings.EqualFold(words[i], w.text)) {
			return false
		}
	}
	return true
}

// joined joins a text's tokens, which counts as a token too.
func joined(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, isDelimiter), ""))
}

func isDelimiter(r rune) bool { return r < 128 && (!isWord(byte(r)) || r == '_') }

// tokens splits a text at delimiters, between digits and other characters, and by camel case: SDBFailure2 gives SDB,
// Failure and 2.
func tokens(s string) (out []string) {
	for _, piece := range strings.FieldsFunc(s, isDelimiter) {
		start := 0
		for i := 1; i < len(piece); i++ {
			if isBoundary(piece, i) {
				out = append(out, piece[start:i])
				start = i
			}
		}
		out = append(out, piece[start:])
	}
	return out
}

// isBoundary reports whether a token begins at s[i]. i is at least 1.
func isBoundary(s string, i int) bool {
	before, at := s[i-1], s[i]
	switch {
	case isDigit(at) != isDigit(before):
		return true
	case isUpper(at):
		return !isUpper(before) || i+1 < len(s) && isLower(s[i+1])
	}
	return false
}

// search is a call of SEARCH.
type search struct {
	place
	*Search
}

func (n search) eval(data *Data) (value, error) { return many(data.Found[n.Search]), nil }

// Limits on SEARCH: the page "CloudWatch search expression syntax".
const (
	maxSearchText = 1024
	maxSearches   = 100
)

// search parses the arguments of SEARCH('{schema} term', 'statistic', period).
func (p *parser) search(at place) (node, error) {
	if !p.symbol("(") {
		return nil, p.here().errorf("SEARCH takes its arguments in parentheses")
	}
	s := &Search{}
	query, queryAt, err := p.quoted()
	if err != nil {
		return nil, err
	}
	if err := p.closeWith(nil, ","); err != nil {
		return nil, err
	}
	if s.Statistic, _, err = p.quoted(); err != nil {
		return nil, err
	}
	if p.symbol(",") {
		if s.Period, err = p.seconds(); err != nil {
			return nil, err
		}
	}
	if err := p.closeWith(nil, ")"); err != nil {
		return nil, err
	}
	if len(query) > maxSearchText {
		return nil, queryAt.errorf("the search has %d characters, at most %d are allowed", len(query), maxSearchText)
	}
	if p.searches = append(p.searches, s); len(p.searches) > maxSearches {
		return nil, at.errorf("there are more than %d searches", maxSearches)
	}
	q := &searchParser{parser{text: p.text[:int(queryAt)+len(query)], at: int(queryAt)}}
	return search{at, s}, q.read(s)
}

// quoted parses a text in single or double quotation marks.
func (p *parser) quoted() (text string, at place, err error) {
	for _, quote := range []string{`'`, `"`} {
		if !p.symbol(quote) {
			continue
		}
		at = p.here()
		text, _, closed := strings.Cut(p.text[p.at:], quote)
		if !closed {
			return "", at, at.errorf("the quotation is not closed")
		}
		p.at += len(text) + 1
		return text, at, nil
	}
	return "", 0, p.here().errorf("a quotation is missing")
}

// maxPeriod is the longest period.
const maxPeriod = 24 * time.Hour

func (p *parser) seconds() (time.Duration, error) {
	p.blank()
	at := p.here()
	text := p.word()
	n, err := strconv.Atoi(text)
	if d := time.Duration(n) * time.Second; err == nil && n > 0 && n <= int(maxPeriod/time.Second) {
		return d, nil
	}
	return 0, at.errorf("%q is no period in seconds", text)
}

// searchParser parses a search: a schema, and terms with AND, OR, NOT and parentheses.
type searchParser struct{ parser }

func (p *searchParser) read(s *Search) (err error) {
	if p.symbol("{") {
		if s.schema, err = p.schema(); err != nil {
			return err
		}
		p.symbol(",")
	}
	if p.blank(); p.at < len(p.text) {
		if s.term, err = p.or(""); err != nil {
			return err
		}
	}
	if p.blank(); p.at < len(p.text) {
		return p.here().errorf("%q is not expected here", p.excerpt())
	}
	if s.schema == nil && s.term == nil {
		return p.here().errorf("SEARCH looks for nothing")
	}
	return nil
}

// schema parses {Namespace, Dimension, …} from after the opening bracket.
func (p *searchParser) schema() (names []string, err error) {
	for {
		p.blank()
		at := p.here()
		name, _, err := p.name(" \t\n\r,{}\"")
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, at.errorf("the schema lacks a name")
		}
		names = append(names, name)
		if !p.symbol(",") {
			return names, p.closeWith(nil, "}")
		}
	}
}

func (p *searchParser) or(of string) (term, error) {
	var all anyOf
	for {
		t, err := p.and(of)
		if err != nil {
			return nil, err
		}
		if all = append(all, t); !p.operator("OR") {
			return all, nil
		}
	}
}

// and parses terms with AND or nothing between them.
func (p *searchParser) and(of string) (term, error) {
	var all allOf
	for {
		t, err := p.not(of)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		p.symbol(",")
		if p.operator("AND") {
			continue
		}
		if p.blank(); p.at == len(p.text) || p.peek() == ')' || p.isNext("OR") {
			return all, nil
		}
	}
}

func (p *searchParser) operator(word string) bool {
	p.blank()
	if !p.isNext(word) {
		return false
	}
	p.at += len(word)
	return true
}

// not parses one term. of is the property that a parenthesis around it belongs to, or "".
func (p *searchParser) not(of string) (term, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.here().errorf("the search nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.operator("NOT") {
		t, err := p.not(of)
		return noneOf{t}, err
	}
	if p.symbol("(") {
		t, err := p.or(of)
		return t, p.closeWith(err, ")")
	}
	p.blank()
	at := p.here()
	word, exact, err := p.name(" \t\n\r,(){}\"=")
	switch {
	case err != nil:
		return nil, err
	case word == "":
		return nil, at.errorf("a term is missing")
	case of == "" && p.symbol("="):
		return p.not(word)
	case exact:
		return property{of, text{exact: word}}, nil
	}
	return property{of, tokenText(word)}, nil
}

// name parses a word that ends before any of the characters in until, or a text in double quotation marks.
func (p *searchParser) name(until string) (name string, exact bool, err error) {
	if !p.symbol(`"`) {
		end := strings.IndexAny(p.text[p.at:], until)
		if end < 0 {
			end = len(p.text) - p.at
		}
		name = p.text[p.at : p.at+end]
		p.at += end
		return name, false, nil
	}
	at := p.here()
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == '"':
			if b.Len() == 0 {
				return "", true, at.errorf("the quotation is empty")
			}
			return b.String(), true, nil
		case c == '\\' && p.at < len(p.text):
			c = p.text[p.at]
			p.at++
		}
		b.WriteByte(c)
	}
	return "", true, at.errorf("the quotation is not closed")
}

// Labels returns labels that tell the metrics found by a search apart: the parts in which they differ, or their name.
func Labels(found []Metric) []string {
	labels := make([]string, len(found))
	differ := func(of func(Metric) string) bool {
		return slices.ContainsFunc(found, func(m Metric) bool { return of(m) != of(found[0]) })
	}
	parts := []func(Metric) string{}
	for _, name := range dimensionNames(found) {
		parts = append(parts, func(m Metric) string { return m.value(name) })
	}
	parts = append(parts, func(m Metric) string { return m.Name }, func(m Metric) string { return m.Namespace })
	for _, part := range parts {
		if !differ(part) {
			continue
		}
		for i, m := range found {
			labels[i] = strings.TrimSpace(fmt.Sprint(labels[i], " ", part(m)))
		}
	}
	for i, m := range found {
		if labels[i] == "" {
			labels[i] = m.Name
		}
	}
	return labels
}

func dimensionNames(found []Metric) (names []string) {
	for _, m := range found {
		for _, d := range m.Dimensions {
			if !slices.Contains(names, d.Name) {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

func (m Metric) value(dimension string) string {
	if i := slices.IndexFunc(m.Dimensions, func(d Dimension) bool { return d.Name == dimension }); i >= 0 {
		return m.Dimensions[i].Value
	}
	return ""
}
