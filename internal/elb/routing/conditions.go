package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The most values that a rule may have, and the most characters of one: "Quotas for your Application Load Balancers", and API_RuleCondition.
const (
	maxValues    = 5
	maxValue     = 128
	maxShortText = 40
)

// conditions checks a rule's conditions.
func conditions(field string, rule *Rule, isDefault bool) error {
	if len(rule.Conditions) == 0 && !isDefault {
		return wrong(field+".Conditions", "only the default rule has none")
	}
	values := 0
	seen := map[string]bool{}
	for i := range rule.Conditions {
		c, at := &rule.Conditions[i], field+index(".Conditions", i)
		if err := c.validate(at); err != nil {
			return err
		}
		if seen[c.Field] && c.Field != HTTPHeader && c.Field != QueryString {
			return wrong(at+".Field", "a rule has one condition of %s", c.Field)
		}
		seen[c.Field] = true
		values += len(c.Values) + len(c.Query)
	}
	if values > maxValues {
		return wrong(field+".Conditions", "they have %d values together, and may have %d", values, maxValues)
	}
	return nil
}

func (c *Condition) validate(field string) error {
	if err := first(
		oneOf(field+".Field", c.Field, PathPattern, HostHeader, HTTPHeader, RequestMethod, QueryString, SourceIP),
		check{c.Field == HTTPHeader || c.HeaderName == "", field + ".HeaderName", "only http-header has it"},
		check{c.Field == QueryString || len(c.Query) == 0, field + ".Query", "only query-string has it"},
	); err != nil {
		return err
	}
	if c.Field == QueryString {
		return c.validateQuery(field)
	}
	if len(c.Values) == 0 {
		return wrong(field+".Values", "it needs a value")
	}
	if c.Field == HTTPHeader {
		if problem := headerProblem(c.HeaderName); problem != "" {
			return wrong(field+".HeaderName", "%s", problem)
		}
	}
	for i, v := range c.Values {
		if problem := valueProblem(c.Field, v); problem != "" {
			return wrong(field+index(".Values", i), "%s", problem)
		}
	}
	return nil
}

func (c *Condition) validateQuery(field string) error {
	if len(c.Values) > 0 || len(c.Query) == 0 {
		return wrong(field+".Query", "query-string has its values here, and one at least")
	}
	for i, kv := range c.Query {
		if kv.Value == "" || len(kv.Key) > maxValue || len(kv.Value) > maxValue {
			return wrong(field+index(".Query", i), "it needs a value, and key and value have at most %d characters", maxValue)
		}
	}
	return nil
}

func headerProblem(name string) string {
	switch {
	case name == "" || len(name) > maxShortText:
		return fmt.Sprintf("it must have 1 to %d characters", maxShortText)
	case strings.EqualFold(name, "host"):
		return "the host header has a condition of its own, host-header"
	case strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) }):
		return fmt.Sprintf("%q is not the name of a header", name)
	}
	return ""
}

// valueProblem says what is wrong with a value, if anything is.
func valueProblem(field, v string) string {
	if v == "" || len(v) > maxValue {
		return fmt.Sprintf("it must have 1 to %d characters", maxValue)
	}
	others := func(allowed string) bool {
		return strings.ContainsFunc(v, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(allowed, r) })
	}
	switch field {
	case PathPattern:
		if others("_-.$/~\"'@:+&*?") {
			return fmt.Sprintf("%q has characters that are not a path's", v)
		}
	case HostHeader:
		end := v[strings.LastIndexByte(v, '.')+1:]
		if others("-.*?") || len(end) == len(v) || slices.ContainsFunc([]byte(end), func(b byte) bool { return '0' <= b && b <= '9' || b == '-' }) {
			return fmt.Sprintf("%q is not the name of a host, with letters alone behind its last dot", v)
		}
	case RequestMethod:
		if len(v) > maxShortText || strings.ContainsFunc(v, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' && r != '_' }) {
			return fmt.Sprintf("%q is not a method", v)
		}
	case SourceIP:
		if _, err := netip.ParsePrefix(v); err != nil {
			return fmt.Sprintf("%q is not a block of addresses", v)
		}
	}
	return ""
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
