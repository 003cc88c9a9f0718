// Package filterpolicy decides which of a topic's messages a subscription gets: it parses Amazon SNS's filter policies, refuses what SNS
// refuses, and matches messages' attributes or bodies. It is pure: the policy and the message are all that it looks at. sns calls it when a
// policy is set, and for each subscription of a message that is published.
package filterpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scope is what of a message a policy is matched against.
type Scope string

// The scopes, by their names in the attribute FilterPolicyScope.
const (
	Attributes Scope = "MessageAttributes"
	Body       Scope = "MessageBody"
)

// Limits: https://docs.aws.amazon.com/sns/latest/dg/subscription-filter-policy-constraints.html
const (
	maxKeys         = 5
	maxCombinations = 150
	maxSize         = 150 << 10
	maxDepth        = 100 // of objects in each other
	maxName         = 256 // bytes; those of attributes can't be longer
	maxDots         = 20  // in a name, each of which may be that of an object inside
)

// Policy is a filter policy. It's for one scope.
type Policy struct {
	scope Scope
	root  *object
}

// object is an object of a policy: what it says of some of the properties of an object of the message. All of it must match.
type object struct {
	conditions map[string][]condition
	objects    map[string]*object
	either     []*object // $or: one of these must match
}

// isEmpty reports whether the object says nothing.
func (o *object) isEmpty() bool { return len(o.conditions)+len(o.objects)+len(o.either) == 0 }

// Error is why SNS refuses a policy, in its words.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func refuse(format string, args ...any) error {
	return &Error{"FilterPolicy: " + fmt.Sprintf(format, args...)}
}

// Parse reads a policy for a scope. Its errors are of type *Error.
func Parse(scope Scope, text string) (*Policy, error) {
	if len(text) > maxSize {
		return nil, refuse("Filter policy is larger than %d bytes", maxSize)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, refuse("failed to parse JSON. %s", err)
	}
	properties, isObject := value.(map[string]any)
	if !isObject {
		return nil, refuse("Filter is not an object")
	}
	if len(properties) > maxKeys {
		return nil, refuse("Filter policy can not have more than %d keys", maxKeys)
	}
	p := parser{scope: scope}
	combinations, err := p.count(properties, 1, 1)
	if err != nil {
		return nil, err
	}
	if combinations > maxCombinations {
		return nil, refuse("Filter policy is too complex")
	}
	root, err := p.object(properties)
	return &Policy{scope, root}, err
}

// parser parses the policies of one scope.
type parser struct{ scope Scope }

// alternatives returns the objects of an $or, or false if a property is none: that is one by its name alone, if its value isn't a list of
// two objects or more.
func alternatives(name string, value any) (all []map[string]any, ok bool) {
	list, isList := value.([]any)
	if name != "$or" || !isList || len(list) < 2 {
		return nil, false
	}
	for _, v := range list {
		properties, isObject := v.(map[string]any)
		if !isObject {
			return nil, false
		}
		all = append(all, properties)
	}
	return all, true
}

// count returns how complex a policy is, given how complex what came before is. Each list of conditions multiplies by its length and its
// depth; of an $or each alternative counts. It stops counting where the policy is too complex anyway.
func (p parser) count(properties map[string]any, depth, before int) (int, error) {
	if depth > maxDepth {
		return 0, refuse("Filter policy is too complex")
	}
	if depth > 1 && p.scope == Attributes {
		return 0, &Error{"Filter policy scope MessageAttributes does not support nested filter policy"}
	}
	combinations := before
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(name) > maxName || strings.Count(name, ".") > maxDots {
			return 0, refuse("Filter policy is too complex")
		}
		if each, ok := alternatives(name, properties[name]); ok {
			sum := 0
			for _, alternative := range each {
				n, err := p.count(alternative, depth, combinations)
				if err != nil {
					return 0, err
				}
				sum = min(sum+n, maxCombinations+1)
			}
			combinations = sum
			continue
		}
		switch v := properties[name].(type) {
		case map[string]any:
			n, err := p.count(v, depth+1, combinations)
			if err != nil {
				return 0, err
			}
			combinations = n
		case []any:
			if len(v) == 0 {
				return 0, refuse("Empty arrays are not allowed")
			}
			combinations = min(combinations*len(v)*depth, maxCombinations+1)
		default:
			return 0, refuse("%q must be an object or an array", name)
		}
	}
	return combinations, nil
}

