package alarm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a composite alarm's rule. They are PutCompositeAlarm's, except for the depth, which is ours.
const (
	maxRule     = 10240
	maxChildren = 100
	maxElements = 500
	maxDepth    = 64
)

// Rule is a composite alarm's parsed AlarmRule. It is safe for concurrent use.
type Rule struct {
	root     condition
	children []string
}

// Children returns the names or ARNs of the alarms in the rule, in its order and each once.
func (r *Rule) Children() []string { return r.children }

// Eval returns ALARM if the rule holds, otherwise OK. state returns the state of the alarm with a name or ARN.
func (r *Rule) Eval(state func(alarm string) State) State {
	if r.root.holds(state) {
		return Alarming
	}
	return OK
}

// Cycle returns the path from the composite alarm name back to itself that storing the rule would create, or nil.
// children returns the children of another composite alarm, and none for a metric alarm.
func (r *Rule) Cycle(name string, children func(alarm string) []string) []string {
	done := map[string]bool{}
	var visit func(path, children []string) []string
	visit = func(path, next []string) []string {
		for _, child := range next {
			if child == name {
				return append(path, child)
			}
			if done[child] {
				continue
			}
			done[child] = true
			if found := visit(append(slices.Clone(path), child), children(child)); found != nil {
				return found
			}
		}
		return nil
	}
	return visit([]string{name}, r.children)
}

// condition is a part of a rule.
type condition interface {
	holds(state func(string) State) bool
}

type (
	always bool
	not    struct{ of condition }
	and    struct{ left, right condition }
	or     struct{ left, right condition }
	is     struct {
		state State
		alarm string
	}
	// atLeast is AT_LEAST(2, ALARM, (a, b, c)), optionally with a percentage or NOT.
	atLeast struct {
		number  int
		percent bool
		state   State
		negated bool
		alarms  []string
	}
)

func (c always) holds(func(string) State) bool    { return bool(c) }
func (c not) holds(state func(string) State) bool { return !c.of.holds(state) }
func (c and) holds(state func(string) State) bool { return c.left.holds(state) && c.right.holds(state) }
func (c or) holds(state func(string) State) bool  { return c.left.holds(state) || c.right.holds(state) }
func (c is) holds(state func(string) State) bool  { return state(c.alarm) == c.state }
func (c atLeast) holds(state func(string) State) bool {
	count := 0
	for _, a := range c.alarms {
		if (state(a) == c.state) != c.negated {
			count++
		}
	}
	if c.percent {
		return count*100 >= c.number*len(c.alarms)
	}
	return count >= c.number
}

// ParseRule parses an AlarmRule. Its errors tell what's wrong and at which character.
func ParseRule(text string) (*Rule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("the rule is empty")
	}
	if len(text) > maxRule {
		return nil, fmt.Errorf("the rule has %d characters, at most %d are allowed", len(text), maxRule)
	}
	p := &ruleParser{text: text}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.blank(); p.at < len(text) {
		return nil, p.errorf("AND or OR is missing")
	}
	if len(p.children) > maxChildren {
		return nil, fmt.Errorf("the rule names %d alarms, at most %d are allowed", len(p.children), maxChildren)
	}
	return &Rule{root: root, children: p.children}, nil
}

// ruleParser is a recursive descent parser: ORs of ANDs of NOTs of functions.
type ruleParser struct {
	text     string
	at       int
	depth    int
	elements int
	children []string
}

func (p *ruleParser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", p.at+1, fmt.Sprintf(format, args...))
}

func (p *ruleParser) or() (condition, error) {
	left, err := p.and()
	for err == nil && p.word("OR") {
		var right condition
		if right, err = p.and(); err == nil {
			left = or{left, right}
		}
	}
	return left, err
}

func (p *ruleParser) and() (condition, error) {
	left, err := p.not()
	for err == nil && p.word("AND") {
		var right condition
		if right, err = p.not(); err == nil {
			left = and{left, right}
		}
	}
	return left, err
}

