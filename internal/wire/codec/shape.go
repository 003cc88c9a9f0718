// Package codec turns bytes into SDK structs and back: JSON, CBOR, XML and forms. It makes a shape for each type once, by
// reflection and the rules of the type's API. Encoders then read structs directly from memory. Decoders are strict: they
// refuse what doesn't fit. Codec knows no operation, no service and no HTTP. Wire and wire/rest call it.
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

// Shape describes a Go type on the wire, for every protocol. Codecs switch on its kind.
type Shape struct {
	Kind    kind
	Type    reflect.Type
	size    uintptr            // of a value in memory
	Elem    *Shape             // of what a pointer, a list or a map holds
	Members []Member           // of a structure; the variants of a union
	ByName  map[string]*Member // by the names in requests
	byForm  map[string]*Member // by the names in Query
	zero    bool               // for a number: whether 0 becomes call.Zero
	kept    *keptRows          // for a list of kept rows: their JSON

	newDocument func(any) any // for a document: makes one
}

type kind uint8

const (
	kindUnsupported kind = iota
	KindString           // also enums, whose values the services check
	KindBool
	KindInt
	kindFloat
	KindTime
	KindBlob
	KindPointer
	KindList
	kindMap
	KindStructure
	kindUnion
	kindDocument
	kindEmpty  // a list that is always encoded as empty
	KindStream // a streamed body
)

// Member is a field of a structure, or a variant of a union.
type Member struct {
	name   string
	input  string // its name in requests, if that differs
	quoted string // `"name":`, for JSON
	Shape  *Shape
	form   model.FormName
	Index  int          // of the field in its struct
	offset uintptr      // of the field in its struct, in bytes
	Place  model.Place  // in HTTP, for REST
	typ    reflect.Type // for a variant: the struct whose Value is the member
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	readerType   = reflect.TypeFor[io.Reader]()
	documentType = reflect.TypeFor[interface {
		document.Marshaler
		document.Unmarshaler
	}]()
)

// Rules has what the Go types of one API don't say about their shapes.
type Rules struct {
	CamelCase   bool                      // whether members begin with a lower-case letter
	Names       map[string]string         // of members that follow no rule, by "<Struct>.<Field>"
	InputNames  map[string]string         // of members in requests; nil if they are the same as in answers
	FormNames   map[string]model.FormName // of members with another name in Query
	Places      map[string]model.Place    // of members outside the body, and of lists whose elements have another name
	Unions      []any                     // a pointer to each variant
	NewDocument func(any) any             // makes a document; nil if the API has none
	TellZero    bool                      // whether a 0 that was sent becomes call.Zero, to differ from a missing number
}

// Shapes makes the shapes of one API's types, and makes each only once.
type Shapes struct {
	Rules
	variants []reflect.Type // of unions

	mu   sync.RWMutex
	made map[reflect.Type]*Shape
}

// NewShapes returns Shapes that follow an API's rules.
func NewShapes(r Rules) *Shapes {
	s := &Shapes{Rules: r, made: map[reflect.Type]*Shape{}}
	for _, v := range r.Unions {
		s.variants = append(s.variants, reflect.TypeOf(v))
	}
	return s
}

// Of returns a type's shape. Members that can't be encoded are unsupported in it. check finds them.
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
	s.made[t] = sh // before the members, for types that contain themselves
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
		sh.Kind = KindPointer
		sh.Elem = s.make(t.Elem())
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
		sh.Kind = KindBlob
		return
	}
	sh.Kind = KindList
	sh.Elem = s.make(sh.Type.Elem())
}

func (s *Shapes) makeMap(sh *Shape) {
	if sh.Type.Key().Kind() == reflect.String {
		sh.Kind = kindMap
		sh.Elem = s.make(sh.Type.Elem())
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
		if f.IsExported() && f.Name != "ResultMetadata" && f.Name != "ErrorCodeOverride" { // the SDK adds these two; they aren't members
			m := Member{
				name:   s.memberName(sh.Type, f.Name),
				input:  s.inputName(sh.Type, f.Name),
				form:   s.FormNames[sh.Type.Name()+"."+f.Name],
				Shape:  s.makeMember(f.Type),
				Index:  i,
				offset: f.Offset,
				Place:  s.Places[sh.Type.Name()+"."+f.Name],
			}
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
	withZero := *sh
	withZero.zero = true
	return &withZero
}

// number returns what the member holds for a number that was sent.
func (sh *Shape) number(n int64) int64 {
	if n == 0 && sh.zero {
		return call.Zero
	}
	return n
}

// makeInterface makes a stream, a document or a union. The SDK has a struct for each variant of a union, called
// <Union>Member<Name>, with the content in Value.
func (s *Shapes) makeInterface(sh *Shape) {
	if sh.Type.Implements(readerType) {
		sh.Kind = KindStream
		return
	}
	if sh.Type.Implements(documentType) {
		if s.NewDocument != nil {
			sh.Kind = kindDocument
			sh.newDocument = s.NewDocument
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
		sh.add(Member{
			name:  cmp.Or(s.Places[sh.Type.Name()+"."+name].Name, s.memberName(sh.Type, name)),
			Shape: s.make(value.Type),
			typ:   v.Elem(),
		})
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

// Names returns the member's names in answers and in requests.
func (m *Member) Names() (answer, request string) {
	return m.name, cmp.Or(m.input, m.name)
}

// memberName returns the wire name of a type's field or variant.
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

// inputName returns the name of a type's field in requests, or "" if it's the same as in answers.
func (s *Shapes) inputName(t reflect.Type, name string) string {
	if s.InputNames == nil {
		return ""
	}
	return cmp.Or(s.InputNames[t.Name()+"."+name], name)
}

// check returns an error that names the first member that can't be encoded.
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
