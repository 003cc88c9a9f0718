// Package expression compiles the regular expressions of a filter pattern or a query, and bounds what they cost together: a message is
// read once for each of them, and each of its bytes may cost all their steps. It is pure.
package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Budget is what the expressions of one pattern or query may cost.
type Budget struct {
	Most  int // expressions
	Steps int // of all their programs
	count int
}

// Compile compiles one more expression.
func (b *Budget) Compile(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", text, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", text, err)
	}
	if b.count++; b.count > b.Most {
		return nil, fmt.Errorf("it has more than %d regular expressions", b.Most)
	}
	if b.Steps -= len(program.Inst); b.Steps < 0 {
		return nil, errors.New("its regular expressions are too complex")
	}
	return regexp.Compile(text)
}
