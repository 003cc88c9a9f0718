// Package pattern checks names by a regular expression and a maximum length. The length isn't part of the expression, because a
// repeat count in the hundreds is compiled to as many copies. That would cost every process up to ten megabytes and milliseconds at
// its start, and each container has a Pintle process beside it.
package pattern

import (
	"regexp"
	"unicode/utf8"
)

// Pattern is an expression that names must match, and the most characters that they may have.
type Pattern struct {
	expr *regexp.Regexp
	most int
}

// New compiles an expression. Like regexp.MustCompile, it panics if the expression is invalid.
func New(expr string, most int) Pattern { return Pattern{regexp.MustCompile(expr), most} }

// MatchString reports whether a name matches and isn't too long.
func (p Pattern) MatchString(name string) bool {
	return len(name) <= utf8.UTFMax*p.most && utf8.RuneCountInString(name) <= p.most && p.expr.MatchString(name)
}
