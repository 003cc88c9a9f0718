package validation

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"pgregory.net/rapid"
)

var all = map[string]*Service{
	"application-autoscaling": ApplicationAutoScaling,
	"autoscaling":             AutoScaling,
	"cloudwatch":              {table: CloudWatch.table},
	"logs":                    Logs,
	"sts":                     STS,
}

// clients are the SDK's clients. From a client's methods the test gets each operation's input.
var clients = map[string]reflect.Type{
	"application-autoscaling": reflect.TypeFor[*applicationautoscaling.Client](),
	"autoscaling":             reflect.TypeFor[*autoscaling.Client](),
	"cloudwatch":              reflect.TypeFor[*cloudwatch.Client](),
	"logs":                    reflect.TypeFor[*cloudwatchlogs.Client](),
	"sts":                     reflect.TypeFor[*sts.Client](),
}

// inputs returns the types of a service's inputs that are in its table.
func inputs(t *testing.T, name string) (types []reflect.Type) {
	for _, input := range all[name].Operations() {
		m, ok := clients[name].MethodByName(strings.TrimSuffix(input, inputSuffix))
		if !ok {
			t.Errorf("the SDK's client of %s has no operation with the input %s", name, input)
			continue
		}
		types = append(types, m.Type.In(2).Elem())
	}
	return types
}

// TestEveryMemberHasItsField checks that every constrained member has a field in the SDK's structs. Without one, the constraint would
// never be checked.
func TestEveryMemberHasItsField(t *testing.T) {
	checked := 0
	for name, s := range all {
		for _, typ := range inputs(t, name) {
			s.checkerOf(typ)
		}
		for at, c := range s.built {
			if c.kind != structure {
				continue
			}
			checked += len(c.fields)
			if len(c.fields) != len(c.members) {
				t.Errorf("%s: %s has %d members and %s %d fields for them", name, at.shape, len(c.members), at.typ, len(c.fields))
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d members were looked at", checked)
	}
}

// maker makes values that satisfy their constraints, and records how to break them.
type maker struct {
	t     *rapid.T
	spots []spot
}

// spot is a member with a constraint: how to break it, and what the violation must say.
type spot struct {
	path  string
	spoil func()
	want  string
}

var errNoValue = errors.New("no value was found")

func (m *maker) structure(c *checker, v reflect.Value, at string, depth int) error {
	for _, f := range c.fields {
		field := v.Field(f.index)
		path := strings.TrimPrefix(at+"."+f.name, ".")
		if !f.required && (depth > 3 || rapid.IntRange(0, 2).Draw(m.t, "left out") == 0) {
			continue
		}
		if f.checker == nil {
			if field.Kind() == reflect.Interface {
				if f.required {
					return errNoValue // a union, which the test can't fill
				}
				continue
			}
			field.Set(filled(field.Type()))
		} else if err := m.set(f.checker, field, path, depth+1); err != nil {
			if f.required {
				return err
			}
			field.SetZero()
			continue
		}
		if f.required && canTellMissing(field.Kind()) {
			m.spots = append(m.spots, spot{path, field.SetZero, "Member must not be null"})
		}
	}
	return nil
}

// filled returns a value of a type that isn't nil.
func filled(t reflect.Type) reflect.Value {
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.New(t.Elem())
	case reflect.Slice:
		return reflect.MakeSlice(t, 0, 0)
	case reflect.Map:
		return reflect.MakeMap(t)
	case reflect.String:
		return reflect.ValueOf("x").Convert(t)
	}
	return reflect.Zero(t)
}

func (m *maker) set(c *checker, v reflect.Value, at string, depth int) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	before := len(m.spots)
	err := m.fill(c, v, at, depth)
	if err != nil {
		m.spots = m.spots[:before]
	}
	return err
}

func (m *maker) fill(c *checker, v reflect.Value, at string, depth int) error {
	switch c.kind {
	case structure:
		return m.structure(c, v, at, depth)
	case list:
		return m.list(c, v, at, depth)
	case mapping:
		return m.mapping(c, v)
	case number:
		return m.number(c, v, at)
	case enum:
		v.SetString(rapid.SampledFrom(c.values).Draw(m.t, at))
		m.spots = append(m.spots, spot{at, func() { v.SetString("no such value") }, c.enumConstraint()})
		return nil
	case bytes:
		v.SetBytes(make([]byte, int(atLeast(c))))
		return nil
	}
	return m.text(c, v, at)
}

func atLeast(c *checker) float64 {
	if c.min == nil {
		return 1
	}
	return max(*c.min, 1)
}

func (m *maker) text(c *checker, v reflect.Value, at string) error {
	s, err := m.words(c, at)
	if err != nil {
		return err
	}
	v.SetString(s)
	if c.max != nil && *c.max < 1e6 {
		m.spots = append(m.spots, spot{at, func() { v.SetString(strings.Repeat("x", int(*c.max)+1)) }, c.maxConstraint()})
	}
	return nil
}

