// Package template reads CloudFormation's templates: it parses them, checks what can be checked without running anything, and evaluates
// their functions. Its errors are worded as CloudFormation words them. It is pure: what a template refers to (parameters, zones, what
// resources are called once they exist) is handed to it.
package template

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kind tells what a value is.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// Value is a part of a template as it was written, with the short forms of functions made long: !Ref X is an object with the field Ref.
type Value struct {
	Kind   Kind
	Text   string // a scalar's, as written; a Bool's is true or false
	Items  []*Value
	Fields []Field // an object's, in their order, each name once
}

// Field is an object's field.
type Field struct {
	Name  string
	Value *Value
}

// Get returns a field of an object, or nil.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for _, f := range v.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Each returns an object's fields; of another value, and of none, none.
func (v *Value) Each() []Field {
	if v == nil {
		return nil
	}
	return v.Fields
}

// isScalar reports whether the value is a string, a number or a Boolean: CloudFormation takes each for the others.
func (v *Value) isScalar() bool { return v != nil && v.Kind != Null && v.Kind < List }

// Call returns the function that an object stands for and its argument. Of an object that is none the name is empty.
func (v *Value) Call() (name string, argument *Value) {
	if v == nil || v.Kind != Object || len(v.Fields) != 1 {
		return "", nil
	}
	f := v.Fields[0]
	if f.Name == "Ref" || strings.HasPrefix(f.Name, "Fn::") {
		return f.Name, f.Value
	}
	return "", nil
}

// condition returns the condition that an object names where conditions are expected. Elsewhere such an object is data, as in policies.
func (v *Value) condition() (name string, ok bool) {
	if v == nil || v.Kind != Object || len(v.Fields) != 1 || v.Fields[0].Name != "Condition" || !v.Fields[0].Value.isScalar() {
		return "", false
	}
	return v.Fields[0].Value.Text, true
}

// MarshalJSON writes the value as JSON, fields in their order.
func (v *Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case Object:
		return v.marshalObject()
	case List:
		if v.Items == nil {
			return []byte("[]"), nil
		}
		return json.Marshal(v.Items)
	case Null:
		return []byte("null"), nil
	case Bool, Number:
		if json.Valid([]byte(v.Text)) {
			return []byte(v.Text), nil
		}
	case String:
	}
	return json.Marshal(v.Text)
}

func (v *Value) marshalObject() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range v.Fields {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := f.Value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Error is a template's error, for the caller's ValidationError.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// Errorf returns an error in CloudFormation's words, for what is found wrong outside this package.
func Errorf(format string, args ...any) error { return fail(format, args...) }

func fail(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

func malformed(format string, args ...any) error {
	return &Error{"Template format error: " + fmt.Sprintf(format, args...)}
}

func wrong(format string, args ...any) error {
	return &Error{"Template error: " + fmt.Sprintf(format, args...)}
}

// list writes names as CloudFormation's messages have them.
func list(names []string) string { return "[" + strings.Join(names, ", ") + "]" }
