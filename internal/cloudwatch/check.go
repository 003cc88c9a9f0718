package cloudwatch

import (
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/pattern"
)

// Limits on metrics: API_PutMetricData, API_MetricDatum, API_Dimension.
const (
	maxName           = 255
	maxDimensions     = 30
	maxDimensionValue = 1024
)

// namespace matches valid namespaces.
var namespace = pattern.New(`^[0-9A-Za-z._\-/# ][0-9A-Za-z._\-/#: ]*$`, 255)

func checkNamespace(name *string) error {
	switch {
	case aws.ToString(name) == "":
		return missing("Namespace")
	case !namespace.MatchString(*name):
		return invalid(
			"The value %s for parameter Namespace is invalid: "+
				"it must have 1 to 255 letters, digits and ._-/#: characters, and no leading colon.",
			*name,
		)
	}
	return nil
}

func checkMetricName(name *string, parameter string) error {
	switch {
	case aws.ToString(name) == "":
		return missing(parameter)
	case len(*name) > maxName || !printable(*name):
		return invalid("The value for parameter %s is invalid: it must have at most %d printable ASCII characters.", parameter, maxName)
	}
	return nil
}

// printable reports whether s has only printable ASCII characters and at least one that is not a space.
func printable(s string) bool {
	return strings.Trim(s, " ") != "" && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

func checkDimensions(dimensions []types.Dimension, parameter string) error {
	if len(dimensions) > maxDimensions {
		return invalid("The collection %s must not have a size greater than %d.", parameter, maxDimensions)
	}
	for i, d := range dimensions {
		name, value := aws.ToString(d.Name), aws.ToString(d.Value)
		switch {
		case name == "":
			return missing(member(parameter, i) + ".Name")
		case value == "":
			return missing(member(parameter, i) + ".Value")
		case len(name) > maxName || !printable(name) || name[0] == ':':
			return invalid(
				"The value for parameter %s.Name is invalid: it must have at most %d printable ASCII characters, and no leading colon.",
				member(parameter, i), maxName,
			)
		case len(value) > maxDimensionValue || !printable(value):
			return invalid(
				"The value for parameter %s.Value is invalid: it must have at most %d printable ASCII characters.",
				member(parameter, i), maxDimensionValue,
			)
		}
		if slices.ContainsFunc(dimensions[:i], func(o types.Dimension) bool { return *o.Name == name }) {
			return invalid("The parameter %s.Name is invalid: the dimension %s comes twice.", member(parameter, i), name)
		}
	}
	return nil
}

func checkUnit(unit types.StandardUnit, parameter string) error {
	if unit != "" && !slices.Contains(unit.Values(), unit) {
		return invalid("The value %s for parameter %s is invalid.", unit, parameter)
	}
	return nil
}

// maxValue is the largest absolute value: API_PutMetricData.
var maxValue = math.Ldexp(1, 360)

func checkValue(v float64, parameter string) error {
	if math.IsNaN(v) || math.Abs(v) > maxValue { // also refuses infinities
		return invalid("The value %g for parameter %s is invalid: it must be between -2^360 and 2^360.", v, parameter)
	}
	return nil
}

func keyAndValue(t types.Tag) (key, value *string) { return t.Key, t.Value }

// checkTags checks tags by the rules of API_Tag.
func checkTags(tags []types.Tag) error {
	for i, t := range tags {
		if t.Value == nil {
			return badTagValue(i)
		}
	}
	fault := account.CheckTags(account.TagPairs(tags, keyAndValue), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TooManyTags:
		return invalid("The collection Tags must not have a size greater than %d.", account.MaxTags)
	case account.TagValueLength:
		return badTagValue(fault.Index)
	case account.TagTwice:
		return invalid("The parameter %s.Key is invalid: the key %s comes twice.", member("Tags", fault.Index), fault.Key)
	}
	return invalid(
		"The value %s for parameter %s.Key is invalid: it must have 1 to 128 characters and must not begin with aws:.",
		fault.Key, member("Tags", fault.Index),
	)
}

func badTagValue(i int) error {
	return invalid("The value for parameter %s.Value is invalid: it must have at most 256 characters.", member("Tags", i))
}
