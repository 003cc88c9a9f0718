package insights

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Event is a log event, as a query sees it.
type Event struct {
	Timestamp int64 // milliseconds since 1970
	Ingested  int64
	Group     string // as @log shows it: the account and the group
	Stream    string
	Message   string
	Pointer   string // @ptr
	// Place orders events with the same timestamp: later ones have a higher place.
	Place [4]int64
}

// system returns the fields that every event has.
func (e *Event) system(name string) (value, bool) {
	switch name {
	case "@timestamp":
		return timeOf(float64(e.Timestamp)), true
	case "@ingestionTime":
		return timeOf(float64(e.Ingested)), true
	case "@message":
		return textOf(e.Message), true
	case "@logStream":
		return textOf(e.Stream), true
	case "@log":
		return textOf(e.Group), true
	case "@ptr":
		return textOf(e.Pointer), true
	}
	return value{}, false
}

// document parses a message that is a JSON object. Other messages have no fields of their own.
func document(message string) any {
	message = strings.TrimSpace(message)
	if !strings.HasPrefix(message, "{") {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(message))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil || decoder.More() {
		return nil
	}
	return root
}

// lookup returns the value at a path such as a.b.0. Names may have dots, too, so each way to split the path is tried.
func lookup(v any, path string) value {
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, ok := member(v, path[:i]); ok {
			if found := lookup(inner, path[i+1:]); found.kind != missing {
				return found
			}
		}
	}
	inner, _ := member(v, path)
	return scalar(inner)
}

func member(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[name]
		return inner, ok
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// scalar returns a JSON value. Objects and lists are no fields, only what is in them.
func scalar(v any) value {
	switch v := v.(type) {
	case string:
		return textOf(v)
	case bool:
		return truth(v)
	case json.Number:
		if n, ok := parseNumber(v.String()); ok {
			return value{kind: number, n: n, text: v.String()}
		}
		return textOf(v.String())
	}
	return value{}
}

// maxFields limits how many fields of an event Fields returns.
const maxFields = 1000

// Fields returns all fields of an event: those of its message, if that is a JSON object, and those that every event has. Times are in
// milliseconds since 1970.
func Fields(e Event) map[string]string {
	out := map[string]string{}
	flatten("", document(e.Message), out)
	for _, name := range []string{"@timestamp", "@ingestionTime", "@message", "@logStream", "@log", "@ptr"} {
		v, _ := e.system(name)
		if v.kind == timestamp {
			v.kind = number
		}
		out[name] = v.String()
	}
	return out
}

func flatten(path string, v any, out map[string]string) {
	if len(out) >= maxFields {
		return
	}
	inner := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			flatten(inner(name), v[name], out)
		}
	case []any:
		for i, m := range v {
			flatten(inner(strconv.Itoa(i)), m, out)
		}
	default:
		if s := scalar(v); s.kind != missing && path != "" {
			out[path] = s.String()
		}
	}
}
