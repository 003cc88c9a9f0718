package queues

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/pintle/pintle/internal/wal"
)

// A frame of the log holds what one call changes: a sequence of records, each a kind and that kind's fields.

// kind says what a record does.
type kind byte

const (
	queueIs    kind = iota + 1 // a queue as JSON, new or changed
	queueGone                  // a queue is deleted with its messages
	messageIs                  // a message with its body, new or rewritten
	receivedAt                 // a message was received
	visibleAt                  // a message's visibility was changed
	messageGone
	purged     // all messages of a queue are deleted
	movedTo    // to a dead-letter queue
	redriven   // from one, as a new message
	sentBefore // a deduplication key still in its window
	numbered   // the last number given out, at the start of each segment but the first
	moveIs     // a MessageMove, as JSON
)

// record is one change. Its kind decides which fields it has.
type record struct {
	kind  kind
	queue uint64 // the queue's id
	seq   uint64 // the message's number
	at    int64  // when it happened, or will
	until int64  // when the message becomes visible

	json []byte // of queueIs and moveIs

	to    uint64 // of movedTo: the queue; toSeq is the number that the message gets there
	toSeq uint64

	key string // of messageIs and sentBefore: the deduplication key; of movedTo: whose dead letter it is; "" for none
	id  [16]byte

	message message // of messageIs, without body
	body    []byte
	meta    []byte
	offset  int   // of the body in its payload
	size    int   // of the record in its payload
	place   place // of messageIs, once it is in the log
}

// lieAt notes the frame that the record is in.
func (r *record) lieAt(g *segment, at wal.Position) {
	if r.kind != messageIs {
		return
	}
	r.place = place{
		segment: g,
		offset:  at.Offset + wal.FrameHead + int64(r.offset),
		size:    int32(len(r.body)),
		meta:    int32(len(r.meta)),
		sum:     wal.Checksum(r.body, r.meta),
		whole:   int64(r.size),
		id:      r.id,
	}
}

// appendRecords appends a frame's body, and tells each record where in it its own body is.
func appendRecords(b []byte, records []record) []byte {
	start := len(b)
	for i := range records {
		b = records[i].append(b, start)
	}
	return b
}

func (r *record) append(b []byte, start int) []byte {
	first := len(b)
	b = append(b, byte(r.kind))
	b = binary.AppendUvarint(b, r.queue)
	switch r.kind {
	case queueIs, moveIs:
		b = appendBytes(b, r.json)
	case messageIs:
		m := &r.message
		b = binary.AppendUvarint(b, r.seq)
		b = append(b, byte(m.state))
		b = binary.AppendUvarint(b, uint64(m.receives))
		b = binary.AppendUvarint(b, uint64(m.before))
		for _, t := range []int64{m.sent, m.entered, m.visibleAt, m.first, m.received} {
			b = binary.AppendVarint(b, t)
		}
		b = appendBytes(b, m.group)
		b = appendBytes(b, m.from)
		b = appendBytes(b, r.key)
		b = append(b, r.id[:]...)
		b = binary.AppendUvarint(b, uint64(len(r.body)))
		b = binary.AppendUvarint(b, uint64(len(r.meta)))
		r.offset = len(b) - start
		b = append(append(b, r.body...), r.meta...)
	case sentBefore:
		b = binary.AppendUvarint(b, r.seq)
		b = binary.AppendVarint(b, r.at)
		b = appendBytes(b, r.key)
		b = append(b, r.id[:]...)
	case queueGone:
	default:
		b = binary.AppendUvarint(b, r.seq)
		b = binary.AppendVarint(b, r.at)
		b = binary.AppendVarint(b, r.until)
		b = binary.AppendUvarint(b, r.to)
		b = binary.AppendUvarint(b, r.toSeq)
		b = appendBytes(b, r.key)
		if r.kind == redriven {
			b = append(b, r.id[:]...)
		}
	}
	r.size = len(b) - first
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

var errCorrupt = errors.New("queues: a record makes no sense")

// parsePayload reads the records of a frame. Their bodies are slices of b.
func parsePayload(b []byte) ([]record, error) {
	d := &decoder{b: b}
	var out []record
	for d.err == nil && d.at < len(b) {
		first := d.at
		r := d.record()
		r.size = d.at - first
		out = append(out, r)
	}
	return out, d.err
}

// decoder reads a payload. After the first error it returns zero values.
type decoder struct {
	b   []byte
	at  int
	err error
}

func (d *decoder) record() record {
	r := record{kind: kind(d.byte()), queue: d.uint()}
	switch r.kind {
	case queueIs, moveIs:
		r.json = d.bytes(d.uint())
		if d.err == nil && !json.Valid(r.json) {
			d.err = errCorrupt
		}
	case messageIs:
		m := &r.message
		r.seq = d.uint()
		m.state = state(d.byte())
		m.receives, m.before = uint32(d.uint()), uint32(d.uint())
		for _, t := range []*int64{&m.sent, &m.entered, &m.visibleAt, &m.first, &m.received} {
			*t = d.int()
		}
		m.group, m.from, r.key = d.text(), d.text(), d.text()
		copy(r.id[:], d.bytes(16))
		body, meta := d.uint(), d.uint()
		r.offset = d.at
		r.body, r.meta = d.bytes(body), d.bytes(meta)
		m.seq = r.seq
		if m.state > delayed || m.before > m.receives {
			d.err = errCorrupt
		}
	case sentBefore:
		r.seq, r.at, r.key = d.uint(), d.int(), d.text()
		copy(r.id[:], d.bytes(16))
	case receivedAt, visibleAt, messageGone, purged, movedTo, redriven, numbered:
		r.seq, r.at, r.until, r.to, r.toSeq, r.key = d.uint(), d.int(), d.int(), d.uint(), d.uint(), d.text()
		if r.kind == redriven {
			copy(r.id[:], d.bytes(16))
		}
	case queueGone:
	default:
		d.err = errCorrupt
	}
	return r
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b[d.at:])
	return n * uint64(d.skip(size))
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b[d.at:])
	return n * int64(d.skip(size))
}

// skip advances past a number of the given size; 0 means that there was none.
func (d *decoder) skip(size int) int {
	if size <= 0 || d.err != nil {
		d.err, d.at = errCorrupt, len(d.b)
		return 0
	}
	d.at += size
	return 1
}

func (d *decoder) text() string { return string(d.bytes(d.uint())) }

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.b)-d.at) {
		d.err, d.at = errCorrupt, len(d.b)
		return nil
	}
	d.at += int(n)
	return d.b[d.at-int(n) : d.at]
}
