package query

import (
	"fmt"
	"regexp"
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
	if p.blank(); p.at < len(text) {
		return nil, p.errorf("%q is not expected here", rest(text[p.at:]))
	}
	return &Expression{root: root, text: text}, nil
}

// parser reads by recursive descent: or of ands of nots of comparisons.
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
	for err == nil && (p.symbol("||") || p.word("or")) {
		var right node
		if right, err = p.and(); err == nil {
			left = or{left, right}
		}
	}
	return left, err
}

func (p *parser) and() (node, error) {
	left, err := p.not()
	for err == nil && (p.symbol("&&") || p.word("and")) {
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
	case p.symbol("!") || p.word("not"):
		of, err := p.not()
		return not{of}, err
	case p.symbol("("):
		inner, err := p.or()
		if err == nil && !p.symbol(")") {
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
	c := comparison{subject: s, op: op}
	switch op {
	case exists, notExists:
	case in, notIn:
		c.args, err = p.list()
	default:
		var arg string
		arg, err = p.argument()
		c.args = []string{arg}
	}
	if err != nil {
		return nil, err
	}
	return c, p.check(&c)
}

// check refuses comparisons that make no sense, and compiles patterns.
func (p *parser) check(c *comparison) (err error) {
	switch {
	case c.subject.kind == taskGroup && c.op != equals && c.op != notEquals && c.op != in && c.op != notIn:
		return p.errorf("task:group can be compared with ==, !=, in and !in alone")
	case c.subject.kind == registeredAt:
		for _, a := range c.args {
			if _, err := parseTime(a); err != nil {
				return p.errorf("%q is no date, such as 2018-06-18T22:28:28+00:00", a)
			}
		}
	case c.op == matches || c.op == notMatches:
		if c.pattern, err = regexp.Compile("^(?:" + c.args[0] + ")$"); err != nil {
			return p.errorf("%q is no regular expression: %v", c.args[0], err)
		}
	}
	return nil
}

func (p *parser) subject() (subject, error) {
	start := p.at
	name := p.name()
	switch {
	case name == "agentConnected":
		return subject{kind: agentConnected}, nil
	case name == "agentVersion":
		return subject{kind: agentVersion}, nil
	case name == "ec2InstanceId":
		return subject{kind: ec2InstanceID}, nil
	case name == "registeredAt":
		return subject{kind: registeredAt}, nil
	case name == "runningTasksCount":
		return subject{kind: runningTasksCount}, nil
	case name == "task:group":
		return subject{kind: taskGroup}, nil
	case strings.HasPrefix(name, "attribute:") && len(name) > len("attribute:"):
		return subject{attribute, name[len("attribute:"):]}, nil
	}
	p.at = start
	p.blank()
	if name == "" {
		return subject{}, p.errorf("a subject is missing, such as attribute:ecs.instance-type or agentConnected")
	}
	return subject{}, p.errorf("%q is no subject; those are agentConnected, agentVersion, attribute:NAME, ec2InstanceId, registeredAt, runningTasksCount and task:group", name)
}

// operators by how they are written; of two that begin alike, the longer stands first.
var operators = []struct {
	text string
	op   operator
}{
	{"==", equals}, {"!=", notEquals}, {">=", greaterEqual}, {">", greater}, {"<=", lessEqual}, {"<", less},
	{"=~", matches}, {"!~", notMatches}, {"!exists", notExists}, {"!in", notIn},
	{"equals", equals}, {"not_equals", notEquals}, {"greater_than_equal", greaterEqual}, {"greater_than", greater},
	{"less_than_equal", lessEqual}, {"less_than", less}, {"exists", exists}, {"not_exists", notExists},
	{"in", in}, {"not_in", notIn}, {"matches", matches}, {"not_matches", notMatches},
}

func (p *parser) operator() (operator, error) {
	for _, o := range operators {
		last := o.text[len(o.text)-1]
		if isWord(last) && p.word(o.text) || !isWord(last) && p.symbol(o.text) {
			return o.op, nil
		}
	}
	p.blank()
	return 0, p.errorf("an operator is missing, such as ==, !=, in, =~ or exists")
}

// list reads [a, b] or (a, b).
func (p *parser) list() ([]string, error) {
	closing := "]"
	if !p.symbol("[") {
		if closing = ")"; !p.symbol("(") {
			p.blank()
			return nil, p.errorf("a list is missing, such as [a, b]")
		}
	}
	var out []string
	for {
		a, err := p.argument()
		if err != nil {
			return nil, err
		}
		out = append(out, a)
		switch {
		case p.symbol(","):
		case p.symbol(closing):
			return out, nil
		default:
			p.blank()
			return nil, p.errorf("the list is not closed by %s", closing)
		}
	}
}

// argument reads a value: quoted, or up to a blank, comma or closing bracket.
func (p *parser) argument() (string, error) {
	p.blank()
	if p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'') {
		quote := p.text[p.at]
		end := strings.IndexByte(p.text[p.at+1:], quote)
		if end < 0 {
			return "", p.errorf("the quotation is not closed")
		}
		value := p.text[p.at+1 : p.at+1+end]
		p.at += end + 2
		return value, nil
	}
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune(" \t\n\r,)]&|", rune(p.text[p.at])) {
		p.at++
	}
	if p.at == start {
		return "", p.errorf("a value is missing")
	}
	return p.text[start:p.at], nil
}

func (p *parser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

// symbol takes s if it comes next.
func (p *parser) symbol(s string) bool {
	p.blank()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// word takes s if it comes next as a whole word.

func (p *parser) word(s string) bool {
	p.blank()
	after := p.at + len(s)
	if !strings.HasPrefix(p.text[p.at:], s) || after < len(p.text) && isWord(p.text[after]) {
		return false
	}
	p.at = after
	return true
}

// name reads a subject: letters, digits and the characters that attribute names may have.
func (p *parser) name() string {
	p.blank()
	start := p.at
	for p.at < len(p.text) && (isWord(p.text[p.at]) || strings.IndexByte(":.-/\\", p.text[p.at]) >= 0) {
		p.at++
	}
	return p.text[start:p.at]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func rest(s string) string {
	if len(s) > 20 {
		return s[:20] + "…"
	}
	return s
}
