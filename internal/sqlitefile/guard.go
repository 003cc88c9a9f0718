package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// guard is what we know about a database from outside it: how far its log must reach, and a checksum of each page. It's kept in a
// file beside the database.
type guard struct {
	mark
	// sums has a CRC-32C for each page of the database's file, or 0 for a page that was never written. It's empty until the database
	// has been completed for the first time.
	sums []uint32
}

// mark says how far the log reached when the last commit was acknowledged.
type mark struct {
	header [headerSize]byte // of the log; a restarted log has another one
	frames uint32
	folded uint32  // how many frames are in the database's file, and in the sums
	sum    [8]byte // of the last frame, which covers all frames before it
}

// The guard's file begins with the mark. Each commit overwrites it, which is safe because it lies within one disk sector.
const (
	guardMagic = "pintleG1"
	markSize   = len(guardMagic) + headerSize + 4 + 4 + 8 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errGuard = errors.New("it fails its checksum")

// pageSum returns a page's checksum, which is never 0.
func pageSum(page []byte) uint32 { return max(crc32.Checksum(page, castagnoli), 1) }

func (m *mark) encode() []byte {
	b := append([]byte(guardMagic), m.header[:]...)
	b = binary.LittleEndian.AppendUint32(b, m.frames)
	b = binary.LittleEndian.AppendUint32(b, m.folded)
	b = append(b, m.sum[:]...)
	return appendSum(b, b)
}

// appendSum appends the checksum of b to b.
func appendSum(b, sealed []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(sealed, castagnoli))
}

func (g *guard) encode() []byte {
	b := g.mark.encode()
	for _, sum := range g.sums {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return appendSum(b, b[markSize:])
}

// unseal checks the checksum at the end of b, and returns what is before it.
func unseal(b []byte) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, errGuard
	}
	return b[:n], nil
}

func decodeGuard(b []byte) (*guard, error) {
	if len(b) < markSize || !bytes.HasPrefix(b, []byte(guardMagic)) {
		return nil, errGuard
	}
	m, err := unseal(b[:markSize])
	if err != nil {
		return nil, err
	}
	sums, err := unseal(b[markSize:])
	if err != nil || len(sums)%4 != 0 {
		return nil, errGuard
	}
	g := &guard{}
	m = m[len(guardMagic):]
	m = m[copy(g.header[:], m):]
	g.frames = binary.LittleEndian.Uint32(m)
	g.folded = binary.LittleEndian.Uint32(m[4:])
	copy(g.sum[:], m[8:])
	for ; len(sums) > 0; sums = sums[4:] {
		g.sums = append(g.sums, binary.LittleEndian.Uint32(sums))
	}
	return g, nil
}

// set stores a page's checksum.
func (g *guard) set(page uint32, sum uint32) {
	for uint32(len(g.sums)) < page {
		g.sums = append(g.sums, 0)
	}
	g.sums[page-1] = sum
}
