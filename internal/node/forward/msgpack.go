package forward

import (
	"encoding/binary"
	"time"
)

// What the protocol needs of MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md

func appendArray(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x90|byte(n))
	}
	return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n)) // a batch has fewer
}

// appendMap appends a map of up to 15 strings, given as keys and values.
func appendMap(b []byte, pairs ...string) []byte {
	b = append(b, 0x80|byte(len(pairs)/2))
	for _, s := range pairs {
		b = appendString(b, s)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

// appendTime appends the protocol's EventTime, an extension of type 0: seconds and nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, 0xd7, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(t.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}
