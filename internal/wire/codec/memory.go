package codec

import (
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Encoders read answers directly from memory, by the offsets that reflect returned when the shapes were made, because
// reflect.Value costs more than the read itself. Nothing is written this way. Maps, unions and documents still use
// reflect.

// In returns the member's address in the struct at p.
func (m *Member) In(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(p, m.offset) }

// absent reports whether to leave out the member at p: because it's nil, or an enum that isn't set. Scalars that aren't
// pointers are always present, as in AWS's answers.
func (m *Member) absent(p unsafe.Pointer) bool {
	switch m.Shape.Kind {
	case KindString:
		return len(*(*string)(p)) == 0
	case KindBool, KindInt, kindFloat, KindTime, KindStructure, kindEmpty:
		return false
	}
	return *(*unsafe.Pointer)(p) == nil // the first word of a nil pointer, slice, map or interface is nil
}

// int returns the whole number at p.
func (sh *Shape) int(p unsafe.Pointer) int64 {
	if sh.size == 4 {
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

// float returns the number at p and how many bits it has.
func (sh *Shape) float(p unsafe.Pointer) (f float64, bits int) {
	if sh.size == 4 {
		return float64(*(*float32)(p)), 32
	}
	return *(*float64)(p), 64
}

// elements returns the length of the list at p, and the first element's address. Each element takes its shape's size.
func elements(p unsafe.Pointer) (n int, first unsafe.Pointer) {
	list := *(*[]struct{})(p)
	return len(list), unsafe.Pointer(unsafe.SliceData(list))
}

// element returns the address of a list's element.
func (sh *Shape) element(first unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add(first, uintptr(i)*sh.size)
}

// entries calls f with the map's entries in the order of their keys, so that equal answers are equal bytes.
func (sh *Shape) entries(p unsafe.Pointer, f func(i int, key string, value unsafe.Pointer)) {
	v := reflect.NewAt(sh.Type, p).Elem()
	value := reflect.New(sh.Elem.Type).Elem()
	for i, k := range SortedKeys(v) {
		value.Set(v.MapIndex(k))
		f(i, k.String(), Address(value))
	}
}

// SortedKeys returns a map's keys in order.
func SortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// variant returns the member that the union at p holds, and its address. Both are nil if it holds none.
func (sh *Shape) variant(p unsafe.Pointer) (*Member, unsafe.Pointer) {
	held := reflect.NewAt(sh.Type, p).Elem().Elem()
	if held.Kind() == reflect.Pointer {
		held = held.Elem()
	}
	for i := range sh.Members {
		if held.IsValid() && sh.Members[i].typ == held.Type() {
			return &sh.Members[i], Address(held.FieldByName("Value"))
		}
	}
	return nil, nil
}

// Address returns a value's address. It copies a value that has none.
func Address(v reflect.Value) unsafe.Pointer {
	if !v.CanAddr() {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		v = c
	}
	return v.Addr().UnsafePointer()
}
