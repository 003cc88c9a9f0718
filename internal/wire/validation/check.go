package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// target is a shape of the model with a Go type for it.
type target struct {
	shape string
	typ   reflect.Type
}

// checker checks values of a Go type against a shape of the model.
type checker struct {
	*shape
	fields  []field
	element *checker
	key     *checker
}

type field struct {
	index    int
	name     string // in messages
	required bool
	checker  *checker // nil if only the presence is constrained
}

// build makes the checker of a shape and a type, with the checkers of everything in it. It returns nil if the type can't have the
// shape: for unions and documents, which are interfaces, and for shapes without a field in the SDK. The caller holds s.building.
func (s *Service) build(name string, t reflect.Type) *checker {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	sh := s.load()[name]
	if sh == nil || t.Kind() == reflect.Interface {
		return nil
	}
	if c, ok := s.built[target{name, t}]; ok {
		return c
	}
	if s.built == nil {
		s.built = map[target]*checker{}
	}
	c := &checker{shape: sh}
	s.built[target{name, t}] = c // shapes may contain themselves
	switch sh.kind {
	case structure:
		for _, m := range sh.members {
			if f, ok := t.FieldByName(strings.ToUpper(m.name[:1]) + m.name[1:]); ok {
				c.fields = append(c.fields, field{f.Index[0], lower(m.name), m.required, s.build(m.shape, f.Type)})
			}
		}
	case list:
		c.element = s.build(sh.element, t.Elem())
	case mapping:
		c.key = s.build(sh.key, t.Key())
		c.element = s.build(sh.element, t.Elem())
	}
	return c
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// checking is one check of an input: the current position, and the violations so far.
type checking struct {
	path       []step
	violations []string
	message    string // in place of the violations, if not empty
	worded     func(place, constraint string) string
}

// step is a member, or an element of the list or map in the step before.
type step struct {
	name    string // a member's name, or a map's key
	element int    // the place in a list, from 1
}

// place returns the position as messages show it, such as "tags.1.member.key".
func (w *checking) place() string {
	var b []byte
	for i, s := range w.path {
		if i > 0 {
			b = append(b, '.')
		}
		if s.element > 0 {
			b = append(strconv.AppendInt(b, int64(s.element), 10), ".member"...)
			continue
		}
		b = append(b, s.name...)
	}
	return string(b)
}

func (w *checking) enter(s step) { w.path = append(w.path, s) }
func (w *checking) leave()       { w.path = w.path[:len(w.path)-1] }

// maxViolations is the most violations that an answer lists, because a caller may send thousands of bad elements.
const maxViolations = 50

// violated records that the value at the current position breaks a constraint. value comes from shown.
func (w *checking) violated(value, constraint string) {
	if w.worded != nil && len(w.violations) == 0 {
		w.message = w.worded(w.place(), constraint)
	}
	if len(w.violations) < maxViolations {
		w.violations = append(w.violations, "Value "+value+"at '"+w.place()+"' failed to satisfy constraint: "+constraint)
	}
}

// structure checks the members of a struct.
func (w *checking) structure(c *checker, v reflect.Value) {
	for i := range c.fields {
		f := &c.fields[i]
		member := v.Field(f.index)
		if f.checker == nil && !f.required {
			continue
		}
		w.enter(step{name: f.name})
		switch {
		case !isNull(member):
			if f.checker != nil {
				w.value(f.checker, member)
			}
		case f.required && canTellMissing(member.Kind()):
			w.violated("null ", "Member must not be null")
		}
		w.leave()
	}
}

// isNull reports whether a member was left out. In the SDK's structs, a missing enum is "", and a missing number with a default is 0.
func isNull(v reflect.Value) bool { return v.IsZero() }

// canTellMissing reports whether a member of this kind can tell a missing value from one that was sent.
func canTellMissing(k reflect.Kind) bool {
	switch k {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.String:
		return true
	}
	return false
}

func (w *checking) value(c *checker, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch c.kind {
	case structure:
		w.structure(c, v)
	case list:
		w.length(c, v)
		w.elements(c, v)
	case mapping:
		w.length(c, v)
		w.entries(c, v)
	default:
		for _, constraint := range c.broken(v) {
			w.violated(shown(c, v), constraint)
		}
		if c.tooLong != "" && utf8.RuneCountInString(v.String()) > int(*c.max) {
			w.message = c.tooLong
		}
	}
}

func (w *checking) length(c *checker, v reflect.Value) {
	for _, constraint := range c.brokenLength(v.Len()) {
		w.violated(shown(c, v), constraint)
	}
}

// elements checks a list's elements. A violation by a scalar element names the list.
func (w *checking) elements(c *checker, v reflect.Value) {
	if c.element == nil {
		return
	}
	for i := range v.Len() {
		e := v.Index(i)
		if !c.element.isScalar() {
			w.enter(step{element: i + 1})
			w.value(c.element, e)
			w.leave()
			continue
		}
		if len(c.element.broken(reflect.Indirect(e))) > 0 {
			w.violated(shown(c, v), "Member must satisfy constraint: "+c.element.allConstraints())
			return
		}
	}
}

func (w *checking) entries(c *checker, v reflect.Value) {
	keys := true
	values := true
	for entries := v.MapRange(); entries.Next(); {
		keys = keys && (c.key == nil || len(c.key.broken(entries.Key())) == 0)
		if c.element == nil {
			continue
		}
		if !c.element.isScalar() {
			w.enter(step{name: entries.Key().String() + ".member"})
			w.value(c.element, entries.Value())
			w.leave()
			continue
		}
		values = values && len(c.element.broken(reflect.Indirect(entries.Value()))) == 0
	}
	if !keys {
		w.violated(shown(c, v), "Map keys must satisfy constraint: "+c.key.allConstraints())
	}
	if !values {
		w.violated(shown(c, v), "Map value must satisfy constraint: "+c.element.allConstraints())
	}
}

func (c *checker) isScalar() bool { return c.kind != structure && c.kind != list && c.kind != mapping }

// broken returns the constraints that a scalar doesn't satisfy.
func (c *checker) broken(v reflect.Value) []string {
	switch c.kind {
	case text:
		broken := c.brokenLength(utf8.RuneCountInString(v.String()))
		if c.compiled != nil && !c.compiled().MatchString(v.String()) {
			broken = append(broken, c.patternConstraint())
		}
		return broken
	case enum:
		for _, value := range c.values {
			if v.String() == value {
				return nil
			}
		}
		return []string{c.enumConstraint()}
	case bytes:
		return c.brokenLength(v.Len())
	}
	return c.brokenRange(v)
}

func (s *shape) brokenLength(n int) (broken []string) {
	if s.max != nil && float64(n) > *s.max {
		broken = append(broken, s.maxConstraint())
	}
	if s.min != nil && float64(n) < *s.min {
		broken = append(broken, s.minConstraint())
	}
	return broken
}

func (s *shape) brokenRange(v reflect.Value) (broken []string) {
	var n float64
	switch {
	case v.CanInt():
		n = float64(v.Int())
	case v.CanFloat():
		n = v.Float()
	default:
		return nil
	}
	if s.max != nil && n > *s.max {
		broken = append(broken, s.maxConstraint())
	}
	if s.min != nil && n < *s.min {
		broken = append(broken, s.minConstraint())
	}
	return broken
}

// allConstraints returns the constraints on a scalar, as the violation of a list or map lists them.
func (c *checker) allConstraints() string {
	var all []string
	if c.max != nil {
		all = append(all, c.maxConstraint())
	}
	if c.min != nil {
		all = append(all, c.minConstraint())
	}
	if c.expr != "" {
		all = append(all, c.patternConstraint())
	}
	if c.kind == enum {
		all = append(all, c.enumConstraint())
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (s *shape) measure() string {
	if s.kind == number {
		return "value"
	}
	return "length"
}

func (s *shape) maxConstraint() string {
	return "Member must have " + s.measure() + " less than or equal to " + format(*s.max)
}

func (s *shape) minConstraint() string {
	return "Member must have " + s.measure() + " greater than or equal to " + format(*s.min)
}

func (s *shape) patternConstraint() string {
	return "Member must satisfy regular expression pattern: " + s.expr
}

func (s *shape) enumConstraint() string {
	return "Member must satisfy enum value set: [" + strings.Join(s.values, ", ") + "]"
}

func format(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// maxShown is the longest value that a message repeats.
const maxShown = 4096

// shown returns the value as messages show it, quoted and with a trailing space. It returns "" for secret, structured and long values.
func shown(c *checker, v reflect.Value) string {
	s, ok := display(c, v)
	if !ok || len(s) > maxShown {
		return ""
	}
	return "'" + s + "' "
}

func display(c *checker, v reflect.Value) (s string, ok bool) {
	v = reflect.Indirect(v)
	if c.secret || c.kind == bytes || !v.IsValid() {
		return "", false
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Slice:
		return displayList(c, v)
	case reflect.Map:
		return displayMap(c, v)
	case reflect.Struct, reflect.Interface:
		return "", false
	}
	return fmt.Sprint(v.Interface()), true
}

func displayList(c *checker, v reflect.Value) (s string, ok bool) {
	if c.element != nil && c.element.secret || v.Type().Elem().Kind() != reflect.String {
		return "[]", v.Len() == 0
	}
	shown := make([]string, min(v.Len(), maxShown))
	for i := range shown {
		shown[i] = v.Index(i).String()
	}
	return "[" + strings.Join(shown, ", ") + "]", true
}

func displayMap(c *checker, v reflect.Value) (s string, ok bool) {
	if c.element != nil && c.element.secret || v.Type().Elem().Kind() != reflect.String {
		return "{}", v.Len() == 0
	}
	return "{" + strings.Join(pairs(v), ", ") + "}", true
}

// pairs returns a map's entries in the order of their keys.
func pairs(v reflect.Value) []string {
	all := make([]string, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		all = append(all, entries.Key().String()+"="+entries.Value().String())
	}
	slices.Sort(all)
	return all
}
