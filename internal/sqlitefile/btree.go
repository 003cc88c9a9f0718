package sqlitefile

import (
	"encoding/binary"
	"math"
)

// The kinds of pages in SQLite's trees: see "B-tree Pages" at sqlite.org. A table with rowids keeps its rows in leaves. A table without
// them, like an index, also has rows in inner pages.
const (
	innerIndex = 0x02
	innerTable = 0x05
	leafIndex  = 0x0a
	leafTable  = 0x0d
)

// cell is a cell of a page. Its child is 0 if it has none.
type cell struct {
	child   uint32
	rowid   int64
	payload []byte // the part that is on the page
	length  int    // of the whole payload, including overflow pages
	rest    uint32 // the first overflow page
}

// node is a page of a tree.
type node struct {
	kind  byte
	cells []cell
	right uint32 // the last child of an inner page
}

// isIndex reports whether a page is of a tree without rowids.
func isIndex(kind byte) bool { return kind == innerIndex || kind == leafIndex }

// parseNode reads a page of a tree, or returns nil if the page can't be one.
func parseNode(page uint32, b []byte) *node {
	head := 0
	if page == 1 {
		head = 100 // the file's header
	}
	n := &node{kind: b[head]}
	pointers := head + 8
	switch n.kind {
	case innerIndex, innerTable:
		n.right = binary.BigEndian.Uint32(b[head+8:])
		pointers += 4
	case leafIndex, leafTable:
	default:
		return nil
	}
	count := int(binary.BigEndian.Uint16(b[head+3:]))
	if pointers+2*count > len(b) {
		return nil
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(b[pointers+2*i:]))
		c, ok := parseCell(n.kind, b, at)
		if !ok {
			return nil
		}
		n.cells = append(n.cells, c)
	}
	return n
}

func parseCell(kind byte, b []byte, at int) (c cell, ok bool) {
	if at >= len(b) {
		return c, false
	}
	b = b[at:]
	if kind == innerIndex || kind == innerTable {
		if len(b) < 4 {
			return c, false
		}
		c.child = binary.BigEndian.Uint32(b)
		b = b[4:]
	}
	if kind == innerTable { // its keys are copies
		return c, true
	}
	length, n := varint(b)
	if n == 0 || length > math.MaxInt32 {
		return c, false
	}
	b = b[n:]
	if kind == leafTable {
		rowid, n := varint(b)
		if n == 0 {
			return c, false
		}
		c.rowid = int64(rowid)
		b = b[n:]
	}
	c.length = int(length)
	local := localPart(kind, c.length)
	if local > len(b) {
		return c, false
	}
	c.payload = b[:local]
	if local < c.length {
		if local+4 > len(b) {
			return c, false
		}
		c.rest = binary.BigEndian.Uint32(b[local:])
	}
	return c, true
}

// localPart returns how many bytes of a payload are on its page: see "Cell Payload Overflow Pages" at sqlite.org.
func localPart(kind byte, length int) int {
	most := pageSize - 35
	if isIndex(kind) {
		most = (pageSize-12)*64/255 - 23
	}
	if length <= most {
		return length
	}
	least := (pageSize-12)*32/255 - 23
	if n := least + (length-least)%(pageSize-4); n <= most {
		return n
	}
	return least
}

// varint reads one of SQLite's integers: up to eight bytes of seven bits, and a ninth of eight. n is 0 if b has none.
func varint(b []byte) (v uint64, n int) {
	for i := range min(len(b), 8) {
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	if len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}

// parseRecord reads a row's values: see "Record Format" at sqlite.org.
func parseRecord(b []byte) (values []any, ok bool) {
	size, n := varint(b)
	if n == 0 || size < uint64(n) || size > uint64(len(b)) {
		return nil, false
	}
	types, body := b[n:size], b[size:]
	for len(types) > 0 {
		kind, n := varint(types)
		if n == 0 {
			return nil, false
		}
		types = types[n:]
		v, used, ok := parseValue(kind, body)
		if !ok {
			return nil, false
		}
		values = append(values, v)
		body = body[used:]
	}
	return values, len(body) == 0
}

var integerSizes = [...]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

func parseValue(kind uint64, b []byte) (v any, used int, ok bool) {
	switch {
	case kind == 0:
		return nil, 0, true
	case kind == 8 || kind == 9:
		return int64(kind - 8), 0, true
	case kind == 7:
		if len(b) < 8 {
			return nil, 0, false
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), 8, true
	case kind < 7:
		n := integerSizes[kind]
		if len(b) < n {
			return nil, 0, false
		}
		return integer(b[:n]), n, true
	case kind < 12 || (kind-12)/2 > uint64(len(b)):
		return nil, 0, false
	}
	n := int(kind-12) / 2
	if kind%2 == 1 {
		return string(b[:n]), n, true
	}
	return append([]byte{}, b[:n]...), n, true
}

// integer decodes a signed big-endian number.
func integer(b []byte) int64 {
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}
