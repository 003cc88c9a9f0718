package filterpattern

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A JSON pattern compares selectors ($.a.b[0]) with values, joined by && and ||, in braces.

// condition is a part of a JSON pattern.
type condition func(root any) bool

func parseJSON(text string) (*Pattern, error) {
	p := &jsonParser{text: text, compiler: expressions{most: 2}}
	if !p.take("{") {
		return nil, fmt.Errorf("an opening brace is missing")
	}
	c, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if !p.take("}") || strings.TrimSpace(p.rest()) != "" {
		return nil, fmt.Errorf("at character %d: a closing brace is missing", p.at+1)
	}
	find := func(message string) (Found, bool) {
		var root any
		ok := json.Unmarshal([]byte(message), &root) == nil && c(root)
		return Found{root: root}, ok
	}
	return &Pattern{find: find, selector: jsonSelector, used: p.used}, nil
}

// jsonSelector parses a selector such as $.latency.
func jsonSelector(text string) (Selector, error) {
	p := &jsonParser{text: text}
	path, err := p.selector()
	if err != nil {
		return nil, err
	}
	if len(path) == 0 || strings.TrimSpace(p.rest()) != "" {
		return nil, fmt.Errorf("%q is no selector, such as $.latency", text)
	}
	return func(f Found) (string, bool) {
		v, ok := lookup(f.root, path)
		if !ok {
			return "", false
		}
		return scalar(v)
	}, nil
}

// scalar returns the text of a string, a number or a boolean.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

type jsonParser struct {
	text     string
	at       int
	compiler expressions
	used     []string // selectors
}

func (p *jsonParser) rest() string { return p.text[p.at:] }

func (p *jsonParser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *jsonParser) take(s string) bool {
	p.blank()
	if !strings.HasPrefix(p.rest(), s) {
		return false
	}
	p.at += len(s)
	return true
}

const maxDepth = 32

func (p *jsonParser) or(depth int) (condition, error) {
	left, err := p.and(depth)
	for err == nil && p.take("||") {
		var right condition
		a := left
		right, err = p.and(depth)
		left = func(root any) bool { return a(root) || right(root) }
	}
	return left, err
}

func (p *jsonParser) and(depth int) (condition, error) {
	left, err := p.one(depth)
	for err == nil && p.take("&&") {
		var right condition
		a := left
		right, err = p.one(depth)
		left = func(root any) bool { return a(root) && right(root) }
	}
	return left, err
}

func (p *jsonParser) one(depth int) (condition, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the pattern nests deeper than %d", maxDepth)
	}
	if p.take("(") {
		c, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = fmt.Errorf("at character %d: a closing parenthesis is missing", p.at+1)
		}
		return c, err
	}
	p.blank()
	start := p.at
	path, err := p.selector()
	if err != nil {
		return nil, err
	}
	p.used = append(p.used, p.text[start:p.at])
	return p.comparison(path)
}

// selector parses $.a.b, $.a[0] or $.['a b'] into its steps: names and indexes.
func (p *jsonParser) selector() ([]any, error) {
	if !p.take("$") {
		p.blank()
		return nil, fmt.Errorf("at character %d: a selector is missing, such as $.latency", p.at+1)
	}
	var path []any
	for p.at < len(p.text) {
		switch {
		case strings.HasPrefix(p.rest(), ".[") || strings.HasPrefix(p.rest(), "["):
			end := strings.IndexByte(p.rest(), ']')
			if end < 0 {
				return nil, fmt.Errorf("at character %d: the bracket is not closed", p.at+1)
			}
			inner := strings.TrimLeft(p.rest()[:end], ".[")
			p.at += end + 1
			if n, err := strconv.Atoi(inner); err == nil {
				path = append(path, n)
			} else {
				path = append(path, strings.Trim(inner, `'"`))
			}
		case strings.HasPrefix(p.rest(), "."):
			p.at++
			start := p.at
			for p.at < len(p.text) && !strings.ContainsRune(" \t.[]=!<>()&|}", rune(p.text[p.at])) {
				p.at++
			}
			if p.at == start {
				return nil, fmt.Errorf("at character %d: a name is missing", p.at+1)
			}
			path = append(path, p.text[start:p.at])
		default:
			return path, nil
		}
	}
	return path, nil
}

// lookup returns the value that a selector leads to.
func lookup(v any, path []any) (any, bool) {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any) // nil, without members, for anything else
			var ok bool
			if v, ok = m[s]; !ok {
				return nil, false
			}
		case int:
			l, ok := v.([]any)
			if !ok || s < 0 || s >= len(l) {
				return nil, false
			}
			v = l[s]
		}
	}
	return v, true
}

func (p *jsonParser) comparison(path []any) (condition, error) {
	switch {
	case p.take("NOT EXISTS"):
		return func(root any) bool { _, ok := lookup(root, path); return !ok }, nil
	case p.take("EXISTS"):
		return func(root any) bool { _, ok := lookup(root, path); return ok }, nil
	case p.take("IS"):
		return p.is(path)
	}
	for _, op := range []string{"!=", ">=", "<=", "=", ">", "<"} {
		if p.take(op) {
			return p.compare(path, op)
		}
	}
	return nil, fmt.Errorf("at character %d: an operator is missing: = != > >= < <= IS EXISTS", p.at+1)
}

func (p *jsonParser) is(path []any) (condition, error) {
	for word, want := range map[string]any{"NULL": nil, "TRUE": true, "FALSE": false} {
		if p.take(word) {
			return func(root any) bool { v, ok := lookup(root, path); return ok && v == want }, nil
		}
	}
	return nil, fmt.Errorf("at character %d: NULL, TRUE or FALSE is missing", p.at+1)
}

func (p *jsonParser) compare(path []any, op string) (condition, error) {
	value, pattern, err := p.value()
	if err != nil {
		return nil, err
	}
	if number, err := strconv.ParseFloat(value, 64); err == nil && pattern == nil {
		return func(root any) bool {
			v, ok := lookup(root, path)
			f, isNumber := v.(float64)
			return ok && isNumber && ordered(f, number, op)
		}, nil
	}
	if op != "=" && op != "!=" {
		return nil, fmt.Errorf("%s compares only numbers, not %q", op, value)
	}
	if pattern == nil {
		pattern = newWildcard(value)
	}
	return func(root any) bool {
		v, ok := lookup(root, path)
		s, isScalar := scalar(v)
		return ok && isScalar && pattern.MatchString(s) == (op == "=")
	}, nil
}

func ordered(a, b float64, op string) bool {
	switch op {
	case "=":
		return a == b
	case "!=":
		return a != b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "<":
		return a < b
	}
	return a <= b
}

// value parses a number, a word, a quoted text, or a regular expression between percent signs.
func (p *jsonParser) value() (string, matcher, error) {
	p.blank()
	text := p.rest()
	if strings.HasPrefix(text, `"`) {
		word, rest, err := quotation(text)
		p.at = len(p.text) - len(rest)
		return word, nil, err
	}
	if strings.HasPrefix(text, "%") {
		end := strings.IndexByte(text[1:], '%')
		if end < 0 {
			return "", nil, fmt.Errorf("at character %d: the expression is not closed by %%", p.at+1)
		}
		p.at += end + 2
		r, err := p.compiler.compile(text[1 : 1+end])
		return text[1 : 1+end], r, err
	}
	end := strings.IndexAny(text, " \t)}&|")
	if end <= 0 {
		return "", nil, fmt.Errorf("at character %d: a value is missing", p.at+1)
	}
	p.at += end
	return text[:end], nil, nil
}
