package wire

import (
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// codec knows how one API's structs look on the wire. It is made once and used by many goroutines.
type codec struct {
	camelCase bool
	structs   sync.Map // reflect.Type → *structPlan
}

// structPlan is what a struct's members are called, and where they are.
type structPlan struct {
	fields []field
	byName map[string]*field
}

type field struct {
	name  string // on the wire
	quote []byte // `"name":`, for JSON
	index int
	kind  kind
}

// kind is how a member is treated.
type kind int

const (
	kindPlain   kind = iota // always written
	kindEnum                // not written while empty
	kindPointer             // not written while nil: pointers, slices, maps, interfaces
)

var (
	timeType  = reflect.TypeFor[time.Time]()
	bytesType = reflect.TypeFor[[]byte]()
)

func newCodec(camelCase bool) *codec { return &codec{camelCase: camelCase} }

// plan returns a struct's plan, made on first use.
func (c *codec) plan(t reflect.Type) *structPlan {
	if p, ok := c.structs.Load(t); ok {
		return p.(*structPlan)
	}
	p := &structPlan{byName: map[string]*field{}}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Name == "ResultMetadata" || f.Name == "ErrorCodeOverride" {
			continue
		}
		name := c.memberName(f.Name)
		p.fields = append(p.fields, field{name: name, quote: []byte(`"` + name + `":`), index: i, kind: kindOf(f.Type)})
	}
	for i := range p.fields {
		p.byName[p.fields[i].name] = &p.fields[i]
	}
	actual, _ := c.structs.LoadOrStore(t, p)
	return actual.(*structPlan)
}

// memberName is the wire's name of a Go field.
func (c *codec) memberName(name string) string {
	if !c.camelCase {
		return name
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return kindPointer
	case reflect.String:
		return kindEnum
	}
	return kindPlain
}

// absent says whether a member is left out.
func (f *field) absent(v reflect.Value) bool {
	switch f.kind {
	case kindPointer:
		return v.IsNil()
	case kindEnum:
		return v.Len() == 0
	}
	return false
}

// unionMember is the wire's name of the set member of a union: the SDK calls its struct
// <Union>Member<Name>, and keeps what it holds in Value.
func (c *codec) unionMember(v reflect.Value) (name string, value reflect.Value, ok bool) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return "", v, false
	}
	_, name, found := strings.Cut(v.Type().Name(), "Member")
	value = v.FieldByName("Value")
	return c.memberName(name), value, found && value.IsValid()
}
