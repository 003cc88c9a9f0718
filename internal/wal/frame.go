package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/file"
)

// FrameHead is how many bytes come before a frame's body: the length, whose highest bit marks the first frame of a group; the
// body's CRC-32C; and the head's own, which covers both of these, the segment and the offset.
const FrameHead = 12

// MaxBody is the most bytes in a frame's body.
const MaxBody = 64 << 20

const groupBegins = 1 << 31

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C that frames use, over parts that follow each other. A store needs it to read part of a frame.
func Checksum(parts ...[]byte) (sum uint32) {
	for _, b := range parts {
		sum = crc32.Update(sum, castagnoli, b)
	}
	return sum
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// seedOf starts the checksums of a segment's heads, so that a frame is valid in its own segment and log only.
func seedOf(id uint64, number int) uint32 {
	b := binary.LittleEndian.AppendUint64(nil, id)
	return checksum(binary.LittleEndian.AppendUint64(b, uint64(number)))
}

// chain returns the running checksum after a frame.
func chain(sum uint32, frame []byte) uint32 { return crc32.Update(sum, castagnoli, frame[:FrameHead]) }

type head struct {
	length int
	begins bool // a group
	body   uint32
}

// appendFrame appends a frame for the given offset; fill appends its body.
func appendFrame(b []byte, seed uint32, offset int64, begins bool, fill func([]byte) []byte) []byte {
	start := len(b)
	b = fill(append(b, make([]byte, FrameHead)...))
	length := uint32(len(b) - start - FrameHead)
	if begins {
		length |= groupBegins
	}
	h := b[start:]
	binary.LittleEndian.PutUint32(h, length)
	binary.LittleEndian.PutUint32(h[4:], checksum(h[FrameHead:]))
	sum, b := headSum(h, seed, offset, b)
	binary.LittleEndian.PutUint32(b[start+8:], sum)
	return b
}

// headSum returns a head's checksum. It needs a few bytes behind spare, which it returns as it was: an array here would be a heap
// allocation for each frame.
func headSum(h []byte, seed uint32, offset int64, spare []byte) (uint32, []byte) {
	n := len(spare)
	spare = binary.LittleEndian.AppendUint64(spare, uint64(offset))
	sum := crc32.Update(seed, castagnoli, h[:8])
	return crc32.Update(sum, castagnoli, spare[n:]), spare[:n]
}

// parseHead reads the head of the frame at an offset.
func parseHead(b []byte, seed uint32, offset int64) (head, bool) {
	if len(b) < FrameHead {
		return head{}, false
	}
	length := binary.LittleEndian.Uint32(b)
	h := head{length: int(length &^ groupBegins), begins: length&groupBegins != 0, body: binary.LittleEndian.Uint32(b[4:])}
	sum, _ := headSum(b, seed, offset, nil)
	return h, h.length <= MaxBody && binary.LittleEndian.Uint32(b[8:]) == sum
}

// plate is the header of a segment, and all there is in a marker.
type plate struct {
	magic string
	flags uint32 // of a marker
	kind  string
	id    uint64
	first uint64 // segment's number; of a marker: the first segment that counts
	last  uint64 // the predecessor's number, 0 for none; of a marker: the last segment, 0 where none was made yet
	end   uint64 // of that segment
	sum   uint32 // its running checksum
}

const (
	plateSize    = 64
	kindSize     = 8
	segmentMagic = "pintlwal"
	markerMagic  = "pintlmrk"
	version      = 1

	flagClean    = 1 // the log was closed, and nothing is behind the end
	flagRepaired = 2
)

func (p *plate) append(b []byte) []byte {
	start := len(b)
	b = append(b, p.magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, p.flags)
	var kind [kindSize]byte
	copy(kind[:], p.kind)
	b = append(b, kind[:]...)
	for _, n := range [...]uint64{p.id, p.first, p.last, p.end} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, p.sum)
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:]))
}

// running returns the running checksum after the plate.
func (p *plate) running() uint32 { return checksum(p.append(nil)) }

// parsePlate reads a plate; wrong is "" if the plate is good.
func parsePlate(b []byte, magic, kind string) (p plate, wrong string) {
	if len(b) != plateSize {
		return plate{}, fmt.Sprintf("its header has %d bytes, not %d", len(b), plateSize)
	}
	if binary.LittleEndian.Uint32(b[60:]) != checksum(b[:60]) {
		return plate{}, "its header fails its checksum"
	}
	p = plate{magic: string(b[:8]), flags: binary.LittleEndian.Uint32(b[12:]), kind: strings.TrimRight(string(b[16:24]), "\x00")}
	for i, n := range [...]*uint64{&p.id, &p.first, &p.last, &p.end} {
		*n = binary.LittleEndian.Uint64(b[24+8*i:])
	}
	p.sum = binary.LittleEndian.Uint32(b[56:])
	switch v := binary.LittleEndian.Uint32(b[8:]); {
	case p.magic != magic:
		return plate{}, "is not a file of a log"
	case v != version:
		return plate{}, fmt.Sprintf("is of version %d, which this version of pintle doesn't know", v)
	case p.kind != kind:
		return plate{}, fmt.Sprintf("belongs to a log of %q, not of %q", p.kind, kind)
	}
	return p, ""
}

const segmentSuffix = ".log"

func segmentPath(dir string, number int) string {
	return filepath.Join(dir, segmentName(number))
}

func segmentName(number int) string { return fmt.Sprintf("%09d%s", number, segmentSuffix) }

// segments lists the numbers of a directory's segments, in order.
func segments(dir string) ([]int, error) {
	paths, err := file.Glob(dir, "?????????"+segmentSuffix)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, p := range paths {
		if n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(p), segmentSuffix)); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}
