package codec

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// formTree has a form's parameters as the tree that their dotted names describe. Tags.member.1.Key is the key in the first
// member of Tags.
type formTree struct {
	value    *string
	children map[string]*formTree
}

// maxDots is the most dots in a parameter's name. It bounds the tree's depth.
const maxDots = 64

// newFormTree makes the tree of the operation's own parameters, without Action and the like.
func newFormTree(form url.Values) (*formTree, error) {
	root := &formTree{}
	parts := 0
	for name, values := range form {
		if name == "Action" || name == "Version" || strings.HasPrefix(name, "X-Amz-") {
			continue
		}
		if len(values) > 1 {
			return nil, refusal.New("SerializationException", "%s comes more than once.", name)
		}
		if strings.Count(name, ".") > maxDots {
			return nil, refusal.New("SerializationException", "A parameter's name has more than %d dots.", maxDots)
		}
		if parts += strings.Count(name, "."); parts > maxItems {
			return nil, refusal.New("SerializationException", "The parameters' names have more than %d dots.", maxItems)
		}
		t := root
		for part := range strings.SplitSeq(name, ".") {
			t = t.child(part)
		}
		t.value = &values[0]
	}
	return root, nil
}

func (t *formTree) child(name string) *formTree {
	if t.children == nil {
		t.children = map[string]*formTree{}
	}
	if t.children[name] == nil {
		t.children[name] = &formTree{}
	}
	return t.children[name]
}

// numbered returns the children in the order of their numbers. Lists are Name.member.1, maps are Name.entry.1, and both are
// Name.1 when flattened.
func (t *formTree) numbered(tag, path string) ([]*formTree, error) {
	if c := t.children[tag]; c != nil {
		t = c
		path += "." + tag
	}
	numbers := make([]int, 0, len(t.children))
	for name := range t.children {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || strconv.Itoa(n) != name {
			return nil, refusal.New("SerializationException", "%s.%s is not numbered.", path, name)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	children := make([]*formTree, len(numbers))
	for i, n := range numbers {
		children[i] = t.children[strconv.Itoa(n)]
	}
	return children, nil
}

// DecodeForm reads the operation's own parameters into a struct. If lenient, it skips unknown ones.
func DecodeForm(form url.Values, sh *Shape, into reflect.Value, lenient bool) error {
	root, err := newFormTree(form)
	if err != nil {
		return err
	}
	d := formDecoder{lenient}
	return d.structure(sh, root, "", into)
}

// formDecoder reads a form into SDK structs, as strictly as jsonDecoder.
type formDecoder struct{ lenient bool }

func (d formDecoder) structure(sh *Shape, t *formTree, path string, v reflect.Value) error {
	for name, child := range t.children {
		m := sh.byForm[name]
		if m == nil && d.lenient {
			continue
		}
		if m == nil {
			return refusal.New("UnknownParameterException", "%s: there is no such parameter.", join(path, name))
		}
		if err := d.member(m, child, join(path, name), v.Field(m.Index)); err != nil {
			return err
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d formDecoder) member(m *Member, t *formTree, path string, v reflect.Value) error {
	switch m.Shape.Kind {
	case kindMap:
		return d.dictionary(m.Shape, m.form, t, path, v)
	case KindList:
		return d.list(m.Shape, cmp.Or(m.Place.Item, "member"), t, path, v)
	}
	return d.value(m.Shape, t, path, v)
}

func (d formDecoder) value(sh *Shape, t *formTree, path string, v reflect.Value) error {
	switch sh.Kind {
	case KindPointer:
		p := reflect.New(sh.Elem.Type)
		v.Set(p)
		return d.value(sh.Elem, t, path, p.Elem())
	case KindStructure:
		return d.structure(sh, t, path, v)
	case KindList:
		return d.list(sh, "member", t, path, v)
	case kindMap:
		return d.dictionary(sh, model.FormName{}, t, path, v)
	}
	if t.value == nil || t.children != nil {
		return refusal.New("SerializationException", "%s: expected one value.", path)
	}
	if err := formScalar(sh, *t.value, v); err != nil {
		return refusal.New("SerializationException", "%s: %v.", path, err)
	}
	return nil
}

// list reads a list. Clients send an empty list as Name= with no value.
func (d formDecoder) list(sh *Shape, tag string, t *formTree, path string, v reflect.Value) error {
	items, err := t.numbered(tag, path)
	if err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(sh.Type, len(items), len(items)))
	for i, item := range items {
		if err := d.value(sh.Elem, item, join(path, strconv.Itoa(i+1)), v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d formDecoder) dictionary(sh *Shape, name model.FormName, t *formTree, path string, v reflect.Value) error {
	entries, err := t.numbered("entry", path)
	if err != nil {
		return err
	}
	v.Set(reflect.MakeMap(sh.Type))
	for i, entry := range entries {
		path := join(path, strconv.Itoa(i+1))
		keyName, valueName := name.Entry()
		key := entry.children[keyName]
		value := entry.children[valueName]
		if key == nil || key.value == nil || value == nil {
			return refusal.New("SerializationException", "%s: an entry needs a key and a value.", path)
		}
		e := reflect.New(sh.Elem.Type).Elem()
		if err := d.value(sh.Elem, value, join(path, valueName), e); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(*key.value).Convert(sh.Type.Key()), e)
	}
	return nil
}

// formScalar parses one parameter into v.
func formScalar(sh *Shape, s string, v reflect.Value) error {
	switch sh.Kind {
	case KindString:
		v.SetString(s)
		return expect(utf8.ValidString(s), "text in UTF-8")
	case KindBool:
		v.SetBool(s == "true")
		if s != "true" && s != "false" {
			return errors.New("expected true or false")
		}
		return nil
	case KindInt:
		n, err := strconv.ParseInt(s, 10, sh.Type.Bits())
		v.SetInt(sh.number(n))
		return wrongValue("a whole number", err)
	case kindFloat:
		f, err := strconv.ParseFloat(s, sh.Type.Bits())
		v.SetFloat(f)
		return wrongValue("a number", err)
	case KindTime:
		t, err := time.Parse(time.RFC3339, s)
		*v.Addr().Interface().(*time.Time) = t.UTC()
		return wrongValue("a timestamp as 2006-01-02T15:04:05Z", err)
	case KindBlob:
		b, err := base64.StdEncoding.DecodeString(s)
		v.SetBytes(b)
		return wrongValue("base64", err)
	}
	return fmt.Errorf("a %s cannot be read", sh.Type)
}

// wrongValue returns an error that says what was expected, if a value couldn't be parsed.
func wrongValue(expected string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New("expected " + expected)
}
