package eventpattern

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// condition is one of those of which a property must meet one: a value, or an operator with its operands.
type condition struct {
	absent  bool           // the property must not be there
	matches func(any) bool // of a value; nil for absence
	text    *string        // the only text that matches, or nil
}

// matchesOne reports whether one of a property's values meets one of the conditions. A property that isn't there has none.
func matchesOne(conditions []condition, values []any) bool {
	return slices.ContainsFunc(conditions, func(c condition) bool {
		if c.absent {
			return len(values) == 0
		}
		return slices.ContainsFunc(values, c.matches)
	})
}

// parseCondition reads a condition.
func (d Dialect) parseCondition(rule any) (condition, error) {
	switch r := rule.(type) {
	case []any:
		return condition{}, d.Refuse("Match value must be String, number, true, false, or null")
	case map[string]any:
		if len(r) != 1 {
			return condition{}, d.Refuse("Only one key allowed in match expression")
		}
		for operator, operand := range r {
			return d.parseOperator(operator, operand)
		}
	}
	c := condition{matches: func(v any) bool { return same(v, rule) }}
	if text, isText := rule.(string); isText {
		c.text = &text
	}
	return c, nil
}

func (d Dialect) parseOperator(operator string, operand any) (c condition, err error) {
	switch operator {
	case "exists":
		exists, isBool := operand.(bool)
		if !isBool {
			return c, d.Refuse("exists match pattern must be either true or false.")
		}
		return condition{absent: !exists, matches: func(any) bool { return true }}, nil
	case "prefix", "suffix", "equals-ignore-case", "wildcard":
		c.matches, err = d.parseText(operator, operand)
	case "anything-but":
		c.matches, err = d.parseAnythingBut(operand)
	case "numeric":
		c.matches, err = d.parseNumeric(operand)
	case "cidr":
		c.matches, err = d.parseCIDR(operand)
	default:
		err = d.Refuse("Unrecognized match type %s", operator)
	}
	return c, err
}

// parseText reads the operators on texts.
func (d Dialect) parseText(operator string, operand any) (func(any) bool, error) {
	if inner, isObject := operand.(map[string]any); isObject && !d.Narrow && (operator == "prefix" || operator == "suffix") {
		return d.parseAnyCase(operator, inner)
	}
	text, isText := operand.(string)
	if !isText {
		return nil, d.Refuse("%s match pattern must be a string", operator)
	}
	matches := func(s string) bool { return strings.EqualFold(s, text) }
	switch operator {
	case "prefix":
		matches = func(s string) bool { return strings.HasPrefix(s, text) }
	case "suffix":
		matches = func(s string) bool { return strings.HasSuffix(s, text) }
	case "wildcard":
		parts, err := d.parseWildcard(text)
		if err != nil {
			return nil, err
		}
		matches = func(s string) bool { return matchesParts(parts, s) }
	}
	return func(v any) bool {
		s, ok := v.(string)
		return ok && matches(s)
	}, nil
}

// parseAnyCase reads a prefix or a suffix that may have any case.
func (d Dialect) parseAnyCase(operator string, operand map[string]any) (func(any) bool, error) {
	text, isText := operand["equals-ignore-case"].(string)
	if len(operand) != 1 || !isText {
		return nil, d.Refuse("%s match pattern must be a string", operator)
	}
	return func(v any) bool {
		s, isText := v.(string)
		switch {
		case !isText || utf8.RuneCountInString(s) < utf8.RuneCountInString(text):
			return false
		case operator == "prefix":
			return strings.EqualFold(firstRunes(s, utf8.RuneCountInString(text)), text)
		}
		first := firstRunes(s, utf8.RuneCountInString(s)-utf8.RuneCountInString(text))
		return strings.EqualFold(s[len(first):], text)
	}, nil
}

// firstRunes returns the first n characters of a text that has as many.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// parseWildcard returns the texts between the asterisks of a pattern. A backslash makes an asterisk or a backslash a plain character.
func (d Dialect) parseWildcard(pattern string) (parts []string, err error) {
	var part strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) || pattern[i] != '*' && pattern[i] != '\\' {
				return nil, d.Refuse("Invalid escape character at pos %d", d.place(i-1))
			}
			part.WriteByte(pattern[i])
		case '*':
			if i > 0 && part.Len() == 0 && len(parts) > 0 {
				return nil, d.Refuse("Consecutive wildcard characters at pos %d", d.place(i-1))
			}
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(pattern[i])
		}
	}
	return append(parts, part.String()), nil
}

