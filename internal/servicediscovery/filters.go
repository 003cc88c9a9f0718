package servicediscovery

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"
)

// ownSelf is the value of RESOURCE_OWNER for what the account owns, which is everything here.
const ownSelf = "SELF"

// filter is a filter of a list.
type filter struct {
	name      string
	condition types.FilterCondition
	values    []string
}

// passes reports whether a value passes the filter. Without a condition it's EQ.
func (f filter) passes(value string) bool {
	switch f.condition {
	case types.FilterConditionBeginsWith:
		return slices.ContainsFunc(f.values, func(v string) bool { return strings.HasPrefix(value, v) })
	case types.FilterConditionBetween:
		at, _ := strconv.ParseFloat(value, 64)          //nolint:errcheck // it's ours
		from, _ := strconv.ParseFloat(f.values[0], 64)  //nolint:errcheck // checkFilters has checked it
		until, _ := strconv.ParseFloat(f.values[1], 64) //nolint:errcheck // likewise
		return at >= from && at <= until
	}
	return slices.Contains(f.values, value)
}

// checkFilters refuses filters with another condition, or another number of values, than their names allow.
func checkFilters(filters []filter, conditions map[string][]types.FilterCondition) error {
	for _, f := range filters {
		known, ok := conditions[f.name]
		switch {
		case !ok:
			return invalid("Filters.Name: %s is none of this operation's", f.name)
		case f.condition != "" && !slices.Contains(known, f.condition):
			return invalid("Filters.Condition: %s can't have the condition %s", f.name, f.condition)
		case f.condition == types.FilterConditionBetween:
			if err := checkBetween(f); err != nil {
				return err
			}
		case len(f.values) == 0:
			return invalid("Filters.Values: %s has none", f.name)
		case f.condition != types.FilterConditionIn && len(f.values) > 1:
			return invalid("Filters.Values: %s with the condition %s has one value, not %d", f.name, types.FilterConditionEq, len(f.values))
		}
	}
	return nil
}

// checkBetween checks a filter between two times, in seconds since 1970.
func checkBetween(f filter) error {
	if len(f.values) != 2 {
		return invalid("Filters.Values: %s with the condition BETWEEN has two values, not %d", f.name, len(f.values))
	}
	for _, v := range f.values {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return invalid("Filters.Values: %q is no time in seconds since 1970", v)
		}
	}
	return nil
}
