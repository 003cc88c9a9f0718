package template

import (
	"fmt"
	"regexp"

	"github.com/dlclark/regexp2"
)

// pattern is an AllowedPattern. Patterns are Java's. Nearly all are also RE2's, whose time grows with the value alone. Those that look ahead or
// back, which published templates do, need an engine that tries again and again.
type pattern struct {
	linear *regexp.Regexp
	trying *regexp2.Regexp // if linear is nil
}

// Bounds of an engine that tries again and again.
const (
	matchTime = 1e8 // nanoseconds for one value
	maxTrying = 250 // values in a template
)

// compile compiles an expression that the whole of a value must match.
func compile(expr string) (pattern, error) {
	whole := `\A(?:` + expr + `)\z`
	if linear, err := regexp.Compile(whole); err == nil {
		return pattern{linear: linear}, nil
	}
	trying, err := regexp2.Compile(whole, regexp2.None)
	if err == nil {
		trying.MatchTimeout = matchTime
	}
	return pattern{trying: trying}, err
}

// problem says what is wrong with a value, or returns "". It takes one off left, the number of values for which trying is still allowed, if it tries.
func (p *pattern) problem(expr, value string, left *int) string {
	if p.linear != nil {
		if !p.linear.MatchString(value) {
			return "must match pattern " + expr
		}
		return ""
	}
	if *left--; *left < 0 {
		return fmt.Sprintf("has an AllowedPattern that looks ahead or back, of which a template checks at most %d values", maxTrying)
	}
	switch matches, err := p.trying.MatchString(value); {
	case err != nil:
		return "has an AllowedPattern that takes too long"
	case !matches:
		return "must match pattern " + expr
	}
	return ""
}
