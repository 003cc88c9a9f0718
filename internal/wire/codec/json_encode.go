package codec

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/aws/smithy-go/document"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pintle/pintle/internal/wire/model"
)

// jsonEncoder appends values as AWS JSON: no nulls for absent members, timestamps in seconds, blobs in base64.
type jsonEncoder struct {
	b   []byte
	err error // the first one
}

// value appends the value at p.
func (e *jsonEncoder) value(sh *Shape, p unsafe.Pointer) {
	switch sh.Kind {
	case KindString:
		e.string(*(*string)(p))
	case KindBool:
		e.b = strconv.AppendBool(e.b, *(*bool)(p))
	case KindInt:
		e.b = strconv.AppendInt(e.b, sh.int(p), 10)
	case kindFloat:
		e.float(sh.float(p))
	case KindTime:
		e.time(*(*time.Time)(p))
	case KindBlob:
		e.b = append(e.b, '"')
		e.b = base64.StdEncoding.AppendEncode(e.b, *(*[]byte)(p))
		e.b = append(e.b, '"')
	case KindPointer:
		e.pointer(sh, *(*unsafe.Pointer)(p))
	case KindList:
		e.list(sh, p)
	case kindMap:
		e.dictionary(sh, p)
	case KindStructure:
		e.structure(sh, p)
	case kindUnion:
		e.union(sh, p)
	case kindDocument:
		e.document(sh, p)
	case kindEmpty:
		e.b = append(e.b, "[]"...)
	default:
		e.fail("a %s cannot be written", sh.Type)
	}
}

// AppendJSON appends an answer's struct.
func AppendJSON(b []byte, sh *Shape, out reflect.Value) ([]byte, error) {
	e := jsonEncoder{b: b}
	e.value(sh, Address(out))
	return e.b, e.err
}

// AppendJSONError appends an error: its name and its members. An error without a shape has only a message.
func AppendJSONError(b []byte, name, message string, sh *Shape, members reflect.Value) []byte {
	e := jsonEncoder{b: append(b, `{"__type":`...)}
	e.string(name)
	if sh == nil {
		e.b = append(e.b, `,"message":`...)
		e.string(message)
		return append(e.b, '}')
	}
	m := jsonEncoder{}
	m.structure(sh, Address(members))
	if len(m.b) > len("{}") {
		e.b = append(e.b, ',')
	}
	return append(e.b, m.b[1:]...)
}

func (e *jsonEncoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *jsonEncoder) structure(sh *Shape, p unsafe.Pointer) {
	e.b = append(e.b, '{')
	start := len(e.b)
	for i := range sh.Members {
		m := &sh.Members[i]
		f := m.In(p)
		if m.absent(f) || m.Place.In != model.InBody {
			continue
		}
		if len(e.b) > start {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, m.quoted...)
		e.value(m.Shape, f)
	}
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) pointer(sh *Shape, p unsafe.Pointer) {
	if p == nil { // in a list or a map, where it can't be left out
		e.b = append(e.b, "null"...)
		return
	}
	e.value(sh.Elem, p)
}

func (e *jsonEncoder) list(sh *Shape, p unsafe.Pointer) {
	e.b = append(e.b, '[')
	n, first := elements(p)
	for i := range n {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		p := sh.Elem.element(first, i)
		if sh.kept != nil {
			e.row(sh.Elem, sh.kept, *(*unsafe.Pointer)(p))
			continue
		}
		e.value(sh.Elem, p)
	}
	e.b = append(e.b, ']')
}

func (e *jsonEncoder) dictionary(sh *Shape, p unsafe.Pointer) {
	e.b = append(e.b, '{')
	sh.entries(p, func(i int, key string, value unsafe.Pointer) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.string(key)
		e.b = append(e.b, ':')
		e.value(sh.Elem, value)
	})
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) union(sh *Shape, p unsafe.Pointer) {
	m, value := sh.variant(p)
	if m == nil {
		e.fail("a %s that holds none of its variants cannot be written", sh.Type)
		return
	}
	e.b = append(e.b, '{')
	e.b = append(e.b, m.quoted...)
	e.value(m.Shape, value)
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) document(sh *Shape, p unsafe.Pointer) {
	b, err := reflect.NewAt(sh.Type, p).Elem().Interface().(document.Marshaler).MarshalSmithyDocument()
	if err != nil {
		e.fail("a document cannot be written: %w", err)
		return
	}
	e.b = append(e.b, b...)
}

// string appends a string. Most strings need no escapes. Invalid UTF-8 is replaced.
func (e *jsonEncoder) string(s string) {
	start := len(e.b)
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	if !plain(e.b[start+1:]) {
		e.b, _ = jsontext.AppendQuote(e.b[:start], s)
		return
	}
	e.b = append(e.b, '"')
}

// plain reports whether text needs no escapes in JSON: it has no control characters, quotes, backslashes, or bytes beyond
// ASCII. Most of an answer is text, so plain looks at eight bytes at once. A byte that isn't plain sets its highest bit in
// one of the terms. If all bytes are plain, no term has such a bit.
func plain[T string | []byte](b T) bool {
	const (
		each    = 0x0101010101010101
		highest = 0x8080808080808080
	)
	for ; len(b) >= 8; b = b[8:] {
		w := binary.LittleEndian.Uint64([]byte(b[:8]))
		if (w|(w-each*' ')|((w^each*'"')-each)|((w^each*'\\')-each))&highest != 0 {
			return false
		}
	}
	for i := range len(b) {
		c := b[i]
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// time appends seconds since 1970, with milliseconds as on AWS.
func (e *jsonEncoder) time(t time.Time) {
	ms := t.UnixMilli()
	if ms < 0 {
		e.b = strconv.AppendFloat(e.b, float64(ms)/1000, 'f', 3, 64)
		return
	}
	e.b = strconv.AppendInt(e.b, ms/1000, 10)
	ms %= 1000
	e.b = append(e.b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

// float appends a number with a fraction or exponent, so that it doesn't look like an integer. NaN and the infinities become
// strings, because JSON has no numbers for them.
func (e *jsonEncoder) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		e.b = append(e.b, `"NaN"`...)
	case math.IsInf(f, 1):
		e.b = append(e.b, `"Infinity"`...)
	case math.IsInf(f, -1):
		e.b = append(e.b, `"-Infinity"`...)
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		e.b = strconv.AppendFloat(e.b, f, 'f', 1, bits)
	default:
		e.b = strconv.AppendFloat(e.b, f, 'g', -1, bits)
	}
}
