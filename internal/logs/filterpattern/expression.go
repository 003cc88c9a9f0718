package filterpattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// matcher is a regular expression, or a text with wildcards.
type matcher interface{ MatchString(string) bool }

// expressions compiles a pattern's regular expressions, and bounds what they cost together. A message is read once for each of them, and
// each of its bytes may cost all steps.
type expressions struct {
	most  int // AWS takes two in patterns for JSON and for fields, and names no number for terms
	count int
	steps int
}

// maxSteps is the most steps of all compiled expressions of a pattern.
const maxSteps = 500

func (e *expressions) compile(text string) (matcher, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", text, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", text, err)
	}
	e.steps += len(program.Inst)
	if e.count++; e.count > e.most {
		return nil, fmt.Errorf("it has more than %d regular expressions", e.most)
	}
	if e.steps > maxSteps {
		return nil, errors.New("its regular expressions are too complex")
	}
	return regexp.Compile(text)
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
