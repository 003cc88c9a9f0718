package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AWS JSON: members by name, timestamps as seconds with a fraction, blobs in base64, no nulls.

// encodeJSON appends a struct.
func (c *codec) encodeJSON(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '{')
	empty := true
	p := c.plan(v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.absent(fv) {
			continue
		}
		if !empty {
			b = append(b, ',')
		}
		empty = false
		b = append(b, f.quote...)
		var err error
		if b, err = c.encodeValue(b, fv); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return append(b, '}'), nil
}

func (c *codec) encodeValue(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Type() {
	case timeType:
		return appendTime(b, v.Interface().(time.Time)), nil
	case bytesType:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes())
		return append(b, '"'), nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return c.encodeValue(b, v.Elem())
	case reflect.Struct:
		return c.encodeJSON(b, v)
	case reflect.String:
		return jsontext.AppendQuote(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Float32, reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.Slice:
		return c.encodeList(b, v)
	case reflect.Map:
		return c.encodeMap(b, v)
	case reflect.Interface:
		name, value, ok := c.unionMember(v)
		if !ok {
			return nil, fmt.Errorf("a %s cannot be written", v.Type())
		}
		b = append(append(b, `{"`+name...), `":`...)
		b, err := c.encodeValue(b, value)
		return append(b, '}'), err
	}
	return nil, fmt.Errorf("a %s cannot be written", v.Type())
}

func (c *codec) encodeList(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = c.encodeValue(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (c *codec) encodeMap(b []byte, v reflect.Value) ([]byte, error) {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, k); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = c.encodeValue(b, v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key()))); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendTime writes seconds since the epoch, to the millisecond as AWS does.
func appendTime(b []byte, t time.Time) []byte {
	ms := t.UnixMilli()
	if ms%1000 == 0 {
		return append(strconv.AppendInt(b, ms/1000, 10), ".0"...)
	}
	return strconv.AppendFloat(b, float64(ms)/1000, 'f', 3, 64)
}

func appendFloat(b []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...), nil
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...), nil
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...), nil
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.AppendFloat(b, f, 'f', 1, 64), nil
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64), nil
}

// decodeJSON reads a body into a struct. Strict, it refuses members that the struct does not have:
// a client that sends one wants something that would silently not happen.
func (c *codec) decodeJSON(body []byte, into reflect.Value, strict bool) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := &jsonDecoder{codec: c, strict: strict, in: jsontext.NewDecoder(bytes.NewReader(body))}
	if err := d.value(into); err != nil {
		return d.explain(err)
	}
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		return clientError("SerializationException", "The request's body goes on behind its JSON object.")
	}
	return nil
}

// jsonDecoder reads one body.
type jsonDecoder struct {
	codec  *codec
	in     *jsontext.Decoder
	strict bool
}

// explain turns an error into AWS's, with the place where it happened.
func (d *jsonDecoder) explain(err error) error {
	var m *mismatch
	if errors.As(err, &m) {
		return clientError("SerializationException", "%s: %s", m.path, m.message)
	}
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		return clientError("SerializationException", "The request's body is not valid JSON: %v.", s)
	}
	return clientError("SerializationException", "The request's body is not valid JSON: %v.", err)
}

// mismatch is JSON that does not fit the struct.
type mismatch struct{ path, message string }

func (m *mismatch) Error() string { return m.path + ": " + m.message }

func (d *jsonDecoder) mismatch(format string, args ...any) error {
	path := string(d.in.StackPointer())
	if path == "" {
		path = "/"
	}
	return &mismatch{path, fmt.Sprintf(format, args...)}
}

