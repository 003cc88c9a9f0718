// Package datachannel is the protocol of Session Manager's data channel, by which the terminal of aws ecs execute-command reaches a
// container: messages on the wire, and streams of them that arrive whole and in order. It is pure; times are handed in. A node has the one
// end and the client's session-manager-plugin or pintle exec the other; a control plane passes the messages on and reads none of them.
package datachannel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Kind is the type of a message.
type Kind string

// The kinds of messages.
const (
	Output      Kind = "output_stream_data" // from the node
	Input       Kind = "input_stream_data"  // from the client
	Acknowledge Kind = "acknowledge"
	Closed      Kind = "channel_closed" // from the node: the session is over
)

// Content is what the payload of a message is.
type Content uint32

// The contents of Output and Input messages that sessions with a terminal have.
const (
	Bytes             Content = 1 // what was typed, or what is to be shown
	TerminalSize      Content = 3 // JSON of Size
	HandshakeRequest  Content = 5
	HandshakeResponse Content = 6
	HandshakeComplete Content = 7
)

// The bits of a message's flags.
const (
	first = 1 << 0 // of its stream
	last  = 1 << 1
)

// Message is one message.
type Message struct {
	Kind     Kind
	Created  time.Time // to the millisecond
	Sequence int64     // its place in its stream
	Flags    uint64
	ID       uuid.UUID
	Content  Content
	Payload  []byte
}

const (
	// headerLength is what the field of that name says: without the length of the payload, which stands behind it.
	headerLength = 116
	prefix       = headerLength + 4
	// MaxPayload is the most bytes of a payload that Decode takes. Peers send a kilobyte of a terminal's bytes at a time.
	MaxPayload = 8 << 10
	// MaxMessage is the most bytes of a message.
	MaxMessage = prefix + MaxPayload
	version    = 1
)

// Encode returns a message's bytes. All numbers have their greatest byte first; the two halves of the id are swapped.
func (m Message) Encode() []byte {
	b := make([]byte, prefix, prefix+len(m.Payload))
	binary.BigEndian.PutUint32(b[0:], headerLength)
	copy(b[4:36], bytes.Repeat([]byte{' '}, 32))
	copy(b[4:36], m.Kind)
	binary.BigEndian.PutUint32(b[36:], version)
	binary.BigEndian.PutUint64(b[40:], uint64(m.Created.UnixMilli()))
	binary.BigEndian.PutUint64(b[48:], uint64(m.Sequence))
	binary.BigEndian.PutUint64(b[56:], m.Flags)
	copy(b[64:72], m.ID[8:])
	copy(b[72:80], m.ID[:8])
	sum := sha256.Sum256(m.Payload)
	copy(b[80:112], sum[:])
	binary.BigEndian.PutUint32(b[112:], uint32(m.Content))
	binary.BigEndian.PutUint32(b[116:], uint32(len(m.Payload)))
	return append(b, m.Payload...)
}

// Decode reads a message from its bytes, which it keeps. It refuses one that was cut off, has more bytes than it says, or isn't what its
// sender summed up.
func Decode(b []byte) (m Message, err error) {
	switch {
	case len(b) < prefix:
		return m, fmt.Errorf("datachannel: a message of %d bytes, which is less than its header", len(b))
	case binary.BigEndian.Uint32(b) != headerLength:
		return m, fmt.Errorf("datachannel: a header of %d bytes", binary.BigEndian.Uint32(b))
	case binary.BigEndian.Uint32(b[36:]) != version:
		return m, fmt.Errorf("datachannel: version %d", binary.BigEndian.Uint32(b[36:]))
	}
	payload := b[prefix:]
	if n := binary.BigEndian.Uint32(b[116:]); uint64(n) != uint64(len(payload)) || n > MaxPayload {
		return m, fmt.Errorf("datachannel: a payload of %d bytes that is said to have %d, at most %d are taken", len(payload), n, MaxPayload)
	}
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], b[80:112]) {
		return m, fmt.Errorf("datachannel: the payload isn't what its SHA-256 is of")
	}
	m = Message{
		Kind:     Kind(strings.TrimRight(string(b[4:36]), " \x00")),
		Created:  time.UnixMilli(int64(binary.BigEndian.Uint64(b[40:]))),
		Sequence: int64(binary.BigEndian.Uint64(b[48:])),
		Flags:    binary.BigEndian.Uint64(b[56:]),
		Content:  Content(binary.BigEndian.Uint32(b[112:])),
		Payload:  payload,
	}
	copy(m.ID[8:], b[64:72])
	copy(m.ID[:8], b[72:80])
	return m, nil
}
