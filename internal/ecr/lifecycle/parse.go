package lifecycle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
)

// maxRules is the most rules of a policy: https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
const maxRules = 50

// maxWildcards is the most asterisks of a tag's pattern.
const maxWildcards = 4

// Malformed is what is wrong with a policy, in ECR's words.
type Malformed struct{ Message string }

func (m *Malformed) Error() string { return m.Message }

func malformed(format string, args ...any) error { return &Malformed{fmt.Sprintf(format, args...)} }

// Parse parses a policy. Its errors are *Malformed.
func Parse(text string) (Policy, error) {
	d := json.NewDecoder(strings.NewReader(text))
	var document any
	if err := d.Decode(&document); err != nil || d.More() {
		return Policy{}, malformed("Could not map policyString into LifecyclePolicy.")
	}
	top, err := object(document, []string{"rules"})
	if err != nil {
		return Policy{}, err
	}
	list, ok := top["rules"].([]any)
	switch {
	case !ok:
		return Policy{}, mistyped(top["rules"], "array")
	case len(list) == 0:
		return Policy{}, malformed("array is too short: must have at least 1 elements but instance has 0 elements")
	case len(list) > maxRules:
		return Policy{}, malformed("array is too long: must have at most %d elements but instance has %d elements", maxRules, len(list))
	}
	var p Policy
	for _, item := range list {
		r, err := parseRule(item)
		if err != nil {
			return Policy{}, err
		}
		p.Rules = append(p.Rules, r)
	}
	sort.Slice(p.Rules, func(i, j int) bool { return p.Rules[i].Priority < p.Rules[j].Priority })
	return p, p.check()
}

// check checks what the rules have to do with each other.
func (p Policy) check() error {
	untagged := false
	tags := map[string]bool{}
	for n, r := range p.Rules {
		named := strings.Join(slices.Sorted(slices.Values(slices.Concat(r.Patterns, r.Prefixes))), "\x00")
		switch {
		case n > 0 && r.Priority == p.Rules[n-1].Priority:
			return malformed("rulePriority must be unique: %d is given twice", r.Priority)
		case r.Status == "any" && n < len(p.Rules)-1:
			return malformed("a rule with tagStatus any must have the highest rulePriority, and there can be but one")
		case r.Status == "untagged" && untagged:
			return malformed("only one rule may select untagged images")
		case r.Status == "tagged" && tags[named]:
			return malformed("the rules must have unique sets of tags")
		}
		untagged = untagged || r.Status == "untagged"
		tags[named] = true
	}
	return nil
}

func parseRule(item any) (r Rule, err error) {
	o, err := object(item, []string{"rulePriority", "selection", "action"}, "description")
	if err != nil {
		return r, err
	}
	if r.Priority, err = positive(o["rulePriority"]); err != nil {
		return r, err
	}
	if text, given := o["description"]; given {
		if r.Description, err = oneOf(text); err != nil {
			return r, err
		}
	}
	action, err := object(o["action"], []string{"type"}, "targetStorageClass")
	if err != nil {
		return r, err
	}
	if _, err := oneOf(action["type"], "expire", "transition"); err != nil {
		return r, err
	}
	if action["type"] != "expire" || action["targetStorageClass"] != nil {
		return r, malformed("Pintle has no storage class to which images could be moved: the action's type must be expire")
	}
	return r, r.parseSelection(o["selection"])
}

