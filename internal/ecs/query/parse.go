package query

import (
	"fmt"
	"slices"
	"strings"
)

// maxLength is the longest expression that ECS takes.
const maxLength = 2000

// maxDepth bounds how deep parentheses and negations may nest.
const maxDepth = 64

// Parse reads an expression. Its errors say what is wrong and at which character.
func Parse(text string) (*Expression, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("the expression is empty")
	}
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d characters, at most %d are allowed", len(text), maxLength)
	}
	p := &parser{text: text}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.skipBlanks(); p.at < len(text) {
		return nil, p.errorf("%q is not expected here", shorten(text[p.at:]))
	}
	return &Expression{root: root, text: text}, nil
}

// parser is a recursive-descent parser: an or holds ands, an and holds nots, and a not holds a comparison.
type parser struct {
	text  string
	at    int
	depth int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", p.at+1, fmt.Sprintf(format, args...))
}

func (p *parser) or() (node, error) {
	left, err := p.and()
	for err == nil && (p.takeSymbol("||") || p.takeWord("or")) {
		var right node
		if right, err = p.and(); err == nil {
			left = or{left, right}
		}
	}
	return left, err
}

func (p *parser) and() (node, error) {
	left, err := p.not()
	for err == nil && (p.takeSymbol("&&") || p.takeWord("and")) {
		var right node
		if right, err = p.not(); err == nil {
			left = and{left, right}
		}
	}
	return left, err
}

func (p *parser) not() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("the expression nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.takeSymbol("!") || p.takeWord("not"):
		of, err := p.not()
		return not{of}, err
	case p.takeSymbol("("):
		inner, err := p.or()
		if err == nil && !p.takeSymbol(")") {
			err = p.errorf("a closing parenthesis is missing")
		}
		return inner, err
	}
	return p.comparison()
}

func (p *parser) comparison() (node, error) {
	s, err := p.subject()
	if err != nil {
		return nil, err
	}
	op, err := p.operator()
	if err != nil {
		return nil, err
	}
	if !s.takes(op.is) {
		return nil, p.errorf("%s cannot be compared with %s; it takes %s", s.text, op.text, operatorsOf(s))
	}
	c := comparison{subject: s, op: op.is, negated: op.negated}
	if c.args, err = p.arguments(op.is); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, p.errorf("%v", err)
	}
	return c, nil
}

func (p *parser) arguments(op operator) ([]string, error) {
	switch op {
	case exists:
		return nil, nil
	case in:
		return p.list()
	case matches:
		arg, err := p.argument((*parser).patternEnd)
		return []string{arg}, err
	}
	arg, err := p.argument((*parser).literalEnd)
	return []string{arg}, err
}

var subjects = map[string]subjectKind{
	"agentConnected":    agentConnected,
	"agentVersion":      agentVersion,
	"ec2InstanceId":     ec2InstanceID,
	"registeredAt":      registeredAt,
	"runningTasksCount": runningTasksCount,
	"task:group":        taskGroup,
}

func (p *parser) subject() (subject, error) {
	p.skipBlanks()
	start := p.at
	text := p.name()
	if kind, ok := subjects[text]; ok {
		return subject{kind, text, ""}, nil
	}
	if name, ok := strings.CutPrefix(text, "attribute:"); ok && name != "" {
		return subject{attribute, text, name}, nil
	}
	p.at = start
	if text == "" {
		return subject{}, p.errorf("a subject is missing, such as attribute:ecs.instance-type or agentConnected")
	}
	return subject{}, p.errorf("%q is no subject; those are agentConnected, agentVersion, attribute:NAME, ec2InstanceId, registeredAt, "+
		"runningTasksCount and task:group", text)
}

// spelling is how an operator is written.
type spelling struct {
	text    string
	is      operator
	negated bool
}

// The spellings of operators. If one spelling is the beginning of another, the longer one comes first.
var (
	shortSpellings = []spelling{
		{"==", equals, false},
		{"!=", equals, true},
		{">=", greaterEqual, false},
		{">", greater, false},
		{"<=", lessEqual, false},
		{"<", less, false},
		{"=~", matches, false},
		{"!~", matches, true},
		{"in", in, false},
		{"!in", in, true},
		{"exists", exists, false},
		{"!exists", exists, true},
	}
	longSpellings = []spelling{
		{"equals", equals, false},
		{"not_equals", equals, true},
		{"greater_than_equal", greaterEqual, false},
		{"greater_than", greater, false},
		{"less_than_equal", lessEqual, false},
		{"less_than", less, false},
		{"matches", matches, false},
		{"not_matches", matches, true},
		{"not_in", in, true},
		{"not_exists", exists, true},
	}
	spellings = slices.Concat(shortSpellings, longSpellings)
)

