package datachannel

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

const (
	// window is how many messages may be on their way before the first of them was acknowledged: 256 KiB of a terminal's bytes.
	window = 256
	// ahead is how far in front of the next message one may be that is kept for its turn.
	ahead = 512

	firstTimeout = 200 * time.Millisecond
	maxTimeout   = time.Second
	granularity  = 10 * time.Millisecond
)

// Stream is one end's books of a channel: what it has sent and must send again until that is acknowledged, and what came before its turn.
// It outlives the connections below it. Its methods are for one goroutine at a time.
type Stream struct {
	sends, takes Kind

	next    int64   // the number of the next message to send
	pending []*sent // what was sent and not acknowledged, in order

	want  int64             // the number of the next message to take
	early map[int64]Message // what came before its turn

	timeout, mean, variation time.Duration
}

// sent is a message that may have to be sent again.
type sent struct {
	sequence int64
	frame    []byte
	at       time.Time
	again    bool // it was sent more than once, so its acknowledgement tells nothing about the way's length
	done     bool // it was acknowledged, and one before it wasn't
}

// NewStream returns the books of one end: a node's sends Output and takes Input, a client's the other way round.
func NewStream(sends, takes Kind) *Stream {
	return &Stream{sends: sends, takes: takes, early: map[int64]Message{}, timeout: firstTimeout}
}

// Full reports whether so much is on its way that nothing more should be sent now.
func (s *Stream) Full() bool { return len(s.pending) >= window }

// Empty reports whether all that was sent has arrived.
func (s *Stream) Empty() bool { return len(s.pending) == 0 }

// Send returns the bytes of the next message, to be sent now.
func (s *Stream) Send(content Content, payload []byte, now time.Time) []byte {
	m := Message{Kind: s.sends, Created: now, Sequence: s.next, ID: uuid.New(), Content: content, Payload: payload}
	if s.next == 0 {
		m.Flags = first
	}
	out := &sent{sequence: s.next, frame: m.Encode(), at: now}
	s.next++
	s.pending = append(s.pending, out)
	return out.frame
}

// Due returns the messages that were sent so long ago that they are lost, to be sent now.
func (s *Stream) Due(now time.Time) (frames [][]byte) {
	for _, p := range s.pending {
		if !p.done && now.Sub(p.at) >= s.timeout {
			frames = append(frames, p.resend(now))
		}
	}
	return frames
}

// Unacknowledged returns all messages that may not have arrived, to be sent now over a new connection.
func (s *Stream) Unacknowledged(now time.Time) (frames [][]byte) {
	for _, p := range s.pending {
		if !p.done {
			frames = append(frames, p.resend(now))
		}
	}
	return frames
}

func (p *sent) resend(now time.Time) []byte {
	p.at = now
	p.again = true
	return p.frame
}

// Take takes a message of the other end. It returns an acknowledgement to send, if there is one, and the messages whose turn it now is.
// A message far ahead of its turn is dropped without an acknowledgement, so that it comes again. What belongs to no stream is ignored.
func (s *Stream) Take(m Message, now time.Time) (ack []byte, taken []Message) {
	switch m.Kind {
	case Acknowledge:
		s.acknowledged(m, now)
		return nil, nil
	case s.takes:
	default:
		return nil, nil
	}
	if m.Sequence < 0 || m.Sequence >= s.want+ahead {
		return nil, nil
	}
	if m.Sequence >= s.want { // else the acknowledgement was lost
		s.early[m.Sequence] = m
	}
	for {
		next, ok := s.early[s.want]
		if !ok {
			return acknowledge(m, now), taken
		}
		delete(s.early, s.want)
		s.want++
		taken = append(taken, next)
	}
}

// acknowledgement is the payload of a message of that kind.
type acknowledgement struct {
	AcknowledgedMessageType           Kind
	AcknowledgedMessageId             string //nolint:revive // AWS's spelling
	AcknowledgedMessageSequenceNumber int64
	IsSequentialMessage               bool
}

func acknowledge(m Message, now time.Time) []byte {
	payload, _ := json.Marshal(acknowledgement{m.Kind, m.ID.String(), m.Sequence, true}) // strings and numbers can't fail
	return Message{Kind: Acknowledge, Created: now, Flags: first | last, ID: uuid.New(), Payload: payload}.Encode()
}

// acknowledged forgets what has arrived, and learns from it how long the way is.
func (s *Stream) acknowledged(m Message, now time.Time) {
	var a acknowledgement
	if json.Unmarshal(m.Payload, &a) != nil || len(s.pending) == 0 {
		return
	}
	i := a.AcknowledgedMessageSequenceNumber - s.pending[0].sequence
	if i < 0 || i >= int64(len(s.pending)) || s.pending[i].done {
		return
	}
	p := s.pending[i]
	p.done = true
	if !p.again {
		s.measure(now.Sub(p.at))
	}
	for len(s.pending) > 0 && s.pending[0].done {
		s.pending = s.pending[1:]
	}
}

// measure sets the time after which a message counts as lost, as TCP does (RFC 6298).
func (s *Stream) measure(way time.Duration) {
	if s.mean == 0 {
		s.mean, s.variation = way, way/2
	} else {
		s.variation = (3*s.variation + (s.mean - way).Abs()) / 4
		s.mean = (7*s.mean + way) / 8
	}
	s.timeout = min(max(s.mean+max(granularity, 4*s.variation), firstTimeout), maxTimeout)
}
