package streams

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/pintle/pintle/internal/wal"
)

// A frame of a group's log is one record: a head of a fixed size, the stream's name, and the body:
//
//	length of name and body   4 bytes
//	CRC-32C of the length and of what follows, up to the end of the name   4 bytes
//	kind 1, length of the name 2, unused 1
//	time of the record, first and last time of its events   3 x 8 bytes
//	number of events   4 bytes
//
// The body has each event's time (8 bytes), the length of its text (4 bytes) and the text. Head and name have their own checksum,
// because opening a log reads no more of most records.
const (
	headSize   = 4 + 4 + 4 + 24 + 4
	maxSegment = 64 << 20
	maxRecord  = 16 << 20
	maxName    = 4096 // 512 characters never need more: API_CreateLogStream
)

// kind is what a record does.
type kind byte

const (
	streamCreated kind = iota + 1
	streamDeleted
	eventBatch // appends events
)

// record is one entry of a log.
type record struct {
	Kind   kind
	Stream string
	At     int64
	Events []Event
}

// head is the part of a record that can be read without its body.
type head struct {
	length int // of name and body
	kind   kind
	name   string
	at     int64
	first  int64
	last   int64
	count  int
}

// size returns the record's length in bytes.
func (r *record) size() int {
	size := headSize + len(r.Stream)
	for i := range r.Events {
		size += 12 + len(r.Events[i].Message)
	}
	return size
}

// append appends the encoded record to b.
func (r *record) append(b []byte) []byte {
	start := len(b)
	h := r.head()
	b = binary.LittleEndian.AppendUint32(b, uint32(h.length))
	b = append(b, 0, 0, 0, 0, byte(h.kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.name)))
	b = append(b, 0)
	for _, t := range [...]int64{h.at, h.first, h.last} {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(h.count))
	b = append(b, h.name...)
	binary.LittleEndian.PutUint32(b[start+4:], wal.Checksum(b[start:start+4], b[start+8:]))
	for i := range r.Events {
		e := &r.Events[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Timestamp))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Message)))
		b = append(b, e.Message...)
	}
	return b
}

func (r *record) head() head {
	h := head{length: r.size() - headSize, kind: r.Kind, name: r.Stream, at: r.At, count: len(r.Events)}
	for i, e := range r.Events {
		if i == 0 || e.Timestamp < h.first {
			h.first = e.Timestamp
		}
		h.last = max(h.last, e.Timestamp)
	}
	return h
}

var errCorrupt = errors.New("streams: a record makes no sense")

// parseHead parses a record's head and name. b may end anywhere after them.
func parseHead(b []byte) (head, error) {
	if len(b) < headSize {
		return head{}, errCorrupt
	}
	end := headSize + int(binary.LittleEndian.Uint16(b[9:]))
	if end > len(b) || binary.LittleEndian.Uint32(b[4:]) != wal.Checksum(b[:4], b[8:end]) {
		return head{}, errCorrupt
	}
	h := head{
		length: int(binary.LittleEndian.Uint32(b)),
		kind:   kind(b[8]),
		name:   string(b[headSize:end]),
		at:     int64(binary.LittleEndian.Uint64(b[12:])),
		first:  int64(binary.LittleEndian.Uint64(b[20:])),
		last:   int64(binary.LittleEndian.Uint64(b[28:])),
		count:  int(binary.LittleEndian.Uint32(b[36:])),
	}
	if h.kind < streamCreated || h.kind > eventBatch || h.length > math.MaxInt32 || len(h.name) > h.length || h.count > h.length/12 {
		return head{}, errCorrupt
	}
	return h, nil
}

// parseRecord parses a whole record.
func parseRecord(b []byte) (record, error) {
	h, err := parseHead(b)
	if err != nil || len(b) != headSize+h.length {
		return record{}, errCorrupt
	}
	r := record{Kind: h.kind, Stream: h.name, At: h.at}
	body := b[headSize+len(h.name):]
	for range h.count {
		if len(body) < 12 {
			return record{}, errCorrupt
		}
		at := int64(binary.LittleEndian.Uint64(body))
		size := int(binary.LittleEndian.Uint32(body[8:]))
		if len(body)-12 < size {
			return record{}, errCorrupt
		}
		r.Events = append(r.Events, Event{Stream: r.Stream, Timestamp: at, Ingested: r.At, Message: string(body[12 : 12+size])})
		body = body[12+size:]
	}
	if len(body) > 0 {
		return record{}, errCorrupt
	}
	return r, nil
}
