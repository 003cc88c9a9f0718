// Package pattern checks names by a regular expression and a greatest length. A count of hundreds in the expression
// itself would be compiled to as many copies, up to ten megabytes and milliseconds of them, in every process that
// starts: each container has one of Pintle's beside it.
package pattern

import (
	"regexp"
	"unicode/utf8"
)

// Pattern is what a name must match, and how many characters it may have.
type Pattern struct {
	expr *regexp.Regexp
	most int
}

// New compiles an expression. It panics where it cannot, as regexp.MustCompile does.
func New(expr string, most int) Pattern { return Pattern{regexp.MustCompile(expr), most} }

// MatchString says whether a name matches, and is not too long.
func (p Pattern) MatchString(name string) bool {
	return len(name) <= utf8.UTFMax*p.most && utf8.RuneCountInString(name) <= p.most && p.expr.MatchString(name)
}
