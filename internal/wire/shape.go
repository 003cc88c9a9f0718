package wire

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/smithy-go/document"

	"github.com/pintle/pintle/internal/wire/call"
)

// shape is how a Go type looks on the wire, whatever the protocol. Codecs are switches over its kind.
type shape struct {
	kind    kind
	typ     reflect.Type
	size    uintptr            // of a value in memory
	elem    *shape             // what a pointer, a list or a map holds
	members []member           // of a structure; of a union, what it can be
	byName  map[string]*member // as requests call them
	byForm  map[string]*member // by the names that Query has for them
	zero    bool               // of a number: whether 0 becomes call.Zero
	kept    *keptRows          // of a list of rows that never change: their JSON
}

type kind uint8

const (
	kindUnsupported kind = iota
	kindString           // and enums: their values are the services' to check
	kindBool
	kindInt
	kindFloat
	kindTime
	kindBlob
	kindPointer
	kindList
	kindMap
	kindStructure
	kindUnion
	kindDocument
	kindEmpty  // a list that is told as empty, whatever it holds
	kindStream // a body that is read as it comes
)

// member is a field of a structure, or a variant of a union.
type member struct {
	name   string
	input  string // its name in requests, where that is another one
	quoted string // `"name":`, ready for JSON
	shape  *shape
	form   FormName
	index  int          // of the field in its struct
	offset uintptr      // of the field in its struct, in memory
	place  Place        // in HTTP, for REST
	typ    reflect.Type // of the variant: the struct whose Value is the member
}

// FormName is what Query calls a member. It has lists and maps flat then: Name.1, or Name.1.Key and Name.1.Value.
type FormName struct{ Name, Key, Value string }

// entry is what Query calls the key and the value of a map's entry.
func (f FormName) entry() (key, value string) {
	if f.Key == "" {
		return "key", "value"
	}
	return f.Key, f.Value
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	readerType   = reflect.TypeFor[io.Reader]()
	documentType = reflect.TypeFor[interface {
		document.Marshaler
		document.Unmarshaler
	}]()
)

// shapes makes the shapes of one API's types, each once.
type shapes struct {
	camelCase bool
	names     map[string]string
	inputs    map[string]string
	forms     map[string]FormName
	zero      bool // API.TellZero
	places    map[string]Place
	variants  []reflect.Type // of unions
	documents bool           // whether documents can be made

	mu   sync.RWMutex
	made map[reflect.Type]*shape
}

func newShapes(a *API) *shapes {
	s := &shapes{camelCase: a.CamelCase, names: a.Names, inputs: a.InputNames, forms: a.FormNames, zero: a.TellZero, places: a.Places, documents: a.NewDocument != nil, made: map[reflect.Type]*shape{}}
	for _, v := range a.Unions {
		s.variants = append(s.variants, reflect.TypeOf(v))
	}
	return s
}

