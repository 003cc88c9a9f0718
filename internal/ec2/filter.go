package ec2

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The limits of filters: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
const (
	maxFilters      = 50
	maxFilterValues = 200
	maxFilterLength = 255 // characters of a value
)

// fields maps a filter's name to the values that it looks at.
type fields[T any] map[string]func(*T) []string

// matcher checks filters, and returns a function that reports whether something passes all of them. One matching value
// per filter is enough. tags returns what tag filters look at; nil if the operation has none.
func matcher[T any](filters []types.Filter, of fields[T], tags func(*T) []types.Tag) (func(*T) bool, error) {
	if len(filters) > maxFilters {
		return nil, refuse("FilterLimitExceeded", "The maximum number of filters specified on a single call is %d", maxFilters)
	}
	var tests []func(*T) bool
	for _, f := range filters {
		name := aws.ToString(f.Name)
		field := of[name]
		if field == nil && tags != nil {
			field = tagField(name, tags)
		}
		switch {
		case field == nil:
			return nil, refuse("InvalidParameterValue", "The filter '%s' is invalid", name)
		case len(f.Values) == 0:
			return nil, refuse("InvalidParameterValue", "The filter '%s' must have at least one value", name)
		case len(f.Values) > maxFilterValues:
			return nil, refuse("FilterLimitExceeded",
				"The maximum number of filter values specified on a single call is %d", maxFilterValues)
		case slices.ContainsFunc(f.Values, func(v string) bool { return utf8.RuneCountInString(v) > maxFilterLength }):
			return nil, refuse("InvalidParameterValue", "A value of the filter '%s' has more than %d characters", name, maxFilterLength)
		}
		values := patterns(f.Values)
		tests = append(tests, func(t *T) bool { return anyMatches(values, field(t)) })
	}
	return func(t *T) bool {
		return !slices.ContainsFunc(tests, func(passes func(*T) bool) bool { return !passes(t) })
	}, nil
}

// tagField returns what a filter tag:<key>, tag-key or tag-value looks at.
func tagField[T any](name string, tags func(*T) []types.Tag) func(*T) []string {
	key, byKey := strings.CutPrefix(name, "tag:")
	if !byKey && name != "tag-key" && name != "tag-value" {
		return nil
	}
	return func(t *T) (out []string) {
		for _, tag := range tags(t) {
			switch {
			case name == "tag-key":
				out = append(out, aws.ToString(tag.Key))
			case name == "tag-value", aws.ToString(tag.Key) == key:
				out = append(out, aws.ToString(tag.Value))
			}
		}
		return out
	}
}

// patterns compiles the values of a filter.
func patterns(values []string) (out []*regexp.Regexp) {
	for _, v := range values {
		out = append(out, wildcards(v))
	}
	return out
}

// wildcards compiles a value of a filter: * is any text, ? is at most one character, and a backslash makes the next
// character literal.
func wildcards(value string) *regexp.Regexp {
	var b strings.Builder
	plain := false
	for _, r := range value {
		switch {
		case plain || r != '*' && r != '?' && r != '\\':
			b.WriteString(regexp.QuoteMeta(string(r)))
			plain = false
		case r == '\\':
			plain = true
		case r == '*':
			b.WriteString(".*")
		case r == '?':
			b.WriteString(".?")
		}
	}
	return regexp.MustCompile(`^(?s:` + b.String() + `)$`)
}

func anyMatches(patterns []*regexp.Regexp, values []string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return slices.ContainsFunc(values, p.MatchString) })
}