func (p *ruleParser) not() (condition, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("the rule nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.elements++; p.elements > maxElements {
		return nil, p.errorf("the rule has more than %d elements", maxElements)
	}
	switch {
	case p.word("NOT"):
		of, err := p.not()
		return not{of}, err
	case p.symbol("("):
		inner, err := p.or()
		return inner, p.expect(")", err)
	case p.word("TRUE"):
		return always(true), nil
	case p.word("FALSE"):
		return always(false), nil
	case p.word("AT_LEAST"):
		return p.atLeast()
	}
	state := p.state()
	if state == "" {
		return nil, p.errorf("ALARM, OK, INSUFFICIENT_DATA, AT_LEAST, TRUE, FALSE, NOT or a parenthesis is missing")
	}
	if err := p.expect("(", nil); err != nil {
		return nil, err
	}
	name, err := p.name()
	return is{state, name}, p.expect(")", err)
}

// atLeast parses (2, NOT ALARM, (a, b)) or (50%, OK, (a, b)).
func (p *ruleParser) atLeast() (c atLeast, err error) {
	if err := p.expect("(", nil); err != nil {
		return c, err
	}
	if c.number, err = p.number(); err != nil {
		return c, err
	}
	c.percent = p.symbol("%")
	if err := p.expect(",", nil); err != nil {
		return c, err
	}
	c.negated = p.word("NOT")
	if c.state = p.state(); c.state == "" {
		return c, p.errorf("ALARM, OK or INSUFFICIENT_DATA is missing")
	}
	if err := p.expect("(", p.expect(",", nil)); err != nil {
		return c, err
	}
	for {
		name, err := p.name()
		if err != nil {
			return c, err
		}
		c.alarms = append(c.alarms, name)
		if !p.symbol(",") {
			break
		}
	}
	most := len(c.alarms)
	if c.percent {
		most = 100
	}
	if c.number < 1 || c.number > most {
		return c, p.errorf("AT_LEAST takes a number from 1 to %d, not %d", most, c.number)
	}
	return c, p.expect(")", p.expect(")", nil))
}

func (p *ruleParser) number() (int, error) {
	p.blank()
	end := p.at
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.text[p.at:end])
	if err != nil {
		return 0, p.errorf("a number is missing")
	}
	p.at = end
	return n, nil
}

// state consumes the name of a state, or returns "".
func (p *ruleParser) state() State {
	for _, s := range []State{Alarming, OK, InsufficientData} {
		if p.word(string(s)) {
			return s
		}
	}
	return ""
}

// name parses an alarm's name or ARN, with or without quotation marks.
func (p *ruleParser) name() (string, error) {
	read := p.bareName
	if p.symbol(`"`) {
		read = p.quotedName
	}
	name, err := read()
	if err == nil && !slices.Contains(p.children, name) {
		p.children = append(p.children, name)
	}
	return name, err
}

func (p *ruleParser) quotedName() (string, error) {
	name, _, closed := strings.Cut(p.text[p.at:], `"`)
	if !closed || name == "" {
		return "", p.errorf("the alarm's name is empty or not closed by a quotation mark")
	}
	p.at += len(name) + 1
	return name, nil
}

// bareName parses up to a parenthesis, comma or quotation mark.
func (p *ruleParser) bareName() (string, error) {
	rest := p.text[p.at:]
	end := strings.IndexAny(rest, "(),\"")
	if end < 0 {
		end = len(rest)
	}
	name := strings.TrimRight(rest[:end], blanks)
	if name == "" {
		return "", p.errorf("an alarm's name is missing")
	}
	p.at += end
	return name, nil
}

const blanks = " \t\n\r"

func (p *ruleParser) blank() {
	for p.at < len(p.text) && strings.IndexByte(blanks, p.text[p.at]) >= 0 {
		p.at++
	}
}

// expect consumes a symbol, unless err is set already.
func (p *ruleParser) expect(s string, err error) error {
	if err != nil || p.symbol(s) {
		return err
	}
	return p.errorf("%q is missing", s)
}

func (p *ruleParser) symbol(s string) bool {
	p.blank()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// word consumes s if it comes next as a whole word.
func (p *ruleParser) word(s string) bool {
	p.blank()
	after := p.at + len(s)
	if !strings.HasPrefix(p.text[p.at:], s) || after < len(p.text) && strings.IndexByte(blanks+"(),\"", p.text[after]) < 0 {
		return false
	}
	p.at = after
	return true
}

// CompositeReason returns the StateReason of a composite alarm whose state changed because of the underlying alarm arn.
func CompositeReason(arn string, child State, at time.Time) string {
	return fmt.Sprintf("%s transitioned to %s at %s", arn, child, at.UTC().Format("Monday 02 January, 2006 15:04:05 MST"))
}