// place returns where a character stands, as errors say it: EventBridge counts the quotation mark before the text.
func (d Dialect) place(i int) int {
	if d.Narrow {
		return i
	}
	return i + 1
}

// matchesParts reports whether a text consists of the parts with anything in between. The first place of a part is as good as any other.
func matchesParts(parts []string, s string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}

// parseAnythingBut reads anything-but: a value, a list of values, or an operator on texts.
func (d Dialect) parseAnythingBut(operand any) (func(any) bool, error) {
	switch o := operand.(type) {
	case map[string]any:
		if len(o) != 1 {
			return nil, d.Refuse("Only one key allowed in match expression")
		}
		for operator, inner := range o {
			return d.parseAnythingButText(operator, inner)
		}
	case []any:
		for _, v := range o {
			switch {
			case isTextOrNumber(v):
			case d.Narrow:
				return nil, d.Refuse("Inside anything but list, either all values are number or string, mixed type is not supported")
			default:
				return nil, d.Refuse("Inside anything but list, start|null|boolean is not supported.")
			}
		}
		if len(o) == 0 {
			return nil, d.Refuse("Empty arrays are not allowed")
		}
		return func(v any) bool {
			return d.isThere(v) && !slices.ContainsFunc(o, func(one any) bool { return same(v, one) })
		}, nil
	}
	if !isTextOrNumber(operand) {
		return nil, d.Refuse("Value of anything-but must be an array or single string/number value.")
	}
	return func(v any) bool { return d.isThere(v) && !same(v, operand) }, nil
}

// isThere reports whether a value counts as any but others: SNS doesn't count null.
func (d Dialect) isThere(v any) bool { return v != nil || !d.Narrow }

// parseAnythingButText reads an operator inside anything-but. EventBridge takes lists of texts, too, of which a value must match none.
func (d Dialect) parseAnythingButText(operator string, operand any) (func(any) bool, error) {
	if d.Narrow && operator != "prefix" || !slices.Contains([]string{"prefix", "suffix", "equals-ignore-case", "wildcard"}, operator) {
		return nil, d.Refuse("Unsupported anything-but pattern: %s", operator)
	}
	each, isList := operand.([]any)
	if !isList || d.Narrow {
		each = []any{operand}
	}
	if len(each) == 0 {
		return nil, d.Refuse("Empty arrays are not allowed")
	}
	var without []func(any) bool
	for _, one := range each {
		if err := d.checkAnythingBut(operator, one); err != nil {
			return nil, err
		}
		has, err := d.parseText(operator, one)
		if err != nil {
			return nil, err
		}
		without = append(without, has)
	}
	return func(v any) bool {
		return d.isThere(v) && !slices.ContainsFunc(without, func(has func(any) bool) bool { return has(v) })
	}, nil
}

// checkAnythingBut refuses what EventBridge refuses inside anything-but, in the words that it has there.
func (d Dialect) checkAnythingBut(operator string, operand any) error {
	text, isText := operand.(string)
	_, isObject := operand.(map[string]any)
	switch isAffix := operator == "prefix" || operator == "suffix"; {
	case d.Narrow:
		return nil
	case isAffix && isObject:
		return d.Refuse("Value of anything-but must be an array or single string/number value.")
	case isAffix && !isText:
		return d.Refuse("prefix/suffix match pattern must be a string")
	case isAffix && text == "":
		return d.Refuse("Null prefix/suffix not allowed")
	case operator == "equals-ignore-case" && !isText:
		return d.Refuse("Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported.")
	}
	return nil
}

func isTextOrNumber(v any) bool {
	switch v.(type) {
	case string, float64, json.Number:
		return true
	}
	return false
}

