package streams

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/file"
)

// A segment is a file of records. Each is a head of a fixed size, the stream's name, and the body:
//
//	length of name and body   4 bytes
//	CRC-32C of all that follows, name and body included   4 bytes
//	kind 1, length of the name 2, unused 1
//	time of the record, first and last time of its events   3 x 8 bytes
//	number of events   4 bytes
//
// The body is, for each event, its time (8 bytes), the length of its text (4 bytes) and the text.
const (
	headSize   = 4 + 4 + 4 + 24 + 4
	maxSegment = 64 << 20
	maxRecord  = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kind is what a record says.
type kind byte

const (
	streamMade kind = iota + 1
	streamGone
	eventBatch // a batch of events
)

// record is one entry of a segment.
type record struct {
	Kind   kind
	Stream string
	At     int64
	Events []Event
}

// head is what can be known of a record without its body.
type head struct {
	length      int // of name and body
	sum         uint32
	kind        kind
	nameLength  int
	at          int64
	first, last int64
	count       int
}

func (r *record) encode() []byte {
	size := headSize + len(r.Stream)
	for _, e := range r.Events {
		size += 12 + len(e.Message)
	}
	b := make([]byte, headSize, size)
	var first, last int64
	for i, e := range r.Events {
		if i == 0 || e.Timestamp < first {
			first = e.Timestamp
		}
		last = max(last, e.Timestamp)
	}
	b = append(b, r.Stream...)
	for _, e := range r.Events {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Timestamp))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Message)))
		b = append(b, e.Message...)
	}
	binary.LittleEndian.PutUint32(b[0:], uint32(len(b)-headSize))
	b[8] = byte(r.Kind)
	binary.LittleEndian.PutUint16(b[9:], uint16(len(r.Stream)))
	binary.LittleEndian.PutUint64(b[12:], uint64(r.At))
	binary.LittleEndian.PutUint64(b[20:], uint64(first))
	binary.LittleEndian.PutUint64(b[28:], uint64(last))
	binary.LittleEndian.PutUint32(b[36:], uint32(len(r.Events)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

var errTorn = errors.New("torn record")

// parseHead reads a record's head.
func parseHead(b []byte) (head, error) {
	if len(b) < headSize {
		return head{}, errTorn
	}
	h := head{
		length: int(binary.LittleEndian.Uint32(b)), sum: binary.LittleEndian.Uint32(b[4:]), kind: kind(b[8]),
		nameLength: int(binary.LittleEndian.Uint16(b[9:])), at: int64(binary.LittleEndian.Uint64(b[12:])),
		first: int64(binary.LittleEndian.Uint64(b[20:])), last: int64(binary.LittleEndian.Uint64(b[28:])),
		count: int(binary.LittleEndian.Uint32(b[36:])),
	}
	if h.kind < streamMade || h.kind > eventBatch || h.length > maxRecord || h.nameLength > h.length || h.count > h.length/12 {
		return head{}, errTorn
	}
	return h, nil
}

// parseRecord reads a whole record and checks it.
func parseRecord(b []byte) (record, error) {
	h, err := parseHead(b)
	if err != nil {
		return record{}, err
	}
	if len(b) < headSize+h.length || crc32.Checksum(b[8:headSize+h.length], castagnoli) != h.sum {
		return record{}, errTorn
	}
	body := b[headSize : headSize+h.length]
	r := record{Kind: h.kind, Stream: string(body[:h.nameLength]), At: h.at}
	body = body[h.nameLength:]
	for range h.count {
		if len(body) < 12 {
			return record{}, errTorn
		}
		at, size := int64(binary.LittleEndian.Uint64(body)), int(binary.LittleEndian.Uint32(body[8:]))
		if len(body)-12 < size {
			return record{}, errTorn
		}
		r.Events = append(r.Events, Event{Stream: r.Stream, Timestamp: at, Ingested: r.At, Message: string(body[12 : 12+size])})
		body = body[12+size:]
	}
	return r, nil
}

func segmentPath(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%09d.seg", number))
}

// segments lists the numbers of a directory's segments, in order.
func segments(dir string) ([]int, error) {
	paths, err := file.Glob(dir, "*.seg")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, p := range paths {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(p), ".seg"))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// scan hands every record's head and stream to visit. In the last segment, the one that was being
// written, bodies are checked too; it returns where the good part ends.
func scan(f *os.File, last bool, visit func(h head, stream string, offset int64)) (end int64, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, headSize+1<<16)
	for end < size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-end)], end)
		if err != nil && !errors.Is(err, io.EOF) {
			return end, err
		}
		h, err := parseHead(buf[:n])
		if err != nil || end+int64(headSize+h.length) > size || n < headSize+h.nameLength {
			return end, nil
		}
		if last {
			whole := make([]byte, headSize+h.length)
			if _, err := f.ReadAt(whole, end); err != nil {
				return end, err
			}
			if _, err := parseRecord(whole); err != nil {
				return end, nil
			}
		}
		visit(h, string(buf[headSize:headSize+h.nameLength]), end)
		end += int64(headSize + h.length)
	}
	return end, nil
}
