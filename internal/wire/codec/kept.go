package codec

import (
	"bytes"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// A service may answer with the state's own rows, in a list of pointers with the tag `wire:"kept"`. Rows are never
// modified once they were put, so wire keeps their JSON by the row's address. Describing the same rows again then costs
// only a copy. The tag has two options. `as=Tasks` gives the list another member's name, so that a struct can have two
// lists for one member. `empty=Tags` encodes a list in each row as empty.

// maxKeptBytes is the most bytes of JSON in one generation of a list's rows.
const maxKeptBytes = 16 << 20

// keptRows keeps the JSON of rows in two generations. A row that nobody asks for goes away with the older generation. The
// key is a real pointer, so that the garbage collector can't give the address to another row meanwhile.
type keptRows struct {
	mu    sync.Mutex
	young map[unsafe.Pointer][]byte
	older map[unsafe.Pointer][]byte
	bytes int // in young
}

// get returns a row's JSON, or nil if it isn't kept. Callers must not change it.
func (k *keptRows) get(row unsafe.Pointer) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.young[row]; b != nil {
		return b
	}
	b := k.older[row]
	if b != nil {
		k.putLocked(row, b)
	}
	return b
}

func (k *keptRows) put(row unsafe.Pointer, b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.putLocked(row, bytes.Clone(b))
}

func (k *keptRows) putLocked(row unsafe.Pointer, b []byte) {
	if k.bytes+len(b) > maxKeptBytes || k.young == nil {
		k.older = k.young
		k.young = map[unsafe.Pointer][]byte{}
		k.bytes = 0
	}
	k.bytes += len(b) - len(k.young[row])
	k.young[row] = b
}

// row appends a row, and keeps its JSON. Builds with the race detector check that kept JSON still matches the row.
func (e *jsonEncoder) row(sh *Shape, kept *keptRows, row unsafe.Pointer) {
	if row == nil {
		e.pointer(sh, row)
		return
	}
	start := len(e.b)
	if b := kept.get(row); b != nil {
		e.b = append(e.b, b...)
		if checksKept {
			checkKept(sh, row, b)
		}
		return
	}
	e.pointer(sh, row)
	if e.err == nil {
		kept.put(row, e.b[start:])
	}
}

// checkKept panics if a row no longer matches its kept JSON.
func checkKept(sh *Shape, row unsafe.Pointer, kept []byte) {
	now := jsonEncoder{}
	now.pointer(sh, row)
	if !bytes.Equal(now.b, kept) {
		panic("wire: a " + sh.Elem.Type.String() + " was modified after it was put: it was " + string(kept) + ", and is " + string(now.b))
	}
}

// keep makes the member a list of kept rows, with the options in its tag.
func (s *Shapes) keep(m *Member, tag string) {
	list := *m.Shape
	list.kept = new(keptRows)
	row := list.Elem
	if list.Kind != KindList || row.Kind != KindPointer || row.Elem.Kind != KindStructure {
		m.Shape = &Shape{Kind: kindUnsupported, Type: list.Type}
		return
	}
	for option := range strings.SplitSeq(tag, ",") {
		switch name, value, _ := strings.Cut(option, "="); name {
		case "as":
			m.name = s.memberName(list.Type, value)
		case "empty":
			list.Elem = &Shape{Kind: KindPointer, Type: row.Type, size: row.size, Elem: row.Elem.withEmpty(value)}
		}
	}
	m.Shape = &list
}

// withEmpty returns the structure's shape with one list that is encoded as empty.
func (sh *Shape) withEmpty(field string) *Shape {
	c := *sh
	c.Members = nil
	for _, m := range sh.Members {
		if sh.Type.Field(m.Index).Name == field {
			m.Shape = &Shape{Kind: kindEmpty, Type: reflect.TypeFor[[0]struct{}]()}
		}
		c.Members = append(c.Members, m)
	}
	c.index()
	return &c
}
