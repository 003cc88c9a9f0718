package codec

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// xmlDecoder reads one document into SDK structs, element by element. It keeps nothing of what the structs don't have, and refuses
// that at once.
type xmlDecoder struct {
	in    *xml.Decoder
	items int // of all lists, so far
}

// maxMarkup is the most tags and quotation marks in a request's XML: enough for 10,000 parts with all their checksums. Each costs about a
// microsecond, and memory for the reader.
const maxMarkup = 1 << 18

func malformedXML(why string) error {
	return refusal.New(
		"MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema: %s.", why,
	)
}

var errUnreadable = errors.New("it cannot be read")

// DecodeXML reads an XML document into a struct, whatever its root is called.
func DecodeXML(body []byte, sh *Shape, into reflect.Value) error {
	if bytes.Count(body, []byte("<")) > maxMarkup || bytes.Count(body, []byte(`"`))+bytes.Count(body, []byte("'")) > maxMarkup {
		return malformedXML("it has too many elements")
	}
	d := xmlDecoder{in: xml.NewDecoder(bytes.NewReader(body))}
	err := d.document(sh, into)
	if err != nil {
		return malformedXML(err.Error())
	}
	return nil
}

// document reads the root and what follows it.
func (d *xmlDecoder) document(sh *Shape, into reflect.Value) error {
	root, err := d.next(nil)
	if err != nil {
		return err
	}
	if root == nil {
		return errors.New("it must have one root")
	}
	if err := d.structure(*root, sh, into); err != nil {
		return err
	}
	if more, err := d.next(nil); more != nil || err != nil {
		return errors.Join(err, errors.New("it must have one root"))
	}
	return nil
}

// next returns the next element inside the one that is being read, or nil at its end. It appends the text before to text, if that isn't
// nil.
func (d *xmlDecoder) next(text *strings.Builder) (*xml.StartElement, error) {
	for {
		token, err := d.in.Token()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, errUnreadable
		}
		switch t := token.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		case xml.CharData:
			if text != nil {
				text.Write(t)
			}
		}
	}
}

// structure reads the element's attributes and children into a struct.
func (d *xmlDecoder) structure(n xml.StartElement, sh *Shape, into reflect.Value) error {
	for _, m := range sh.Members {
		if m.Place.In == model.InAttribute {
			setAttribute(n, m, into.Field(m.Index))
		}
	}
	seen := map[string]bool{}
	for {
		c, err := d.next(nil)
		if c == nil || err != nil {
			return err
		}
		name := c.Name.Local
		m := sh.ByName[name]
		if m == nil || m.Place.In != model.InBody {
			return errors.New("there is no " + name + " in " + n.Name.Local)
		}
		flat := m.Shape.Kind == KindList && m.Place.Item == ""
		if seen[name] && !flat {
			return errors.New(name + " comes more than once")
		}
		seen[name] = true
		if err := d.member(*c, m, into.Field(m.Index)); err != nil {
			return err
		}
	}
}

// setAttribute sets a member that is an attribute of the element.
func setAttribute(n xml.StartElement, m Member, field reflect.Value) {
	_, local, _ := strings.Cut(m.Place.Name, ":")
	for _, a := range n.Attr {
		if a.Name.Local == local {
			SetText(m.Shape, field, a.Value) //nolint:errcheck // attributes are strings
		}
	}
}

// member reads an element that is a member: a value, a list, or one item of a list that has no element of its own.
func (d *xmlDecoder) member(c xml.StartElement, m *Member, field reflect.Value) error {
	switch {
	case m.Shape.Kind != KindList:
		return d.value(c, m.Shape, field)
	case m.Place.Item == "":
		return d.appendTo(c, m.Shape, field)
	}
	field.Set(reflect.MakeSlice(field.Type(), 0, 0))
	for {
		item, err := d.next(nil)
		if item == nil || err != nil {
			return err
		}
		if item.Name.Local != m.Place.Item {
			return errors.New("there is no " + item.Name.Local + " in " + c.Name.Local)
		}
		if err := d.appendTo(*item, m.Shape, field); err != nil {
			return err
		}
	}
}

func (d *xmlDecoder) appendTo(c xml.StartElement, list *Shape, field reflect.Value) error {
	if d.items++; d.items > maxItems {
		return errors.New("it has too many elements")
	}
	element := reflect.New(list.Elem.Type).Elem()
	if err := d.value(c, list.Elem, element); err != nil {
		return err
	}
	field.Set(reflect.Append(field, element))
	return nil
}

func (d *xmlDecoder) value(n xml.StartElement, sh *Shape, v reflect.Value) error {
	switch sh.Kind {
	case KindPointer:
		v.Set(reflect.New(sh.Elem.Type))
		return d.value(n, sh.Elem, v.Elem())
	case KindStructure:
		return d.structure(n, sh, v)
	}
	var b strings.Builder
	inner, err := d.next(&b)
	if err != nil {
		return err
	}
	if inner != nil {
		return errors.New(n.Name.Local + " has elements in it")
	}
	text := b.String()
	if sh.Kind != KindString {
		text = strings.TrimSpace(text)
	}
	if err := SetText(sh, v, text); err != nil {
		return errors.New(n.Name.Local + " is invalid")
	}
	return nil
}