func (r *Rule) parseSelection(item any) error {
	o, err := object(item, []string{"tagStatus", "countType", "countNumber"}, "countUnit", "storageClass", "tagPatternList", "tagPrefixList")
	if err != nil {
		return err
	}
	if r.Status, err = oneOf(o["tagStatus"], "tagged", "untagged", "any"); err != nil {
		return err
	}
	if r.Count, err = positive(o["countNumber"]); err != nil {
		return err
	}
	if class, given := o["storageClass"]; given && class != "standard" {
		return malformed("Pintle has only the storageClass standard")
	}
	if err := r.parseCount(o); err != nil {
		return err
	}
	if r.Patterns, err = texts(o["tagPatternList"]); err != nil {
		return err
	}
	if r.Prefixes, err = texts(o["tagPrefixList"]); err != nil {
		return err
	}
	named := len(r.Patterns) > 0
	switch {
	case (r.Status == "tagged") != (named || len(r.Prefixes) > 0), named && len(r.Prefixes) > 0:
		return noSchema()
	case slices.ContainsFunc(r.Patterns, func(p string) bool { return strings.Count(p, "*") > maxWildcards }):
		return malformed("a tag pattern can have at most %d wildcards", maxWildcards)
	}
	return nil
}

func (r *Rule) parseCount(o map[string]any) error {
	kind, err := oneOf(o["countType"], "imageCountMoreThan", "sinceImagePushed", "sinceImagePulled", "sinceImageTransitioned")
	if err != nil {
		return err
	}
	unit, hasUnit := o["countUnit"]
	if hasUnit {
		if _, err := oneOf(unit, "days"); err != nil {
			return err
		}
	}
	r.Age = kind == "sinceImagePushed"
	switch {
	case kind == "sinceImagePulled" || kind == "sinceImageTransitioned":
		return malformed("Pintle doesn't have the countType %s", kind)
	case r.Age != hasUnit:
		return noSchema()
	}
	return nil
}

// noSchema is ECR's error for members that don't go together.
func noSchema() error {
	return malformed("instance failed to match exactly one schema (matched 0 out of 2)")
}

// object returns an object's members, of which some are required and others may be there.
func object(v any, required []string, optional ...string) (map[string]any, error) {
	o, ok := v.(map[string]any)
	if !ok {
		return nil, mistyped(v, "object")
	}
	missing := slices.DeleteFunc(slices.Sorted(slices.Values(required)), func(name string) bool { return o[name] != nil })
	if len(missing) > 0 {
		return nil, malformed("object has missing required properties (%s)", quoted(missing))
	}
	extra := slices.DeleteFunc(slices.Sorted(maps.Keys(o)), func(name string) bool {
		return slices.Contains(required, name) || slices.Contains(optional, name)
	})
	if len(extra) > 0 {
		return nil, malformed("object instance has properties which are not allowed by the schema: (%s)", quoted(extra))
	}
	return o, nil
}

// oneOf returns a text, which must be one of the values if there are some.
func oneOf(v any, values ...string) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", mistyped(v, "string")
	}
	if len(values) > 0 && !slices.Contains(values, text) {
		return "", malformed("instance value (%q) not found in enum (possible values: %s)", text, quoted(values))
	}
	return text, nil
}

// positive returns an integer from 1.
func positive(v any) (int64, error) {
	n, ok := v.(float64)
	switch {
	case !ok || n != math.Trunc(n):
		return 0, mistyped(v, "integer")
	case n < 1:
		return 0, malformed("numeric instance is lower than the required minimum (minimum: 1, found: %d)", int64(n))
	case n > math.MaxInt32:
		return 0, malformed("numeric instance is greater than the required maximum (maximum: %d, found: %.0f)", math.MaxInt32, n)
	}
	return int64(n), nil
}

// texts returns a list of texts, or nil for none.
func texts(v any) (all []string, err error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, mistyped(v, "array")
	}
	for _, item := range list {
		text, err := oneOf(item)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

func mistyped(v any, want string) error {
	is := "object"
	switch v.(type) {
	case nil:
		is = "null"
	case string:
		is = "string"
	case float64:
		is = "number"
	case bool:
		is = "boolean"
	case []any:
		is = "array"
	}
	return malformed("instance type (%s) does not match any allowed primitive type (allowed: [%q])", is, want)
}

func quoted(names []string) string {
	text, _ := json.Marshal(names) // strings always marshal
	return string(text)
}