// words returns a text that satisfies a length and a pattern. It fails for some, because random texts rarely satisfy them.
func (m *maker) words(c *checker, at string) (string, error) {
	if c.expr == "" {
		return strings.Repeat("a", int(atLeast(c))), nil
	}
	generator := rapid.StringMatching(Translate(c.expr))
	for range 20 {
		s := generator.Draw(m.t, at)
		if s != "" && utf8.ValidString(s) && len(c.broken(reflect.ValueOf(s))) == 0 {
			return s, nil
		}
	}
	return "", errNoValue
}

func (m *maker) number(c *checker, v reflect.Value, at string) error {
	least := 0.0
	most := 100.0
	if c.min != nil {
		least = *c.min
	}
	if most = math.Max(most, least); c.max != nil {
		most = *c.max
	}
	n := least + (most-least)*float64(rapid.IntRange(0, 4).Draw(m.t, at))/4
	if v.CanFloat() {
		v.SetFloat(n)
		return nil
	}
	v.SetInt(int64(n))
	if c.max != nil && *c.max < math.MaxInt32 {
		m.spots = append(m.spots, spot{at, func() { v.SetInt(int64(*c.max) + 1) }, c.maxConstraint()})
	}
	if c.min != nil && *c.min > 0 && v.Kind() != reflect.Pointer {
		m.spots = append(m.spots, spot{at, func() { v.SetInt(int64(*c.min) - 1) }, c.minConstraint()})
	}
	return nil
}

func (m *maker) list(c *checker, v reflect.Value, at string, depth int) error {
	n := int(atLeast(c))
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if c.element == nil {
			continue
		}
		path := fmt.Sprintf("%s.%d.member", at, i+1)
		before := len(m.spots)
		if err := m.set(c.element, v.Index(i), path, depth); err != nil {
			return err
		}
		if c.element.isScalar() { // the violation names the list
			for j := range m.spots[before:] {
				m.spots[before+j].path = at
				m.spots[before+j].want = "Member must satisfy constraint: " + c.element.allConstraints()
			}
		}
	}
	if c.max != nil && *c.max < 1000 && c.element == nil {
		m.spots = append(m.spots, spot{at, func() { v.Set(reflect.MakeSlice(v.Type(), int(*c.max)+1, int(*c.max)+1)) }, c.maxConstraint()})
	}
	return nil
}

// mapping makes a map with one entry. It only makes maps of scalars.
func (m *maker) mapping(c *checker, v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	if c.min != nil && *c.min > 1 || c.element != nil && !c.element.isScalar() || v.Type().Elem().Kind() != reflect.String {
		return errNoValue
	}
	key := "k"
	value := "v"
	var err error
	if c.key != nil && c.key.kind == text {
		if key, err = m.words(c.key, "key"); err != nil {
			return err
		}
	}
	if c.element != nil && c.element.kind == text {
		if value, err = m.words(c.element, "value"); err != nil {
			return err
		}
	}
	if c.key != nil && c.key.kind == enum || c.element != nil && c.element.kind == enum {
		return errNoValue
	}
	v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), reflect.ValueOf(value).Convert(v.Type().Elem()))
	return nil
}

// TestValidInputsPassAndOneBrokenConstraintIsNamed makes valid inputs of every operation, which must pass. Then it breaks one
// constraint, which the error must name.
func TestValidInputsPassAndOneBrokenConstraintIsNamed(t *testing.T) {
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			made := map[reflect.Type]bool{}
			broken := 0
			types := inputs(t, name)
			rapid.Check(t, func(r *rapid.T) {
				for _, typ := range types {
					m := &maker{t: r}
					in := reflect.New(typ)
					c := s.checkerOf(typ)
					if err := m.structure(c, in.Elem(), "", 0); err != nil {
						continue
					}
					if err := s.Check(in.Interface()); err != nil {
						r.Fatalf("%s: %v", typ, err)
					}
					made[typ] = true
					if len(m.spots) == 0 {
						continue
					}
					spot := rapid.SampledFrom(m.spots).Draw(r, "spot")
					spot.spoil()
					broken++
					var wrong *Error
					if err := s.Check(in.Interface()); !errors.As(err, &wrong) ||
						!strings.Contains(strings.Join(wrong.Violations, "; "), "at '"+spot.path+"' failed to satisfy constraint: "+spot.want) {
						r.Fatalf("%s: %s should break %q, got %v", typ, spot.path, spot.want, err)
					}
				}
			})
			if len(made)*10 < len(types)*9 || broken < 100 {
				t.Errorf("only %d of %d operations had an input, and %d constraints were broken", len(made), len(types), broken)
			}
		})
	}
}
