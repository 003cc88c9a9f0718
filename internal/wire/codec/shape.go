// Package codec turns bytes into SDK structs and back: JSON, CBOR, XML and forms. It works by reflection, on shapes made
// once for each type by the rules of its API, and encoders read structs where they lie in memory. Decoders are strict: what
// does not fit is refused. It knows no operation, no service and no HTTP; wire and wire/rest call it.
package codec

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
	"github.com/pintle/pintle/internal/wire/model"
)

// Shape is how a Go type looks on the wire, whatever the protocol. Codecs are switches over its kind.
type Shape struct {
	Kind    kind
	Type    reflect.Type
	size    uintptr            // of a value in memory
	Elem    *Shape             // what a pointer, a list or a map holds
	Members []Member           // of a structure; of a union, what it can be
	ByName  map[string]*Member // as requests call them
	byForm  map[string]*Member // by the names that Query has for them
	zero    bool               // of a number: whether 0 becomes call.Zero
	kept    *keptRows          // of a list of rows that never change: their JSON
	made    func(any) any      // of a document: how one is made
}

type kind uint8

const (
	kindUnsupported kind = iota
	KindString           // and enums: their values are the services' to check
	KindBool
	KindInt
	kindFloat
	KindTime
	kindBlob
	KindPointer
	KindList
	kindMap
	KindStructure
	kindUnion
	kindDocument
	kindEmpty  // a list that is told as empty, whatever it holds
	KindStream // a body that is read as it comes
)

// Member is a field of a structure, or a variant of a union.
type Member struct {
	name   string
	input  string // its name in requests, where that is another one
	quoted string // `"name":`, ready for JSON
	Shape  *Shape
	form   model.FormName
	Index  int          // of the field in its struct
	offset uintptr      // of the field in its struct, in memory
	Place  model.Place  // in HTTP, for REST
	typ    reflect.Type // of the variant: the struct whose Value is the member
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	readerType   = reflect.TypeFor[io.Reader]()
	documentType = reflect.TypeFor[interface {
		document.Marshaler
		document.Unmarshaler
	}]()
)

// Rules are what the types of one API do not tell of their shapes.
type Rules struct {
	CamelCase   bool                      // whether members begin with a lower-case letter
	Names       map[string]string         // of members that are exceptions, by "<Struct>.<Field>"
	InputNames  map[string]string         // of those in requests; nil where they are as in answers
	FormNames   map[string]model.FormName // of members that Query calls otherwise
	Places      map[string]model.Place    // of members that are not in the body, or are lists of elements with another name
	Unions      []any                     // a pointer to each variant
	NewDocument func(any) any             // makes a document; nil where there are none
	TellZero    bool                      // whether a 0 that was sent becomes call.Zero where the struct could not tell it from none
}

// Shapes makes the shapes of one API's types, each once.
type Shapes struct {
	Rules
	variants []reflect.Type // of unions

	mu   sync.RWMutex
	made map[reflect.Type]*Shape
}

func NewShapes(r Rules) *Shapes {
	s := &Shapes{Rules: r, made: map[reflect.Type]*Shape{}}
	for _, v := range r.Unions {
		s.variants = append(s.variants, reflect.TypeOf(v))
	}
	return s
}

