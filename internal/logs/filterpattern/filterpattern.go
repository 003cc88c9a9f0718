// Package filterpattern is CloudWatch Logs' filter patterns: Parse parses one, and Match applies it to a message. Find also reads values
// from the message, as metric filters do. There are three kinds: terms anywhere in the text, JSON patterns in braces, and patterns for
// space-separated fields in brackets. It is pure, and follows
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
package filterpattern

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLength is the longest pattern that AWS accepts.
const maxLength = 1024

// Pattern is a parsed pattern. It is safe for concurrent use.
type Pattern struct {
	find     func(message string) (Found, bool)
	selector func(text string) (Selector, error) // nil for terms, which have no values
	used     []string                            // the selectors in the pattern itself
}

// Match reports whether the message matches.
func (p *Pattern) Match(message string) bool {
	_, ok := p.find(message)
	return ok
}

// Find reports whether the message matches, and returns what selectors read from it.
func (p *Pattern) Find(message string) (Found, bool) { return p.find(message) }

// Found is a message that matched.
type Found struct {
	root   any      // of a JSON pattern
	fields []string // of a pattern for fields
}

// Selector names a value of a message: $.latency for a JSON pattern, $bytes for a pattern with a field of that name.
type Selector func(Found) (value string, ok bool)

// ErrNoValues is returned by Selector for a pattern of terms.
var ErrNoValues = errors.New("only patterns for JSON and for space-separated fields have values")

// Selector parses a selector for messages that this pattern matches.
func (p *Pattern) Selector(text string) (Selector, error) {
	if p.selector == nil {
		return nil, ErrNoValues
	}
	return p.selector(text)
}

// Values returns the values that the pattern's own selectors name.
func (p *Pattern) Values(f Found) map[string]string {
	out := map[string]string{}
	for _, text := range p.used {
		read, err := p.selector(text)
		if err != nil {
			continue // a field whose name the pattern has twice
		}
		if v, ok := read(f); ok {
			out[text] = v
		}
	}
	return out
}

// plain returns a pattern without values.
func plain(match func(string) bool) *Pattern {
	return &Pattern{find: func(message string) (Found, bool) { return Found{}, match(message) }}
}

// Parse parses a pattern. An empty one matches everything.
func Parse(text string) (*Pattern, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case len(text) > maxLength:
		return nil, fmt.Errorf("it has %d characters, at most %d are allowed", len(text), maxLength)
	case !utf8.ValidString(text):
		return nil, errors.New("it is not valid UTF-8")
	case trimmed == "":
		return plain(func(string) bool { return true }), nil
	case strings.HasPrefix(trimmed, "{"):
		return parseJSON(trimmed)
	case strings.HasPrefix(trimmed, "["):
		return parseFields(trimmed)
	}
	return parseTerms(trimmed)
}

// term is a word, a quoted text or a regular expression that a message must or must not contain.
type term struct {
	text    string
	pattern matcher
}

func (t term) in(message string) bool {
	if t.pattern != nil {
		return t.pattern.MatchString(message)
	}
	return strings.Contains(message, t.text)
}

// parseTerms parses terms. The message must contain all plain terms and none with a minus. Without plain terms, it must contain at
// least one with a question mark.
func parseTerms(text string) (*Pattern, error) {
	var all, some, none []term
	compiler := expressions{most: 5}
	for text != "" {
		into := &all
		switch text[0] {
		case '?':
			into = &some
			text = text[1:]
		case '-':
			into = &none
			text = text[1:]
		}
		t, rest, err := nextTerm(text, &compiler)
		if err != nil {
			return nil, err
		}
		*into = append(*into, t)
		text = strings.TrimLeft(rest, " \t")
	}
	// AWS ignores terms with a question mark if there are others.
	return plain(func(message string) bool {
		for _, t := range none {
			if t.in(message) {
				return false
			}
		}
		for _, t := range all {
			if !t.in(message) {
				return false
			}
		}
		if len(all) > 0 || len(some) == 0 {
			return true
		}
		for _, t := range some {
			if t.in(message) {
				return true
			}
		}
		return false
	}), nil
}

func nextTerm(text string, compiler *expressions) (t term, rest string, err error) {
	if text == "" {
		return t, "", fmt.Errorf("a term is missing at the end")
	}
	switch text[0] {
	case '"':
		word, rest, err := quotation(text)
		return term{text: word}, rest, err
	case '%':
		if end := strings.IndexByte(text[1:], '%'); end >= 0 {
			p, err := compiler.compile(text[1 : 1+end])
			return term{pattern: p}, text[end+2:], err
		}
	}
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		end = len(text)
	}
	for _, r := range text[:end] {
		if !strings.ContainsRune("_.-/:=@#$&*,;'+~|<>!\\", r) && !isAlphanumeric(r) {
			return t, "", fmt.Errorf("the term %q has the character %q: put it in quotation marks", text[:end], r)
		}
	}
	if end == 0 {
		return t, "", fmt.Errorf("a term is missing")
	}
	return term{text: text[:end]}, text[end:], nil
}

// quotation parses a quoted text, in which a backslash escapes the next character.
func quotation(text string) (word, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case '"':
			return b.String(), text[i+1:], nil
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", fmt.Errorf("the quotation %s is not closed", text)
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
}
