package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// cborDecoder reads one body into SDK structs, as strictly as jsonDecoder. First the library parses the CBOR and refuses
// duplicate names. Then the decoder moves the values into the structs.
type cborDecoder struct {
	lenient bool // whether unknown members are skipped
	items   int  // of all lists, so far
}

var cborMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		DefaultMapType:   reflect.TypeFor[map[string]any](),
		MaxNestedLevels:  32,
		MaxArrayElements: maxItems,
		MaxMapPairs:      maxItems,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

// DecodeCBOR reads a whole body into a struct. If lenient, it skips unknown members.
func DecodeCBOR(body []byte, sh *Shape, into reflect.Value, lenient bool) error {
	d := cborDecoder{lenient: lenient}
	return d.body(body, sh, into)
}

// body reads the whole body. An empty body is an input without members.
func (d *cborDecoder) body(b []byte, sh *Shape, into reflect.Value) error {
	if len(b) == 0 {
		return nil
	}
	if countCBOR(b) > maxValues {
		return refusal.New("SerializationException", "The request's body has more than %d values.", maxValues)
	}
	var read any
	if err := cborMode.Unmarshal(b, &read); err != nil {
		return refusal.New("SerializationException", "The request's body is not valid CBOR: %v.", err)
	}
	err := d.structure(sh, read, "", into)
	var m *mismatch
	if errors.As(err, &m) && m.path == "" {
		m.path = "The request's body"
	}
	if err != nil {
		return refusal.New("SerializationException", "%v", err)
	}
	return nil
}

// maxValues is the most values in a body, names and containers included. The library makes all of them before one is looked at.
const maxValues = 4 * maxItems

// countCBOR counts a body's values, at most as many as it has bytes. A value is a head, and for texts and bytes what the head announces.
func countCBOR(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		kind := b[0] >> 5
		size := uint64(b[0] & 31)
		head := 1
		if size >= 24 && size <= 27 { // the number is in the next 1, 2, 4 or 8 bytes
			head += 1 << (size - 24)
			if head > len(b) {
				return n
			}
			size = 0
			for _, digit := range b[1:head] {
				size = size<<8 | uint64(digit)
			}
		}
		b = b[head:]
		if kind != 2 && kind != 3 || size == 31 && head == 1 { // no text, or one in pieces
			continue
		}
		if size > uint64(len(b)) {
			return n
		}
		b = b[size:]
	}
	return n
}

// value sets v to a parsed value. Null is the same as leaving a member out.
func (d *cborDecoder) value(sh *Shape, read any, path string, v reflect.Value) error {
	if read == nil {
		return nil
	}
	switch sh.Kind {
	case KindPointer:
		p := reflect.New(sh.Elem.Type)
		v.Set(p)
		return d.value(sh.Elem, read, path, p.Elem())
	case KindStructure:
		return d.structure(sh, read, path, v)
	case kindUnion:
		return d.union(sh, read, path, v)
	case KindList:
		return d.list(sh, read, path, v)
	case kindMap:
		return d.dictionary(sh, read, path, v)
	}
	if err := cborScalar(sh, read, v); err != nil {
		return &mismatch{path, err.Error() + "."}
	}
	return nil
}

func (d *cborDecoder) structure(sh *Shape, read any, path string, v reflect.Value) error {
	members, ok := read.(map[string]any)
	if !ok {
		return &mismatch{path, "expected a map."}
	}
	for name, value := range members {
		m := sh.ByName[name]
		if m == nil && d.lenient {
			continue
		}
		if m == nil {
			return &mismatch{join(path, name), fmt.Sprintf("there is no such member in %s.", sh.Type.Name())}
		}
		if err := d.value(m.Shape, value, join(path, name), v.Field(m.Index)); err != nil {
			return err
		}
	}
	return nil
}

// union reads a map with exactly one member.
func (d *cborDecoder) union(sh *Shape, read any, path string, v reflect.Value) error {
	members, ok := read.(map[string]any)
	if !ok || len(members) != 1 {
		return &mismatch{path, fmt.Sprintf("expected a map with one member of %s.", sh.Type.Name())}
	}
	for name, value := range members {
		m := sh.ByName[name]
		if m == nil {
			return &mismatch{join(path, name), fmt.Sprintf("there is no such member in %s.", sh.Type.Name())}
		}
		p := reflect.New(m.typ)
		if err := d.value(m.Shape, value, join(path, name), p.Elem().FieldByName("Value")); err != nil {
			return err
		}
		v.Set(p)
	}
	return nil
}

func (d *cborDecoder) list(sh *Shape, read any, path string, v reflect.Value) error {
	items, ok := read.([]any)
	if !ok {
		return &mismatch{path, "expected a list."}
	}
	if d.items += len(items); d.items > maxItems {
		return &mismatch{path, fmt.Sprintf("the lists of one request cannot have more than %d members.", maxItems)}
	}
	v.Set(reflect.MakeSlice(sh.Type, len(items), len(items)))
	for i, item := range items {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item == nil {
			return &mismatch{at, "expected a value, not null."}
		}
		if err := d.value(sh.Elem, item, at, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *cborDecoder) dictionary(sh *Shape, read any, path string, v reflect.Value) error {
	entries, ok := read.(map[string]any)
	if !ok {
		return &mismatch{path, "expected a map."}
	}
	v.Set(reflect.MakeMapWithSize(sh.Type, len(entries)))
	for name, value := range entries {
		if value == nil {
			return &mismatch{join(path, name), "expected a value, not null."}
		}
		e := reflect.New(sh.Elem.Type).Elem()
		if err := d.value(sh.Elem, value, join(path, name), e); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(sh.Type.Key()), e)
	}
	return nil
}

// cborScalar sets v from one parsed value.
func cborScalar(sh *Shape, read any, v reflect.Value) error {
	switch sh.Kind {
	case KindString:
		s, ok := read.(string)
		v.SetString(s)
		return expect(ok, "a string")
	case KindBool:
		b, ok := read.(bool)
		v.SetBool(b)
		return expect(ok, "true or false")
	case KindInt:
		n, ok := cborInt(read)
		if !ok || v.OverflowInt(n) {
			return expect(false, fmt.Sprintf("a whole number of %d bits", sh.Type.Bits()))
		}
		v.SetInt(n)
		return nil
	case kindFloat:
		f, ok := cborFloat(read)
		v.SetFloat(f)
		return expect(ok, "a number")
	case KindTime:
		t, ok := read.(time.Time)
		*v.Addr().Interface().(*time.Time) = t.Round(time.Millisecond).UTC()
		return expect(ok && !t.IsZero() && t.Unix() >= -maxSeconds && t.Unix() <= maxSeconds, "a timestamp: tag 1 with seconds since 1970")
	case KindBlob:
		b, ok := read.([]byte)
		v.SetBytes(b)
		return expect(ok, "bytes")
	}
	return fmt.Errorf("a %s cannot be read", sh.Type)
}

// expect returns an error that says what was expected, unless ok.
func expect(ok bool, expected string) error {
	if ok {
		return nil
	}
	return errors.New("expected " + expected)
}

func cborInt(read any) (int64, bool) {
	switch n := read.(type) {
	case int64:
		return n, true
	case uint64:
		return int64(n), n <= math.MaxInt64
	}
	return 0, false
}

// cborFloat also accepts whole numbers, because clients send them when they are shorter.
func cborFloat(read any) (float64, bool) {
	if f, ok := read.(float64); ok {
		return f, true
	}
	n, ok := cborInt(read)
	return float64(n), ok
}
