package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"

	documentjson "github.com/aws/smithy-go/document/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonDecoder reads one body into SDK structs. It's strict: it refuses values of the wrong type, duplicate members and unknown
// members, because the caller wants something that would silently not happen. The types bound the depth of what it reads.
// jsontext bounds the depth of what it skips, and checks UTF-8.
type jsonDecoder struct {
	in      *jsontext.Decoder
	lenient bool // whether unknown members are skipped
	items   int  // of all lists, so far
}

// maxItems is the most items in a request's lists and maps. Without it a small body could cost much memory, because an empty object
// becomes a whole struct.
const maxItems = 1 << 16

// DecodeJSON reads a whole body into a struct. If lenient, it skips unknown members.
func DecodeJSON(in *jsontext.Decoder, body []byte, sh *Shape, into reflect.Value, lenient bool) error {
	d := jsonDecoder{in: in, lenient: lenient}
	return d.body(body, sh, into)
}

// body reads the whole body. An empty body is an input without members.
func (d *jsonDecoder) body(b []byte, sh *Shape, into reflect.Value) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	d.in.Reset(bytes.NewBuffer(b))
	if err := d.structure(sh, into); err != nil {
		return serializationError(err)
	}
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		return refusal.New("SerializationException", "The request's body goes on behind its JSON object.")
	}
	return nil
}

// mismatch is the error for a value that doesn't fit the struct.
type mismatch struct{ path, message string }

func (m *mismatch) Error() string { return m.path + ": " + m.message }

func serializationError(err error) error {
	var m *mismatch
	if errors.As(err, &m) {
		return refusal.New("SerializationException", "%s", m)
	}
	return refusal.New("SerializationException", "The request's body is not valid JSON: %s.", strings.TrimPrefix(err.Error(), "jsontext: "))
}

// mismatch returns an error about the value or name that was read last.
func (d *jsonDecoder) mismatch(format string, args ...any) error {
	return &mismatch{d.path(), fmt.Sprintf(format, args...)}
}

