package ec2

import (
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The limits of filters: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
const maxFilterValues = 200

// fields are what a filter of each name looks at.
type fields[T any] map[string]func(*T) []string

// matcher checks filters, and returns what they let through: all of them must, each by one of its
// values. tags are what tag filters look at; nil where the operation has none.
func matcher[T any](filters []types.Filter, of fields[T], tags func(*T) []types.Tag) (func(*T) bool, error) {
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
			return nil, refuse("FilterLimitExceeded", "The maximum number of filter values specified on a single call is %d", maxFilterValues)
		}
		tests = append(tests, func(t *T) bool { return anyMatches(f.Values, field(t)) })
	}
	return func(t *T) bool {
		return !slices.ContainsFunc(tests, func(passes func(*T) bool) bool { return !passes(t) })
	}, nil
}

// tagField is what a filter tag:<key>, tag-key or tag-value looks at.
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

func anyMatches(patterns, values []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return matches(p, v) })
	})
}

// classes hides what a pattern of path.Match has besides EC2's * and ?, and the slash, which is a
// character like others to EC2.
var classes = strings.NewReplacer("[", `\[`, "/", "\x00")

// matches says whether a value fits a pattern: * is any text, ? any character, and a backslash before
// one of them makes it plain.
func matches(pattern, value string) bool {
	ok, err := path.Match(classes.Replace(pattern), strings.ReplaceAll(value, "/", "\x00"))
	return ok && err == nil
}
