package metricmath

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxLength is CloudWatch's limit on an expression: MetricDataQuery's Expression.
const maxLength = 2048

// maxDepth limits the nesting of an expression.
const maxDepth = 64

// operator is a binary operator.
type operator struct {
	precedence int
	do         func(l, r float64) float64
}

// power is the highest precedence. It associates to the right.
const power = 6

// operators holds the binary operators.
var operators = map[string]operator{
	"OR":  {1, func(l, r float64) float64 { return truth(l != 0 || r != 0) }},
	"AND": {2, func(l, r float64) float64 { return truth(l != 0 && r != 0) }},
	"==":  {3, func(l, r float64) float64 { return truth(l == r) }},
	"!=":  {3, func(l, r float64) float64 { return truth(l != r) }},
	"<=":  {3, func(l, r float64) float64 { return truth(l <= r) }},
	">=":  {3, func(l, r float64) float64 { return truth(l >= r) }},
	"<":   {3, func(l, r float64) float64 { return truth(l < r) }},
	">":   {3, func(l, r float64) float64 { return truth(l > r) }},
	"+":   {4, func(l, r float64) float64 { return l + r }},
	"-":   {4, func(l, r float64) float64 { return l - r }},
	"*":   {5, func(l, r float64) float64 { return l * r }},
	"/":   {5, divide},
	"^":   {power, math.Pow},
}

// spellings holds the operators as written. If one is a prefix of another, the longer comes first.
var spellings = []struct{ text, op string }{
	{"&&", "AND"}, {"||", "OR"}, {"AND", "AND"}, {"OR", "OR"},
	{"==", "=="}, {"!=", "!="}, {"<=", "<="}, {">=", ">="}, {"<", "<"}, {">", ">"},
	{"+", "+"}, {"-", "-"}, {"*", "*"}, {"/", "/"}, {"^", "^"},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// divide drops the data point if the divisor is 0.
func divide(l, r float64) float64 {
	if r == 0 {
		return Missing
	}
	return l / r
}

// Parse parses an expression. Its errors tell what's wrong and at which character.
func Parse(text string) (*Expression, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("the expression is empty")
	}
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d characters, at most %d are allowed", len(text), maxLength)
	}
	p := &parser{text: text, ids: map[string]bool{}}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if p.blank(); p.at < len(text) {
		return nil, p.here().errorf("%q is not expected here", p.excerpt())
	}
	return &Expression{root: root, text: text, ids: p.sortedIDs(), searches: p.searches, banded: p.banded}, nil
}

// parser is a precedence climbing parser.
type parser struct {
	text     string
	at       int
	depth    int
	ids      map[string]bool
	searches []*Search
	banded   []string
}

func (p *parser) here() place { return place(p.at) }

