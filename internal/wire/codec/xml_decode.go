package codec

import (
	"encoding/xml"
	"io"
	"reflect"
	"strings"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// xmlNode is an element of a request's XML.
type xmlNode struct {
	name     string
	text     strings.Builder
	attrs    []xml.Attr
	children []*xmlNode
}

// maxXMLDepth is the most levels in a request's XML.
const maxXMLDepth = 32

func malformedXML(why string) error {
	return refusal.New(
		"MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema: %s.", why,
	)
}

// DecodeXML reads an XML document into a struct.
func DecodeXML(body []byte, sh *Shape, into reflect.Value) error {
	root, err := parseXML(body)
	if err != nil {
		return err
	}
	return root.structure(sh, into)
}

// parseXML parses an XML document and returns its root.
func parseXML(body []byte) (*xmlNode, error) {
	d := xml.NewDecoder(strings.NewReader(string(body)))
	top := &xmlNode{}
	stack := []*xmlNode{top}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, malformedXML("it cannot be read")
		}
		here := stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(stack) > maxXMLDepth {
				return nil, malformedXML("it is too deep")
			}
			n := &xmlNode{name: t.Name.Local, attrs: t.Copy().Attr}
			here.children = append(here.children, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			here.text.Write(t)
		}
	}
	if len(top.children) != 1 || len(stack) != 1 {
		return nil, malformedXML("it must have one root")
	}
	return top.children[0], nil
}

// structure reads the element's children into a struct.
func (n *xmlNode) structure(sh *Shape, into reflect.Value) error {
	for _, m := range sh.Members {
		if m.Place.In == model.InAttribute {
			_, local, _ := strings.Cut(m.Place.Name, ":")
			for _, a := range n.attrs {
				if a.Name.Local == local {
					SetText(m.Shape, into.Field(m.Index), a.Value) //nolint:errcheck // attributes are strings
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range n.children {
		m := sh.ByName[c.name]
		if m == nil || m.Place.In != model.InBody {
			return malformedXML("there is no " + c.name + " in " + n.name)
		}
		flat := m.Shape.Kind == KindList && m.Place.Item == ""
		if seen[c.name] && !flat {
			return malformedXML(c.name + " comes more than once")
		}
		seen[c.name] = true
		field := into.Field(m.Index)
		var err error
		switch {
		case flat:
			err = c.appendTo(m.Shape, field)
		case m.Shape.Kind == KindList:
			field.Set(reflect.MakeSlice(field.Type(), 0, len(c.children)))
			for _, item := range c.children {
				if item.name != m.Place.Item {
					return malformedXML("there is no " + item.name + " in " + c.name)
				}
				if err = item.appendTo(m.Shape, field); err != nil {
					break
				}
			}
		default:
			err = c.value(m.Shape, field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *xmlNode) appendTo(list *Shape, field reflect.Value) error {
	element := reflect.New(list.Elem.Type).Elem()
	if err := n.value(list.Elem, element); err != nil {
		return err
	}
	field.Set(reflect.Append(field, element))
	return nil
}

func (n *xmlNode) value(sh *Shape, v reflect.Value) error {
	switch sh.Kind {
	case KindPointer:
		v.Set(reflect.New(sh.Elem.Type))
		return n.value(sh.Elem, v.Elem())
	case KindStructure:
		return n.structure(sh, v)
	}
	if len(n.children) > 0 {
		return malformedXML(n.name + " has elements in it")
	}
	text := n.text.String()
	if sh.Kind != KindString {
		text = strings.TrimSpace(text)
	}
	if err := SetText(sh, v, text); err != nil {
		return malformedXML(n.name + " is invalid")
	}
	return nil
}
