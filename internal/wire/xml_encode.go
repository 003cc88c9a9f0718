package wire

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
)

// xmlEncoder appends values as AWS Query answers have them: lists of <member>, or as EC2 calls them, and
// maps of <entry>. In REST, members have places: lists' elements have names of their own, and need not be in one
// of the list's. A few of EC2's lists have places, too.
type xmlEncoder struct {
	b    []byte
	item string // what a list is of; "" is member
	rest bool
	err  error // the first
}

func (e *xmlEncoder) open(tag string) {
	e.b = append(e.b, '<')
	e.b = append(e.b, tag...)
	e.b = append(e.b, '>')
}

func (e *xmlEncoder) close(tag string) {
	e.b = append(e.b, "</"...)
	e.b = append(e.b, tag...)
	e.b = append(e.b, '>')
}

// element appends a tag with text in it.
func (e *xmlEncoder) element(tag, text string) {
	e.open(tag)
	e.text(text)
	e.close(tag)
}

func (e *xmlEncoder) root(name, namespace string, sh *shape, p unsafe.Pointer) {
	e.open(name + ` xmlns="` + namespace + `"`)
	e.value(sh, p)
	e.close(name)
}

func (e *xmlEncoder) tagged(tag string, sh *shape, p unsafe.Pointer) {
	e.open(tag)
	e.value(sh, p)
	e.close(tag)
}

// value appends what lies at p.
func (e *xmlEncoder) value(sh *shape, p unsafe.Pointer) {
	switch sh.kind {
	case kindString:
		e.text(*(*string)(p))
	case kindBool:
		e.b = strconv.AppendBool(e.b, *(*bool)(p))
	case kindInt:
		e.b = strconv.AppendInt(e.b, sh.int(p), 10)
	case kindFloat:
		e.float(sh.float(p))
	case kindTime:
		e.b = (*time.Time)(p).UTC().AppendFormat(e.b, "2006-01-02T15:04:05.000Z")
	case kindBlob:
		e.b = base64.StdEncoding.AppendEncode(e.b, *(*[]byte)(p))
	case kindPointer:
		if held := *(*unsafe.Pointer)(p); held != nil {
			e.value(sh.elem, held)
		}
	case kindStructure:
		e.structure(sh, p)
	case kindList:
		e.items(cmp.Or(e.item, "member"), sh, p)
	case kindMap:
		e.dictionary(sh, "entry", FormName{}, p)
	case kindEmpty: // has no elements to write
	default:
		if e.err == nil {
			e.err = fmt.Errorf("a %s cannot be written", sh.typ)
		}
	}
}

func (e *xmlEncoder) structure(sh *shape, p unsafe.Pointer) {
	for i := range sh.members {
		m := &sh.members[i]
		f := m.in(p)
		switch {
		case m.absent(f), m.place.In != inBody:
		case m.form.Name != "":
			e.flat(m, f)
		case m.shape.kind == kindList && (e.rest || m.place.Item != ""):
			e.list(m, f)
		case e.rest && m.shape.attributes():
			e.withAttributes(m, f)
		default:
			e.tagged(m.name, m.shape, f)
		}
	}
}

// items appends a list's elements, each in a tag.
func (e *xmlEncoder) items(tag string, sh *shape, p unsafe.Pointer) {
	n, first := elements(p)
	for i := range n {
		e.tagged(tag, sh.elem, sh.elem.element(first, i))
	}
}

// flat appends a list or a map as its items alone.
func (e *xmlEncoder) flat(m *member, p unsafe.Pointer) {
	switch m.shape.kind {
	case kindList:
		e.items(m.form.Name, m.shape, p)
	case kindMap:
		e.dictionary(m.shape, m.form.Name, m.form, p)
	default:
		e.tagged(m.form.Name, m.shape, p)
	}
}

// list appends a list as REST-XML has it: flattened, or in an element of its own.
func (e *xmlEncoder) list(m *member, p unsafe.Pointer) {
	if m.place.Item == "" {
		e.items(m.name, m.shape, p)
		return
	}
	e.open(m.name)
	e.items(m.place.Item, m.shape, p)
	e.close(m.name)
}

// attributes says whether a structure has members that are attributes: the grantee of an ACL has.
func (sh *shape) attributes() bool {
	if sh.kind == kindPointer {
		return sh.elem.attributes()
	}
	return slices.ContainsFunc(sh.members, func(m member) bool { return m.place.In == inAttribute })
}

func (e *xmlEncoder) withAttributes(m *member, p unsafe.Pointer) {
	tag := m.name
	sh := m.shape
	if sh.kind == kindPointer {
		sh, p = sh.elem, *(*unsafe.Pointer)(p)
	}
	for i := range sh.members {
		a := &sh.members[i]
		if a.place.In != inAttribute {
			continue
		}
		prefix, _, _ := strings.Cut(a.place.Name, ":")
		tag += ` xmlns:` + prefix + `="http://www.w3.org/2001/XMLSchema-instance" ` + a.place.Name + `="` + *(*string)(a.in(p)) + `"`
	}
	e.open(tag)
	e.value(sh, p)
	e.close(m.name)
}

func (e *xmlEncoder) dictionary(sh *shape, tag string, name FormName, p unsafe.Pointer) {
	keyTag, valueTag := name.entry()
	sh.entries(p, func(_ int, key string, value unsafe.Pointer) {
		e.open(tag)
		e.element(keyTag, key)
		e.tagged(valueTag, sh.elem, value)
		e.close(tag)
	})
}

// float appends a number; strconv's words for the infinite ones have a sign that XML's do not.
func (e *xmlEncoder) float(f float64, bits int) {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	switch s {
	case "+Inf":
		s = "Infinity"
	case "-Inf":
		s = "-Infinity"
	}
	e.b = append(e.b, s...)
}

// text appends a string, escaped. What XML cannot hold is replaced.
func (e *xmlEncoder) text(s string) {
	for _, r := range s {
		switch {
		case r == '&':
			e.b = append(e.b, "&amp;"...)
		case r == '<':
			e.b = append(e.b, "&lt;"...)
		case r == '>':
			e.b = append(e.b, "&gt;"...)
		case r == '\r':
			e.b = append(e.b, "&#xD;"...) // as it is, a parser would make it a line feed
		case r < ' ' && r != '\n' && r != '\t', r == 0xFFFE, r == 0xFFFF:
			e.b = utf8.AppendRune(e.b, utf8.RuneError)
		default:
			e.b = utf8.AppendRune(e.b, r)
		}
	}
}
