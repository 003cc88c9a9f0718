// Package markup writes HTML. A page is made of elements, attributes and text, and whatever is text is escaped when it's written, so no view can
// forget it. It is pure. It knows no templates: html/template finds methods by name, for which the linker would keep all of the AWS SDK's, and so
// does whatever imports it.
package markup

import (
	"strconv"
	"unicode/utf8"
)

// Node is an element, a text, or several of them.
type Node interface {
	// Append appends the node's HTML.
	Append(b []byte) []byte
}

// Attr is an attribute of an element.
type Attr struct {
	name, value string
	has         bool // else it's left out
}

// A returns an attribute.
func A(name, value string) Attr { return Attr{name, value, true} }

// If returns an attribute that has no value, such as "checked", if it's to be there.
func If(name string, has bool) Attr { return Attr{name, "", has} }

// Class returns the attribute with an element's classes.
func Class(names string) Attr { return A("class", names) }

// ID returns the attribute with an element's id.
func ID(id string) Attr { return A("id", id) }

type element struct {
	tag   string
	parts []any
}

// E returns an element. Its parts are attributes, nodes, texts, numbers, and slices of nodes; nil is nothing.
func E(tag string, parts ...any) Node { return element{tag, parts} }

// Group is several nodes without an element around them.
type Group []Node

// Append implements Node.
func (g Group) Append(b []byte) []byte {
	for _, n := range g {
		if n != nil {
			b = n.Append(b)
		}
	}
	return b
}

// Text is a text.
type Text string

// Append implements Node.
func (t Text) Append(b []byte) []byte { return appendEscaped(b, string(t)) }

// Raw is HTML that was written before, by this package. It must hold nothing that a user chose.
type Raw string

// Append implements Node.
func (r Raw) Append(b []byte) []byte { return append(b, r...) }

// Append implements Node.
func (e element) Append(b []byte) []byte {
	b = e.start(b)
	if isVoid(e.tag) {
		return b
	}
	for _, p := range e.parts {
		b = appendPart(b, p)
	}
	return append(append(append(b, "</"...), e.tag...), '>')
}

func (e element) start(b []byte) []byte {
	b = append(append(b, '<'), e.tag...)
	for _, p := range e.parts {
		a, ok := p.(Attr)
		if !ok || !a.has {
			continue
		}
		b = append(append(b, ' '), a.name...)
		if a.value != "" {
			b = append(appendEscaped(append(b, '=', '"'), a.value), '"')
		}
	}
	return append(b, '>')
}

func appendPart(b []byte, part any) []byte {
	switch p := part.(type) {
	case nil, Attr:
		return b
	case Node:
		return p.Append(b)
	case string:
		return appendEscaped(b, p)
	case int:
		return strconv.AppendInt(b, int64(p), 10)
	case []Node:
		return Group(p).Append(b)
	}
	panic("markup: a part is neither a node nor a text")
}

// isVoid reports whether an element has no end tag.
func isVoid(tag string) bool {
	switch tag {
	case "br", "hr", "img", "input", "link", "meta":
		return true
	}
	return false
}

// Start returns an element's start tag.
func Start(tag string, attrs ...Attr) string {
	parts := make([]any, len(attrs))
	for i, a := range attrs {
		parts[i] = a
	}
	return string(element{tag, parts}.start(nil))
}

// String returns a node's HTML.
func String(n Node) string { return string(n.Append(nil)) }

// appendEscaped appends a text such that it's nothing but text, in an element as in an attribute: no tags, no terminal's escapes, and nothing that
// turns the direction in which what follows is read.
func appendEscaped(b []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if instead := replacement(r, n); instead != "" {
			b = append(append(b, s[from:i]...), instead...)
			from = i + n
		}
		i += n
	}
	return append(b, s[from:]...)
}

// replacement returns what stands for a character in HTML, or "" for itself.
func replacement(r rune, n int) string {
	switch {
	case r == '&':
		return "&amp;"
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '"':
		return "&#34;"
	case r == '\'':
		return "&#39;"
	case r == '\n' || r == '\t':
		return ""
	case r < 0x20:
		return string(rune(0x2400) + r) // ␛ is escape's picture
	case r == 0x7f:
		return "␡"
	case r > 0x7f && r < 0xa0, r == utf8.RuneError && n == 1, isBidi(r):
		return "\ufffd"
	}
	return ""
}

// isBidi reports whether a character changes the direction of the text around it.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