// parseNumeric reads a comparison with a number, or a range between two.
func (d Dialect) parseNumeric(operand any) (func(any) bool, error) {
	terms, isList := operand.([]any)
	if !isList {
		return nil, d.Refuse("Value of numeric must be an array.")
	}
	if len(terms) == 0 {
		return nil, d.Refuse("Invalid member in numeric match: ]")
	}
	operator, isText := terms[0].(string)
	if !isText {
		return nil, d.Refuse("Invalid member in numeric match: %s", written(terms[0]))
	}
	if !slices.Contains([]string{"<", "<=", "=", ">", ">="}, operator) {
		return nil, d.Refuse("Unrecognized numeric range operator: %s", operator)
	}
	first, err := d.numberAfter(operator, terms[1:])
	if err != nil {
		return nil, err
	}
	lower := comparison(operator, first)
	if len(terms) == 2 {
		return onNumbers(lower), nil
	}
	if operator != ">" && operator != ">=" {
		return nil, d.Refuse("Too many elements in numeric expression")
	}
	upper, err := d.parseUpper(first, terms[2:])
	if err != nil {
		return nil, err
	}
	return onNumbers(func(n float64) bool { return lower(n) && upper(n) }), nil
}

// parseUpper reads the upper end of a range.
func (d Dialect) parseUpper(bottom float64, terms []any) (func(float64) bool, error) {
	operator, isText := terms[0].(string)
	if !isText {
		return nil, d.Refuse("Bad value in numeric range: %s", written(terms[0]))
	}
	if operator != "<" && operator != "<=" {
		return nil, d.Refuse("Bad numeric range operator: %s", operator)
	}
	top, err := d.numberAfter(operator, terms[1:])
	if err != nil {
		return nil, err
	}
	if top <= bottom {
		return nil, d.Refuse("Bottom must be less than top")
	}
	if len(terms) > 2 {
		return nil, d.Refuse("Too many terms in numeric range expression")
	}
	return comparison(operator, top), nil
}

// numberAfter returns the number that follows an operator.
func (d Dialect) numberAfter(operator string, terms []any) (float64, error) {
	if len(terms) > 0 {
		if n, isNumber := number(terms[0]); isNumber {
			return n, nil
		}
	}
	if operator == "=" {
		operator = "equals"
	}
	return 0, d.Refuse("Value of %s must be numeric", operator)
}

func comparison(operator string, with float64) func(float64) bool {
	switch operator {
	case "<":
		return func(n float64) bool { return n < with }
	case "<=":
		return func(n float64) bool { return n <= with }
	case ">":
		return func(n float64) bool { return n > with }
	case ">=":
		return func(n float64) bool { return n >= with }
	}
	return func(n float64) bool { return n == with }
}

func onNumbers(matches func(float64) bool) func(any) bool {
	return func(v any) bool {
		n, isNumber := number(v)
		return isNumber && matches(n)
	}
}

// same reports whether values are equal: 300, 300.0 and 3e2 are.
func same(v, other any) bool {
	a, isNumber := number(v)
	b, areNumbers := number(other)
	return v == other || isNumber && areNumbers && a == b
}

// number returns a number, however it was decoded. One that's too large to compare is none.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	}
	return 0, false
}

// written returns a value as JSON has it.
func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// parseCIDR reads a block of addresses.
func (d Dialect) parseCIDR(operand any) (func(any) bool, error) {
	text, isText := operand.(string)
	if !isText {
		return nil, d.Refuse("prefix match pattern must be a string") // SNS's word for it
	}
	address, bits, found := strings.Cut(text, "/")
	if !found || strings.Contains(bits, "/") {
		return nil, d.Refuse("Malformed CIDR, one '/' required")
	}
	n, err := strconv.Atoi(bits)
	if err != nil {
		return nil, d.Refuse("Malformed CIDR, mask bits must be an integer")
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Zone() != "" {
		return nil, d.Refuse("Nonstandard IP address: %s", address)
	}
	block, err := ip.Prefix(n)
	if err != nil {
		return nil, d.Refuse("Malformed CIDR, mask bits must not be %d", n)
	}
	return func(v any) bool {
		s, _ := v.(string)
		ip, err := netip.ParseAddr(s)
		return err == nil && block.Contains(ip)
	}, nil
}