func (p *parser) operator() (spelling, error) {
	for _, o := range spellings {
		last := o.text[len(o.text)-1]
		if isWord(last) && p.takeWord(o.text) || !isWord(last) && p.takeSymbol(o.text) {
			return o, nil
		}
	}
	p.skipBlanks()
	return spelling{}, p.errorf("an operator is missing, such as ==, !=, in, =~ or exists")
}

// operatorsOf lists the operators that the subject takes, for an error.
func operatorsOf(b subject) string {
	var out []string
	for _, o := range shortSpellings {
		if b.takes(o.is) {
			out = append(out, o.text)
		}
	}
	last := len(out) - 1
	return strings.Join(out[:last], ", ") + " and " + out[last]
}

// list reads [a, b] or (a, b).
func (p *parser) list() ([]string, error) {
	closing := "]"
	if !p.takeSymbol("[") {
		if closing = ")"; !p.takeSymbol("(") {
			p.skipBlanks()
			return nil, p.errorf("a list is missing, such as [a, b]")
		}
	}
	var out []string
	for {
		a, err := p.argument((*parser).literalEnd)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
		switch {
		case p.takeSymbol(","):
		case p.takeSymbol(closing):
			return out, nil
		default:
			p.skipBlanks()
			return nil, p.errorf("the list is not closed by %s", closing)
		}
	}
}

// argument reads a value, which may be quoted. end finds the end of an unquoted one.
func (p *parser) argument(end func(*parser) int) (string, error) {
	p.skipBlanks()
	if p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'') {
		return p.quoted(p.text[p.at])
	}
	start := p.at
	if p.at = end(p); p.at == start {
		return "", p.errorf("a value is missing")
	}
	return p.text[start:p.at], nil
}

func (p *parser) quoted(quote byte) (string, error) {
	value, _, closed := strings.Cut(p.text[p.at+1:], string(quote))
	if !closed {
		return "", p.errorf("the quotation is not closed")
	}
	p.at += len(value) + 2
	return value, nil
}

// literalEnd returns where an unquoted value ends: at a blank, a comma, a closing bracket, & or |.
func (p *parser) literalEnd() int {
	if i := strings.IndexAny(p.text[p.at:], blanks+",)]&|"); i >= 0 {
		return p.at + i
	}
	return len(p.text)
}

// patternEnd returns where an unquoted regular expression ends: at a blank, && or ||, or a parenthesis that it hasn't opened.
// Characters that it escapes or has between square brackets don't end it.
func (p *parser) patternEnd() int {
	open, class := 0, false
	for i := p.at; i < len(p.text); i++ {
		c := p.text[i]
		switch {
		case strings.IndexByte(blanks, c) >= 0:
			return i
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case strings.HasPrefix(p.text[i:], "&&"), strings.HasPrefix(p.text[i:], "||"), c == ')' && open == 0:
			return i
		case c == '[':
			class = true
		case c == '(':
			open++
		case c == ')':
			open--
		}
	}
	return len(p.text)
}

const blanks = " \t\n\r"

// skipBlanks skips blanks.
func (p *parser) skipBlanks() {
	for p.at < len(p.text) && strings.IndexByte(blanks, p.text[p.at]) >= 0 {
		p.at++
	}
}

// takeSymbol consumes s if it comes next, and reports whether it did.
func (p *parser) takeSymbol(s string) bool {
	p.skipBlanks()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// takeWord consumes s if it comes next as a whole word, and reports whether it did.
func (p *parser) takeWord(s string) bool {
	p.skipBlanks()
	after := p.at + len(s)
	if !strings.HasPrefix(p.text[p.at:], s) || after < len(p.text) && isWord(p.text[after]) {
		return false
	}
	p.at = after
	return true
}

// name reads a subject: letters, digits, and the other characters that subjects may have.
func (p *parser) name() string {
	p.skipBlanks()
	start := p.at
	for p.at < len(p.text) && (isWord(p.text[p.at]) || strings.IndexByte(":.-/\\", p.text[p.at]) >= 0) {
		p.at++
	}
	return p.text[start:p.at]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// shorten shortens the rest of an expression for an error.
func shorten(s string) string {
	if len(s) > 20 {
		return s[:20] + "…"
	}
	return s
}
