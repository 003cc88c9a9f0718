package policy

import "strings"

// pattern is a text to match with: runes, and the two wildcards.
type pattern []rune

const (
	any0 rune = -1 // *: any runes, or none
	any1 rune = -2 // ?: one rune
)

// literal returns the pattern that matches a text alone.
func literal(text string) pattern { return pattern(text) }

// wild returns the pattern of a text with wildcards.
func wild(text string) pattern {
	p := pattern(text)
	for i, r := range p {
		p[i] = wildcard(r)
	}
	return p
}

func wildcard(r rune) rune {
	switch r {
	case '*':
		return any0
	case '?':
		return any1
	}
	return r
}

// matches reports whether the pattern matches the whole text. A mismatch goes back to the last * alone, since what an earlier one took can
// stay: so it takes at most the product of both lengths.
func (p pattern) matches(s string) bool { return p.matchesRunes([]rune(s)) }

func (p pattern) matchesRunes(text []rune) bool {
	i, j := 0, 0         // in the text, in the pattern
	star, taken := -1, 0 // the last *, and how much of the text is before what it hasn't taken
	for i < len(text) {
		switch {
		case j < len(p) && p[j] == any0:
			star = j
			taken = i
			j++
		case j < len(p) && (p[j] == any1 || p[j] == text[i]):
			i++
			j++
		case star >= 0:
			taken++
			i = taken
			j = star + 1
		default:
			return false
		}
	}
	for j < len(p) && p[j] == any0 {
		j++
	}
	return j == len(p)
}

// expand replaces the variables of a text: ${key}, ${key, 'default'}, and ${*}, ${?} and ${$}, which are those characters. What a variable
// stands for is literal. It returns false if a variable has no value, so that the text matches nothing.
func (e *evaluation) expand(text string, wildcards bool) (pattern, bool) {
	runesOf := literal
	if wildcards {
		runesOf = wild
	}
	if !e.variables {
		return runesOf(text), true
	}
	var p pattern
	for {
		before, rest, found := strings.Cut(text, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return append(p, runesOf(text)...), true
		}
		value, ok := e.variable(name)
		if !ok {
			return nil, false
		}
		p = append(append(p, runesOf(before)...), literal(value)...)
		text = after
	}
}

// eachVariable calls visit with the key of each variable in texts.
func (p *Policy) eachVariable(texts []string, visit func(key string)) {
	if !p.variables {
		return
	}
	for _, text := range texts {
		for {
			_, rest, found := strings.Cut(text, "${")
			name, after, closed := strings.Cut(rest, "}")
			if !found || !closed {
				break
			}
			if key, _, _ := strings.Cut(name, ","); !isCharacter(key) {
				visit(strings.TrimSpace(key))
			}
			text = after
		}
	}
}

// isCharacter reports whether a variable's name is that of a character that otherwise has a meaning.
func isCharacter(name string) bool { return name == "*" || name == "?" || name == "$" }

func (e *evaluation) variable(name string) (value string, ok bool) {
	if isCharacter(name) {
		return name, true
	}
	key, other, hasDefault := strings.Cut(name, ",")
	if values := e.context.get(strings.TrimSpace(key)); len(values) == 1 {
		return values[0], true
	}
	other = strings.TrimSpace(other)
	if hasDefault && len(other) >= 2 && other[0] == '\'' && other[len(other)-1] == '\'' {
		return other[1 : len(other)-1], true
	}
	return "", false
}
