// Package acs is the protocol between the control plane and a node. It has the messages of ACS (agent communication) and TCS
// (telemetry), as Amazon's open-source ECS agent reads and writes them, and a few of Pintle's own, which that agent ignores. Both
// ends use it. It knows neither sockets nor state. docs/amazon-ecs-agent.md describes the protocol.
package acs

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxFrame is the largest frame that either end accepts, in bytes.
const MaxFrame = 4 << 20

// Message is one of the messages of this package.
type Message interface{ messageType() string }

// frame is a message on the wire, as it's read.
type frame struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
}

// Encode encodes a message as a frame.
func Encode(m Message) ([]byte, error) {
	b, err := json.Marshal(struct {
		Type    string  `json:"type"`
		Message Message `json:"message"`
	}{m.messageType(), m})
	if err != nil {
		return nil, fmt.Errorf("acs: encode %s: %w", m.messageType(), err)
	}
	return b, nil
}

// UnknownType is Decode's error for a message type that this version doesn't know. Receivers ignore the message, as Amazon's
// agent does.
type UnknownType struct{ Type string }

func (u *UnknownType) Error() string { return fmt.Sprintf("acs: unknown message type %q", u.Type) }

// Decode decodes the message in a frame of at most MaxFrame bytes.
func Decode(b []byte) (Message, error) {
	if len(b) > MaxFrame {
		return nil, fmt.Errorf("acs: a frame of %d bytes, more than %d", len(b), MaxFrame)
	}
	if m, ok := decodeEncoded(b); ok {
		return m, nil
	}
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

// decodeEncoded decodes a frame as Encode writes it, and reports whether it's one. It goes over the message half as often as Decode does with
// others, which counts where thousands of nodes tell of their GPUs.
func decodeEncoded(b []byte) (Message, bool) {
	rest, ok := bytes.CutPrefix(b, []byte(`{"type":"`))
	kind, rest, found := bytes.Cut(rest, []byte(`","message":`))
	body, ends := bytes.CutSuffix(rest, []byte("}"))
	blank, known := blanks[string(kind)]
	if !ok || !found || !ends || !known {
		return nil, false
	}
	m := blank()
	return m, json.Unmarshal(body, m) == nil // which it isn't if the frame has more members
}

// blanks has a function for each message type that returns an empty message.
var blanks = func() map[string]func() Message {
	m := map[string]func() Message{}
	for _, blank := range []func() Message{
		blank[HeartbeatMessage],
		blank[HeartbeatAckRequest],
		blank[PayloadMessage],
		blank[AckRequest],
		blank[NackRequest],
		blank[TaskManifestMessage],
		blank[TaskStopVerificationMessage],
		blank[TaskStopVerificationAck],
		blank[IAMRoleCredentialsMessage],
		blank[IAMRoleCredentialsAckRequest],
		blank[PublishMetricsRequest],
		blank[AckPublishMetric],
		blank[PublishHealthRequest],
		blank[AckPublishHealth],
		blank[PublishInstanceStatusRequest],
		blank[AckPublishInstanceStatus],
		blank[PintleNodeInventory],
		blank[PintleTaskNetwork],
		blank[PintleTaskRules],
		blank[PintlePrefetch],
		blank[PintleDeleteVolumes],
		blank[PintleVolumesDeleted],
		blank[PintleNames],
		blank[PintleInstance],
		blank[PintleExecute],
		blank[PintleGPUFault],
		func() Message { return &PintleGPUTelemetry{GPUs: make([]GPULoad, 0, mostGPUs)} },
	} {
		m[blank().messageType()] = blank
	}
	return m
}()

// mostGPUs is how many most machines have at most. Their loads come each second, and a list that grows to eight is allocated three times.
const mostGPUs = 8

// blank returns an empty message of type M.
func blank[M any, P interface {
	*M
	Message
}]() Message {
	return P(new(M))
}
