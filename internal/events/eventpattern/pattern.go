package eventpattern

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Pattern is an event pattern of EventBridge.
type Pattern struct{ root *Object }

// Error is why EventBridge refuses a pattern, in its words.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func refuse(format string, args ...any) error {
	return &Error{"Event pattern is not valid. Reason: " + fmt.Sprintf(format, args...)}
}

// eventBridge is the whole language.
var eventBridge = Dialect{Refuse: refuse}

// Bounds of patterns, which AWS doesn't tell: of objects in each other, and of dots in a name, each of which may be that of an object inside.
const (
	maxDepth = 100
	maxDots  = 20
)

// New reads an event pattern. Its errors are of type *Error.
func New(text string) (*Pattern, error) {
	value, err := Decode(text)
	if err != nil {
		return nil, refuse("%s", err)
	}
	properties, isObject := value.(map[string]any)
	if !isObject {
		return nil, refuse("Filter is not an object")
	}
	if err := check(properties, 1); err != nil {
		return nil, err
	}
	root, err := eventBridge.Parse(properties)
	if err != nil {
		return nil, err
	}
	return &Pattern{root}, nil
}

// Decode reads a value of JSON. Its numbers keep their texts, as targets get them.
func Decode(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more behind the value, at byte %d", d.InputOffset())
	}
	return value, nil
}

// check refuses properties that are neither objects nor lists of conditions.
func check(properties map[string]any, depth int) error {
	if len(properties) == 0 {
		return refuse("Empty objects are not allowed")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if depth > maxDepth || strings.Count(name, ".") > maxDots {
			return refuse("Rule is too complex")
		}
		if each, ok := Alternatives(name, properties[name]); ok {
			for _, alternative := range each {
				if err := check(alternative, depth+1); err != nil {
					return err
				}
			}
			continue
		}
		switch v := properties[name].(type) {
		case map[string]any:
			if err := check(v, depth+1); err != nil {
				return err
			}
		case []any:
			if len(v) == 0 {
				return refuse("Empty arrays are not allowed")
			}
		default:
			return refuse("%q must be an object or an array", name)
		}
	}
	return nil
}

// Match reports whether the pattern matches an event that Decode has read.
func (p *Pattern) Match(event map[string]any) bool { return p.root.Matches(event) }

// Sources returns the values of source that the pattern asks for, or nil if it may match events from others.
func (p *Pattern) Sources() []string { return p.root.exact("source") }

// DetailTypes returns the values of detail-type that the pattern asks for, or nil if it may match others.
func (p *Pattern) DetailTypes() []string { return p.root.exact("detail-type") }

// exact returns the texts that a property must be one of, or nil if it may be something else.
func (o *Object) exact(name string) (texts []string) {
	for _, c := range o.conditions[name] {
		if c.text == nil {
			return nil
		}
		texts = append(texts, *c.text)
	}
	return texts
}
