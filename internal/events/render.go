package events

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// milliseconds is how times stand in details.
const milliseconds = "2006-01-02T15:04:05.000Z"

// render returns an event's detail as JSON: the names of a struct's members begin with a small letter, and what isn't set is left out. A map
// or JSON is taken as it is.
func render(detail any) json.RawMessage {
	if raw, isJSON := detail.(json.RawMessage); isJSON {
		return raw
	}
	value, _ := plain(reflect.ValueOf(detail))
	return encoded(value)
}

// plain returns a value as maps, lists and scalars. It reports whether anything is set.
func plain(v reflect.Value) (any, bool) {
	switch v.Kind() {
	case reflect.Invalid:
		return nil, false
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, false
		}
		value, _ := plain(v.Elem())
		return value, value != nil
	case reflect.Struct:
		if at, isTime := v.Interface().(time.Time); isTime {
			return at.UTC().Format(milliseconds), true
		}
		members := map[string]any{}
		addMembers(members, v)
		return members, true
	case reflect.Slice:
		if v.IsNil() {
			return nil, false
		}
		list := []any{}
		for i := range v.Len() {
			value, _ := plain(v.Index(i))
			list = append(list, value)
		}
		return list, true
	case reflect.String:
		return v.String(), v.Len() > 0
	}
	return v.Interface(), true
}

// addMembers adds a struct's members. Those of a struct inside it without a name of its own are among them.
func addMembers(members map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous && v.Field(i).Kind() == reflect.Struct:
			if f.IsExported() {
				addMembers(members, v.Field(i))
			}
		case f.IsExported():
			if value, set := plain(v.Field(i)); set {
				members[strings.ToLower(f.Name[:1])+f.Name[1:]] = value
			}
		}
	}
}
