package filterpattern

import (
	"strings"

	"github.com/pintle/pintle/internal/logs/expression"
)

// matcher is a regular expression, or a text with wildcards.
type matcher interface{ MatchString(string) bool }

// expressions compiles a pattern's regular expressions.
type expressions struct {
	most   int // AWS takes two in patterns for JSON and for fields, and names no number for terms
	budget *expression.Budget
}

// maxSteps is the most steps of all compiled expressions of a pattern.
const maxSteps = 500

func (e *expressions) compile(text string) (matcher, error) {
	if e.budget == nil {
		e.budget = &expression.Budget{Most: e.most, Steps: maxSteps}
	}
	return e.budget.Compile(text)
}

// wildcard is a text in which each asterisk stands for any text. It has the parts between them. Matching looks at each byte about once,
// which a regular expression with as many asterisks wouldn't.
type wildcard []string

func newWildcard(text string) wildcard { return strings.Split(text, "*") }

// MatchString implements matcher.
func (w wildcard) MatchString(s string) bool {
	last := len(w) - 1
	if last == 0 {
		return s == w[0]
	}
	s, ok := strings.CutPrefix(s, w[0])
	if !ok {
		return false
	}
	for _, part := range w[1:last] {
		if _, s, ok = strings.Cut(s, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(s, w[last])
}
