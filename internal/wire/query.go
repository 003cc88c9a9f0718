package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AWS Query: the input is a form, its lists numbered as Name.member.1; the output is XML.

// maxListForm bounds the members of one list in a form.
const maxListForm = 1000

// readForm reads the form, and the operation in it.
func (r *route) readForm(body []byte) error {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return clientError("MalformedQueryString", "The request's form could not be read: %v", err)
	}
	r.form, r.operation = form, form.Get("Action")
	if r.operation == "" {
		return clientError("MissingAction", "The request to %s has no Action.", r.api.Name)
	}
	return nil
}

// decodeForm reads the form's members into a struct.
func (c *codec) decodeForm(form url.Values, into reflect.Value) error {
	_, err := c.formStruct(form, "", into)
	return err
}

// formStruct reads the members under a prefix, and says whether there were any.
func (c *codec) formStruct(form url.Values, prefix string, into reflect.Value) (found bool, err error) {
	for _, f := range c.plan(into.Type()).fields {
		ok, err := c.formValue(form, prefix+f.name, into.Field(f.index))
		if err != nil {
			return found, err
		}
		found = found || ok
	}
	return found, nil
}

func (c *codec) formValue(form url.Values, name string, v reflect.Value) (found bool, err error) {
	switch {
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if found, err = c.formValue(form, name, p.Elem()); found && err == nil {
			v.Set(p)
		}
		return found, err
	case v.Kind() == reflect.Struct && v.Type() != timeType:
		return c.formStruct(form, name+".", v)
	case v.Kind() == reflect.Slice && v.Type() != bytesType:
		return c.formList(form, name, v)
	case v.Kind() == reflect.Map:
		return c.formMap(form, name, v)
	}
	if !form.Has(name) {
		return false, nil
	}
	return true, formScalar(name, form.Get(name), v)
}

func (c *codec) formList(form url.Values, name string, v reflect.Value) (bool, error) {
	if form.Has(name) && form.Get(name) == "" { // how a client sends an empty list
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return true, nil
	}
	for i := 1; i <= maxListForm; i++ {
		e := reflect.New(v.Type().Elem()).Elem()
		found, err := c.formValue(form, fmt.Sprintf("%s.member.%d", name, i), e)
		if err != nil || !found {
			return i > 1, err
		}
		v.Set(reflect.Append(v, e))
	}
	return false, clientError("ValidationError", "%s has more than %d members.", name, maxListForm)
}

func (c *codec) formMap(form url.Values, name string, v reflect.Value) (bool, error) {
	for i := 1; i <= maxListForm; i++ {
		entry := fmt.Sprintf("%s.entry.%d.", name, i)
		if !form.Has(entry + "key") {
			return i > 1, nil
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if _, err := c.formValue(form, entry+"value", e); err != nil {
			return false, err
		}
		v.SetMapIndex(reflect.ValueOf(form.Get(entry+"key")).Convert(v.Type().Key()), e)
	}
	return false, clientError("ValidationError", "%s has more than %d entries.", name, maxListForm)
}

func formScalar(name, s string, v reflect.Value) (err error) {
	switch {
	case v.Type() == timeType:
		var t time.Time
		if t, err = time.Parse(time.RFC3339, s); err == nil {
			v.Set(reflect.ValueOf(t))
		}
	case v.Type() == bytesType:
		var b []byte
		if b, err = base64.StdEncoding.DecodeString(s); err == nil {
			v.SetBytes(b)
		}
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(s); err == nil {
			v.SetBool(b)
		}
	case v.CanInt():
		var n int64
		if n, err = strconv.ParseInt(s, 10, v.Type().Bits()); err == nil {
			v.SetInt(n)
		}
	case v.CanFloat():
		var f float64
		if f, err = strconv.ParseFloat(s, 64); err == nil {
			v.SetFloat(f)
		}
	default:
		return clientError("ValidationError", "Pintle does not support the parameter %s yet.", name)
	}
	if err != nil {
		return clientError("MalformedInput", "The value %q of %s does not fit: %v.", s, name, err)
	}
	return nil
}

// encodeXML writes an operation's answer.
func (a *API) encodeXML(operation string, out any, id string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<%sResponse xmlns="https://%s.amazonaws.com/doc/%s/"><%sResult>`, operation, a.Name, a.Version, operation)
	if err := a.codec.xmlStruct(&b, reflect.ValueOf(out).Elem()); err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `</%sResult><ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>`, operation, id, operation)
	return b.Bytes(), nil
}

func (c *codec) xmlStruct(b *bytes.Buffer, v reflect.Value) error {
	p := c.plan(v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		if fv := v.Field(f.index); !f.absent(fv) {
			if err := c.xmlElement(b, f.name, fv); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *codec) xmlElement(b *bytes.Buffer, name string, v reflect.Value) error {
	b.WriteString("<" + name + ">")
	if err := c.xmlValue(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.WriteString("</" + name + ">")
	return nil
}

func (c *codec) xmlValue(b *bytes.Buffer, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer:
		return c.xmlValue(b, v.Elem())
	case v.Type() == timeType:
		b.WriteString(v.Interface().(time.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
		return nil
	case v.Type() == bytesType:
		b.WriteString(base64.StdEncoding.EncodeToString(v.Bytes()))
		return nil
	case v.Kind() == reflect.Struct:
		return c.xmlStruct(b, v)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := c.xmlElement(b, "member", v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case v.Kind() == reflect.Map:
		return c.xmlMap(b, v)
	case v.Kind() == reflect.Interface:
		return fmt.Errorf("a %s cannot be written", v.Type())
	}
	return xml.EscapeText(b, []byte(fmt.Sprint(v.Interface())))
}

func (c *codec) xmlMap(b *bytes.Buffer, v reflect.Value) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	for _, k := range keys {
		b.WriteString("<entry>")
		if err := c.xmlElement(b, "key", k); err != nil {
			return err
		}
		if err := c.xmlElement(b, "value", v.MapIndex(k)); err != nil {
			return err
		}
		b.WriteString("</entry>")
	}
	return nil
}