// value reads one value; null leaves what is there.
func (d *jsonDecoder) value(v reflect.Value) error {
	if d.in.PeekKind() == 'n' {
		_, err := d.in.ReadToken()
		return err
	}
	switch v.Type() {
	case timeType:
		return d.time(v)
	case bytesType:
		return d.blob(v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if err := d.value(p.Elem()); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case reflect.Struct:
		return d.object(v)
	case reflect.Slice:
		return d.list(v)
	case reflect.Map:
		return d.dictionary(v)
	case reflect.Interface:
		return d.mismatch("Pintle does not support this member yet.")
	}
	return d.scalar(v)
}

func (d *jsonDecoder) object(v reflect.Value) error {
	if err := d.expect('{', "an object"); err != nil {
		return err
	}
	p := d.codec.plan(v.Type())
	for d.in.PeekKind() != '}' {
		name, err := d.in.ReadToken()
		if err != nil {
			return err
		}
		f := p.byName[name.String()]
		switch {
		case f != nil:
			err = d.value(v.Field(f.index))
		case d.strict:
			err = d.mismatch("%s has no such member.", v.Type().Name())
		default:
			err = d.in.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := d.in.ReadToken()
	return err
}

func (d *jsonDecoder) list(v reflect.Value) error {
	if err := d.expect('[', "a list"); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for d.in.PeekKind() != ']' {
		if d.in.PeekKind() == 'n' {
			return d.mismatch("a list cannot hold null.")
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(e); err != nil {
			return err
		}
		v.Set(reflect.Append(v, e))
	}
	_, err := d.in.ReadToken()
	return err
}

func (d *jsonDecoder) dictionary(v reflect.Value) error {
	if err := d.expect('{', "an object"); err != nil {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	for d.in.PeekKind() != '}' {
		name, err := d.in.ReadToken()
		if err != nil {
			return err
		}
		key := reflect.ValueOf(name.String()).Convert(v.Type().Key())
		e := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(e); err != nil {
			return err
		}
		v.SetMapIndex(key, e)
	}
	_, err := d.in.ReadToken()
	return err
}

// expect reads the token that opens an object or a list.
func (d *jsonDecoder) expect(want jsontext.Kind, what string) error {
	got := d.in.PeekKind()
	tok, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	if got != want {
		return d.mismatch("%s is wanted, not %s.", what, describe(tok))
	}
	return nil
}

func describe(t jsontext.Token) string {
	switch t.Kind() {
	case '"':
		return "a string"
	case '0':
		return "the number " + t.String()
	case 't', 'f':
		return "the boolean " + t.String()
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "null"
}

func (d *jsonDecoder) scalar(v reflect.Value) error {
	t, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.String:
		if t.Kind() != '"' {
			return d.mismatch("a string is wanted, not %s.", describe(t))
		}
		v.SetString(t.String())
	case reflect.Bool:
		if t.Kind() != 't' && t.Kind() != 'f' {
			return d.mismatch("a boolean is wanted, not %s.", describe(t))
		}
		v.SetBool(t.Bool())
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(t.String(), 10, v.Type().Bits())
		if t.Kind() != '0' || err != nil {
			return d.mismatch("a whole number of %d bits is wanted, not %s.", v.Type().Bits(), describe(t))
		}
		v.SetInt(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(t.String(), 64)
		if err != nil || t.Kind() != '0' && t.Kind() != '"' {
			return d.mismatch("a number is wanted, not %s.", describe(t))
		}
		v.SetFloat(f)
	default:
		return d.mismatch("Pintle does not support this member yet.")
	}
	return nil
}

// latest keeps timestamps within what a time.Time can be told apart in.
const latest = 1 << 40

func (d *jsonDecoder) time(v reflect.Value) error {
	t, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(t.String(), 64)
	if t.Kind() != '0' || err != nil || math.Abs(seconds) > latest {
		return d.mismatch("a timestamp is wanted, in seconds since 1970, not %s.", describe(t))
	}
	v.Set(reflect.ValueOf(time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()))
	return nil
}

func (d *jsonDecoder) blob(v reflect.Value) error {
	t, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(t.String())
	if t.Kind() != '"' || err != nil {
		return d.mismatch("base64 is wanted, not %s.", describe(t))
	}
	v.SetBytes(b)
	return nil
}
