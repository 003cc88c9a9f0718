// Package acs is the protocol between the control plane and a node: the messages of ACS (agent
// communication) and TCS (telemetry), as Amazon's open-source ECS agent reads and writes them, and a
// few of Pintle's own, which that agent ignores. Both ends use it. It knows no sockets and no state.
// docs/amazon-ecs-agent.md describes the protocol.
package acs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
)

// MaxFrame is the largest frame that either end takes, in bytes.
const MaxFrame = 4 << 20

// Message is one of the messages of this package.
type Message interface{ messageType() string }

// frame is a message on the wire.
type frame struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
}

// Encode puts a message into a frame.
func Encode(m Message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("acs: encode %s: %w", m.messageType(), err)
	}
	return json.Marshal(frame{m.messageType(), body})
}

// UnknownType is the error of Decode for a message that this version does not know. Its receiver
// ignores the message, as Amazon's agent does.
type UnknownType struct{ Type string }

// Error is error's.
func (u *UnknownType) Error() string { return fmt.Sprintf("acs: unknown message type %q", u.Type) }

// Decode takes a message out of a frame.
func Decode(b []byte) (Message, error) {
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("acs: not a frame: %w", err)
	}
	blank, ok := blanks[f.Type]
	if !ok {
		return nil, &UnknownType{f.Type}
	}
	m := blank()
	if err := json.Unmarshal(f.Message, m); err != nil {
		return nil, fmt.Errorf("acs: %s: %w", f.Type, err)
	}
	return m, nil
}

// blanks makes an empty message by its type.
var blanks = func() map[string]func() Message {
	m := map[string]func() Message{}
	for _, blank := range []func() Message{
		func() Message { return new(HeartbeatMessage) },
		func() Message { return new(HeartbeatAckRequest) },
		func() Message { return new(PayloadMessage) },
		func() Message { return new(AckRequest) },
		func() Message { return new(NackRequest) },
		func() Message { return new(TaskManifestMessage) },
		func() Message { return new(TaskStopVerificationMessage) },
		func() Message { return new(TaskStopVerificationAck) },
		func() Message { return new(IAMRoleCredentialsMessage) },
		func() Message { return new(IAMRoleCredentialsAckRequest) },
		func() Message { return new(PublishMetricsRequest) },
		func() Message { return new(AckPublishMetric) },
		func() Message { return new(PublishHealthRequest) },
		func() Message { return new(AckPublishHealth) },
		func() Message { return new(PublishInstanceStatusRequest) },
		func() Message { return new(AckPublishInstanceStatus) },
		func() Message { return new(PintleNodeInventory) },
		func() Message { return new(PintleTaskNetwork) },
		func() Message { return new(PintleGPUTelemetry) },
	} {
		m[blank().messageType()] = blank
	}
	return m
}()

// A frame from an agent to TCS carries a signature of its own: header lines, a blank line, the JSON.

var endOfHeader = []byte("\r\n\r\n")

// EncodeSigned puts the signature's headers before an encoded message.
func EncodeSigned(h http.Header, frame []byte) []byte {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names)
	var b bytes.Buffer
	for _, name := range names {
		for _, v := range h[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	b.WriteString("\r\n")
	b.Write(frame)
	return b.Bytes()
}

// DecodeSigned takes the headers and the encoded message apart. A frame without headers is all message.
func DecodeSigned(b []byte) (http.Header, []byte) {
	head, body, ok := bytes.Cut(b, endOfHeader)
	if !ok || bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		return http.Header{}, b
	}
	h := http.Header{}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return h, body
}
