package insights

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// formula is a compiled expression.
type formula func(*row) value

// maxDepth limits how deep parentheses, calls and signs nest.
const maxDepth = 100

// expression parses: or, and, not, comparisons, sums, products, powers, signs, and then what stands alone.
func (p *parser) expression() (formula, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrong(p.at, "the query nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	return p.joined("or", p.conjunction, func(a, b bool) bool { return a || b })
}

func (p *parser) conjunction() (formula, error) {
	return p.joined("and", p.negation, func(a, b bool) bool { return a && b })
}

func (p *parser) joined(word string, part func() (formula, error), join func(a, b bool) bool) (formula, error) {
	left, err := part()
	for err == nil && p.word(word) {
		var right formula
		a := left
		right, err = part()
		left = func(r *row) value { return truth(join(a(r).isTrue(), right(r).isTrue())) }
	}
	return left, err
}

func (p *parser) negation() (formula, error) {
	not := false
	for p.word("not") {
		not = !not
	}
	of, err := p.comparison()
	if err != nil || !not {
		return of, err
	}
	return negated(of), nil
}

func negated(of formula) formula { return func(r *row) value { return truth(!of(r).isTrue()) } }

// comparisons are the operators that compare two values. Longer ones come first.
var comparisons = []struct {
	symbol string
	test   func(a, b value) bool
}{
	{"!=", func(a, b value) bool { return !equal(a, b) }},
	{"<=", func(a, b value) bool { return less(a, b) || equal(a, b) }},
	{">=", func(a, b value) bool { return less(b, a) || equal(a, b) }},
	{"=", equal},
	{"<", less},
	{">", func(a, b value) bool { return less(b, a) }},
}

func (p *parser) comparison() (formula, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.take("=~") {
		return p.like(left)
	}
	for _, c := range comparisons {
		if !p.take(c.symbol) {
			continue
		}
		right, err := p.sum()
		return func(r *row) value { return truth(c.test(left(r), right(r))) }, err
	}
	not := p.word("not")
	var test formula
	switch {
	case p.word("like"):
		test, err = p.like(left)
	case p.word("in"):
		test, err = p.in(left)
	case not:
		return nil, p.unexpected()
	default:
		return left, nil
	}
	if err == nil && not {
		test = negated(test)
	}
	return test, err
}

// like parses a text that the value contains, or a regular expression that it matches.
func (p *parser) like(of formula) (formula, error) {
	if p.peek() == '/' {
		expr, err := p.regexp()
		return func(r *row) value { return truth(expr.MatchString(of(r).String())) }, err
	}
	part, err := p.quotation()
	return func(r *row) value {
		v := of(r)
		return truth(v.kind != missing && strings.Contains(v.String(), part))
	}, err
}

// in parses a list of texts and numbers.
func (p *parser) in(of formula) (formula, error) {
	if !p.take("[") {
		return nil, p.unexpected()
	}
	var list []value
	for {
		v, err := p.literal()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if p.take("]") {
			break
		}
		if !p.take(",") {
			return nil, p.unexpected()
		}
	}
	return func(r *row) value {
		v := of(r)
		return truth(slices.ContainsFunc(list, func(one value) bool { return equal(v, one) }))
	}, nil
}

func (p *parser) sum() (formula, error) {
	return p.arithmetic("+-", func() (formula, error) { return p.arithmetic("*/%", p.power) })
}

// arithmetic parses parts between operators, from the left to the right.
func (p *parser) arithmetic(operators string, part func() (formula, error)) (formula, error) {
	left, err := part()
	for err == nil {
		c := p.peek()
		if c == 0 || strings.IndexByte(operators, c) < 0 {
			break
		}
		p.at++
		var right formula
		a := left
		right, err = part()
		left = func(r *row) value { return compute(c, a(r), right(r)) }
	}
	return left, err
}

func compute(operator byte, a, b value) value {
	x, ok := a.number()
	y, also := b.number()
	if !ok || !also {
		return value{}
	}
	switch operator {
	case '+':
		return numberOf(x + y)
	case '-':
		return numberOf(x - y)
	case '*':
		return numberOf(x * y)
	case '/':
		return numberOf(x / y)
	case '%':
		return numberOf(math.Mod(x, y))
	}
	return numberOf(math.Pow(x, y))
}

// power parses a ^ b ^ c as a ^ (b ^ c).
func (p *parser) power() (formula, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrong(p.at, "the query nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.take("-") {
		of, err := p.power()
		return func(r *row) value { return compute('-', numberOf(0), of(r)) }, err
	}
	left, err := p.primary()
	if err != nil || !p.take("^") {
		return left, err
	}
	right, err := p.power()
	return func(r *row) value { return compute('^', left(r), right(r)) }, err
}

func (p *parser) primary() (formula, error) {
	switch c := p.peek(); {
	case p.take("("):
		inner, err := p.expression()
		if err == nil && !p.take(")") {
			err = p.unexpected()
		}
		return inner, err
	case c == '"' || c == '\'' || isDigit(c) || c == '.':
		v, err := p.literal()
		return func(*row) value { return v }, err
	}
	if name := p.made(); name != "" {
		return p.field(name), nil
	}
	start := p.at
	name, quoted, err := p.name()
	if err != nil {
		return nil, err
	}
	if quoted || p.peek() != '(' {
		if err := p.check(name, start); err != nil {
			return nil, err
		}
		return p.field(name), nil
	}
	p.at++
	return p.call(strings.ToLower(name), start)
}

func (p *parser) field(name string) formula {
	p.reads = append(p.reads, name)
	return func(r *row) value { return r.get(name) }
}

// made returns the name of a column that stats made and that looks like a call, such as bin(5m), if it stands here.
func (p *parser) made() string {
	p.blank()
	for _, name := range p.known {
		if strings.Contains(name, "(") && strings.HasPrefix(p.rest(), name) {
			p.at += len(name)
			return name
		}
	}
	return ""
}

// check refuses fields that are gone after stats.
func (p *parser) check(name string, start int) error {
	if p.known != nil && !slices.Contains(p.known, name) {
		return p.wrong(start, "Unknown symbols found in or after stats: %s", name)
	}
	return nil
}

// compile compiles a regular expression, and bounds what those of a query cost together.
func (p *parser) compile(start int, text string) (*regexp.Regexp, error) {
	expr, err := p.expressions.Compile(text)
	if err != nil {
		return nil, p.wrong(start, "%v", err)
	}
	return expr, nil
}