// path returns the decoder's position, such as containerDefinitions[0].cpu.
func (d *jsonDecoder) path() string {
	var b strings.Builder
	depth := 0
	for token := range d.in.StackPointer().Tokens() {
		depth++
		if kind, _ := d.in.StackIndex(depth); kind == '[' {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() == 0 {
		return "The request's body"
	}
	return b.String()
}

// member reads a member's value. Null is the same as leaving the member out.
func (d *jsonDecoder) member(sh *Shape, v reflect.Value) error {
	if d.in.PeekKind() == 'n' {
		return d.in.SkipValue()
	}
	return d.value(sh, v)
}

func (d *jsonDecoder) value(sh *Shape, v reflect.Value) error {
	switch sh.Kind {
	case KindPointer:
		p := reflect.New(sh.Elem.Type)
		v.Set(p)
		return d.value(sh.Elem, p.Elem())
	case KindList:
		return d.list(sh, v)
	case kindMap:
		return d.dictionary(sh, v)
	case KindStructure:
		return d.structure(sh, v)
	case kindUnion:
		return d.union(sh, v)
	case kindDocument:
		return d.document(sh, v)
	}
	return d.scalar(sh, v)
}

// open reads the token that begins an object or a list.
func (d *jsonDecoder) open(want jsontext.Kind, what string) error {
	t, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != want {
		return d.mismatch("expected %s, not %s.", what, describe(t))
	}
	return nil
}

// more reports whether the object or list goes on. At the end it reads the closing token.
func (d *jsonDecoder) more(end jsontext.Kind) (bool, error) {
	if d.in.PeekKind() != end {
		return true, nil
	}
	_, err := d.in.ReadToken()
	return false, err
}

func (d *jsonDecoder) structure(sh *Shape, v reflect.Value) error {
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	for {
		if more, err := d.more('}'); !more || err != nil {
			return err
		}
		m, err := d.name(sh)
		switch {
		case err != nil:
		case m == nil:
			err = d.in.SkipValue()
		default:
			err = d.member(m.Shape, v.Field(m.Index))
		}
		if err != nil {
			return err
		}
	}
}

// name reads a member's name. For an unknown name it returns an error, or nil if the decoder is lenient.
func (d *jsonDecoder) name(sh *Shape) (*Member, error) {
	t, err := d.in.ReadToken()
	if err != nil {
		return nil, err
	}
	m := sh.ByName[t.String()]
	if m != nil && m.Place.In != model.InBody { // in REST, the member isn't in the body
		m = nil
	}
	if m == nil && !d.lenient {
		return nil, d.mismatch("there is no such member in %s.", sh.Type.Name())
	}
	return m, nil
}

// union reads an object of which exactly one member is set.
func (d *jsonDecoder) union(sh *Shape, v reflect.Value) error {
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	for {
		if more, err := d.more('}'); !more || err != nil {
			return err
		}
		m, err := d.name(sh)
		if err != nil {
			return err
		}
		if m == nil || d.in.PeekKind() == 'n' {
			if err := d.in.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if !v.IsNil() {
			return d.mismatch("only one member of %s can be set.", sh.Type.Name())
		}
		p := reflect.New(m.typ)
		if err := d.value(m.Shape, p.Elem().FieldByName("Value")); err != nil {
			return err
		}
		v.Set(p)
	}
}

func (d *jsonDecoder) list(sh *Shape, v reflect.Value) error {
	if sh.Type == stringsType {
		if list := plainStrings(d.in.UnreadBuffer(), maxItems-d.items); list != nil {
			d.items += len(list)
			v.Set(reflect.ValueOf(list))
			return d.in.SkipValue()
		}
	}
	if err := d.open('[', "a list"); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(sh.Type, 0, 0))
	for n := 0; ; n++ {
		if more, err := d.more(']'); !more || err != nil {
			return err
		}
		if err := d.count(); err != nil {
			return err
		}
		v.Grow(1)
		v.SetLen(n + 1)
		if err := d.value(sh.Elem, v.Index(n)); err != nil {
			return err
		}
	}
}

// count counts an item of a list or a map.
func (d *jsonDecoder) count() error {
	if d.items++; d.items > maxItems {
		return d.mismatch("the lists of one request cannot have more than %d members.", maxItems)
	}
	return nil
}

var stringsType = reflect.TypeFor[[]string]()

// plainStrings reads a list of at most so many strings without escapes, such as the ARNs of a hundred tasks. It returns nil for any other
// text, which the decoder then reads. The strings share one piece of memory.
func plainStrings(text []byte, most int) []string {
	text = bytes.TrimLeft(text, ":,"+whitespace)
	end := bytes.IndexByte(text, ']')
	if end < 0 || text[0] != '[' || bytes.Count(text[:end], []byte(",")) >= most {
		return nil
	}
	rest := string(text[1:end])
	list := make([]string, 0, strings.Count(rest, ",")+1)
	for {
		var item string
		var quoted, more bool
		if rest, quoted = strings.CutPrefix(strings.TrimLeft(rest, whitespace), `"`); !quoted {
			return nil
		}
		if item, rest, quoted = strings.Cut(rest, `"`); !quoted || !plain(item) {
			return nil
		}
		list = append(list, item)
		if rest, more = strings.CutPrefix(strings.TrimLeft(rest, whitespace), ","); !more {
			break
		}
	}
	if rest != "" {
		return nil
	}
	return list
}

const whitespace = " \t\r\n" // in JSON

func (d *jsonDecoder) dictionary(sh *Shape, v reflect.Value) error {
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	v.Set(reflect.MakeMap(sh.Type))
	for {
		if more, err := d.more('}'); !more || err != nil {
			return err
		}
		name, err := d.in.ReadToken()
		if err != nil {
			return err
		}
		if err := d.count(); err != nil {
			return err
		}
		key := reflect.ValueOf(name.String()).Convert(sh.Type.Key())
		e := reflect.New(sh.Elem.Type).Elem()
		if err := d.value(sh.Elem, e); err != nil {
			return err
		}
		v.SetMapIndex(key, e)
	}
}

// document reads any JSON. Numbers keep their text, so that none loses digits.
func (d *jsonDecoder) document(sh *Shape, v reflect.Value) error {
	raw, err := d.in.ReadValue()
	if err != nil {
		return err
	}
	if d.items += bytes.Count(raw, []byte(",")) + bytes.Count(raw, []byte("[")); d.items > maxItems {
		return d.mismatch("the lists of one request cannot have more than %d members.", maxItems)
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	var parsed, held any
	if err := numbers.Decode(&parsed); err != nil {
		return d.mismatch("the document could not be read: %v.", err)
	}
	if err := documentjson.NewDecoder().DecodeJSONInterface(parsed, &held); err != nil {
		return d.mismatch("the document could not be read: %v.", err)
	}
	v.Set(reflect.ValueOf(sh.newDocument(held)))
	return nil
}

func (d *jsonDecoder) scalar(sh *Shape, v reflect.Value) error {
	t, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	switch sh.Kind {
	case KindString:
		return d.string(t, v)
	case KindBool:
		return d.bool(t, v)
	case KindInt:
		return d.int(sh, t, v)
	case kindFloat:
		return d.float(t, v)
	case KindTime:
		return d.time(t, v)
	case KindBlob:
		return d.blob(t, v)
	}
	return d.mismatch("a %s cannot be read.", sh.Type)
}

func (d *jsonDecoder) string(t jsontext.Token, v reflect.Value) error {
	if t.Kind() != '"' {
		return d.mismatch("expected a string, not %s.", kindOf(t))
	}
	v.SetString(t.String())
	return nil
}

func (d *jsonDecoder) bool(t jsontext.Token, v reflect.Value) error {
	if t.Kind() != 't' && t.Kind() != 'f' {
		return d.mismatch("expected true or false, not %s.", describe(t))
	}
	v.SetBool(t.Kind() == 't')
	return nil
}

func (d *jsonDecoder) int(sh *Shape, t jsontext.Token, v reflect.Value) error {
	if t.Kind() != '0' {
		return d.mismatch("expected a whole number, not %s.", describe(t))
	}
	n, err := t.Int()
	if err != nil || v.OverflowInt(n) {
		return d.mismatch("expected a whole number of %d bits, not %s.", v.Type().Bits(), describe(t))
	}
	v.SetInt(sh.number(n))
	return nil
}

// float reads a number, or a string for NaN or an infinity.
func (d *jsonDecoder) float(t jsontext.Token, v reflect.Value) error {
	f, ok := notFinite[t.String()]
	if t.Kind() == '0' {
		parsed, err := strconv.ParseFloat(t.String(), v.Type().Bits())
		f, ok = parsed, err == nil
	}
	if !ok {
		return d.mismatch("expected a number of %d bits, not %s.", v.Type().Bits(), describe(t))
	}
	v.SetFloat(f)
	return nil
}

var notFinite = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

// maxSeconds is the latest timestamp, the end of the year 9999. Later times can't be formatted.
const maxSeconds = 253402300799

func (d *jsonDecoder) time(t jsontext.Token, v reflect.Value) error {
	if t.Kind() != '0' {
		return d.mismatch("expected a timestamp in seconds since 1970, not %s.", describe(t))
	}
	seconds, err := strconv.ParseFloat(t.String(), 64)
	if err != nil || math.Abs(seconds) > maxSeconds {
		return d.mismatch("expected a timestamp in seconds since 1970, not %s.", describe(t))
	}
	*v.Addr().Interface().(*time.Time) = time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
	return nil
}

func (d *jsonDecoder) blob(t jsontext.Token, v reflect.Value) error {
	if t.Kind() != '"' {
		return d.mismatch("expected base64, not %s.", kindOf(t))
	}
	b, err := base64.StdEncoding.DecodeString(t.String())
	if err != nil {
		return d.mismatch("expected base64: %v.", err)
	}
	v.SetBytes(b)
	return nil
}

// describe says what a token is, and of a number which.
func describe(t jsontext.Token) string {
	if t.Kind() == '0' {
		return "the number " + t.String()
	}
	return kindOf(t)
}

// kindOf says what a token is. It repeats nothing of the caller's where a string or bytes belong, because those may be secret.
func kindOf(t jsontext.Token) string {
	switch t.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return t.String()
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "null"
}