// Of returns a type's shape. What cannot be put on the wire is in it as unsupported; check finds it.
func (s *Shapes) Of(t reflect.Type) *Shape {
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

func (s *Shapes) make(t reflect.Type) *Shape {
	if sh := s.made[t]; sh != nil {
		return sh
	}
	sh := &Shape{Type: t, size: t.Size()}
	s.made[t] = sh // before its members are made, for types that hold themselves
	switch t.Kind() {
	case reflect.String:
		sh.Kind = KindString
	case reflect.Bool:
		sh.Kind = KindBool
	case reflect.Int32, reflect.Int64:
		sh.Kind = KindInt
	case reflect.Float32, reflect.Float64:
		sh.Kind = kindFloat
	case reflect.Pointer:
		sh.Kind, sh.Elem = KindPointer, s.make(t.Elem())
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

func (s *Shapes) makeSlice(sh *Shape) {
	if sh.Type.Elem().Kind() == reflect.Uint8 {
		sh.Kind = kindBlob
		return
	}
	sh.Kind, sh.Elem = KindList, s.make(sh.Type.Elem())
}

func (s *Shapes) makeMap(sh *Shape) {
	if sh.Type.Key().Kind() == reflect.String {
		sh.Kind, sh.Elem = kindMap, s.make(sh.Type.Elem())
	}
}

func (s *Shapes) makeStruct(sh *Shape) {
	if sh.Type == timeType {
		sh.Kind = KindTime
		return
	}
	sh.Kind = KindStructure
	for i := range sh.Type.NumField() {
		f := sh.Type.Field(i)
		if f.IsExported() && f.Name != "ResultMetadata" && f.Name != "ErrorCodeOverride" { // the SDK's own, no members
			m := Member{name: s.memberName(sh.Type, f.Name), input: s.inputName(sh.Type, f.Name), form: s.FormNames[sh.Type.Name()+"."+f.Name], Shape: s.makeMember(f.Type), Index: i, offset: f.Offset, Place: s.Places[sh.Type.Name()+"."+f.Name]}
			if m.Place.In == model.InBody && m.Place.Name != "" {
				m.name = m.Place.Name
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
func (s *Shapes) makeMember(t reflect.Type) *Shape {
	sh := s.make(t)
	if !s.TellZero || sh.Kind != KindInt {
		return sh
	}
	tells := *sh
	tells.zero = true
	return &tells
}

// number is a number that was sent, as the member holds it.
func (sh *Shape) number(n int64) int64 {
	if n == 0 && sh.zero {
		return call.Zero
	}
	return n
}

// makeInterface makes a stream, a document or a union. The SDK has a struct for each variant of a union: its
// name is <Union>Member<Name>, and what it holds is its Value.
func (s *Shapes) makeInterface(sh *Shape) {
	if sh.Type.Implements(readerType) {
		sh.Kind = KindStream
		return
	}
	if sh.Type.Implements(documentType) {
		if s.NewDocument != nil {
			sh.Kind, sh.made = kindDocument, s.NewDocument
		}
		return
	}
	for _, v := range s.variants {
		name, ok := strings.CutPrefix(v.Elem().Name(), sh.Type.Name()+"Member")
		if !ok || !v.Implements(sh.Type) {
			continue
		}
		sh.Kind = kindUnion
		value, _ := v.Elem().FieldByName("Value")
		sh.add(Member{name: s.memberName(sh.Type, name), Shape: s.make(value.Type), typ: v.Elem()})
	}
	sh.index()
}

func (sh *Shape) add(m Member) {
	m.quoted = `"` + m.name + `":`
	sh.Members = append(sh.Members, m)
}

func (sh *Shape) index() {
	sh.ByName = make(map[string]*Member, len(sh.Members))
	sh.byForm = make(map[string]*Member, len(sh.Members))
	for i := range sh.Members {
		m := &sh.Members[i]
		sh.ByName[cmp.Or(m.input, m.name)] = m
		sh.byForm[cmp.Or(m.form.Name, m.input, m.name)] = m
	}
}

// memberName is the wire's name of a type's field or variant.
func (s *Shapes) memberName(t reflect.Type, name string) string {
	if exception := s.Names[t.Name()+"."+name]; exception != "" {
		return exception
	}
	if !s.CamelCase {
		return name
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// inputName is the name of a type's field in requests, "" where it is that in answers.
func (s *Shapes) inputName(t reflect.Type, name string) string {
	if s.InputNames == nil {
		return ""
	}
	return cmp.Or(s.InputNames[t.Name()+"."+name], name)
}

// check returns an error that names the first member without a place on the wire.
func (sh *Shape) check(path string, seen map[*Shape]bool) error {
	if sh.Kind == kindUnsupported {
		return fmt.Errorf("%s: a %s cannot be put on the wire; see API.Unions and API.NewDocument", path, sh.Type)
	}
	if seen[sh] {
		return nil
	}
	seen[sh] = true
	if sh.Elem != nil {
		return sh.Elem.check(path, seen)
	}
	for _, m := range sh.Members {
		if err := m.Shape.check(path+"."+m.name, seen); err != nil {
			return err
		}
	}
	return nil
}