// of returns a type's shape. What cannot be put on the wire is in it as unsupported; check finds it.
func (s *shapes) of(t reflect.Type) *shape {
	s.mu.RLock()
	sh := s.made[t]
	s.mu.RUnlock()
	if sh != nil {
		return sh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.make(t)
}

func (s *shapes) make(t reflect.Type) *shape {
	if sh := s.made[t]; sh != nil {
		return sh
	}
	sh := &shape{typ: t, size: t.Size()}
	s.made[t] = sh // before its members are made, for types that hold themselves
	switch t.Kind() {
	case reflect.String:
		sh.kind = kindString
	case reflect.Bool:
		sh.kind = kindBool
	case reflect.Int32, reflect.Int64:
		sh.kind = kindInt
	case reflect.Float32, reflect.Float64:
		sh.kind = kindFloat
	case reflect.Pointer:
		sh.kind, sh.elem = kindPointer, s.make(t.Elem())
	case reflect.Slice:
		s.makeSlice(sh)
	case reflect.Map:
		s.makeMap(sh)
	case reflect.Struct:
		s.makeStruct(sh)
	case reflect.Interface:
		s.makeInterface(sh)
	}
	return sh
}

func (s *shapes) makeSlice(sh *shape) {
	if sh.typ.Elem().Kind() == reflect.Uint8 {
		sh.kind = kindBlob
		return
	}
	sh.kind, sh.elem = kindList, s.make(sh.typ.Elem())
}

func (s *shapes) makeMap(sh *shape) {
	if sh.typ.Key().Kind() == reflect.String {
		sh.kind, sh.elem = kindMap, s.make(sh.typ.Elem())
	}
}

func (s *shapes) makeStruct(sh *shape) {
	if sh.typ == timeType {
		sh.kind = kindTime
		return
	}
	sh.kind = kindStructure
	for i := range sh.typ.NumField() {
		f := sh.typ.Field(i)
		if f.IsExported() && f.Name != "ResultMetadata" && f.Name != "ErrorCodeOverride" { // the SDK's own, no members
			m := member{name: s.memberName(sh.typ, f.Name), input: s.inputName(sh.typ, f.Name), form: s.forms[sh.typ.Name()+"."+f.Name], shape: s.makeMember(f.Type), index: i, offset: f.Offset, place: s.places[sh.typ.Name()+"."+f.Name]}
			if m.place.In == inBody && m.place.Name != "" {
				m.name = m.place.Name
			}
			if tag := f.Tag.Get("wire"); tag != "" {
				s.keep(&m, tag)
			}
			sh.add(m)
		}
	}
	sh.index()
}

// makeMember makes the shape of a struct's field.
func (s *shapes) makeMember(t reflect.Type) *shape {
	sh := s.make(t)
	if !s.zero || sh.kind != kindInt {
		return sh
	}
	tells := *sh
	tells.zero = true
	return &tells
}

// number is a number that was sent, as the member holds it.
func (sh *shape) number(n int64) int64 {
	if n == 0 && sh.zero {
		return call.Zero
	}
	return n
}

// makeInterface makes a stream, a document or a union. The SDK has a struct for each variant of a union: its
// name is <Union>Member<Name>, and what it holds is its Value.
func (s *shapes) makeInterface(sh *shape) {
	if sh.typ.Implements(readerType) {
		sh.kind = kindStream
		return
	}
	if sh.typ.Implements(documentType) {
		if s.documents {
			sh.kind = kindDocument
		}
		return
	}
	for _, v := range s.variants {
		name, ok := strings.CutPrefix(v.Elem().Name(), sh.typ.Name()+"Member")
		if !ok || !v.Implements(sh.typ) {
			continue
		}
		sh.kind = kindUnion
		value, _ := v.Elem().FieldByName("Value")
		sh.add(member{name: s.memberName(sh.typ, name), shape: s.make(value.Type), typ: v.Elem()})
	}
	sh.index()
}

func (sh *shape) add(m member) {
	m.quoted = `"` + m.name + `":`
	sh.members = append(sh.members, m)
}

func (sh *shape) index() {
	sh.byName = make(map[string]*member, len(sh.members))
	sh.byForm = make(map[string]*member, len(sh.members))
	for i := range sh.members {
		m := &sh.members[i]
		sh.byName[cmp.Or(m.input, m.name)] = m
		sh.byForm[cmp.Or(m.form.Name, m.input, m.name)] = m
	}
}

// memberName is the wire's name of a type's field or variant.
func (s *shapes) memberName(t reflect.Type, name string) string {
	if exception := s.names[t.Name()+"."+name]; exception != "" {
		return exception
	}
	if !s.camelCase {
		return name
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// inputName is the name of a type's field in requests, "" where it is that in answers.
func (s *shapes) inputName(t reflect.Type, name string) string {
	if s.inputs == nil {
		return ""
	}
	return cmp.Or(s.inputs[t.Name()+"."+name], name)
}

// check returns an error that names the first member without a place on the wire.
func (sh *shape) check(path string, seen map[*shape]bool) error {
	if sh.kind == kindUnsupported {
		return fmt.Errorf("%s: a %s cannot be put on the wire; see API.Unions and API.NewDocument", path, sh.typ)
	}
	if seen[sh] {
		return nil
	}
	seen[sh] = true
	if sh.elem != nil {
		return sh.elem.check(path, seen)
	}
	for _, m := range sh.members {
		if err := m.shape.check(path+"."+m.name, seen); err != nil {
			return err
		}
	}
	return nil
}
