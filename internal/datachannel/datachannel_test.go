package datachannel

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var began = time.UnixMilli(1_700_000_000_000)

// TestWire compares a message byte by byte with what the protocol says of each field.
func TestWire(t *testing.T) {
	m := Message{
		Kind: Output, Created: time.UnixMilli(0x0102030405), Sequence: 7, Flags: first,
		ID: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), Content: Bytes, Payload: []byte("hi"),
	}
	want := "00000074" + hex.EncodeToString([]byte("output_stream_data              ")) + "00000001" + "0000000102030405" + "0000000000000007" +
		"0000000000000001" + "8899aabbccddeeff" + "0011223344556677" +
		"8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4" + "00000001" + "00000002" + "6869"
	if got := hex.EncodeToString(m.Encode()); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestDecode: what Encode writes is read again, and each changed byte of the payload, its digest or its length is found.
func TestDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Message{
			Kind:     rapid.SampledFrom([]Kind{Output, Input, Acknowledge, Closed}).Draw(t, "kind"),
			Created:  time.UnixMilli(rapid.Int64Range(1, 1<<40).Draw(t, "created")),
			Sequence: rapid.Int64().Draw(t, "sequence"),
			Flags:    rapid.Uint64().Draw(t, "flags"),
			ID:       uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			Content:  Content(rapid.Uint32().Draw(t, "content")),
			Payload:  rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "payload"),
		}
		b := m.Encode()
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != m.Kind || !got.Created.Equal(m.Created) || got.Sequence != m.Sequence || got.Flags != m.Flags || got.ID != m.ID ||
			got.Content != m.Content || !bytes.Equal(got.Payload, m.Payload) {
			t.Fatalf("got %+v, want %+v", got, m)
		}
		at := rapid.OneOf(rapid.IntRange(80, 111), rapid.IntRange(116, len(b)-1)).Draw(t, "at")
		b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := Decode(b); err == nil {
			t.Fatalf("byte %d was changed, and nobody noticed", at)
		}
		if _, err := Decode(b[:rapid.IntRange(0, len(b)-1).Draw(t, "length")]); err == nil {
			t.Fatal("a part of a message is taken for one")
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(Message{Kind: Input, Content: Bytes, Payload: []byte("ls\r")}.Encode())
	f.Add(acknowledge(Message{Kind: Input}, began))
	f.Add(Close("s", new(3), "why", began))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		for _, s := range []*Stream{NewStream(Output, Input), NewStream(Input, Output)} {
			s.Send(Bytes, nil, began)
			s.Take(m, began)
			if len(s.early) > 1 || len(s.pending) > 1 {
				t.Errorf("%+v is kept", s)
			}
		}
		CheckResponse(m.Payload)  //nolint:errcheck // it must not panic
		Respond(m.Payload, "1.2") //nolint:errcheck // as above
	})
}

// TestStream: whatever is lost, repeated or overtaken on the way, everything arrives once and in order.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, client := NewStream(Output, Input), NewStream(Input, Output)
		now := began
		total := rapid.IntRange(1, 60).Draw(t, "total")
		var toClient, toNode, got []byteFrame
		put := func(way *[]byteFrame, frames ...[]byte) {
			for _, f := range frames {
				switch rapid.IntRange(0, 3).Draw(t, "fate") {
				case 0: // lost
				case 1:
					*way = append(*way, f, f)
				default:
					*way = append(*way, f)
				}
			}
		}
		shuffled := func(way []byteFrame) []byteFrame {
			if len(way) > 1 && rapid.Bool().Draw(t, "overtaken") {
				way = slices.Clone(way)
				slices.Reverse(way)
			}
			return way
		}
		for i := range total {
			put(&toClient, node.Send(Bytes, []byte{byte(i)}, now))
		}
		for round := 0; !node.Empty(); round++ {
			if round > 400 {
				t.Fatal("it never arrives")
			}
			now = now.Add(maxTimeout)
			for _, f := range shuffled(toClient) {
				m, err := Decode(f)
				if err != nil {
					t.Fatal(err)
				}
				ack, taken := client.Take(m, now)
				if ack != nil {
					put(&toNode, ack)
				}
				for _, m := range taken {
					got = append(got, m.Payload)
				}
			}
			toClient = nil
			for _, f := range shuffled(toNode) {
				m, err := Decode(f)
				if err != nil {
					t.Fatal(err)
				}
				node.Take(m, now)
			}
			toNode = nil
			if rapid.Bool().Draw(t, "reconnect") {
				put(&toClient, node.Unacknowledged(now)...)
			} else {
				put(&toClient, node.Due(now.Add(maxTimeout))...)
			}
		}
		if len(got) != total {
			t.Fatalf("%d of %d arrived", len(got), total)
		}
		for i, p := range got {
			if int(p[0]) != i {
				t.Fatalf("message %d came in the place of %d", p[0], i)
			}
		}
	})
}

// byteFrame is an encoded message.
type byteFrame = []byte

// TestHostilePeer: acknowledgements of what was never sent and numbers far ahead of their turn change and keep nothing.
func TestHostilePeer(t *testing.T) {
	s := NewStream(Output, Input)
	s.Send(Bytes, []byte("a"), began)
	for _, sequence := range []int64{-1, 1, 1 << 62, -1 << 63} {
		s.Take(Message{Kind: Acknowledge, Payload: []byte(`{"AcknowledgedMessageSequenceNumber":` + itoa(sequence) + `}`)}, began)
	}
	if s.Empty() {
		t.Error("what was never sent was acknowledged")
	}
	for _, sequence := range []int64{-1, ahead, 1 << 62, -1 << 63} {
		if ack, _ := s.Take(Message{Kind: Input, Sequence: sequence}, began); ack != nil || len(s.early) > 0 {
			t.Errorf("message %d was taken", sequence)
		}
	}
	for i := int64(1); i < 10*ahead; i++ {
		s.Take(Message{Kind: Input, Sequence: i}, began)
	}
	if len(s.early) >= ahead {
		t.Errorf("%d messages are kept", len(s.early))
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// TestTimeout: a message is sent again once it's late, and later on a slow way.
func TestTimeout(t *testing.T) {
	s := NewStream(Output, Input)
	frame := s.Send(Bytes, []byte("a"), began)
	if got := s.Due(began.Add(firstTimeout - 1)); len(got) != 0 {
		t.Errorf("%d are sent again too early", len(got))
	}
	if got := s.Due(began.Add(firstTimeout)); len(got) != 1 || !bytes.Equal(got[0], frame) {
		t.Errorf("%d are sent again", len(got))
	}
	m, _ := Decode(frame)
	ack, _ := Decode(acknowledge(m, began))
	s.Take(ack, began)
	for range 20 {
		m, _ := Decode(s.Send(Bytes, nil, began))
		ack, _ := Decode(acknowledge(m, began))
		s.Take(ack, began.Add(600*time.Millisecond))
	}
	if s.timeout <= 600*time.Millisecond || s.timeout > maxTimeout || !s.Empty() {
		t.Errorf("after slow acknowledgements the time-out is %s", s.timeout)
	}
}

// TestHandshake: the client that is a terminal is taken; one that does something else isn't.
func TestHandshake(t *testing.T) {
	response, err := Respond(NewRequest(), "1")
	if err != nil || CheckResponse(response) != nil {
		t.Errorf("%s, %v, %v", response, err, CheckResponse(response))
	}
	port := bytes.Replace(NewRequest(), []byte(terminalSession), []byte("Port"), 1)
	if response, err = Respond(port, "1"); err != nil || CheckResponse(response) == nil {
		t.Errorf("a session of ports: %s, %v", response, err)
	}
}
