package codec

import (
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Encoders read answers where they lie in memory, by the offsets that reflect gave when the shapes were made:
// reflect.Value costs more than what it is asked for. Nothing is written this way. Maps, unions and documents are
// left to reflect.

// In is where the member lies in a struct.
func (m *Member) In(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(p, m.offset) }

// absent reports whether the member, which lies at p, is left out: nil, or an enum that is not set. Scalars that are
// no pointers are always there, as they are in AWS's answers.
func (m *Member) absent(p unsafe.Pointer) bool {
	switch m.Shape.Kind {
	case KindString:
		return len(*(*string)(p)) == 0
	case KindBool, KindInt, kindFloat, KindTime, KindStructure, kindEmpty:
		return false
	}
	return *(*unsafe.Pointer)(p) == nil // of pointers, slices, maps and interfaces, the first word is nil where they are
}

// int is the whole number at p.
func (sh *Shape) int(p unsafe.Pointer) int64 {
	if sh.size == 4 {
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

// float is the number at p, and how many bits it has.
func (sh *Shape) float(p unsafe.Pointer) (f float64, bits int) {
	if sh.size == 4 {
		return float64(*(*float32)(p)), 32
	}
	return *(*float64)(p), 64
}

// elements is how many elements the list at p has, and where the first lies; each is as large as its shape.
func elements(p unsafe.Pointer) (n int, first unsafe.Pointer) {
	list := *(*[]struct{})(p)
	return len(list), unsafe.Pointer(unsafe.SliceData(list))
}

// element is where a list's element lies.
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

// SortedKeys are a map's keys in order.
func SortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// variant is the union's member that is held at p, and where it lies; nil where it is none of them.
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

// Address is where a value lies. One that lies nowhere is copied first.
func Address(v reflect.Value) unsafe.Pointer {
	if !v.CanAddr() {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		v = c
	}
	return v.Addr().UnsafePointer()
}