func (p *parser) sortedIDs() []string {
	ids := make([]string, 0, len(p.ids))
	for id := range p.ids {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// expression parses operands joined by operators of a precedence higher than floor.
func (p *parser) expression(floor int) (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.here().errorf("the expression nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.operand()
	for err == nil {
		p.blank()
		at, op := p.here(), p.operator(floor)
		if op == "" {
			break
		}
		precedence := operators[op].precedence
		if precedence == power {
			precedence-- // 2^3^2 is 2^(3^2)
		}
		var right node
		if right, err = p.expression(precedence); err == nil {
			left = binary{at, op, left, right}
		}
	}
	return left, err
}

// operator consumes the next operator if its precedence is higher than floor, or returns "".
func (p *parser) operator(floor int) string {
	for _, s := range spellings {
		if !p.isNext(s.text) {
			continue
		}
		if operators[s.op].precedence <= floor {
			return ""
		}
		p.at += len(s.text)
		return s.op
	}
	return ""
}

func (p *parser) operand() (node, error) {
	p.blank()
	at := p.here()
	switch c := p.peek(); {
	case p.symbol("-"):
		of, err := p.expression(power - 1) // -2^2 is -(2^2)
		return negation{at, of}, err
	case p.symbol("("):
		inner, err := p.expression(0)
		return inner, p.closeWith(err, ")")
	case p.symbol("["):
		items, err := p.items()
		return list{at, items}, p.closeWith(err, "]")
	case isDigit(c) || c == '.':
		return p.number()
	case isLower(c):
		id := p.word()
		p.ids[id] = true
		return reference{at, id}, nil
	case isUpper(c):
		return p.function()
	}
	return nil, at.errorf("a value is missing")
}

// items parses one or more expressions, separated by commas.
func (p *parser) items() ([]node, error) {
	var items []node
	for {
		item, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if !p.symbol(",") {
			return items, nil
		}
	}
}

// closeWith consumes a closing bracket, unless err is set already.
func (p *parser) closeWith(err error, bracket string) error {
	if err != nil || p.symbol(bracket) {
		return err
	}
	return p.here().errorf("%q is missing", bracket)
}

func (p *parser) number() (node, error) {
	at := p.here()
	end := p.at
	for end < len(p.text) && (isDigit(p.text[end]) || strings.IndexByte(".eE", p.text[end]) >= 0 ||
		strings.IndexByte("+-", p.text[end]) >= 0 && strings.IndexByte("eE", p.text[end-1]) >= 0) {
		end++
	}
	f, err := strconv.ParseFloat(p.text[p.at:end], 64)
	if err != nil {
		return nil, at.errorf("%q is no number", p.text[p.at:end])
	}
	p.at = end
	return literal(f), nil
}

// function parses NAME(arguments).
func (p *parser) function() (node, error) {
	at := p.here()
	name := p.word()
	switch name {
	case "METRICS":
		return p.metrics(at)
	case "SEARCH":
		return p.search(at)
	}
	f, known := functions[name]
	switch {
	case unsupported[name]:
		return nil, at.errorf("Pintle does not support the function %s", name)
	case !known:
		return nil, at.errorf("there is no function %s; ids of metrics begin with a lower-case letter", name)
	case !p.symbol("("):
		return nil, p.here().errorf("%s takes its arguments in parentheses", name)
	}
	c := call{place: at, name: name, function: f}
	for p.blank(); p.peek() != ')'; {
		if err := p.argument(&c); err != nil {
			return nil, err
		}
		if !p.symbol(",") {
			break
		}
	}
	if err := p.closeWith(nil, ")"); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if name == "ANOMALY_DETECTION_BAND" {
		p.banded = append(p.banded, c.args[0].(reference).id)
	}
	return c, nil
}

// argument parses a call's next argument: a keyword, if the function allows one here, or a value.
func (p *parser) argument(c *call) error {
	p.blank()
	before := p.at
	if word := p.word(); slices.Contains(c.words[len(c.args)], word) && !p.symbol("(") {
		c.args = append(c.args, keyword(word))
		return nil
	}
	p.at = before
	arg, err := p.expression(0)
	c.args = append(c.args, arg)
	return err
}

// metrics parses METRICS() or METRICS("part of an id").
func (p *parser) metrics(at place) (node, error) {
	if !p.symbol("(") {
		return nil, p.here().errorf("METRICS takes its argument in parentheses")
	}
	if p.symbol(")") {
		return metrics{at, ""}, nil
	}
	part, _, err := p.quoted()
	return metrics{at, part}, p.closeWith(err, ")")
}

func (p *parser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

// peek returns the next character, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// excerpt returns the text that comes next, for a message.
func (p *parser) excerpt() string {
	if rest := p.text[p.at:]; len(rest) <= 20 {
		return rest
	}
	return p.text[p.at:p.at+20] + "…"
}

// isNext reports whether s comes next, as a whole word if s is a word.
func (p *parser) isNext(s string) bool {
	after := p.at + len(s)
	return strings.HasPrefix(p.text[p.at:], s) && (!isWord(s[0]) || after == len(p.text) || !isWord(p.text[after]))
}

// symbol consumes s if it comes next.
func (p *parser) symbol(s string) bool {
	p.blank()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// word consumes letters, digits and underscores.
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && isWord(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isWord(c byte) bool  { return c == '_' || isDigit(c) || isLower(c) || isUpper(c) }
