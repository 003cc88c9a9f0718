package codec

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/pintle/pintle/internal/wire/model"
)

// XML appends values as in AWS Query's answers: lists of <member>, or <item> in EC2, and maps of <entry>. In REST, a
// member's Place says what its list's elements are called, and whether the list has an element around them. A few of EC2's
// lists have a Place, too.
type XML struct {
	B    []byte
	Item string // the name of a list's elements; "" means member
	REST bool
	Err  error // the first one
}

// Open appends an opening tag.
func (e *XML) Open(tag string) {
	e.B = append(e.B, '<')
	e.B = append(e.B, tag...)
	e.B = append(e.B, '>')
}

// Close appends a closing tag.
func (e *XML) Close(tag string) {
	e.B = append(e.B, "</"...)
	e.B = append(e.B, tag...)
	e.B = append(e.B, '>')
}

// Element appends an element with text.
func (e *XML) Element(tag, text string) {
	e.Open(tag)
	e.text(text)
	e.Close(tag)
}

// Root appends a root element with its namespace and a value.
func (e *XML) Root(name, namespace string, sh *Shape, p unsafe.Pointer) {
	e.Open(name + ` xmlns="` + namespace + `"`)
	e.Value(sh, p)
	e.Close(name)
}

func (e *XML) tagged(tag string, sh *Shape, p unsafe.Pointer) {
	e.Open(tag)
	e.Value(sh, p)
	e.Close(tag)
}

// Value appends the value at p.
func (e *XML) Value(sh *Shape, p unsafe.Pointer) {
	switch sh.Kind {
	case KindString:
		e.text(*(*string)(p))
	case KindBool:
		e.B = strconv.AppendBool(e.B, *(*bool)(p))
	case KindInt:
		e.B = strconv.AppendInt(e.B, sh.int(p), 10)
	case kindFloat:
		e.float(sh.float(p))
	case KindTime:
		e.time(*(*time.Time)(p))
	case KindBlob:
		e.B = base64.StdEncoding.AppendEncode(e.B, *(*[]byte)(p))
	case KindPointer:
		if held := *(*unsafe.Pointer)(p); held != nil {
			e.Value(sh.Elem, held)
		}
	case KindStructure:
		e.structure(sh, p)
	case KindList:
		e.items(cmp.Or(e.Item, "member"), sh, p)
	case kindMap:
		e.dictionary(sh, "entry", model.FormName{}, p)
	case kindEmpty: // an empty list has no elements
	default:
		if e.Err == nil {
			e.Err = fmt.Errorf("a %s cannot be written", sh.Type)
		}
	}
}

// time appends a time. S3 knows whole seconds, but writes milliseconds, as the others do.
func (e *XML) time(t time.Time) {
	if e.REST {
		t = t.Truncate(time.Second)
	}
	e.B = t.UTC().AppendFormat(e.B, "2006-01-02T15:04:05.000Z")
}

// structure appends a structure's members. In REST the lists come last, as in S3's answers: the first SDK for Java takes an object's
// bucket and a bucket's owner from what it read before the list.
func (e *XML) structure(sh *Shape, p unsafe.Pointer) {
	for i := range sh.Members {
		if m := &sh.Members[i]; !e.REST || m.Shape.Kind != KindList {
			e.member(m, p)
		}
	}
	for i := range sh.Members {
		if m := &sh.Members[i]; e.REST && m.Shape.Kind == KindList {
			e.member(m, p)
		}
	}
}

// member appends a member of the structure at p.
func (e *XML) member(m *Member, p unsafe.Pointer) {
	f := m.In(p)
	switch {
	case m.absent(f), m.Place.In != model.InBody:
	case m.form.Name != "":
		e.flat(m, f)
	case m.Shape.Kind == KindList && (e.REST || m.Place.Item != ""):
		e.list(m, f)
	case e.REST && m.Shape.hasAttributes():
		e.withAttributes(m, f)
	default:
		e.tagged(m.name, m.Shape, f)
	}
}

// items appends a list's elements, each with the same tag.
func (e *XML) items(tag string, sh *Shape, p unsafe.Pointer) {
	n, first := elements(p)
	for i := range n {
		e.tagged(tag, sh.Elem, sh.Elem.element(first, i))
	}
}

// flat appends a flattened list or map: its items, without an element around them.
func (e *XML) flat(m *Member, p unsafe.Pointer) {
	switch m.Shape.Kind {
	case KindList:
		e.items(m.form.Name, m.Shape, p)
	case kindMap:
		e.dictionary(m.Shape, m.form.Name, m.form, p)
	default:
		e.tagged(m.form.Name, m.Shape, p)
	}
}

// list appends a list as in REST-XML: flattened, or within an element.
func (e *XML) list(m *Member, p unsafe.Pointer) {
	if m.Place.Item == "" {
		e.items(m.name, m.Shape, p)
		return
	}
	e.Open(m.name)
	e.items(m.Place.Item, m.Shape, p)
	e.Close(m.name)
}

// hasAttributes reports whether a structure has members that are attributes, as an ACL's grantee has.
func (sh *Shape) hasAttributes() bool {
	if sh.Kind == KindPointer {
		return sh.Elem.hasAttributes()
	}
	return slices.ContainsFunc(sh.Members, func(m Member) bool { return m.Place.In == model.InAttribute })
}

func (e *XML) withAttributes(m *Member, p unsafe.Pointer) {
	tag := m.name
	sh := m.Shape
	if sh.Kind == KindPointer {
		sh = sh.Elem
		p = *(*unsafe.Pointer)(p)
	}
	for i := range sh.Members {
		a := &sh.Members[i]
		if a.Place.In != model.InAttribute {
			continue
		}
		prefix, _, _ := strings.Cut(a.Place.Name, ":")
		tag += ` xmlns:` + prefix + `="http://www.w3.org/2001/XMLSchema-instance" ` + a.Place.Name + `="` + *(*string)(a.In(p)) + `"`
	}
	e.Open(tag)
	e.Value(sh, p)
	e.Close(m.name)
}

func (e *XML) dictionary(sh *Shape, tag string, name model.FormName, p unsafe.Pointer) {
	keyTag, valueTag := name.Entry()
	sh.entries(p, func(_ int, key string, value unsafe.Pointer) {
		e.Open(tag)
		e.Element(keyTag, key)
		e.tagged(valueTag, sh.Elem, value)
		e.Close(tag)
	})
}

// float appends a number. XML's names for the infinities differ from strconv's.
func (e *XML) float(f float64, bits int) {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	switch s {
	case "+Inf":
		s = "Infinity"
	case "-Inf":
		s = "-Infinity"
	}
	e.B = append(e.B, s...)
}

// text appends an escaped string. Characters that XML can't hold are replaced.
func (e *XML) text(s string) {
	for _, r := range s {
		switch {
		case r == '&':
			e.B = append(e.B, "&amp;"...)
		case r == '<':
			e.B = append(e.B, "&lt;"...)
		case r == '>':
			e.B = append(e.B, "&gt;"...)
		case r == '\r':
			e.B = append(e.B, "&#xD;"...) // unescaped, a parser would turn it into a line feed
		case r < ' ' && r != '\n' && r != '\t', r == 0xFFFE, r == 0xFFFF:
			e.B = utf8.AppendRune(e.B, utf8.RuneError)
		default:
			e.B = utf8.AppendRune(e.B, r)
		}
	}
}
