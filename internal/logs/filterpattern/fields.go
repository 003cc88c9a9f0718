package filterpattern

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A pattern for fields names the space-separated fields of a message, and may compare them: [ip, user, ..., status = 4*, bytes > 1000].

// fieldTest is one field's condition. nil accepts anything.
type fieldTest func(value string) bool

func parseFields(text string) (*Pattern, error) {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(text, "["), "]")
	if !ok {
		return nil, fmt.Errorf("a closing bracket is missing")
	}
	var before, after []fieldTest
	var names []string // of before and after, in their order
	compiler := expressions{most: 2}
	ellipsis := false
	for part := range strings.SplitSeq(inner, ",") {
		part = strings.TrimSpace(part)
		if part == "..." {
			if ellipsis {
				return nil, fmt.Errorf("there can be only one ellipsis")
			}
			ellipsis = true
			continue
		}
		test, err := parseField(part, &compiler)
		if err != nil {
			return nil, err
		}
		names = append(names, "$"+nameRE.FindString(part))
		if ellipsis {
			after = append(after, test)
		} else {
			before = append(before, test)
		}
	}
	find := func(message string) (Found, bool) {
		fields := splitFields(message)
		if len(fields) < len(names) || !ellipsis && len(fields) != len(names) {
			return Found{}, false
		}
		return Found{fields: fields}, passes(before, fields) && passes(after, fields[len(fields)-len(after):])
	}
	return &Pattern{find: find, selector: fieldSelector(names, len(before)), used: names}, nil
}

// nameRE finds a field's name before its condition.
var nameRE = regexp.MustCompile(`^\w+`)

// fieldSelector returns the parser of selectors such as $bytes. names are those of the pattern's fields, of which the first stand before
// the ellipsis.
func fieldSelector(names []string, before int) func(string) (Selector, error) {
	return func(text string) (Selector, error) {
		at := slices.Index(names, text)
		if at < 0 {
			return nil, fmt.Errorf("the pattern has no field %q", strings.TrimPrefix(text, "$"))
		}
		return func(f Found) (string, bool) {
			i := at
			if at >= before {
				i += len(f.fields) - len(names)
			}
			return f.fields[i], true
		}, nil
	}
}

func passes(tests []fieldTest, fields []string) bool {
	for i, t := range tests {
		if t != nil && !t(fields[i]) {
			return false
		}
	}
	return true
}

var fieldRE = regexp.MustCompile(`^(\w+)\s*(?:(!=|>=|<=|=|>|<)\s*(.+))?$`)

// parseField parses a name, or a name and a comparison. && and || may join several comparisons.
func parseField(part string, compiler *expressions) (fieldTest, error) {
	if left, right, ok := strings.Cut(part, "||"); ok {
		return joined(left, "||", right, compiler, func(a, b bool) bool { return a || b })
	}
	if left, right, ok := strings.Cut(part, "&&"); ok {
		return joined(left, "&&", right, compiler, func(a, b bool) bool { return a && b })
	}
	m := fieldRE.FindStringSubmatch(strings.TrimSpace(part))
	if m == nil {
		return nil, fmt.Errorf("%q is no field: expected a name, or a name and a comparison", part)
	}
	op := m[2]
	value := strings.TrimSpace(m[3])
	if op == "" {
		return nil, nil
	}
	if number, err := strconv.ParseFloat(value, 64); err == nil {
		return func(s string) bool {
			f, err := strconv.ParseFloat(s, 64)
			return err == nil && ordered(f, number, op)
		}, nil
	}
	if op != "=" && op != "!=" {
		return nil, fmt.Errorf("%s compares only numbers, not %q", op, value)
	}
	var pattern matcher = newWildcard(strings.Trim(value, `"`))
	if len(value) > 1 && value[0] == '%' && value[len(value)-1] == '%' {
		var err error
		if pattern, err = compiler.compile(value[1 : len(value)-1]); err != nil {
			return nil, err
		}
	}
	return func(s string) bool { return pattern.MatchString(s) == (op == "=") }, nil
}

func joined(left, operator, right string, compiler *expressions, join func(a, b bool) bool) (fieldTest, error) {
	a, err := parseField(left, compiler)
	if err != nil {
		return nil, err
	}
	b, err := parseField(right, compiler)
	if err != nil {
		return nil, err
	}
	if a == nil || b == nil {
		return nil, fmt.Errorf("%q %s %q: both sides must compare", left, operator, right)
	}
	return func(s string) bool { return join(a(s), b(s)) }, nil
}

// splitFields splits a message at spaces. Text in brackets or quotation marks is one field.
func splitFields(message string) []string {
	var out []string
	for message = strings.TrimLeft(message, " \t"); message != ""; message = strings.TrimLeft(message, " \t") {
		end, skip := strings.IndexAny(message, " \t"), 0
		for open, closing := range map[byte]byte{'[': ']', '"': '"'} {
			if message[0] == open {
				if at := strings.IndexByte(message[1:], closing); at >= 0 {
					end, skip = at+2, 1
				}
			}
		}
		if end < 0 {
			end = len(message)
		}
		out = append(out, message[skip:end-skip])
		message = message[end:]
	}
	return out
}
