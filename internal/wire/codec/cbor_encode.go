package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// cborEncoder appends values as RPC v2 CBOR. Absent members are left out instead of null, and timestamps are tag 1 with
// seconds.
type cborEncoder struct {
	b   []byte
	err error // the first one
}

// The major types of CBOR: RFC 8949, section 3.1.
const (
	cborUint     = 0 << 5
	cborNegative = 1 << 5
	cborBytes    = 2 << 5
	cborText     = 3 << 5
	cborList     = 4 << 5
	cborMap      = 5 << 5
	cborTag      = 6 << 5

	cborFalse   = 0xf4
	cborTrue    = 0xf5
	cborNull    = 0xf6
	cborFloat32 = 0xfa
	cborFloat64 = 0xfb

	cborIndefinite = 31 // instead of a length
	cborBreak      = 0xff
)

// head appends a major type with its argument, in the fewest bytes.
func (e *cborEncoder) head(major byte, n uint64) {
	switch {
	case n < 24:
		e.b = append(e.b, major|byte(n))
	case n <= math.MaxUint8:
		e.b = append(e.b, major|24, byte(n))
	case n <= math.MaxUint16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, major|25), uint16(n))
	case n <= math.MaxUint32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, major|26), uint32(n))
	default:
		e.b = binary.BigEndian.AppendUint64(append(e.b, major|27), n)
	}
}

// open begins a map of unknown length. end ends it.
func (e *cborEncoder) open() { e.b = append(e.b, cborMap|cborIndefinite) }
func (e *cborEncoder) end()  { e.b = append(e.b, cborBreak) }

func (e *cborEncoder) text(s string) {
	e.head(cborText, uint64(len(s)))
	e.b = append(e.b, s...)
}

// value appends the value at p.
func (e *cborEncoder) value(sh *Shape, p unsafe.Pointer) {
	switch sh.Kind {
	case KindString:
		e.text(*(*string)(p))
	case KindBool:
		e.bool(*(*bool)(p))
	case KindInt:
		e.int(sh.int(p))
	case kindFloat:
		e.float(sh.float(p))
	case KindTime:
		e.time(*(*time.Time)(p))
	case KindBlob:
		blob := *(*[]byte)(p)
		e.head(cborBytes, uint64(len(blob)))
		e.b = append(e.b, blob...)
	case KindPointer:
		e.pointer(sh, *(*unsafe.Pointer)(p))
	case KindList:
		e.list(sh, p)
	case kindMap:
		e.dictionary(sh, p)
	case KindStructure:
		e.open()
		e.members(sh, p)
		e.end()
	case kindUnion:
		e.union(sh, p)
	case kindEmpty:
		e.head(cborList, 0)
	default:
		e.fail("a %s cannot be written", sh.Type)
	}
}

// AppendCBOR appends an answer's struct.
func AppendCBOR(b []byte, sh *Shape, out reflect.Value) ([]byte, error) {
	e := cborEncoder{b: b}
	e.value(sh, Address(out))
	return e.b, e.err
}

// AppendCBORError appends an error: its name and its members. An error without a shape has only a message.
func AppendCBORError(b []byte, name, message string, sh *Shape, members reflect.Value) []byte {
	e := cborEncoder{b: b}
	e.open()
	e.text("__type")
	e.text(name)
	if sh != nil {
		e.members(sh, Address(members))
	} else {
		e.text("message")
		e.text(message)
	}
	e.end()
	return e.b
}

func (e *cborEncoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *cborEncoder) bool(v bool) {
	if v {
		e.b = append(e.b, cborTrue)
		return
	}
	e.b = append(e.b, cborFalse)
}

func (e *cborEncoder) int(n int64) {
	if n < 0 {
		e.head(cborNegative, uint64(-1-n))
		return
	}
	e.head(cborUint, uint64(n))
}

func (e *cborEncoder) float(f float64, bits int) {
	if bits == 32 {
		e.b = binary.BigEndian.AppendUint32(append(e.b, cborFloat32), math.Float32bits(float32(f)))
		return
	}
	e.b = binary.BigEndian.AppendUint64(append(e.b, cborFloat64), math.Float64bits(f))
}

// time appends seconds since 1970, with milliseconds as on AWS.
func (e *cborEncoder) time(t time.Time) {
	e.head(cborTag, 1)
	e.float(float64(t.UnixMilli())/1000, 64)
}

func (e *cborEncoder) pointer(sh *Shape, p unsafe.Pointer) {
	if p == nil { // in a list or a map, where it can't be left out
		e.b = append(e.b, cborNull)
		return
	}
	e.value(sh.Elem, p)
}

func (e *cborEncoder) list(sh *Shape, p unsafe.Pointer) {
	n, first := elements(p)
	e.head(cborList, uint64(n))
	for i := range n {
		e.value(sh.Elem, sh.Elem.element(first, i))
	}
}

func (e *cborEncoder) dictionary(sh *Shape, p unsafe.Pointer) {
	e.head(cborMap, uint64(reflect.NewAt(sh.Type, p).Elem().Len()))
	sh.entries(p, func(_ int, key string, value unsafe.Pointer) {
		e.text(key)
		e.value(sh.Elem, value)
	})
}

func (e *cborEncoder) members(sh *Shape, p unsafe.Pointer) {
	for i := range sh.Members {
		m := &sh.Members[i]
		if f := m.In(p); !m.absent(f) {
			e.text(m.name)
			e.value(m.Shape, f)
		}
	}
}

func (e *cborEncoder) union(sh *Shape, p unsafe.Pointer) {
	m, value := sh.variant(p)
	if m == nil {
		e.fail("a %s that holds none of its variants cannot be written", sh.Type)
		return
	}
	e.head(cborMap, 1)
	e.text(m.name)
	e.value(m.Shape, value)
}