// object parses an object that was counted.
func (p parser) object(properties map[string]any) (*object, error) {
	o := &object{conditions: map[string][]condition{}, objects: map[string]*object{}}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if each, ok := alternatives(name, properties[name]); ok {
			for _, alternative := range each {
				parsed, err := p.object(alternative)
				if err != nil {
					return nil, err
				}
				o.either = append(o.either, parsed)
			}
			continue
		}
		switch v := properties[name].(type) {
		case map[string]any:
			parsed, err := p.object(v)
			if err != nil {
				return nil, err
			}
			o.objects[name] = parsed
		case []any:
			for _, rule := range v {
				c, err := parseCondition(rule)
				if err != nil {
					return nil, err
				}
				o.conditions[name] = append(o.conditions[name], c)
			}
		}
	}
	return o, nil
}

// MatchBody reports whether the policy lets a message with a body through. Any policy that asks for something needs a JSON object.
func (p *Policy) MatchBody(body string) bool {
	if p.root.isEmpty() {
		return true
	}
	var value map[string]any
	if json.Unmarshal([]byte(body), &value) != nil || value == nil {
		return false
	}
	return p.root.matches(value)
}

// Attribute is a message's attribute: its data type, such as String.Array, and its value.
type Attribute struct{ Type, Value string }

// MatchAttributes reports whether the policy lets a message with these attributes through. Binary ones count as not given.
func (p *Policy) MatchAttributes(attributes map[string]Attribute) bool {
	properties := map[string]any{}
	for name, a := range attributes {
		if value, ok := a.value(); ok {
			properties[name] = value
		}
	}
	return p.root.matches(properties)
}

// value returns the attribute as a value of JSON, or false if it can match nothing.
func (a Attribute) value() (any, bool) {
	kind, label, _ := strings.Cut(a.Type, ".")
	switch {
	case kind == "String" && label == "Array":
		var list []any
		if json.Unmarshal([]byte(a.Value), &list) != nil {
			return nil, false
		}
		return list, true
	case kind == "String":
		return a.Value, true
	case kind == "Number":
		n, ok := parseNumber(a.Value)
		return n, ok
	}
	return nil, false
}

// matches reports whether an object of a message is as the policy says.
func (o *object) matches(properties map[string]any) bool {
	for name, conditions := range o.conditions {
		if !matchesOne(conditions, leaves(lookup(properties, name))) {
			return false
		}
	}
	for name, want := range o.objects {
		inner := objectsIn(lookup(properties, name))
		if len(inner) == 0 {
			inner = append(inner, nil) // an object that isn't there has no properties, which a policy may ask for
		}
		if !slices.ContainsFunc(inner, want.matches) {
			return false
		}
	}
	return len(o.either) == 0 || slices.ContainsFunc(o.either, func(e *object) bool { return e.matches(properties) })
}

// lookup returns the values of a property. A name with dots may also be that of a property of an object inside.
func lookup(properties map[string]any, name string) (found []any) {
	if value, ok := properties[name]; ok {
		found = append(found, value)
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		for _, inner := range objectsIn([]any{properties[name[:i]]}) {
			found = append(found, lookup(inner, name[i+1:])...)
		}
	}
	return found
}

// objectsIn returns the objects among values, and among the elements of lists.
func objectsIn(values []any) (found []map[string]any) {
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			found = append(found, v)
		case []any:
			found = append(found, objectsIn(v)...)
		}
	}
	return found
}

// leaves returns what among values, and among the elements of lists, is neither an object nor a list.
func leaves(values []any) (found []any) {
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
		case []any:
			found = append(found, leaves(v)...)
		default:
			found = append(found, v)
		}
	}
	return found
}
