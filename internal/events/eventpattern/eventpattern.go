// Package eventpattern has the language in which Amazon EventBridge and Amazon SNS say what they want of events and of messages: it parses
// patterns that were decoded from JSON, refuses what AWS refuses, and matches decoded values. It is pure: the pattern and the value are all
// that it looks at. events calls it for rules, and sns/filterpolicy for subscriptions, in its own dialect.
package eventpattern

import (
	"maps"
	"slices"
	"strings"
)

// Dialect is what a service has of the language.
type Dialect struct {
	// Refuse returns the service's error.
	Refuse func(format string, args ...any) error
	// Narrow leaves out what EventBridge alone has: prefixes and suffixes in any case, and what anything-but can be besides values and a prefix.
	Narrow bool
}

// Object is an object of a pattern: what it says of some of the properties of an object. All of it must match.
type Object struct {
	conditions map[string][]condition
	objects    map[string]*Object
	either     []*Object // $or: one of these must match
}

// IsEmpty reports whether the object says nothing.
func (o *Object) IsEmpty() bool { return len(o.conditions)+len(o.objects)+len(o.either) == 0 }

// Alternatives returns the objects of an $or, or false if a property is none: that is one by its name alone, if its value isn't a list of
// two objects or more.
func Alternatives(name string, value any) (all []map[string]any, ok bool) {
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

// Parse reads an object.
func (d Dialect) Parse(properties map[string]any) (*Object, error) {
	o := &Object{conditions: map[string][]condition{}, objects: map[string]*Object{}}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if each, ok := Alternatives(name, properties[name]); ok {
			for _, alternative := range each {
				parsed, err := d.Parse(alternative)
				if err != nil {
					return nil, err
				}
				o.either = append(o.either, parsed)
			}
			continue
		}
		switch v := properties[name].(type) {
		case map[string]any:
			parsed, err := d.Parse(v)
			if err != nil {
				return nil, err
			}
			o.objects[name] = parsed
		case []any:
			for _, rule := range v {
				c, err := d.parseCondition(rule)
				if err != nil {
					return nil, err
				}
				o.conditions[name] = append(o.conditions[name], c)
			}
		}
	}
	return o, nil
}

// Matches reports whether an object is as the pattern says.
func (o *Object) Matches(properties map[string]any) bool {
	for name, conditions := range o.conditions {
		if !matchesOne(conditions, leaves(lookup(properties, name))) {
			return false
		}
	}
	for name, want := range o.objects {
		inner := append(objectsIn(lookup(properties, name)), joined(properties, name)...)
		if len(inner) == 0 {
			inner = append(inner, nil) // an object that isn't there has no properties, which a policy may ask for
		}
		if !slices.ContainsFunc(inner, want.Matches) {
			return false
		}
	}
	return len(o.either) == 0 || slices.ContainsFunc(o.either, func(e *Object) bool { return e.Matches(properties) })
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

// joined returns the object that properties make whose names begin with that of an object and a dot, or none.
func joined(properties map[string]any, name string) []map[string]any {
	var inner map[string]any
	for property, value := range properties {
		if rest, ok := strings.CutPrefix(property, name+"."); ok {
			if inner == nil {
				inner = map[string]any{}
			}
			inner[rest] = value
		}
	}
	if inner == nil {
		return nil
	}
	return []map[string]any{inner}
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
