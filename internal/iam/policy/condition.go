package policy

import (
	"bytes"
	"encoding/base64"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Context is what is known of a request, by key, in lower case.
type Context map[string][]string

// Set sets a key's values. Keys have no case.
func (c Context) Set(key string, values ...string) { c[strings.ToLower(key)] = values }

func (c Context) get(key string) []string { return c[strings.ToLower(key)] }

// condition is one key of a statement's Condition, with the operator that it stands below.
type condition struct {
	operator operator
	key      string
	values   []string
}

// operator is a condition operator with its prefix and suffix.
type operator struct {
	compare  comparison
	not      bool // it holds for what compare doesn't
	ifExists bool
	quantity quantity
	null     bool
}

type quantity uint8

const (
	single quantity = iota
	forAllValues
	forAnyValue
)

// comparison reports whether a value of the request fits one of the policy's.
type comparison func(e *evaluation, value, wanted string) bool

var comparisons = map[string]comparison{
	"StringEquals":             equalsText,
	"StringEqualsIgnoreCase":   equalsFolded,
	"StringLike":               likeText,
	"NumericEquals":            numbers(func(a, b float64) bool { return a == b }),
	"NumericLessThan":          numbers(func(a, b float64) bool { return a < b }),
	"NumericLessThanEquals":    numbers(func(a, b float64) bool { return a <= b }),
	"NumericGreaterThan":       numbers(func(a, b float64) bool { return a > b }),
	"NumericGreaterThanEquals": numbers(func(a, b float64) bool { return a >= b }),
	"DateEquals":               dates(func(a, b time.Time) bool { return a.Equal(b) }),
	"DateLessThan":             dates(time.Time.Before),
	"DateLessThanEquals":       dates(func(a, b time.Time) bool { return !a.After(b) }),
	"DateGreaterThan":          dates(time.Time.After),
	"DateGreaterThanEquals":    dates(func(a, b time.Time) bool { return !a.Before(b) }),
	"Bool":                     equalsBool,
	"BinaryEquals":             equalsBinary,
	"IpAddress":                inNetwork,
	"ArnEquals":                likeARN,
	"ArnLike":                  likeARN,
}

// negations are the operators that hold where another one doesn't.
var negations = map[string]string{
	"StringNotEquals":           "StringEquals",
	"StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
	"StringNotLike":             "StringLike",
	"NumericNotEquals":          "NumericEquals",
	"DateNotEquals":             "DateEquals",
	"NotIpAddress":              "IpAddress",
	"ArnNotEquals":              "ArnEquals",
	"ArnNotLike":                "ArnLike",
}

func parseOperator(name string) (o operator, ok bool) {
	if name == "Null" {
		return operator{null: true}, true
	}
	if rest, cut := strings.CutPrefix(name, "ForAllValues:"); cut {
		o.quantity = forAllValues
		name = rest
	} else if rest, cut := strings.CutPrefix(name, "ForAnyValue:"); cut {
		o.quantity = forAnyValue
		name = rest
	}
	name, o.ifExists = strings.CutSuffix(name, "IfExists")
	if positive := negations[name]; positive != "" {
		o.not = true
		name = positive
	}
	o.compare = comparisons[name]
	return o, o.compare != nil
}

// holds reports whether the condition holds for the request.
func (c *condition) holds(e *evaluation) bool {
	values := e.context.get(c.key)
	if c.operator.null {
		return slices.ContainsFunc(c.values, func(wanted string) bool { return strings.EqualFold(wanted, strconv.FormatBool(len(values) == 0)) })
	}
	fits := func(value string) bool { return c.fits(e, value) }
	switch {
	case c.operator.quantity == forAllValues:
		return !slices.ContainsFunc(values, func(value string) bool { return fits(value) == c.operator.not })
	case c.operator.quantity == forAnyValue:
		return slices.ContainsFunc(values, func(value string) bool { return fits(value) != c.operator.not })
	case len(values) == 0:
		return c.operator.not || c.operator.ifExists
	}
	return slices.ContainsFunc(values, fits) != c.operator.not
}

// fits reports whether a value of the request fits one of the policy's.
func (c *condition) fits(e *evaluation, value string) bool {
	return slices.ContainsFunc(c.values, func(wanted string) bool { return c.operator.compare(e, value, wanted) })
}

func equalsText(e *evaluation, value, wanted string) bool {
	p, ok := e.expand(wanted, false)
	return ok && string(p) == value
}

func equalsFolded(e *evaluation, value, wanted string) bool {
	p, ok := e.expand(wanted, false)
	return ok && strings.EqualFold(string(p), value)
}

func likeText(e *evaluation, value, wanted string) bool {
	p, ok := e.expand(wanted, true)
	return ok && p.matches(value)
}

// likeARN compares the six parts of ARNs one by one, so that a wildcard doesn't reach beyond its part.
func likeARN(e *evaluation, value, wanted string) bool {
	p, ok := e.expand(wanted, true)
	parts := strings.SplitN(value, ":", 6)
	if !ok || len(parts) != 6 {
		return false
	}
	for i, part := range parts {
		colon := slices.Index(p, ':')
		if i == 5 {
			return p.matches(part)
		}
		if colon < 0 || !p[:colon].matches(part) {
			return false
		}
		p = p[colon+1:]
	}
	return false
}

func numbers(holds func(a, b float64) bool) comparison {
	return func(_ *evaluation, value, wanted string) bool {
		a, err := strconv.ParseFloat(value, 64)
		b, err2 := strconv.ParseFloat(wanted, 64)
		return err == nil && err2 == nil && !math.IsNaN(a) && !math.IsNaN(b) && holds(a, b)
	}
}

func dates(holds func(a, b time.Time) bool) comparison {
	return func(_ *evaluation, value, wanted string) bool {
		a, ok := parseDate(value)
		b, ok2 := parseDate(wanted)
		return ok && ok2 && holds(a, b)
	}
}

// parseDate reads a time in one of the W3C's forms of ISO 8601, or as seconds since 1970.
func parseDate(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02", "2006-01"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

func equalsBool(e *evaluation, value, wanted string) bool {
	return equalsFolded(e, value, wanted)
}

func equalsBinary(_ *evaluation, value, wanted string) bool {
	a, err := base64.StdEncoding.DecodeString(value)
	b, err2 := base64.StdEncoding.DecodeString(wanted)
	return err == nil && err2 == nil && bytes.Equal(a, b)
}

// inNetwork reports whether an address is in a network, or is the one address that is given instead of one.
func inNetwork(_ *evaluation, value, wanted string) bool {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	if network, err := netip.ParsePrefix(wanted); err == nil {
		return network.Contains(address)
	}
	one, err := netip.ParseAddr(wanted)
	return err == nil && one == address
}
