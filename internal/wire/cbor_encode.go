package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
)

// cborEncoder appends values as RPC v2 CBOR has them: no nulls for absent members, timestamps as tag 1
// with seconds.
type cborEncoder struct {
	b   []byte
	err error // the first
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

	cborFalse, cborTrue, cborNull = 0xf4, 0xf5, 0xf6
	cborFloat32, cborFloat64      = 0xfa, 0xfb
	cborIndefinite, cborBreak     = 31, 0xff
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

// open begins a map of which the length is not known yet; end ends it.
func (e *cborEncoder) open() { e.b = append(e.b, cborMap|cborIndefinite) }
func (e *cborEncoder) end()  { e.b = append(e.b, cborBreak) }

func (e *cborEncoder) text(s string) {
	e.head(cborText, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *cborEncoder) value(sh *shape, v reflect.Value) {
	switch sh.kind {
	case kindString:
		e.text(v.String())
	case kindBool:
		e.bool(v.Bool())
	case kindInt:
		e.int(v.Int())
	case kindFloat:
		e.float(v.Float(), sh.typ.Bits())
	case kindTime:
		e.time(timeOf(v))
	case kindBlob:
		e.head(cborBytes, uint64(v.Len()))
		e.b = append(e.b, v.Bytes()...)
	case kindPointer:
		e.pointer(sh, v)
	case kindList:
		e.list(sh, v)
	case kindMap:
		e.dictionary(sh, v)
	case kindStructure:
		e.open()
		e.members(sh, v)
		e.end()
	case kindUnion:
		e.union(sh, v)
	default:
		e.fail("a %s cannot be written", sh.typ)
	}
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

// time appends seconds since 1970, to the millisecond as AWS does.
func (e *cborEncoder) time(t time.Time) {
	e.head(cborTag, 1)
	e.float(float64(t.UnixMilli())/1000, 64)
}

func (e *cborEncoder) pointer(sh *shape, v reflect.Value) {
	if v.IsNil() { // in a list or a map, where it cannot be left out
		e.b = append(e.b, cborNull)
		return
	}
	e.value(sh.elem, v.Elem())
}

func (e *cborEncoder) list(sh *shape, v reflect.Value) {
	e.head(cborList, uint64(v.Len()))
	for i := range v.Len() {
		e.value(sh.elem, v.Index(i))
	}
}

func (e *cborEncoder) dictionary(sh *shape, v reflect.Value) {
	e.head(cborMap, uint64(v.Len()))
	for _, k := range sortedKeys(v) {
		e.text(k.String())
		e.value(sh.elem, v.MapIndex(k))
	}
}

func (e *cborEncoder) members(sh *shape, v reflect.Value) {
	for i := range sh.members {
		m := &sh.members[i]
		if f := v.Field(m.index); !m.absent(f) {
			e.text(m.name)
			e.value(m.shape, f)
		}
	}
}

func (e *cborEncoder) union(sh *shape, v reflect.Value) {
	m, value := sh.variant(v)
	if m == nil {
		e.fail("a %s that holds a %s cannot be written", sh.typ, v.Elem().Type())
		return
	}
	e.head(cborMap, 1)
	e.text(m.name)
	e.value(m.shape, value)
}
